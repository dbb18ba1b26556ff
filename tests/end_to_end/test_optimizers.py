# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs with the libraries' optimizers: stopped, continued, converted."""

import io

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.formats import open_weights
from electra_tf.commands import convert_checkpoint
from electra_tf.pretraining import runner
from electra_tf.training.summaries import Console

pytestmark = pytest.mark.slow  # Whole runs.


def saved(folder):
    reader = tf.train.load_checkpoint(str(folder))
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if name.startswith(("model/", "optimizer/"))
    }


@pytest.fixture
def run(data_dir, settings):
    def call(name, **hparams):
        given = settings(name, **{"num_train_steps": 6, **hparams})
        config = PretrainingConfig.create("m", str(data_dir), **given)
        return runner.run(config, Console(io.StringIO()))

    return call


@pytest.mark.parametrize(
    "kind", ["adamw", pytest.param("lamb", marks=pytest.mark.heavy)]
)
def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    run, tmp_path, monkeypatch, kind, capsys
):
    run("whole", optimizer=kind)
    with monkeypatch.context() as patch:
        steps = iter(range(100))
        patch.setattr(
            "electra_tf.training.run.PreemptionHandler.requested",
            lambda self: next(steps) >= 4,
        )
        run("stopped", optimizer=kind)
    path = tmp_path / "stopped"
    assert tf.train.latest_checkpoint(path)[-2:] in ("-1", "-2", "-3", "-4")
    with pytest.raises(UserError, match=f"slots of optimizer '{kind}'.*init_"):
        run("stopped")
    run("stopped", optimizer=kind)
    expected, found = saved(tmp_path / "whole"), saved(path)
    assert found.keys() == expected.keys()
    moments = [n for n in expected if n.startswith(f"optimizer/{kind}/v/")]
    assert len(moments) > 20
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)

    # Its slots are no Adam slots to any other program.
    weights = open_weights(str(path))
    assert not weights.slots and weights.global_step == 6
    target = tmp_path / "converted" / "model.ckpt-6"
    argv = ["x", str(path), str(target), "--output_format=tf1"]
    convert_checkpoint.main(convert_checkpoint.parse_flags(argv))
    printed = capsys.readouterr().out
    assert f": slots of optimizer {kind}, for it alone" in printed
    assert "no Adam slots: training starts from it with --init" in printed
    names = [name for name, _ in tf.train.list_variables(str(target))]
    assert "global_step" in names and len(names) == len(weights.specs)


def test_the_original_s_slots_are_not_taken_for_another_s(run):
    run("plain")
    with pytest.raises(UserError, match="slots of optimizer 'original'"):
        run("plain", optimizer="adamw", num_train_steps=8)
