# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights on disk: the original's TF1 files, ours, Hugging Face's, BERT's.

Every format is read as `Weights`, named tensors on demand under the original's
names, and written from them.
"""
