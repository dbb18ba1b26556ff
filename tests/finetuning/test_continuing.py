# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A run continued, a model evaluated alone, or the start of another."""

import dataclasses
import pathlib
import shutil
import signal

import numpy as np
import pytest

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.tf1 import write_tf1
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.training.loop import TrainLoop
from electra_tf.training.summaries import read_rows

pytestmark = pytest.mark.slow  # Whole runs.
MODEL = "models/tiny/finetuning_models/sst_model_1"


@pytest.fixture
def trained(config_of, run, tmp_path):
    """The result and the folder of a trained model."""
    result, _ = run(config_of())
    return result, str(tmp_path / MODEL)


@pytest.fixture
def stop_after(monkeypatch):
    """Makes a run receive SIGTERM after so many steps."""

    def install(steps):
        original = TrainLoop.train
        count = {"steps": 0}

        def train(self, num_steps):
            inner = self.should_stop

            def asked():
                count["steps"] += 1
                if count["steps"] == steps:
                    signal.raise_signal(signal.SIGTERM)
                return inner()

            self.should_stop = asked
            try:
                original(self, num_steps)
            finally:
                self.should_stop = inner

        monkeypatch.setattr(TrainLoop, "train", train)
        return monkeypatch.undo

    return install


def test_the_same_command_again_trains_nothing_new(config_of, run):
    config = config_of(num_trials=1)
    first, _ = run(config)
    again, text = run(config)
    assert again["trials"] == first["trials"]
    assert "Trial 1: done by an earlier run" in text
    with pytest.raises(UserError, match=r"learning_rate: 0.001 -> 0.002"):
        run(config_of(learning_rate=2e-3))
    more, _ = run(dataclasses.replace(config, num_trials=2))
    assert more["trials"][0] == first["trials"][0] and len(more["trials"]) == 2


@pytest.mark.parametrize("extra", [{}, {"shuffle_whole_set": True}])
def test_a_stopped_run_continues_to_the_bit(
    config_of, run, weights_of, tmp_path, stop_after, extra
):
    run(config_of(eval_every_n_steps=5, **extra))
    directory = tmp_path / "models/tiny/finetuning_models"
    expected = weights_of(directory / "sst_model_1")
    results = tmp_path / "models/tiny/results/sst_results.txt"
    expected_text = results.read_text()
    again = config_of(eval_every_n_steps=5, run_name="other", **extra)
    undo = stop_after(11)
    stopped, text = run(again)
    undo()
    assert stopped["interrupted"] == signal.SIGTERM
    assert "Stopped at step 11" in text and stopped["trials"] == []
    _, text = run(again)
    assert "Continuing from" in text
    found = weights_of(directory / "sst_other_model_1")
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)
    found_text = results.with_name("sst_other_results.txt").read_text()
    assert found_text == expected_text
    rows, again = (
        read_rows(str(directory / name / "eval_log.jsonl"))
        for name in ("sst_model_1", "sst_other_model_1")
    )
    assert rows == again and len(rows) == 5


def test_trials_without_end_go_on_until_a_stop(config_of, run, stop_after):
    config = config_of(num_trials=-1, num_train_epochs=1)  # 8 steps each
    undo = stop_after(11)
    stopped, _ = run(config)
    undo()
    assert stopped["interrupted"] == signal.SIGTERM
    assert [trial["trial"] for trial in stopped["trials"]] == [1]
    # Each trial is that of a run that knows its end.
    two, text = run(dataclasses.replace(config, num_trials=2))
    assert "Trial 1: done by an earlier run" in text
    assert [trial["trial"] for trial in two["trials"]] == [1, 2]


def test_nothing_of_others_is_deleted(config_of, run, tmp_path):
    directory = tmp_path / MODEL
    directory.mkdir(parents=True)
    (directory / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="thesis.txt"):
        run(config_of(overwrite=True))
    assert (directory / "thesis.txt").exists()


@pytest.fixture
def original_s(trained):
    """A trial's folder with what the original would have left in it."""
    folder = pathlib.Path(trained[1])
    weights = MemoryWeights(dict(open_weights(str(folder))))
    for path in [path for path in folder.iterdir() if path.is_file()]:
        path.unlink()
    shutil.rmtree(folder / "tensorboard", ignore_errors=True)
    write_tf1(weights, str(folder / "model.ckpt-24"))
    for name in ("graph.pbtxt", "events.out.tfevents.1.host"):
        (folder / name).write_text("")
    (folder.parent.parent / "results/sst_results.json").unlink()
    return folder


