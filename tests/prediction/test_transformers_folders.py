# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of transformers are fine-tuned models: no run's file is needed."""

import json

import numpy as np
import pytest

from configure.finetuning import FinetuningConfig
from electra_tf.commands import convert_checkpoint, predict
from electra_tf.prediction import loading
from electra_tf.prediction.embedding import Embedder
from electra_tf.prediction.predictor import Predictor
from tests.conftest import read_json, refused

TEXTS = ["the king of the north", "", "in 1999 it was \N{GRINNING FACE}", "a"]
WORDS = ["the", "king", "of", "Paris"]
QUESTION = {"question": "who was in", "context": "the king was in the city"}
# A task, what it is asked, and the hparam of a transformers folder's default.
ASKED = [
    ("reviews", TEXTS),
    ("topics", TEXTS),
    ("kinds", [WORDS, "the king of the north"]),
    ("names", [WORDS, "the king of the north"]),
    ("facts", [QUESTION]),
]


def flat(answer):
    """The numbers of an answer, in order."""
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, list):
        return [n for part in answer for n in flat(part)]
    return [answer] if isinstance(answer, int | float) else []


def words_of(answer):
    return json.dumps(answer, default=str).translate(
        dict.fromkeys(map(ord, "0123456789.-e"))
    )


@pytest.mark.parametrize(("task", "items"), ASKED, ids=[t for t, _ in ASKED])
def test_a_folder_answers_as_the_run(task, items, transformers_folder):
    run, folder = transformers_folder(task)
    settings = {"max_query_length": 12} if task == "facts" else {}
    ours = Predictor.from_pretrained(run)(items)
    theirs = Predictor.from_pretrained(str(folder), **settings)(items)
    assert words_of(ours) == words_of(theirs)
    np.testing.assert_allclose(flat(theirs), flat(ours), rtol=0, atol=1e-5)


def test_numbers_are_in_the_units_of_the_labels(transformers_folder):
    run, folder = transformers_folder("grade")
    ours = Predictor.from_pretrained(run)(TEXTS)
    theirs = Predictor.from_pretrained(str(folder))(TEXTS)
    for one, other in zip(ours, theirs, strict=True):
        # The range of the run is 1 to 7; what is written has its scale.
        assert one["value"] == pytest.approx(1 + 6 * other["value"], abs=1e-4)


def test_names_of_labels_nobody_named(transformers_folder):
    _, folder = transformers_folder("reviews", fresh=True)
    config = read_json(folder / "config.json")
    del config["id2label"]
    (folder / "config.json").write_text(json.dumps(config))
    task = Predictor.from_pretrained(str(folder)).task
    assert task.labels == ["LABEL_0", "LABEL_1", "LABEL_2"]


def test_texts_and_pairs_are_taken_alike(transformers_folder):
    run, folder = transformers_folder("pairs")
    ours, theirs = map(Predictor.from_pretrained, (run, str(folder)))
    pair, text = ("the king", "a city"), "the king"
    named = {"text": "the king", "text_pair": "a city"}
    expected = ours([pair])[0]["probabilities"]
    for item in (pair, named, list(pair)):
        found = theirs([item])[0]["probabilities"]
        assert found == pytest.approx(expected, abs=1e-6)
    alone = theirs([text, {"text": "the king"}])
    assert alone[0]["probabilities"] != pytest.approx(expected, abs=1e-3)
    assert alone[0]["label"] == alone[1]["label"]


@pytest.mark.parametrize(
    ("name", "lines", "pairs"),
    [
        ("a.txt", "the king\na city\n", [False, False]),
        ("a.tsv", "the king\t1\na city\t0\n", [False, False]),
        ("a.tsv", "sentence\tlabel\nthe king\t1\n", [False]),
        ("a.tsv", "sentence1\tsentence2\nthe king\ta city\n", [True]),
        ("a.jsonl", '{"text": "a"}\n{"text": "a", "text_pair": "b"}\n', [0, 1]),
    ],
)
def test_files_of_texts_and_of_pairs(
    name, lines, pairs, transformers_folder, tmp_path, capsys
):
    _, folder = transformers_folder("pairs")
    (tmp_path / name).write_text(lines)
    words = ["--model", str(folder), str(tmp_path / name), "--echo"]
    assert predict.main(predict.parse_flags(["predict", *words])) == 0
    answers = map(json.loads, capsys.readouterr().out.splitlines())
    assert ["text_b" in answer for answer in answers] == pairs


def test_the_length_is_the_tokenizers(transformers_folder):
    _, folder = transformers_folder("reviews", fresh=True)
    path = folder / "tokenizer_config.json"
    config = {**read_json(path), "model_max_length": 9}
    path.write_text(json.dumps(config))
    predictor = Predictor.from_pretrained(str(folder))
    assert predictor.loaded.config.max_seq_length == 9
    (answer,) = predictor(["the king " * 30])
    assert answer == predictor(["the king " * 30 + "of the north"])[0]
    assert predictor.task.row_report.losses["examples cut to max_seq_length"]
    assert Embedder.from_pretrained(str(folder)).max_length == 9
    given = Predictor.from_pretrained(str(folder), max_seq_length=20)
    assert given.loaded.config.max_seq_length == 20


