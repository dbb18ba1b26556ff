# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients in, updated variables out; knows variables and their names only."""
