# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training room (floor 5): one loop for every objective.

In:  a `compute(features, seed, training)` function that returns a dict with
     `total_loss`, an optimizer, a plain dataset iterator, a schedule of steps.
Out: trained variables, checkpoints that resume to the bit, and rows of numbers
     in the console, TensorBoard, JSON lines, a picture and results files.

May import: configure, text, data, modeling, optimization, checkpoints.
Knows nothing of generators, discriminators or tasks: what to log besides the
loss is handed in by the room above.

Files in reading order: `strategy` (where), `loop` (one step and a chunk of
steps), `accumulation` (a batch in parts), `loss_scale` (for float16),
`interval` (means between two log rows), `checkpointing` (save, resume), `best`
(the best evaluation's checkpoint), `session` (the outer loop, on
`orbit.Controller`), `progress` (console line), `summaries` (TensorBoard and
JSON lines), `curves` (PNG), `results` (files of an evaluation),
`run_directory` (what may be deleted).
"""
