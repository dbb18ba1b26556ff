# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs that start from another run's weights, and what runs leave behind."""

import io
import json
import shutil

import pytest

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import tf2
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.sizes import encoder_config
from electra_tf.checkpoints.tf1 import write_tf1
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.commands import compare_checkpoints, convert_checkpoint
from electra_tf.pretraining import runner
from electra_tf.training.summaries import Console

# Of a masked LM: as wide as the embeddings, whatever the generator's width.
HEAD_OF_ANY_WIDTH = {
    "generator_predictions/LayerNorm/beta",
    "generator_predictions/LayerNorm/gamma",
    "generator_predictions/dense/bias",
    "generator_predictions/output_bias",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of all runs; each test has names of its own."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def start(data_dir, settings_in, runs):
    """Runs; returns what was printed."""

    def run(name, **hparams):
        config = PretrainingConfig.create(
            "m", str(data_dir), **settings_in(runs, name, **hparams)
        )
        output = io.StringIO()
        runner.run(config, Console(output))
        return output.getvalue()

    return run


@pytest.fixture(scope="module")
def first(start, runs):
    """A finished run: its directory, and what it printed."""
    return runs / "first", start("first", num_train_steps=10)


def tensors(path):
    return dict(iter(open_weights(str(path))))


def assert_same(found, expected, names):
    assert names
    for name in names:
        assert found[name].tobytes() == expected[name].tobytes(), name


def test_a_run_starts_from_weights_alone_that_fit(start, first, runs):
    settings = {"seed": 5, "init_checkpoint": str(first[0])}
    output = start("second", num_train_steps=2, **settings)
    assert "Starting from the weights of" in output
    assert "0 missing, 0 unexpected" in output
    expected = tensors(first[0] / "model.ckpt-10")
    second = tensors(runs / "second" / "model.ckpt-0")
    assert_same(second, expected, open_weights(str(first[0])).shapes)
    assert second["global_step"] == 0
    slots = [name for name in second if name.endswith(("adam_m", "adam_v"))]
    assert slots and not any(second[name].any() for name in slots)
    # Continuing reads our own checkpoint, not those weights again.
    output = start("second", num_train_steps=3, **settings)
    assert "is not read again" in output
    assert "Starting from the weights" not in output
    with pytest.raises(UserError, match="change embedding_size"):
        start("other", embedding_size=4, init_checkpoint=str(first[0]))


@pytest.fixture(scope="module")
def masked_lm(start, runs):
    """A masked LM's directory."""
    start("mlm", num_train_steps=1, electra_objective=False)
    return runs / "mlm"


def test_missing_variables_need_a_permission(start, runs, masked_lm):
    assert not (masked_lm / "export" / "discriminator").exists()
    assert tensors(masked_lm / "export" / "generator")

    settings = {"num_train_steps": 1, "init_checkpoint": str(masked_lm)}
    # Its head is as wide as its encoder; a small generator's is not.
    with pytest.raises(UserError, match="change generator_hidden_size"):
        start("full", **settings)
    with pytest.raises(UserError) as raised:
        start("full", allow_missing="generator", **settings)
    assert "discriminator_predictions/dense/kernel" in str(raised.value)
    assert "discriminator is needed" in str(raised.value)
    assert "--allow_missing" in str(raised.value)
    output = start(
        "full",
        allow_missing="^(discriminator_predictions|generator)",
        **settings,
    )
    assert "missing, keeps its fresh value: generator/encoder" in output
    assert (
        "of another shape, keeps its fresh value:"
        " generator_predictions/dense/kernel" in output
    )
    full = tensors(runs / "full" / "model.ckpt-0")
    mlm = open_weights(str(masked_lm))
    encoder = [name for name in mlm.shapes if name.startswith("electra/")]
    assert_same(full, dict(iter(mlm)), encoder)


def test_a_bert_gives_a_small_generator_what_it_has(start, runs, masked_lm):
    mlm = open_weights(str(masked_lm / "model.ckpt-1"))
    bert = {
        name.replace("electra/", "bert/").replace(
            "generator_predictions/",
            "cls/predictions/transform/"
            if name.count("/") == 2
            else "cls/predictions/",
        ): mlm.read(name)
        for name in mlm.shapes
    }
    write_tf1(MemoryWeights(bert), str(runs / "bert" / "bert_model.ckpt"))
    settings = {"num_train_steps": 1, "init_checkpoint": str(runs / "bert")}
    output = start("from_bert", **settings)
    shared = [
        name
        for name in mlm.shapes
        if name.startswith("electra/") or name in HEAD_OF_ANY_WIDTH
    ]
    assert_same(tensors(runs / "from_bert/model.ckpt-0"), dict(mlm), shared)
    for rest in (
        "missing, keeps its fresh value: generator/encoder (16 variables)",
        "missing, keeps its fresh value: discriminator_predictions/dense (2",
        "another shape, keeps its fresh value: generator_predictions/dense/k",
    ):
        assert rest in output
    # What BERT has must fit.
    with pytest.raises(UserError, match="change embedding_size"):
        start("narrow", embedding_size=4, **settings)


@pytest.mark.parametrize("write", [write_tf1, tf2.write_native])
def test_a_checkpoint_without_position_continues(start, first, runs, write):
    name = f"from_{write.__name__}"
    write(tf2.open_native(str(first[0])), str(runs / name / "model.ckpt-10"))
    output = start(name, num_train_steps=11)
    assert "model.ckpt-10 (step 10)" in output
    assert "holds no data position" in output
    assert (runs / name / "model.ckpt-10.index").exists()
    continued = tensors(runs / name / "model.ckpt-11")
    assert continued["electra/embeddings/word_embeddings/adam_v"].any()
    assert continued["global_step"] == 11


def test_the_two_networks_are_written_apart_at_the_end(first):
    run, output = first
    whole = tensors(run / "model.ckpt-10")
    for part, head, other in (
        ("discriminator", "discriminator_predictions", "generator"),
        ("generator", "generator_predictions", "discriminator"),
    ):
        folder = run / "export" / part
        assert str(folder / "model.ckpt") in output
        found = tensors(folder)
        assert f"{head}/dense/kernel" in found
        assert not any(name.startswith(other) for name in found)
        assert "electra/embeddings/word_embeddings" in found
        assert_same(found, whole, list(found))
        assert (folder / "vocab.txt").exists()
        assert json.loads((folder / "electra_config.json").read_text())
    assert json.loads((run / "electra_config.json").read_text())


def test_milestones_and_the_best_evaluation_are_kept(start, runs):
    run = runs / "kept"
    output = start(
        "kept",
        num_train_steps=8,
        save_checkpoints_steps=1,
        keep_checkpoint_max=1,
        keep_every_n_steps=3,
        eval_every_n_steps=2,
        keep_best="masked_lm_loss",
        export_at_end=False,
    )
    assert not (run / "export").exists()
    kept = sorted(path.name for path in run.glob("*.index"))
    assert kept == [f"model.ckpt-{n}.index" for n in (3, 6, 8)]
    assert open_weights(str(run / "model.ckpt-3")).global_step == 3

    assert "best masked_lm_loss so far" in output
    best = json.loads((run / "best/best.json").read_text())
    rows = map(json.loads, (run / "eval_log.jsonl").read_text().splitlines())
    losses = {row["step"]: row["masked_lm_loss"] for row in rows}
    assert best["value"] == min(losses.values())
    assert losses[best["step"]] == best["value"]
    weights = open_weights(str(run / "best"))
    assert weights.global_step == best["step"]
    # Alone, it is the same model: heads are not shown by shapes.
    shutil.copytree(run / "best", runs / "alone")
    alone = open_weights(str(runs / "alone"))
    assert encoder_config(alone.hparams).num_attention_heads == 2
    assert alone.hparams == weights.hparams
    assert alone.vocab_file == str(runs / "alone" / "vocab.txt")
    assert "vocab.txt" in (runs / "alone" / "digests.json").read_text()
    # Two steps can be set side by side.
    steps = [str(run / f"model.ckpt-{n}") for n in (3, 6)]
    args = compare_checkpoints.parse_flags(["x", *steps, "--num_examples=2"])
    assert compare_checkpoints.main(args) == 1  # They differ.


def test_a_library_s_slots_are_for_it_alone(start, runs, capsys):
    start("adamw", num_train_steps=2, optimizer="adamw")
    with pytest.raises(UserError, match="slots of optimizer 'adamw'.*init_"):
        start("adamw", num_train_steps=3)
    weights = open_weights(str(runs / "adamw"))
    assert not weights.slots and weights.global_step == 2
    target = str(runs / "converted" / "model.ckpt-2")
    argv = ["x", str(runs / "adamw"), target, "--output_format=tf1"]
    convert_checkpoint.main(convert_checkpoint.parse_flags(argv))
    printed = capsys.readouterr().out
    assert ": slots of optimizer adamw, for it alone" in printed
    assert "no Adam slots: training starts from it with --init" in printed
    names = open_weights(target).specs
    assert "global_step" in names and len(names) == len(weights.specs)
