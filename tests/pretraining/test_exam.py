# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exams: one file for all runs, drawn by seed; unsuitable files are refused."""

import numpy as np
import pytest
from scipy.special import log_expit

from configure.pretraining import PretrainingConfig
from electra_tf.commands import draw_exam as command
from electra_tf.pretraining import loading, runner
from electra_tf.pretraining.exam import (
    SOURCES,
    Exam,
    discriminator_logits,
    sit_exam,
)
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.training.logs import read_rows
from tests.conftest import refused


@pytest.fixture(scope="module")
def draw(data_dir, pretrained_folder, tmp_path_factory):
    """Return a function that runs the command and returns the exam's path."""

    def run(*flags, generator=None):
        output = tmp_path_factory.mktemp("exam") / "exam.npz"
        records = f"{data_dir}/pretrain_tfrecords/pretrain_data.tfrecord*"
        argv = [
            "draw_exam",
            str(output),
            f"--pretrain_tfrecords={records}",
            f"--generator={generator or pretrained_folder()}",
            "--max_seq_length=16",
            "--examples=10",
            *flags,
        ]
        command.main(command.parse_flags(argv))
        return output

    return run


@pytest.fixture(scope="module")
def exam_file(draw):
    return draw()


def test_equal_seeds_draw_equal_files(draw, exam_file):
    assert draw().read_bytes() == exam_file.read_bytes()
    other = Exam.read(str(draw("--seed=2")))
    assert other.digest != Exam.read(str(exam_file)).digest


@pytest.mark.parametrize("source", SOURCES)
def test_labels_mark_replaced_tokens(exam_file, source):
    exam = Exam.read(str(exam_file))
    ids = exam.arrays["input_ids"]
    changed = exam.arrays[f"{source}_ids"] != ids
    np.testing.assert_array_equal(exam.arrays[f"{source}_labels"], changed)
    assert 0 < changed.sum() < exam.arrays["input_mask"].sum() / 3
    assert not changed[exam.arrays["input_mask"] == 0].any()
    assert not changed[np.isin(ids, [101, 102])].any()


def test_both_sources_replace_at_the_same_positions(exam_file):
    exam = Exam.read(str(exam_file))
    # A source sometimes draws the original token.
    places = [exam.arrays[f"{source}_labels"] for source in SOURCES]
    assert (places[0] & places[1]).sum() > 0.5 * max(p.sum() for p in places)


def test_batch_sizes_leave_scores_equal(exam_file, tiny_config, roughen):
    exam = Exam.read(str(exam_file))
    model = PretrainingModel(tiny_config())
    roughen(model.variables)
    answer = discriminator_logits(model)
    result = sit_exam(answer, exam, batch_size=4)
    assert result == pytest.approx(sit_exam(answer, exam, 10), rel=1e-5)


@pytest.mark.parametrize("source", SOURCES)
def test_scores_equal_their_formulas(exam_file, tiny_config, roughen, source):
    exam = Exam.read(str(exam_file))
    model = PretrainingModel(tiny_config())
    roughen(model.variables)
    result = sit_exam(discriminator_logits(model), exam, batch_size=4)
    encoded = model.discriminator(
        exam.arrays[f"{source}_ids"],
        exam.arrays["input_mask"],
        exam.arrays["segment_ids"],
    )
    logits = np.float64(model.discriminator_head(encoded.sequence_output))
    real = exam.arrays["input_mask"] > 0
    labels = exam.arrays[f"{source}_labels"][real] == 1
    scores = logits[real]
    losses = -np.where(labels, log_expit(scores), log_expit(-scores))
    share = labels.mean()
    wins = scores[labels][:, None] - scores[~labels]
    expected = {
        "auc": np.mean(np.select([wins > 0, wins == 0], [1.0, 0.5], 0.0)),
        "loss": losses.mean(),
        "majority_loss": -share * np.log(share)
        - (1 - share) * np.log(1 - share),
    }
    actual = {name: result[f"exam_{source}_{name}"] for name in expected}
    assert actual == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_logits_that_are_not_finite_have_no_score(
    exam_file, tiny_config, value
):
    exam = Exam.read(str(exam_file))
    model = PretrainingModel(tiny_config())
    model.discriminator_head.dense_1.bias.assign([value])
    answer = discriminator_logits(model)
    message = f"exam, row 1: the model's output generator_logits is {value}"
    refused(message, sit_exam, answer, exam, 4)


def test_a_damaged_generator_draws_no_exam(draw, monkeypatch):
    def load(*arguments):
        loaded = load_pretrained(*arguments)
        head = loaded.model.masked_lm_head
        head.output_bias.assign(head.output_bias * 0 + np.nan)
        return loaded

    load_pretrained = loading.load_pretrained
    monkeypatch.setattr(loading, "load_pretrained", load)
    refused("held-out record 1: .*generator_logits is nan", draw)


