# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room: weights on disk.

In: a model whose variables carry the original's names. Out: the same model
with a checkpoint's values, and a report of what matched. May import modeling.
"""
