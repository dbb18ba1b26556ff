# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs that start from another run's weights, and what runs leave behind."""

import io
import json

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import tf2
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.tf1 import write_tf1
from electra_tf.checkpoints.weights import without_optimizer
from electra_tf.pretraining import runner
from electra_tf.training.summaries import Console


@pytest.fixture
def start(data_dir, settings):
    """Runs; returns (result, what was printed)."""

    def run(name, **hparams):
        config = PretrainingConfig.create(
            "m", str(data_dir), **settings(name, **hparams)
        )
        output = io.StringIO()
        return runner.run(config, Console(output)), output.getvalue()

    return run


def tensors(path):
    return dict(iter(open_weights(str(path))))


def assert_same(found, expected, names):
    assert names
    for name in names:
        assert found[name].tobytes() == expected[name].tobytes(), name


def test_a_run_starts_from_weights_alone(start, tmp_path):
    start("first", num_train_steps=6)
    _, output = start(
        "second",
        num_train_steps=2,
        seed=5,
        init_checkpoint=str(tmp_path / "first"),
    )
    assert "Starting from the weights of" in output
    assert "0 missing, 0 unexpected" in output
    first = tensors(tmp_path / "first" / "model.ckpt-6")
    second = tensors(tmp_path / "second" / "model.ckpt-0")
    names = open_weights(str(tmp_path / "first")).shapes
    assert_same(second, first, names)
    assert second["global_step"] == 0
    slots = [name for name in second if name.endswith(("adam_m", "adam_v"))]
    assert slots and not any(second[name].any() for name in slots)
    # Continuing reads our own checkpoint, not those weights again.
    _, output = start(
        "second",
        num_train_steps=4,
        seed=5,
        init_checkpoint=str(tmp_path / "first"),
    )
    assert "is not read again" in output
    assert "Starting from the weights" not in output


def test_missing_variables_need_a_permission(start, tmp_path):
    start("mlm", num_train_steps=1, electra_objective=False)
    settings = {
        "num_train_steps": 1,
        "init_checkpoint": str(tmp_path / "mlm"),
    }
    # Its head is as wide as its encoder; a small generator's is not.
    with pytest.raises(UserError, match="change generator_hidden_size"):
        start("full", **settings)
    with pytest.raises(UserError) as raised:
        start("full", allow_missing="generator", **settings)
    assert "discriminator_predictions/dense/kernel" in str(raised.value)
    assert "discriminator is needed" in str(raised.value)
    assert "--allow_missing" in str(raised.value)
    _, output = start(
        "full",
        allow_missing="^(discriminator_predictions|generator)",
        **settings,
    )
    assert "missing, keeps its fresh value: generator/encoder" in output
    assert (
        "of another shape, keeps its fresh value:"
        " generator_predictions/dense/kernel" in output
    )
    full = tensors(tmp_path / "full" / "model.ckpt-0")
    mlm = open_weights(str(tmp_path / "mlm"))
    encoder = [name for name in mlm.shapes if name.startswith("electra/")]
    assert_same(full, dict(iter(mlm)), encoder)


def test_other_sizes_name_the_hparam(start, tmp_path):
    start("first", num_train_steps=1)
    with pytest.raises(UserError, match="change embedding_size"):
        start(
            "second",
            num_train_steps=1,
            embedding_size=4,
            init_checkpoint=str(tmp_path / "first"),
        )


def test_a_run_in_the_originals_format_continues_as_ours_does(start, tmp_path):
    start("ours", num_train_steps=10)
    continued = tmp_path / "converted"
    write_tf1(
        tf2.open_native(str(tmp_path / "ours")),
        str(continued / "model.ckpt-10"),
    )
    _, output = start("converted", num_train_steps=20)
    assert "model.ckpt-10 (step 10)" in output
    assert "holds no data position" in output
    steps = [10, 20]
    assert all(
        tf.io.gfile.exists(str(continued / f"model.ckpt-{n}.index"))
        for n in steps
    )
    slots = tensors(continued / "model.ckpt-20")
    name = "electra/embeddings/word_embeddings/adam_v"
    assert slots[name].any() and slots["global_step"] == 20


def test_a_native_copy_without_position_continues(start, tmp_path):
    start("ours", num_train_steps=10)
    tf2.write_native(
        tf2.open_native(str(tmp_path / "ours")),
        str(tmp_path / "copy" / "model.ckpt-10"),
    )
    result, output = start("copy", num_train_steps=11)
    assert "holds no data position" in output
    assert result["global_step"] == 11


def test_the_two_networks_are_written_apart_at_the_end(start, tmp_path):
    _, output = start("run", num_train_steps=3)
    whole = tensors(tmp_path / "run" / "model.ckpt-3")
    for part, head, other in (
        ("discriminator", "discriminator_predictions", "generator"),
        ("generator", "generator_predictions", "discriminator"),
    ):
        folder = tmp_path / "run" / "export" / part
        assert str(folder / "model.ckpt") in output
        found = tensors(folder)
        assert f"{head}/dense/kernel" in found
        assert not any(name.startswith(other) for name in found)
        assert "electra/embeddings/word_embeddings" in found
        assert_same(found, whole, list(found))
        assert (folder / "vocab.txt").exists()
        assert json.loads((folder / "electra_config.json").read_text())
    assert json.loads((tmp_path / "run" / "electra_config.json").read_text())


def test_a_masked_lm_exports_its_generator_only(start, tmp_path):
    start("mlm", num_train_steps=1, electra_objective=False)
    assert not (tmp_path / "mlm" / "export" / "discriminator").exists()
    assert tensors(tmp_path / "mlm" / "export" / "generator")


def test_no_export_when_told_so(start, tmp_path):
    start("run", num_train_steps=1, export_at_end=False)
    assert not (tmp_path / "run" / "export").exists()


def test_the_best_evaluation_is_kept_and_can_start_a_run(start, tmp_path):
    _, output = start(
        "run",
        num_train_steps=6,
        eval_every_n_steps=2,
        keep_best="masked_lm_loss",
    )
    assert "best masked_lm_loss so far" in output
    best = json.loads((tmp_path / "run/best/best.json").read_text())
    rows = (tmp_path / "run/eval_log.jsonl").read_text().splitlines()
    losses = {
        row["step"]: row["masked_lm_loss"] for row in map(json.loads, rows)
    }
    assert best["value"] == min(losses.values())
    assert losses[best["step"]] == best["value"]
    kept = open_weights(str(tmp_path / "run" / "best"))
    assert kept.global_step == best["step"]
    start(
        "next",
        num_train_steps=1,
        init_checkpoint=str(tmp_path / "run" / "best"),
    )
    assert_same(
        tensors(tmp_path / "next" / "model.ckpt-0"),
        dict(iter(without_optimizer(kept))),
        list(kept.shapes),
    )


def test_milestones_outlive_the_limit(start, tmp_path):
    start(
        "run",
        num_train_steps=8,
        save_checkpoints_steps=1,
        keep_checkpoint_max=1,
        keep_every_n_steps=3,
    )
    kept = sorted(path.name for path in (tmp_path / "run").glob("*.index"))
    assert kept == [f"model.ckpt-{n}.index" for n in (3, 6, 8)]
    assert np.array_equal(
        open_weights(str(tmp_path / "run" / "model.ckpt-3")).global_step, 3
    )