def test_settings_come_from_the_folder(transformers_folder):
    _, folder = transformers_folder("names", fresh=True)
    path = folder / "tokenizer_config.json"
    config = {**read_json(path), "do_lower_case": False, "strip_accents": None}
    path.write_text(json.dumps(config))
    (folder / "tokenizer.json").unlink()  # It states another casing.
    settings = loading.read_settings(str(folder))
    assert isinstance(settings, FinetuningConfig)
    assert not settings.do_lower_case and settings.fix_tagging_casing
    assert settings.fix_tagging_truncation
    assert settings.task_names == ["chunk"]
    assert loading.is_finetuned(str(folder))
    assert loading.is_finetuned(str(folder / "model.safetensors"))


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        (("O", "B-PER", "I-PER"), True),
        (("O", "I-PER", "I-LOC"), True),
        (("O", "NOUN", "VERB"), False),
        (("LABEL_0", "LABEL_1", "LABEL_2"), False),
    ],
)
def test_tags_of_spans_and_classes_of_words(labels, spans, transformers_folder):
    _, folder = transformers_folder("kinds", fresh=True)
    path = folder / "config.json"
    id2label = {str(i): name for i, name in enumerate(labels)}
    path.write_text(json.dumps({**read_json(path), "id2label": id2label}))
    (answer,) = Predictor.from_pretrained(str(folder))([WORDS])
    assert ("spans" in answer) == spans and {*answer["tags"]} <= {*labels}


def test_a_conversion_keeps_the_head(transformers_folder, tmp_path, capsys):
    _, folder = transformers_folder("reviews")
    target = str(tmp_path / "made" / "model.ckpt")
    words = [str(folder), target, "--task=films"]
    convert_checkpoint.main(
        convert_checkpoint.parse_flags(["convert_checkpoint", *words])
    )
    assert "of classification is that of films" in capsys.readouterr().out
    found = Predictor.from_pretrained(target)
    assert found.task.name == "films"
    expected = Predictor.from_pretrained(str(folder))
    assert found(TEXTS) == expected(TEXTS)
    assert found.loaded.config.max_seq_length == 48


def test_a_converted_run_needs_no_run(finetuned_folder, tmp_path):
    run = finetuned_folder("grade")
    target = str(tmp_path / "made" / "model.ckpt")
    convert_checkpoint.main(
        convert_checkpoint.parse_flags(["convert_checkpoint", run, target])
    )
    found = Predictor.from_pretrained(str(tmp_path / "made"))
    assert found(TEXTS) == Predictor.from_pretrained(run)(TEXTS)


def test_what_is_no_task_is_refused_by_name(transformers_folder):
    _, folder = transformers_folder("reviews", fresh=True)
    path = folder / "config.json"
    config = {**read_json(path), "architectures": ["ElectraForMultipleChoice"]}
    path.write_text(json.dumps(config))
    refused("ElectraForMultipleChoice", loading.load_finetuned, str(folder))
    assert Embedder.from_pretrained(str(folder))("the king").shape == (16,)


def test_flags_of_runs_are_refused(transformers_folder):
    _, folder = transformers_folder("reviews")
    load = loading.load_finetuned
    refused(
        "--task_config=x.json.*Leave", load, str(folder), task_config="x.json"
    )
    (folder / "vocab.txt").rename(folder / "kept.txt")
    (folder / "tokenizer.json").rename(folder / "kept.json")
    try:
        refused("no vocabulary", load, str(folder))
        found = load(str(folder), vocab_file=str(folder / "kept.txt"))
        assert found.task().name == "classification"
    finally:
        (folder / "kept.txt").rename(folder / "vocab.txt")
        (folder / "kept.json").rename(folder / "tokenizer.json")


def test_an_embedded_text_keeps_its_added_tokens(transformers_folder):
    _, folder = transformers_folder("reviews", fresh=True)
    (folder / "tokenizer.json").unlink()
    path = folder / "tokenizer_config.json"
    marker = "##s"  # a token of the vocabulary that no text is cut into
    config = {**read_json(path), "additional_special_tokens": [marker]}
    path.write_text(json.dumps(config))
    embedder = Embedder.from_pretrained(str(folder))
    text = f"the {marker}king,[MASK] of"
    (pieces,) = embedder.embed([text], pooling="none")
    expected = embedder._tokenizer.tokenize(text)
    assert marker in expected and "[MASK]" in expected
    assert pieces.units == ["[CLS]", *expected, "[SEP]"]
