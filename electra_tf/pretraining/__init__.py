# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room: the paper, in reading order (section 2, Figure 2).

In: batches of token ids and a resolved configuration. Out: masked inputs,
generator, corrupted inputs, discriminator, losses, metrics, and the run that
trains them; or, before it, what it will take. May import configure, text, data,
modeling, optimization, checkpoints, analysis and training. Reading order:
masking, sampling, losses, model, metrics, build, runner; plan, timing.
"""
