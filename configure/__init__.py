# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: hyperparameters as data (floor 0).

In: JSON text, `.json` files, presets, command-line flags.
Out: a frozen, typed `PretrainingConfig` that knows where each value came from.
May import: the standard library (and absl for flags). No TensorFlow; reading a
`--hparams` file and the packaged presets is the only contact with the disk.
"""
