# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizers and learning rates, independent of models and tasks."""
