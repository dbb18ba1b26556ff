# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The record files of a run are found by its hparams."""

from configure.pretraining import PretrainingConfig
from electra_tf.data import record_checks
from electra_tf.data.input_files import InputFiles
from tests.conftest import refused


def test_record_files_are_those_of_the_pattern(config):
    (config.folder / ".tmp-pretrain_data.tfrecord-9-of-9").write_text("x")
    assert len(InputFiles.of(config).find_records(True).paths) == 4
    prefix = f"{config.folder}/pretrain_data.tfrecord"
    config.pretrain_tfrecords = f"{prefix}-0-of-4,{prefix}-2-of-4"
    paths, held_out, _ = InputFiles.of(config).find_records(True)
    assert [path[-6:] for path in paths] == ["0-of-4", "2-of-4"]
    assert not held_out
    assert InputFiles.of(config).find_records(False).held_out


def test_named_held_out_records_must_exist(config):
    config.eval_tfrecords = f"{config.folder}/other*"
    config.origins = {"eval_tfrecords": "flag"}
    message = r"eval_tfrecords = '.*other\*'"
    files = InputFiles.of(config)
    refused(message, files.find_records, training=False)


def test_derived_held_out_records_may_be_missing(config):
    config.eval_tfrecords = f"{config.folder}/other*"
    config.origins = {"eval_tfrecords": "derived"}
    (warning,) = record_checks.check_records(config, False)
    assert "the evaluation uses the training records" in warning


def test_held_out_records_are_next_to_those_of_training(config):
    pattern = f"{config.folder}/pretrain_data.tfrecord*"
    config = PretrainingConfig.create("m", "other", pretrain_tfrecords=pattern)
    assert InputFiles.of(config).find_records(False).held_out
