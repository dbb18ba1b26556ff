# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room: numbers about models, as tables, pictures and counts.

In: named arrays from anywhere, a pair at a time. Out: how far apart they are,
in numbers, in a text for the screen and in a picture. NumPy and matplotlib
only.

In: a config. Out: parameters, floating-point operations and memory of the model
it makes, without making it. Standard library only.

May import configure, text, data and the sizes of `modeling.encoder_config`.
"""
