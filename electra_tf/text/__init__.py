# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenization into the ids that the original's tokenizer returns.

Only the `graph_*.py` modules and remote vocabularies import TensorFlow, so
a process that only tokenizes starts quickly.
"""
