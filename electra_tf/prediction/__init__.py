# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: prediction, floor 8: trained models answer, in Python.

In: a folder that a run left, or any checkpoint. Out: labels, numbers, tags,
answers and vectors of texts.
May import: everything up to finetuning and pretraining; never inspection.

Reading order: `loading` (folder -> model with its tokenizer). Fine-tuned
models: `asking` (what can be asked), `text_answers`, `tag_answers`,
`question_answers`, `running` (rows -> outputs in batches), `predictor`. Any
encoder: `embedding`. Files: `reading`, `writing`, `vector_files`, `progress`.
"""

from electra_tf import leave_kernels_to_tensorflow

leave_kernels_to_tensorflow()
