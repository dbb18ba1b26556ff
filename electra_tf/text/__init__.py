# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text becomes wordpieces and ids, equal to the original's on every string.

TensorFlow is imported only by the `graph_*.py`, and for a remote vocabulary,
so that a worker process which only tokenizes starts at once.
"""
