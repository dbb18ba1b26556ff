# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models as files that other programs run: SavedModel, LiteRT, ONNX."""
