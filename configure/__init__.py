# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every hyperparameter as data: defaults, bounds, presets, flags.

TensorFlow is not imported. The only files that are read are those of
`--hparams` and `--task_config`, and the packaged presets.
"""
