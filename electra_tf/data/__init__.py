# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text becomes record files, and record files become batches.

* `build` jobs on workers and the manifest; `corpora` documents;
  `example_writer` two segments, their bytes and the shards of one job
* `raw_text` documents cut anew in every epoch, without records
* `record_checks` do records fit a run? `input_pipeline` batches
* `tables` rows of users' files and of TFDS; `feature_spec` of fine-tuning

TensorFlow is imported only by `input_pipeline` and `feature_spec`, so that
worker processes start in an instant.
"""
