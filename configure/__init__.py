# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every hyperparameter as data: defaults, bounds, presets, flags.

No TensorFlow; a `--hparams` file and the packaged presets are the only contact
with the disk.
"""
