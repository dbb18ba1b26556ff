# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From rows to results files; a stopped run continues to the bit."""

import dataclasses
import io
import json
import pickle
import signal

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.checkpoints import native
from electra_tf.finetuning import runner
from electra_tf.finetuning.steps import FinetuningLoop
from electra_tf.training import recomputation, summaries
from electra_tf.training.loss_scale import LossScale
from electra_tf.training.progress import Console

WORDS = ["the", "of", "and", "in", "to"]


@pytest.fixture
def sst(write_task):
    """Thirty made-up rows of SST, as many to evaluate, a test set."""
    random = np.random.RandomState(0)

    def rows(count):
        lines = ["sentence\tlabel"]
        for i in range(count):
            words = random.choice(WORDS, random.randint(2, 20))
            lines.append(f"{' '.join(words)}\t{i % 2}")
        return "\n".join(lines) + "\n"

    write_task("sst", "train.tsv", rows(30))
    write_task("sst", "dev.tsv", rows(10))
    test = ["index\tsentence"] + [f"{i}\tthe {w}" for i, w in enumerate(WORDS)]
    write_task("sst", "test.tsv", "\n".join(test) + "\n")


@pytest.fixture
def config_of(finetuning_config, sst):
    def make(**hparams):
        settings = {
            "learning_rate": 1e-3,
            "log_every_n_steps": 3,
            "model_hparam_overrides": {
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "intermediate_size": 32,
                "max_position_embeddings": 64,
            },
            **hparams,
        }
        return finetuning_config("sst", **settings)

    return make


def _run(config):
    stream = io.StringIO()
    result = runner.run(config, Console(stream))
    return result, stream.getvalue()


def _weights(directory):
    path = tf.train.latest_checkpoint(str(directory))
    found = native.open_native(path)
    return {name: value for name, value in found}


@pytest.fixture
def stop_after(monkeypatch):
    """Makes a run receive SIGTERM after so many steps."""

    def install(steps):
        original = FinetuningLoop.train
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

        monkeypatch.setattr(FinetuningLoop, "train", train)
        return monkeypatch.undo

    return install


def test_two_trials_leave_the_original_s_results_files(config_of, tmp_path):
    config = config_of(num_trials=2, write_test_outputs=True)
    result, text = _run(config)
    base = tmp_path / "models" / "tiny"
    written = pickle.loads((base / "results/sst_results.pkl").read_bytes())
    assert [list(trial["sst"]) for trial in written] == [
        ["accuracy", "loss"]
    ] * 2
    lines = (base / "results/sst_results.txt").read_text().splitlines()
    assert lines == [
        f"sst: accuracy: {trial['sst']['accuracy']:.2f} -"
        f" loss: {trial['sst']['loss']:.2f}"
        for trial in written
    ]
    record = json.loads((base / "results/sst_results.json").read_text())
    accuracy = record["statistics"]["sst"]["accuracy"]
    values = [trial["sst"]["accuracy"] for trial in written]
    assert accuracy["values"] == values
    assert accuracy["mean"] == pytest.approx(np.mean(values))
    assert accuracy["median"] == pytest.approx(np.median(values))
    assert accuracy["std"] == pytest.approx(np.std(values, ddof=1))
    assert accuracy["best"] == max(values)
    assert record["trials"][0]["seed"] != record["trials"][1]["seed"]
    assert (base / "results/sst_results.png").stat().st_size > 1000
    for trial in (1, 2):
        model = base / f"finetuning_models/sst_model_{trial}"
        assert (model / "curves.png").exists()
        assert tf.train.latest_checkpoint(str(model)).endswith("-24")
        outputs = base / f"test_predictions/sst_test_{trial}_predictions.pkl"
        logits = pickle.loads(outputs.read_bytes())
        assert list(logits) == [0, 1, 2, 3, 4]
        assert logits[0].shape == (2,)
    assert "Learning rates before warm-up and decay" in text
    assert result["statistics"]["sst"]["accuracy"]["values"] == values


