# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints room (floor 4): weights on disk, in any of the formats.

In:  TF1 files of the original or of BERT, native checkpoints, Hugging Face
     folders; or the variables of a live model.
Out: `Weights`, named tensors read on demand under the original's names; from
     those, files of any format, or a model's variables with a report.

May import: configure, text, data, modeling, optimization.

Files in reading order: `weights` (what all formats become), `formats` (which
one it is), `prefixes` (finding files), `tf1`, `tf1_writer`, `bert`, `native`,
`huggingface` (and what begins with that name, `safetensors_files`,
`pytorch_file`, `stored_tensors`), `parts` (one network of two), `positions`
(longer tables), `measured`, `sizes`, `hparams_check` (shapes to hparams and
back), `electra_config` (the file beside the weights), `restore` and
`shape_hints` (into a model).
"""
