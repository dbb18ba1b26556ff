# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in the formats of the original, this project, transformers, BERT.

All formats are read as `Weights`, which load tensors on demand under the
original's names, and are written from `Weights`.
"""
