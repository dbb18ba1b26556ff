# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: a label per word.

In: sentences in CoNLL columns or JSON lines. Out: features with `<task>_eid`,
`<task>_labels`, `<task>_labels_mask` and `<task>_labeled_positions` (the first
wordpiece of each word), and a head that reads these positions.
May import: what fine-tuning may.

`sentences` (reading), `task` (labels, featurizing), `chunking`, `ner`, `head`.
"""
