# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command that compares two checkpoints, or one with recorded outputs."""

import pathlib

import numpy as np
import pytest

from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.tf2 import write_native
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.commands import compare_checkpoints
from tests.conftest import read_json

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
VOCAB = f"--vocab_file={FIXTURES / 'vocab_200.txt'}"
CHECKPOINT = str(FIXTURES / "golden" / "ckpt_v200_electra")
RECORDING = str(FIXTURES / "golden" / "forward_v200_electra.npz")
SMALL = (VOCAB, "--num_examples=3", "--max_seq_length=32")


@pytest.fixture
def compare(tmp_path, capsys):
    """Return a function that runs the command: status, output and JSON file."""

    def run(*arguments):
        output = tmp_path / "output"
        arguments = ("x", *arguments, f"--output_dir={output}")
        args = compare_checkpoints.parse_flags(arguments)
        status = compare_checkpoints.main(args)
        result = output / "comparison.json"
        report = read_json(result) if result.exists() else None
        captured = capsys.readouterr()
        return status, captured.out + captured.err, report

    return run


@pytest.fixture(scope="module")
def values():
    """Return the tensors of the fixture's checkpoint, by name."""
    return dict(open_weights(CHECKPOINT))


@pytest.fixture
def edited(tmp_path, values):
    """Return a function that writes changed tensors; None removes a tensor."""

    def make(changes, name="other"):
        changed = values | changes
        changed = {n: v for n, v in changed.items() if v is not None}
        prefix = str(tmp_path / name / "model.ckpt-0")
        write_native(MemoryWeights(changed), prefix)
        return prefix

    return make


def test_the_same_weights_in_two_formats_agree_exactly(compare, edited):
    status, text, result = compare(CHECKPOINT, edited({}), *SMALL)
    assert status == 0, text
    assert "80 compared, 80 exactly equal" in text
    assert text.rstrip().endswith("AGREE within 1e-05")
    assert result["agree"] and not result["problems"]
    layers = result["outputs"]["layers"]["discriminator"]
    assert [layer["max_abs"] for layer in layers] == [0.0, 0.0]
    assert len(text.splitlines()) <= 30


def test_a_changed_variable_is_named(compare, edited, values):
    name = "electra/encoder/layer_1/output/dense/bias"
    other = edited({name: values[name] + np.float32(1e-3)})
    status, text, result = compare(CHECKPOINT, other, *SMALL)
    assert status == 1
    assert f"{name}: 0.001" in text.splitlines()[-1]
    rows = result["variables"]
    assert [r["name"] for r in rows if r["difference"]["max_abs"]] == [name]
    layers = result["outputs"]["layers"]
    assert layers["generator"][1]["max_abs"] == 0
    assert layers["discriminator"][0]["max_abs"] == 0
    assert layers["discriminator"][1]["max_abs"] > 0
    assert compare(CHECKPOINT, other, *SMALL, "--tolerance=0.5")[0] == 0


def test_missing_variables_are_differences_unless_allowed(compare, edited):
    name = "discriminator_predictions/dense_1/bias"
    other = edited({name: None})
    status, text, _ = compare(CHECKPOINT, other, *SMALL)
    assert status == 1 and f"{name}: missing in B" in text
    assert "B lacks 1 of the discriminator's" in text
    allowed = "--allow_missing=dense_1/bias"
    status, text, _ = compare(other, CHECKPOINT, *SMALL, allowed)
    assert status == 0 and f"{name}: missing in A" in text
    assert "some outputs were not compared" in text


def test_slots_and_step_are_compared_only_with_a_flag(compare, edited):
    def with_slots(size):
        slots = {
            f"electra/embeddings/LayerNorm/beta/{slot}": np.full([16], size)
            for slot in ("adam_m", "adam_v")
        }
        return edited({**slots, "global_step": np.int64(3)}, f"slots{size}")

    a, b = map(with_slots, np.float32([0.0, 0.5]))
    status, text, result = compare(a, b, *SMALL)
    assert status == 0 and "2 slots compared" in text
    assert "5.00e-01" in text and len(result["optimizer"]) == 3
    status, text, _ = compare(a, b, *SMALL, "--include_optimizer")
    assert status == 1 and "adam_" in text.splitlines()[-1]


