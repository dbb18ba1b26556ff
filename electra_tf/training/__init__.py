# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training runs and the training loop, independent of objectives.

In:  a `compute(features, seed, training)` function that returns a dict with
     `total_loss`, an optimizer, a plain dataset iterator, a run's intervals.
Out: trained variables, checkpoints that resume to the bit, and rows of numbers
     in the console, TensorBoard, JSON lines, a plot and results files.

The package does not depend on generators, discriminators or tasks. Reading
order: `run` (from start to end), `loop` (one step and a chunk of steps),
`micro_batches`, `devices`, `replicas` and `workers` (several devices),
`checkpointing` and `data_position` (state of a continued run), `console`,
`logs`, `curves` and `result_files` (outputs).
"""
