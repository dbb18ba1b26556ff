# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hyperparameters as data: defaults, bounds, presets and flags.

This package does not import TensorFlow, and reads only the files of `--hparams`
and `--task_config` and the packaged presets.
"""