@pytest.mark.parametrize(
    "name", ["correction_predictions/dense/bias", "reward_baseline/kernel"]
)
@pytest.mark.parametrize(
    ("sizes", "expected"), [((1.0, 1.0), 0), ((1.0, 2.0), 1), ((1.0, None), 0)]
)
def test_heads_of_training_are_compared_if_both_sides_have_them(
    compare, edited, name, sizes, expected
):
    a, b = (
        edited({name: None if size is None else np.float32([size])}, label)
        for label, size in zip("ab", sizes, strict=True)
    )
    status, text, _ = compare(a, b, *SMALL)
    assert status == expected, text
    assert (f"{name}: 1" in text.splitlines()[-1]) == bool(expected)


def test_models_are_compared_on_the_text_of_a_file(compare, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("he was there and she was not\n" * 40)
    arguments = (CHECKPOINT, CHECKPOINT, *SMALL, f"--text={text}")
    status, _, result = compare(*arguments)
    assert status == 0 and result["outputs"]["inputs"]["examples"] == 3


@pytest.fixture
def short(edited, values):
    """Return arguments for a model of 64 positions."""
    name = "electra/embeddings/position_embeddings"
    prefix = edited({name: values[name][:64]})
    return prefix, prefix, VOCAB, "--num_examples=1"


def test_shortened_examples_are_reported(compare, short):
    status, text, result = compare(*short)
    message = "Examples have 64 wordpieces instead of 128"
    assert status == 0 and message in text
    assert any(message in note for note in result["notes"])
    assert result["outputs"]["inputs"]["length"] == 64


def test_examples_of_the_requested_length_are_not_reported(compare, short):
    status, text, _ = compare(*short, "--max_seq_length=64")
    assert status == 0 and "Examples have" not in text


def test_a_length_beyond_the_positions_is_refused(compare, short):
    status, text, _ = compare(*short, "--max_seq_length=65")
    assert status == 2 and "--max_seq_length is 65" in text


def test_a_checkpoint_agrees_with_its_recorded_outputs(compare):
    status, text, result = compare(CHECKPOINT, "--expect", RECORDING, VOCAB)
    assert status == 0, text
    outputs = result["outputs"]
    assert outputs["inputs"]["tokens"] == 82
    assert set(outputs["losses"]) == {"mlm_loss", "disc_loss", "total_loss"}
    assert outputs["integers"]["fake_input_ids"]["equal"] == 82


def test_recorded_outputs_of_other_weights_differ(compare, edited, values):
    name = "generator/encoder/layer_0/output/dense/bias"
    other = edited({name: values[name] + np.linspace(-1, 1, 16)})
    status, text, _ = compare(other, "--expect", RECORDING, VOCAB)
    end = text.splitlines()[-1]
    assert status == 1
    assert end.startswith("DIFFER by more than 1e-05: generator layer 1")


def test_missing_recorded_outputs_are_differences_unless_allowed(
    compare, edited, values
):
    part = edited({n: None for n in values if n.startswith("generator")})
    status, text, _ = compare(part, "--expect", RECORDING, VOCAB)
    assert status == 1 and "A has no generator" in text
    allowed = "--allow_missing=generator|mlm|total"
    status, text, _ = compare(part, "--expect", RECORDING, VOCAB, allowed)
    assert status == 0 and "some outputs were not compared" in text


@pytest.mark.parametrize(
    "kind", ["tiny_ckpt", "v200_electric", "v200_mlm", "v200_uniform_generator"]
)
def test_recordings_of_the_original_agree(compare, golden_dir, kind):
    """Check one case of each kind; test_golden_forward.py has all cases."""
    name = golden_dir / f"forward_{kind}"
    checkpoint = str(golden_dir / read_json(name.with_suffix(".json"))["ckpt"])
    status, text, result = compare(checkpoint, f"--expect={name}.npz")
    assert status == 0, text
    assert not result["not_compared"] and result["outputs"]["layers"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tmp}/none", VOCAB], "none"),
        (["--expect={tmp}/none.npz", VOCAB], "no such file"),
        ([CHECKPOINT, VOCAB, "--text={tmp}/none"], "no such file"),
        ([CHECKPOINT, "--vocab_file={tmp}/big.txt"], "the model has 200"),
        ([CHECKPOINT, VOCAB, "--hparams={"], "--hparams"),
    ],
)
def test_an_error_has_status_two(compare, tmp_path, arguments, message):
    vocab = (FIXTURES / "vocab_200.txt").read_text()
    (tmp_path / "big.txt").write_text(vocab + "surplus\n")
    arguments = [a.replace("{tmp}", str(tmp_path)) for a in arguments]
    status, text, result = compare(CHECKPOINT, *arguments)
    assert status == 2 and result is None
    assert "error: " in text and message in text