def test_the_original_s_model_is_evaluated_or_replaced_never_continued(
    config_of, run, trained, original_s
):
    results = original_s.parent.parent / "results/sst_results.txt"
    for hparams in ({}, {"num_trials": -1}, {"learning_rate": 1.0}):
        with pytest.raises(UserError, match=r"do_train .*--overwrite.*_name"):
            run(config_of(**hparams))
    assert results.exists()  # Nothing was touched.
    found, _ = run(config_of(do_train=False))
    scores = found["trials"][0]["results"]["sst"]
    expected = trained[0]["trials"][0]["results"]["sst"]
    assert scores == pytest.approx(expected)
    beside, text = run(config_of(run_name="mine", num_train_epochs=1))
    assert "Already trained" not in text
    assert beside["trials"][0]["model_dir"].endswith("/sst_mine_model_1")
    replaced, text = run(config_of(overwrite=True))
    assert f"--overwrite: deleted {original_s}" in text
    assert replaced["trials"] == trained[0]["trials"]
    assert not (original_s / "graph.pbtxt").exists()


def test_evaluation_alone_has_the_run_s_own_settings(config_of, run, tmp_path):
    first, _ = run(
        config_of(max_seq_length=8, num_trials=2, num_train_epochs=1)
    )

    def evaluate(**hparams):
        result, _ = run(
            FinetuningConfig.create(
                "tiny", str(tmp_path), do_train=False, **hparams
            )
        )
        return [trial["results"] for trial in result["trials"]]

    expected = [trial["results"] for trial in first["trials"]]
    assert evaluate() == evaluate(num_trials=-1) == expected
    assert evaluate(task_names=["sst"], max_seq_length=32) != expected
    run(config_of(run_name="b", max_seq_length=16, num_train_epochs=1))
    with pytest.raises(UserError, match="sst_b_model_1, sst_model_1.*run_name"):
        evaluate()
    assert len(evaluate(run_name="b")) == 1


def test_evaluation_alone_gives_the_same_scores(
    config_of, run, trained, tmp_path
):
    first, path = trained
    again, text = run(config_of(do_train=False))
    assert "Earlier results are kept as" in text
    other = {"init_checkpoint": path, "model_dir": str(tmp_path / "nothing")}
    moved, _ = run(config_of(do_train=False, **other))
    for found in (again, moved):
        assert found["trials"][0]["results"] == first["trials"][0]["results"]


def test_a_start_that_does_not_fit_is_refused(
    config_of, run, trained, finetuning_config, cola
):
    _, path = trained
    sizes = config_of().model_hparam_overrides
    config = finetuning_config(
        "cola",
        do_train=False,
        init_checkpoint=path,
        model_hparam_overrides=sizes,
    )
    with pytest.raises(UserError, match="task_specific/cola"):
        run(config)
    for change, message in (
        ({"hidden_size": 32}, "hidden_size: checkpoint 16"),
        # No shape shows this one.
        ({"num_attention_heads": 4}, "num_attention_heads 2"),
    ):
        config = config_of(
            init_checkpoint=path, model_hparam_overrides={**sizes, **change}
        )
        with pytest.raises(UserError, match=message):
            run(config)


def test_a_start_without_a_model_is_named(config_of, run, tmp_path):
    with pytest.raises(UserError, match="no model in .*sst_model_1"):
        run(config_of(do_train=False))
    (tmp_path / "models/empty").mkdir(parents=True)
    config = config_of(init_checkpoint=str(tmp_path / "models/empty"))
    with pytest.raises(UserError, match="init_checkpoint.*random weights"):
        run(config)


def test_another_task_s_model_is_a_start_with_a_fresh_head(
    run, trained, tiny_finetuning, cola, tmp_path
):
    _, path = trained
    config = FinetuningConfig.create(
        "tiny",
        str(tmp_path),
        task_names=["cola"],
        # The sizes come with the weights.
        vocab_file=tiny_finetuning["vocab_file"],
        init_checkpoint=path,
        max_seq_length=32,
        train_batch_size=4,
    )
    result, text = run(config)
    assert "missing, keeps its fresh value: task_specific/cola" in text
    assert result["trials"][0]["results"]["cola"].keys() == {"mcc", "loss"}
