# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Export room (floor 9): models as files that other programs run.

In:  a loaded model (room `prediction`), fine-tuned or pre-trained.
Out: `<output_dir>/<version>/`: a SavedModel that takes ids or raw text and
     needs only TensorFlow and tensorflow-text; beside it a model card; on
     request LiteRT (TFLite) files.

May import: configure and every room below.

Reading order: `packing` (ids to inputs, in the graph), `signatures` (what all
exported modules have in common). Heads: `task_module` (base), `text_heads`,
`tagging`, `question_answering` (each with the files of its name, both on
`window_batches`),
`pretrained_heads`, `encoder` (TF Hub's text-encoder convention), `modules`
(which head makes which module). Writing: `versions` (the folder),
`saved_model`, `lite`, `onnx_file`, `conversions` (what those change). The
card: `card_facts`, `run_facts`, `model_card`, `card_check`.
"""
