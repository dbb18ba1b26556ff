# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The same command again continues, to the bit, and spoils nothing."""

import dataclasses
import json
import signal

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.training.loop import TrainLoop

pytestmark = pytest.mark.slow  # Whole runs.


@pytest.fixture
def stop_after(monkeypatch):
    """Makes a run receive SIGTERM after so many steps."""

    def install(steps):
        original = TrainLoop.train
        count = {"steps": 0}

        def train(self, num_steps):
            inner = self._should_stop

            def asked():
                count["steps"] += 1
                if count["steps"] == steps:
                    signal.raise_signal(signal.SIGTERM)
                return inner()

            self._should_stop = asked
            try:
                original(self, num_steps)
            finally:
                self._should_stop = inner

        monkeypatch.setattr(TrainLoop, "train", train)
        return monkeypatch.undo

    return install


def test_the_same_command_again_trains_nothing_new(config_of, run):
    config = config_of(num_trials=1)
    first, _ = run(config)
    again, text = run(config)
    assert again["trials"] == first["trials"]
    assert "Trial 1: done by an earlier run" in text
    more, _ = run(dataclasses.replace(config, num_trials=2))
    assert more["trials"][0] == first["trials"][0] and len(more["trials"]) == 2


def test_other_hparams_need_overwrite(config_of, run):
    run(config_of())
    with pytest.raises(UserError, match=r"learning_rate: 0.001 -> 0.002"):
        run(config_of(learning_rate=2e-3))


@pytest.mark.parametrize("extra", [{}, {"shuffle_whole_set": True}])
def test_a_stopped_run_continues_to_the_bit(
    config_of, run, weights_of, tmp_path, stop_after, extra
):
    whole = config_of(eval_every_n_steps=5, **extra)
    run(whole)
    directory = tmp_path / "models/tiny/finetuning_models"
    expected = weights_of(directory / "sst_model_1")
    results = tmp_path / "models/tiny/results/sst_results.txt"
    expected_text = results.read_text()
    again = dataclasses.replace(
        whole,
        model_dir=str(directory / "other"),
        results_txt=str(tmp_path / "r.txt"),
        results_pkl=str(tmp_path / "r.pkl"),
        results_json=str(tmp_path / "r.json"),
    )
    undo = stop_after(11)
    stopped, text = run(again)
    undo()
    assert stopped["interrupted"] == signal.SIGTERM
    assert "Stopped at step 11" in text and stopped["trials"] == []
    _, text = run(again)
    assert "Continuing from" in text
    found = weights_of(directory / "other_1")
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)
    assert (tmp_path / "r.txt").read_text() == expected_text
    rows = [
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in (
            directory / "sst_model_1/eval_log.jsonl",
            directory / "other_1/eval_log.jsonl",
        )
    ]
    assert rows[0] == rows[1] and len(rows[0]) == 5


def test_nothing_of_others_is_deleted(config_of, run, tmp_path):
    directory = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    directory.mkdir(parents=True)
    (directory / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="thesis.txt"):
        run(config_of(overwrite=True))
    assert (directory / "thesis.txt").exists()
