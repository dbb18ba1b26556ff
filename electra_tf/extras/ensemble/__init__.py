# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ensembles, which mix and compare several models' predictions for a task.

rows: the lines of a file of predictions, checked. predictions: several models'
predictions for the examples of a split. mixing: means, fitted weights, and the
gains of mixtures.
"""
