# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics and final answers, computed from the outputs of a model."""
