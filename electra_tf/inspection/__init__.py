# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inspection: asking a pre-trained model what it thinks of a text.

In: a `PretrainedModel` and sentences. Out: what was masked, proposed, sampled
and judged (`looking_glass`, drawn by `glass_terminal` and `glass_page`),
tokens for `[MASK]` (`fill_mask`), scores of texts (`electric_score`,
`pseudo_likelihood`) and n-best lists in a new order (`reranking`).
May import: `electra_tf.finetuning` and below.
"""

from electra_tf import leave_kernels_to_tensorflow

leave_kernels_to_tensorflow()
