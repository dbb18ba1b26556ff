# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: one label, one number or several labels per text or pair.

In: rows of TSV, CSV, JSON lines or TFDS. Out: features with `<task>_eid` and
`<task>_label_ids` or `<task>_targets`, and a head on the sentence's vector.
May import: what fine-tuning may.

`rows` (reading), `text_task` (examples, featurizing), `task` and `regression`
(labels), `glue` (the GLUE tasks as data), `head`.
"""
