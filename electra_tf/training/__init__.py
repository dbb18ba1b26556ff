# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""One run and one loop for every objective.

In:  a `compute(features, seed, training)` function that returns a dict with
     `total_loss`, an optimizer, a plain dataset iterator, a schedule of steps.
Out: trained variables, checkpoints that resume to the bit, and rows of numbers
     in the console, TensorBoard, JSON lines, a picture and results files.

Knows nothing of generators, discriminators or tasks. Reading order: `run` (the
course of a run), `loop` (one step and a chunk of steps), `strategy` (where),
`checkpointing`, `summaries` (what is shown and written).
"""
