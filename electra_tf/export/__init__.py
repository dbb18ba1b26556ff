# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Export of models to files for other programs: SavedModel, LiteRT, ONNX."""
