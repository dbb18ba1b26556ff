# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of transformers are loaded as fine-tuned models."""

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
INPUTS = [
    ("reviews", TEXTS),
    ("topics", TEXTS),
    ("kinds", [WORDS, "the king of the north"]),
    ("names", [WORDS, "the king of the north"]),
    ("facts", [QUESTION]),
]


def flat(answer):
    """Return the numbers of an answer, in order."""
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, list):
        return [n for part in answer for n in flat(part)]
    return [answer] if isinstance(answer, int | float) else []


def without_numbers(answer):
    """Return an answer as JSON without digits."""
    return json.dumps(answer, default=str).translate(
        dict.fromkeys(map(ord, "0123456789.-e"))
    )


@pytest.mark.parametrize(("task", "items"), INPUTS, ids=[t for t, _ in INPUTS])
def test_a_folder_gives_the_answers_of_the_run(
    task, items, transformers_folder
):
    run, folder = transformers_folder(task)
    settings = {"max_query_length": 12} if task == "facts" else {}
    expected = Predictor.from_pretrained(run)(items)
    answers = Predictor.from_pretrained(str(folder), **settings)(items)
    assert without_numbers(answers) == without_numbers(expected)
    np.testing.assert_allclose(flat(answers), flat(expected), rtol=0, atol=1e-5)


def test_numbers_are_in_the_units_of_the_labels(transformers_folder):
    run, folder = transformers_folder("grade")
    expected = flat(Predictor.from_pretrained(run)(TEXTS))
    values = flat(Predictor.from_pretrained(str(folder))(TEXTS))
    # The labels of the run are from 1 to 7, those of the folder from 0 to 1.
    np.testing.assert_allclose(1 + 6 * np.array(values), expected, atol=1e-4)


def test_labels_without_names_have_those_of_transformers(transformers_folder):
    _, folder = transformers_folder("reviews", fresh=True)
    config = read_json(folder / "config.json")
    del config["id2label"]
    (folder / "config.json").write_text(json.dumps(config))
    task = Predictor.from_pretrained(str(folder)).task
    assert task.labels == ["LABEL_0", "LABEL_1", "LABEL_2"]


@pytest.mark.parametrize(
    "item",
    [
        ("the king", "a city"),
        {"text": "the king", "text_pair": "a city"},
        ["the king", "a city"],
    ],
)
def test_a_pair_has_the_answer_of_the_run(transformers_folder, item):
    run, folder = transformers_folder("pairs")
    (expected,) = Predictor.from_pretrained(run)([("the king", "a city")])
    (answer,) = Predictor.from_pretrained(str(folder))([item])
    shares = answer["probabilities"]
    assert shares == pytest.approx(expected["probabilities"], abs=1e-6)


def test_a_text_and_a_pair_have_different_answers(transformers_folder):
    _, folder = transformers_folder("pairs")
    ask = Predictor.from_pretrained(str(folder))
    pair, text, mapping = ask(
        [("the king", "a city"), "the king", {"text": "the king"}]
    )
    assert text["probabilities"] != pytest.approx(
        pair["probabilities"], abs=1e-3
    )
    assert text["label"] == mapping["label"]


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
    argv = ["predict", f"--model={folder}", str(tmp_path / name), "--echo"]
    assert predict.main(predict.parse_flags(argv)) == 0
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
    longer = Predictor.from_pretrained(str(folder), max_seq_length=20)
    assert longer.loaded.config.max_seq_length == 20


def test_settings_come_from_the_folder(transformers_folder):
    _, folder = transformers_folder("names", fresh=True)
    path = folder / "tokenizer_config.json"
    config = {**read_json(path), "do_lower_case": False, "strip_accents": None}
    path.write_text(json.dumps(config))
    (folder / "tokenizer.json").unlink()  # states a different casing
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
    argv = ["convert_checkpoint", str(folder), target, "--task=films"]
    convert_checkpoint.main(convert_checkpoint.parse_flags(argv))
    assert "of classification is renamed to films" in capsys.readouterr().out
    converted = Predictor.from_pretrained(target)
    assert converted.task.name == "films"
    original = Predictor.from_pretrained(str(folder))
    assert converted(TEXTS) == original(TEXTS)
    assert converted.loaded.config.max_seq_length == 48


def test_a_converted_model_does_not_need_its_run(finetuned_folder, tmp_path):
    run = finetuned_folder("grade")
    target = str(tmp_path / "made" / "model.ckpt")
    argv = ["convert_checkpoint", run, target]
    convert_checkpoint.main(convert_checkpoint.parse_flags(argv))
    converted = Predictor.from_pretrained(str(tmp_path / "made"))
    assert converted(TEXTS) == Predictor.from_pretrained(run)(TEXTS)


def test_a_head_without_a_task_type_is_refused(transformers_folder):
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
        "--task_config=x.json.*Remove", load, str(folder), task_config="x.json"
    )
    (folder / "vocab.txt").rename(folder / "kept.txt")
    (folder / "tokenizer.json").rename(folder / "kept.json")
    try:
        refused("found no vocabulary", load, str(folder))
        loaded = load(str(folder), vocab_file=str(folder / "kept.txt"))
        assert loaded.task().name == "classification"
    finally:
        (folder / "kept.txt").rename(folder / "vocab.txt")
        (folder / "kept.json").rename(folder / "tokenizer.json")


def test_an_embedded_text_keeps_its_added_tokens(transformers_folder):
    _, folder = transformers_folder("reviews", fresh=True)
    (folder / "tokenizer.json").unlink()
    path = folder / "tokenizer_config.json"
    marker = "##s"  # a token that no text is tokenized to
    config = {**read_json(path), "additional_special_tokens": [marker]}
    path.write_text(json.dumps(config))
    embedder = Embedder.from_pretrained(str(folder))
    text = f"the {marker}king,[MASK] of"
    (pieces,) = embedder.embed([text], pooling="none")
    expected = embedder._tokenizer.tokenize(text)
    assert marker in expected and "[MASK]" in expected
    assert pieces.units == ["[CLS]", *expected, "[SEP]"]
