# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: evaluation, floor 6: from a model's outputs to scores.

In: one dictionary of NumPy arrays per example or window, as a task's head
returns them. Out: named figures (accuracy, Matthews correlation, span F1,
exact match, ...) in the order they are printed, answers to questions, and
statistics over trials and tasks.
May import: configure, text, files, NumPy, SciPy, scikit-learn, seqeval
and tf-models' SQuAD scripts; no TensorFlow graph code, never pretraining.

Reading order: `scorer` (the contract), `classification`, `tagging`;
`questions`, `answer_spans`, `answer_text` (from scores of positions to
answers), `squad` and `mrqa` (their figures), `question_answering` (the
scorer of all of these); `trials` (statistics), `glue` (averages over tasks).
"""