@pytest.mark.slow
def test_an_exam_is_evaluated_and_changes_no_training(
    data_dir, exam_file, tiny_pretraining, tmp_path
):
    def run(name, **hparams):
        settings = {
            **tiny_pretraining,
            "num_train_steps": 4,
            "eval_every_n_steps": 2,
            "model_dir": str(tmp_path / name),
            "results_txt": str(tmp_path / name / "r.txt"),
            "results_pkl": str(tmp_path / name / "r.pkl"),
            "results_json": str(tmp_path / name / "r.json"),
            **hparams,
        }
        config = PretrainingConfig.create("m", str(data_dir), **settings)
        result = runner.run(config)
        return result, read_rows(str(tmp_path / name / "eval_log.jsonl"))

    _, plain = run("plain")
    result, rows = run("sat", exam=str(exam_file))
    assert [row["step"] for row in rows] == [2, 4]
    exam_names = [{n for n in row if n.startswith("exam_")} for row in rows]
    assert [len(names) for names in exam_names] == [6, 6]
    assert plain == [
        {name: row[name] for name in row.keys() - names}
        for row, names in zip(rows, exam_names, strict=True)
    ]
    evaluation = {"do_train": False, "do_eval": True}
    again, _ = run("plain", exam=str(exam_file), **evaluation)
    scores = [
        (values["exam_generator_auc"], values["exam_unigram_loss"])
        for values in (again, rows[-1], result)
    ]
    assert scores[0] == scores[1] == scores[2]


def test_an_exam_of_a_different_vocabulary_or_length_is_refused(
    exam_file, tiny_config
):
    exam = Exam.read(str(exam_file))
    vocab = dict(PretrainingModel(tiny_config()).vocab)
    exam.check("e.npz", vocab, 16)
    refused("16 wordpieces, .* table has 8", exam.check, "e.npz", vocab, 8)
    fewer = {t: i for t, i in vocab.items() if i < 199}
    refused("200 tokens, .* has 199", exam.check, "e.npz", fewer, 16)
    first, second = list(vocab)[150:152]
    swapped = {**vocab, first: vocab[second], second: vocab[first]}
    message = f"token {vocab[first] + 1} of the vocabulary is"
    refused(message, exam.check, "e.npz", swapped, 16)


def changed_labels(content):
    import io

    with np.load(io.BytesIO(content)) as archive:
        values = dict(archive)
    values["generator_labels"] = 1 - values["generator_labels"]
    packed = io.BytesIO()
    np.savez(packed, **values)
    return packed.getvalue()


def flipped_bits(content):
    """Damage the compressed data of the first array, so that zlib fails."""
    start = content.index(b".npy") + 40
    return content[:start] + bytes(200) + content[start + 200 :]


def unknown_compression(content):
    """Write a method of compression that zipfile does not support."""
    entry = bytearray(content)
    entry[entry.index(b"PK\x01\x02") + 10] = 99
    return bytes(entry)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content[:-40],
            "not an exam file of draw_exam, or is corrupt",
        ),
        (lambda content: b"{}", "not an exam file of draw_exam, or is corrupt"),
        (flipped_bits, "not an exam file of draw_exam, or is corrupt"),
        (unknown_compression, "not an exam file of draw_exam, or is corrupt"),
        (changed_labels, "The file was changed or is corrupt"),
    ],
    ids=["cut", "other", "flipped", "compression", "changed"],
)
def test_a_damaged_exam_is_refused(exam_file, tmp_path, change, message):
    path = tmp_path / "exam.npz"
    path.write_bytes(change(exam_file.read_bytes()))
    refused(message, Exam.read, str(path))


def test_a_missing_exam_is_named_with_its_flag(tmp_path):
    path = str(tmp_path / "exam.npz")
    refused("exam: .*exam.npz: no such file. Pass --exam", Exam.read, path)


def test_two_towers_read_the_original_text(
    draw, pretrained_folder, monkeypatch
):
    read = []
    logits_of = PretrainingModel.generator_logits

    def generator_logits(self, features, positions):
        read.append(features["input_ids"].numpy())
        return logits_of(self, features, positions)

    monkeypatch.setattr(PretrainingModel, "generator_logits", generator_logits)
    towers = pretrained_folder(two_tower_generator=True)
    exam = Exam.read(str(draw(generator=towers)))
    np.testing.assert_array_equal(
        np.concatenate(read), exam.arrays["input_ids"]
    )


def test_rows_longer_than_the_generator_are_refused(draw):
    refused(
        "--max_seq_length=513: the generator of .* has 512 positions",
        draw,
        "--max_seq_length=513",
    )


def test_more_rows_than_are_held_out_are_refused(draw):
    refused(
        "examples is 11, but only 10 held-out .* Pass --examples=10",
        draw,
        "--examples=11",
    )


def test_an_exam_needs_a_generator_and_rows(draw, pretrained_folder):
    fixed = pretrained_folder(uniform_generator=True)
    refused("has no generator", draw, generator=fixed)
    refused("--examples=0: expected 1 or more", draw, "--examples=0")


@pytest.mark.parametrize(
    ("objective", "is_warned"), [("mlm", True), ("electra", False)]
)
def test_an_exam_without_detection_is_warned_of(
    tiny_config, objective, is_warned
):
    config = tiny_config(objective=objective, exam="exam.npz")
    warned = ["exam has no effect" in text for text in config.warnings()]
    assert any(warned) == is_warned
