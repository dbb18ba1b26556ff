# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a model's outputs, as NumPy arrays, to scores people compare.

Comes in: one dictionary of arrays per example or window, as a task's head
returns them. Goes out: named figures (accuracy, Matthews correlation, span
F1, exact match, ...) in the order they are printed, and statistics over
several trials. May import: configure, text, NumPy, SciPy, scikit-learn,
seqeval; no TensorFlow graph code.
"""