def test_the_same_command_again_trains_nothing_new(config_of):
    config = config_of(num_trials=1)
    first, _ = _run(config)
    again, text = _run(config)
    assert again["trials"] == first["trials"]
    assert "Trial 1: done by an earlier run" in text
    more, _ = _run(dataclasses.replace(config, num_trials=2))
    assert more["trials"][0] == first["trials"][0] and len(more["trials"]) == 2


def test_the_same_seed_gives_the_same_results_and_another_others(
    config_of, tmp_path
):
    one, _ = _run(config_of())
    two, _ = _run(config_of(overwrite=True))
    assert one["trials"] == two["trials"]
    other, _ = _run(config_of(overwrite=True, seed=1))
    assert one["trials"][0]["results"] != other["trials"][0]["results"]
    kept = tmp_path / "models/tiny/results/sst_results.json.before"
    assert kept.exists()


def test_other_hparams_need_overwrite(config_of):
    _run(config_of())
    with pytest.raises(UserError, match=r"learning_rate: 0.001 -> 0.002"):
        _run(config_of(learning_rate=2e-3))


@pytest.mark.parametrize(
    "extra",
    [{}, pytest.param({"shuffle_whole_set": True}, marks=pytest.mark.slow)],
)
def test_a_stopped_run_continues_to_the_bit(
    config_of, tmp_path, stop_after, extra
):
    whole = config_of(eval_every_n_steps=5, **extra)
    _run(whole)
    directory = tmp_path / "models/tiny/finetuning_models"
    expected = _weights(directory / "sst_model_1")
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
    stopped, text = _run(again)
    undo()
    assert stopped["interrupted"] == signal.SIGTERM
    assert "Stopped at step 11" in text and stopped["trials"] == []
    _, text = _run(again)
    assert "Continuing from" in text
    found = _weights(directory / "other_1")
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


def test_evaluation_alone_gives_the_same_scores(config_of, tmp_path):
    trained, _ = _run(config_of())
    evaluated, text = _run(config_of(do_train=False))
    assert evaluated["trials"][0]["results"] == trained["trials"][0]["results"]
    assert "Earlier results are kept as" in text
    path = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    config = config_of(
        do_train=False,
        init_checkpoint=str(path),
        model_dir=str(tmp_path / "nothing"),
    )
    evaluated, _ = _run(config)
    assert evaluated["trials"][0]["results"] == trained["trials"][0]["results"]


def test_evaluation_alone_needs_heads(
    config_of, finetuning_config, write_task, tmp_path
):
    _run(config_of())
    path = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    write_task("cola", "dev.tsv", "a\t1\tx\tthe of\n")
    config = finetuning_config(
        "cola",
        do_train=False,
        init_checkpoint=str(path),
        model_hparam_overrides=config_of().model_hparam_overrides,
    )
    with pytest.raises(UserError, match="task_specific/cola"):
        _run(config)


def test_evaluation_alone_needs_a_model(config_of):
    with pytest.raises(UserError, match="no model in .*sst_model_1"):
        _run(config_of(do_train=False))


def test_another_task_s_model_is_a_start_with_a_fresh_head(
    config_of, finetuning_config, write_task, tmp_path
):
    _run(config_of())
    path = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    rows = "".join(f"a\t{i % 2}\tx\tthe {WORDS[i % 5]}\n" for i in range(8))
    write_task("cola", "train.tsv", rows)
    write_task("cola", "dev.tsv", rows)
    config = finetuning_config("cola", init_checkpoint=str(path))
    # The sizes come with the weights where they are not given.
    given = {
        name: value
        for name, value in config.as_dict().items()
        if config.origins[name] == "argument"
        and name not in ("model_hparam_overrides", "model_name", "data_dir")
    }
    config = type(config).create("tiny", str(tmp_path), **given)
    result, text = _run(config)
    assert "missing, keeps its fresh value: task_specific/cola" in text
    assert result["trials"][0]["results"]["cola"].keys() == {"mcc", "loss"}


def test_a_size_that_is_not_the_checkpoint_s_is_refused(config_of, tmp_path):
    _run(config_of())
    path = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    config = config_of(
        init_checkpoint=str(path),
        model_hparam_overrides={
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "max_position_embeddings": 64,
        },
    )
    with pytest.raises(UserError, match="hidden_size: checkpoint 16"):
        _run(config)


