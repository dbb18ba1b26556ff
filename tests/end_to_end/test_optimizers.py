# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Slots of one optimizer are not taken for another's; see test_resume.py."""

import io

import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.formats import open_weights
from electra_tf.commands import convert_checkpoint
from electra_tf.pretraining import runner
from electra_tf.training.summaries import Console

pytestmark = pytest.mark.slow  # Whole runs.


@pytest.fixture
def run(data_dir, settings):
    def call(**hparams):
        given = settings("run", **{"num_train_steps": 2, **hparams})
        config = PretrainingConfig.create("m", str(data_dir), **given)
        return runner.run(config, Console(io.StringIO()))

    return call


def test_a_library_s_slots_are_for_it_alone(run, tmp_path, capsys):
    run(optimizer="adamw")
    with pytest.raises(UserError, match="slots of optimizer 'adamw'.*init_"):
        run(num_train_steps=3)
    weights = open_weights(str(tmp_path / "run"))
    assert not weights.slots and weights.global_step == 2
    target = str(tmp_path / "converted" / "model.ckpt-2")
    argv = ["x", str(tmp_path / "run"), target, "--output_format=tf1"]
    convert_checkpoint.main(convert_checkpoint.parse_flags(argv))
    printed = capsys.readouterr().out
    assert ": slots of optimizer adamw, for it alone" in printed
    assert "no Adam slots: training starts from it with --init" in printed
    names = [name for name, _ in tf.train.list_variables(target)]
    assert "global_step" in names and len(names) == len(weights.specs)


def test_the_original_s_slots_are_not_taken_for_another_s(run):
    run()
    with pytest.raises(UserError, match="slots of optimizer 'original'"):
        run(optimizer="adamw", num_train_steps=3)
