# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ensembles: predictions of several models of a task, mixed and compared.

rows: the lines of a file of predictions, checked. predictions: several models'
predictions for the examples of a split. mixing: means, fitted weights, and the
gains of mixtures.
"""