def test_heads_of_attention_are_checked_though_no_shape_shows_them(
    config_of, tmp_path
):
    _run(config_of())
    path = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    overrides = dict(config_of().model_hparam_overrides, num_attention_heads=4)
    config = config_of(
        init_checkpoint=str(path), model_hparam_overrides=overrides
    )
    with pytest.raises(UserError, match="num_attention_heads 2"):
        _run(config)


def test_only_the_last_model_stays_unless_all_are_kept(config_of, tmp_path):
    _run(config_of(num_trials=2, keep_all_models=False))
    directory = tmp_path / "models/tiny/finetuning_models"
    assert [path.name for path in directory.iterdir()] == ["sst_model_2"]


def test_the_best_model_is_kept_and_scored(config_of, tmp_path):
    config = config_of(
        eval_every_n_steps=4, keep_best="loss", learning_rate=5e-2
    )
    result, _ = _run(config)
    directory = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    rows = [
        json.loads(line)
        for line in (directory / "eval_log.jsonl").read_text().splitlines()
    ]
    best = min(rows, key=lambda row: row["loss"])
    record = result["trials"][0]
    assert record["results"]["sst"]["loss"] == best["loss"]
    assert record["global_step"] == best["step"]


def test_training_stops_when_nothing_gets_better(config_of):
    config = config_of(
        eval_every_n_steps=2,
        early_stopping_patience=2,
        keep_best="loss",
        learning_rate=0.0,
    )
    result, text = _run(config)
    assert "Stopping early: 2 evaluations without a better loss" in text
    assert result["trials"][0]["global_step"] == 2
    assert "interrupted" not in result


def test_an_unknown_figure_to_keep_is_named(config_of):
    config = config_of(eval_every_n_steps=4, keep_best="mcc")
    with pytest.raises(UserError, match="no figure 'mcc'.*accuracy"):
        _run(config)


def test_switches_that_save_memory_give_the_same_weights(
    config_of, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "electra_tf.finetuning.classification.head.DROPOUT_RATE", 0.0
    )
    found = []
    for switch in (
        {},
        {"gradient_accumulation_steps": 2},
        {"recompute_grad": True},
    ):
        config = config_of(**switch, overwrite=True)
        overrides = {
            **config.model_hparam_overrides,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        }
        config = dataclasses.replace(config, model_hparam_overrides=overrides)
        _run(config)
        directory = tmp_path / "models/tiny/finetuning_models/sst_model_1"
        found.append(_weights(directory))
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, atol=1e-5)
        np.testing.assert_allclose(found[2][name], value, atol=1e-5)


def test_a_small_machine_recomputes_and_gets_the_same_weights(
    config_of, tmp_path, monkeypatch
):
    directory = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    _run(config_of(recompute_grad=True))
    asked = _weights(directory)
    monkeypatch.setattr(recomputation, "machine_memory", lambda: 1 << 20)
    said = []
    monkeypatch.setattr(
        recomputation.logging, "warning", lambda text, *_: said.append(text)
    )
    _run(config_of(overwrite=True))
    assert len(said) == 1 and "computed again" in said[0]
    for name, value in _weights(directory).items():
        np.testing.assert_array_equal(value, asked[name])


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_leaves_a_float32_model(
    config_of, tmp_path, precision, monkeypatch
):
    # The usual first factor is too large for gradients as steep as here.
    scales = {"fp16": LossScale(256.0)}
    monkeypatch.setattr(LossScale, "of", scales.get)
    _run(config_of(num_train_epochs=1))
    directory = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    plain = _weights(directory)
    _run(
        config_of(num_train_epochs=1, mixed_precision=precision, overwrite=True)
    )
    found = _weights(directory)
    assert found.keys() == plain.keys()
    for name, value in plain.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_allclose(found[name], value, atol=2e-3, err_msg=name)
    rows = summaries.read_rows(str(directory / "train_log.jsonl"))
    scaled = {"loss_scale": 256.0, "skipped_updates": 0.0}
    assert {k: v for k, v in rows[-1].items() if k in scaled} == (
        scaled if precision == "fp16" else {}
    )


