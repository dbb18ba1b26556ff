# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a model's outputs to named figures, answers, statistics over trials.

`scorers` (texts, words, trials), `question_answering` (from scores of
positions to answers and their figures), `summaries` (ROUGE, oracles), `glue`
(averages over tasks). Nothing here writes a file.
"""
