# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: fine-tuning, floor 7: one task = data + head + scorer.

In: a `FinetuningConfig`, task files (or TFDS data sets) and a pre-trained
discriminator. Out: trained models, scores over trials, predictions.
May import: configure, text, data, modeling, optimization, checkpoints,
training and evaluation; never pretraining.

Reading order: `task` (the contract), `rows` (what is wrong with the data),
`schema` (a task as data), `classification/`, `tagging/`,
`question_answering/`, `custom` (a task from a JSON file), `registry`,
`preprocessing` and `record_cache` (examples -> cached records), `batches`,
`model`, `build`, `start`, `trial`, `runner`.
"""
