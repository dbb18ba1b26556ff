# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of the original, this project, transformers and BERT.

All formats are read as `Weights`, which load tensors on demand under the
original's names, and are written from `Weights`.
"""
