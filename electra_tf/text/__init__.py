# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenization of text, with the same ids as in the original.

Only the `graph_*.py` modules and remote vocabularies import TensorFlow, so
a process that only tokenizes starts quickly.
"""
