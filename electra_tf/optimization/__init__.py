# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room: gradients in, updated variables out.

Knows variables and their names only; imports TensorFlow, nothing of the
project. Paper appendix A and the original's model/optimization.py.
"""