@pytest.mark.slow
def test_xla_programs_train_and_predict(config_of):
    result, _ = _run(
        config_of(num_train_epochs=1, max_seq_length=16, jit_compile=True)
    )
    assert np.isfinite(result["trials"][0]["results"]["sst"]["loss"])


def test_frozen_layers_stay_as_they_are(config_of, tmp_path):
    overrides = dict(config_of().model_hparam_overrides, num_hidden_layers=2)
    trained = config_of(model_hparam_overrides=overrides)
    _run(trained)
    path = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    config = config_of(
        model_hparam_overrides=overrides,
        init_checkpoint=str(path),
        freeze_layers=1,
        overwrite=True,
        model_dir=str(tmp_path / "frozen"),
    )
    before = _weights(path)
    _run(config)
    after = _weights(tmp_path / "frozen_1")
    changed = {
        name
        for name in before
        if name in after
        and "adam" not in name
        and not np.array_equal(before[name], after[name])
    }
    frozen = ("electra/embeddings", "electra/encoder/layer_0")
    assert not any(name.startswith(frozen) for name in changed)
    assert any(name.startswith("electra/encoder/layer_1") for name in changed)


def test_a_collapsed_run_is_named(config_of, tmp_path):
    # All training labels are the same.
    path = tmp_path / "finetuning_data/sst/train.tsv"
    path.write_text("sentence\tlabel\n" + "the of\t1\n" * 8)
    result, text = _run(config_of(num_train_epochs=20, learning_rate=1e-2))
    assert "WARNING: trial 1 collapsed on sst: every prediction is '1'" in text
    assert result["trials"][0]["collapsed"] == {
        "sst": "every prediction is '1'"
    }


def test_several_tasks_are_learned_at_once(
    finetuning_config, sst, write_task, tmp_path
):
    rows = "".join(f"a\t{i % 2}\tx\tthe {WORDS[i % 5]}\n" for i in range(8))
    write_task("cola", "train.tsv", rows)
    write_task("cola", "dev.tsv", rows)
    config = finetuning_config(
        "cola", "sst", num_train_epochs=1.0, eval_every_n_steps=4
    )
    result, _ = _run(config)
    assert list(result["trials"][0]["results"]) == ["cola", "sst"]
    text = (tmp_path / "models/tiny/results/cola,sst_results.txt").read_text()
    assert [line.split(":")[0] for line in text.splitlines()] == ["cola", "sst"]


def test_labels_found_in_data_lie_beside_the_model_and_go_with_it(
    finetuning_config, write_task, tmp_path
):
    words = [("the", "DT", "B-NP"), ("and", "CC", "O"), ("of", "IN", "B-PP")]
    rows = "".join(" ".join(word) + "\n" for word in words) + "\n"
    for split in ("train", "dev"):
        write_task("chunk", f"{split}.txt", rows * 8)
    _run(finetuning_config("chunk", num_train_epochs=1.0))
    model = tmp_path / "models/tiny/finetuning_models/chunk_model_1"
    beside = json.loads((model / "chunk_label_mapping.json").read_text())
    assert list(beside) == ["O", "S-NP", "S-PP"]
    _run(finetuning_config("chunk", num_train_epochs=2.0, overwrite=True))
    assert (model / "chunk_label_mapping.json").exists()


def test_nothing_of_others_is_deleted(config_of, tmp_path):
    directory = tmp_path / "models/tiny/finetuning_models/sst_model_1"
    directory.mkdir(parents=True)
    (directory / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="thesis.txt"):
        _run(config_of(overwrite=True))
    assert (directory / "thesis.txt").exists()


def test_a_model_folder_without_weights_is_named(config_of, tmp_path):
    (tmp_path / "models/tiny").mkdir(parents=True)
    config = config_of(init_checkpoint=str(tmp_path / "models/tiny"))
    with pytest.raises(UserError, match="init_checkpoint.*random weights"):
        _run(config)
