# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room: numbers about models, as tables and pictures.

In: named arrays from anywhere, a pair at a time. Out: how far apart they are,
in numbers, in a text for the screen and in a picture. NumPy and matplotlib
only. May import configure, text and data.
"""
