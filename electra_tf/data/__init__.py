# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading of texts and tables, builds of pre-training records, and batches.

Builds of pre-training records, in the order of their steps:
build: a whole build, and the work of a job.
jobs, beam: parts of a corpus, and the worker processes that run them.
build_options, manifest, build_report: the settings and the outcome of a build.
corpora, archives, tfds_data: documents of text.
segments: splitting of documents into examples.
tfrecords: examples as bytes, and TFRecord files.

Batches of a pre-training run:
input_files, raw_text: the records or the text of a run.
record_checks, example_count, fingerprints: checks before training.
input_pipeline: batches.

Users' files:
tables, columns, conll: rows, columns and sentences.
values, list_cells: values and lists in the notations of other programs.
feature_spec: features of fine-tuning examples.

Only `input_pipeline` and `feature_spec` import TensorFlow, so that worker
processes start quickly.
"""
