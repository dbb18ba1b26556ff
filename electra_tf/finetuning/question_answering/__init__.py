# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: the span of a passage that answers a question.

In: questions and passages in SQuAD's or MRQA's format, or from TFDS. Out:
windows of `max_seq_length` wordpieces with `<task>_eid`,
`<task>_start_positions`, `<task>_end_positions`, `<task>_is_impossible`; a
head for start, end and answerability. May import: what fine-tuning may.

`reading` (files -> questions), `examples` (questions -> examples),
`featurization` (examples -> windows), `task` (what all have in common),
`squad`, `mrqa`, `custom` (a task from data alone), `head`. Answers are put
together and scored in `electra_tf.metrics.question_answering`.
"""
