# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: fine-tuning, floor 7: one task = data + head + scorer.

In: a `FinetuningConfig`, task files (or TFDS data sets) and a pre-trained
discriminator. Out: trained models, scores over trials, predictions.
May import: configure, text, data, modeling, optimization, checkpoints,
training and evaluation; never pretraining.

Reading order: `task` (the contract), `rows` (what is wrong with the data),
`schema` (a task as data), `label_store` (labels found in it),
`classification/`, `tagging/`, `question_answering/`, `custom` (a task from a
JSON file), `registry`. Data: `preprocessing` and `record_cache` (examples ->
cached records), `batches`. One model: `model`, `build`, `start` (what it
starts from), `steps`, `scoring`, `early_stopping`, `directories`,
`trial_logs`, `trial`. A run: `report`, `results`, `score_plot`,
`predictions` (of test sets), `runner`. All of GLUE: `glue_suite` (every task
in turn), `prediction_files`, `glue_submission`, `glue_archive` (what its
server takes).
"""
