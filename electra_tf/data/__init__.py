# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: text -> examples -> records -> batches (floor 2).

In: text files, archives or data sets; a tokenizer; later the record files.
Out: `pretrain_data.tfrecord-{i}-of-{n}` with a `manifest.json` beside them,
and a `tf.data.Dataset` of int32 [B, L] batches.
May import: configure, text. Only `input_pipeline` needs TensorFlow, so that
building examples starts in an instant in every worker process.

The corridor: `corpora` (documents) -> `example_builder` (two segments) ->
`records` (bytes) -> `example_writer` (shards of one job) -> `dataset_build`
(all jobs, `manifest`) -> `record_checks` -> `input_pipeline` (batches).
"""
