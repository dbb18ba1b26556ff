# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning: a task is data, a head and a scorer.

`task` (the contract), `schema` (a task as data), `classification`, `tagging`,
`questions` and `question_answering`, `registry`, `preprocessing` (examples ->
cached records -> batches); `model` (encoder and heads), `build`, `scoring`,
`trial`, `runner` (of all trials); `glue_suite`, `glue_submission`.
"""
