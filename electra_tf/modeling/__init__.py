# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers and networks of the models (paper section 2, Figure 2).

The package reads no files and depends on no task. A layer's constructor creates
all of the layer's variables, under their names in the original's TF1
checkpoints.

Legend of the shapes in the project's docstrings:

- `B` batch size (sequences); `L` sequence length in wordpieces;
- `N` max_predictions_per_seq, the positions chosen for masking in a sequence;
- `V` vocabulary size; `E` width of the embedding tables;
- `H` hidden size of an encoder; `A` attention heads; `D = H / A`.
"""
