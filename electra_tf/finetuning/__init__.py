# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning: a task is data, a head and a scorer.

`task` (the contract), `registry` (a task as data, and by its name),
`classification`, `tagging`, `questions` and `question_answering`,
`preprocessing` (examples -> cached records -> batches); `model` (encoder and
heads), `build`, `trial` (one run), `runner` (all of them); `glue`.
"""
