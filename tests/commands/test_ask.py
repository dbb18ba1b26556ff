# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (texts of many scripts)
"""Questions to a folder of texts: passages, index, answers, the weight."""

import collections
import gzip
import io
import json
import os
import pathlib
import shutil
import sys
import types
import zipfile

import numpy as np
import pytest

from electra_tf.commands import ask
from electra_tf.extras.ask import retrieval
from electra_tf.finetuning.question_answering import QATask
from tests.conftest import refused

pytest.importorskip("bm25s", reason="no extra ask")
pytest.importorskip("Stemmer", reason="no extra ask")

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"
ASKED = {"id": "q1", "question": "where is the king?"}
ASKED["answers"] = [{"text": "city", "answer_start": 19}]
PARAGRAPHS = [
    {"context": "The king is in the city.", "qas": [ASKED]},
    {"context": "She was for the north.", "qas": []},
]
SQUAD = {"data": [{"title": "Kings", "paragraphs": PARAGRAPHS}]}


@pytest.fixture
def folder(tmp_path):
    """A folder of texts of each kind."""
    place = tmp_path / "texts"
    (place / "deep").mkdir(parents=True)
    lines = ["", "The king built", "three castles.", "", "Her city was quiet."]
    (place / "a.txt").write_text("\n".join(lines))
    rows = '{"id": 7, "text": "Bees make honey."}\n\n{"text": "Ice melts."}\n'
    (place / "deep" / "b.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    (place / "c.json").write_text(json.dumps(SQUAD))
    return place


@pytest.fixture
def opened(folder):
    """Opens the folder's index; returns it, and what was said."""

    def call(place=folder, language="english"):
        said, path = [], str(folder.parent / "kept.index")
        index = retrieval.open_index(str(place), path, language, said.append)
        return index, said

    return call


def test_passages_say_where_they_stand_and_are_found_by_stems(opened):
    index, _ = opened()
    assert [tuple(one) for one in index.passages] == [
        ("a.txt", 2, "", "The king built\nthree castles."),
        ("a.txt", 5, "", "Her city was quiet."),
        ("c.json", None, "Kings/0", "The king is in the city."),
        ("c.json", None, "Kings/1", "She was for the north."),
        ("deep/b.jsonl.gz", 1, "7", "Bees make honey."),
        ("deep/b.jsonl.gz", 3, "", "Ice melts."),
    ]
    (place, score), *_ = index.search("Who is building a castle?", 3)
    assert index.passages[place].line == 2 and score > 0
    assert index.search("Zebras?", 3) == []
    plain, _ = opened(language="none")
    assert plain.search("castle", 3) == []
    assert len(plain.search("the king", 20)) == 3


def test_long_text_is_cut_and_nothing_of_it_is_lost(opened, tmp_path):
    place = tmp_path / "long.txt"
    words = [f"w{n}" for n in range(500)]
    place.write_text(" ".join(words[:450]) + "\n" + " ".join(words[450:]))
    passages = opened(place)[0].passages
    assert [len(one.passage.split()) for one in passages] == [200, 200, 100]
    assert [one.line for one in passages] == [1, 1, 1]
    assert " ".join(one.passage for one in passages).split() == words


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("东" * 450, [200, 200, 50]),
        ("东，" * 250, [400, 100]),
        ("กี่" * 250, [600, 150]),  # Marks stay on their letters.
        ("서울은 " * 201, [800, 4]),
        ("ก" * 150 + "\n" + "ข" * 100, [150, 100]),
    ],
)
def test_long_text_without_spaces_is_cut_too(opened, tmp_path, text, sizes):
    place = tmp_path / "long.txt"
    place.write_text(text)
    passages = [one.passage for one in opened(place)[0].passages]
    assert [len(one) for one in passages] == sizes
    assert "".join(passages) == text.replace("\n", "")


def test_the_right_passage_is_first_in_every_script():
    path = FIXTURES / "questions_in_seven_scripts.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    passages = [
        retrieval.SourcePassage("f", n, "", row["text"])
        for n, row in enumerate(rows, 1)
    ]
    index = retrieval.PassageIndex(passages, "english")
    found, asked = collections.Counter(), collections.Counter()
    for number, row in enumerate(rows):
        asked[row["script"]] += 1
        hits = index.search(row["question"], 1)
        found[row["script"]] += bool(hits) and hits[0][0] == number
    assert len(asked) == 7 and set(asked.values()) == {10}
    assert found.total() >= 66 and min(found.values()) >= 9


@pytest.mark.parametrize(
    ("text", "question", "language"),
    [
        ("Инженер построил маяки.", "маяк", "english"),
        ("Инженер построил маяки.", "маяк", "russian"),
        ("Самой длинной рекой", "длинная река", "english"),
        ("बिल्लियाँ देखती हैं", "बिल्ली", "english"),
        ("Οι γάτες κοιμούνται", "γάτα", "german"),
        ("The lighthouses burned", "burning lighthouse", "english"),
        ("नेपालको राजधानी", "नेपाल", "nepali"),
    ],
)
def test_stems_follow_the_script_of_a_word(
    opened, tmp_path, text, question, language
):
    place = tmp_path / "slow.txt"
    place.write_text(text)
    assert opened(place, language=language)[0].search(question, 1)
    assert not opened(place, language="none")[0].search(question, 1)


def test_an_index_of_another_splitter_is_made_again(opened, monkeypatch):
    opened()
    monkeypatch.setattr(retrieval, "VERSION", "0, Unicode 5")
    assert "indexed 6 passages" in opened()[1][0]
    assert not opened()[1]


def test_an_index_is_kept_until_a_text_changes_or_it_is_damaged(opened, folder):
    first, said = opened()
    assert "indexed 6 passages of 3 files" in said[0]
    path = folder.parent / "kept.index"
    kept = path.read_bytes()
    again, said = opened()
    assert not said and path.read_bytes() == kept
    question = "is the king in the city?"
    assert again.search(question, 9) == first.search(question, 9)
    path.write_bytes(kept[:2000] + b"\xff\xff" + kept[2002:])
    assert opened()[1] and opened()[0].passages == first.passages
    (folder / "a.txt").write_text("The king built\nthree houses.")
    changed, said = opened()
    assert "indexed 5 passages" in said[0]
    assert changed.search("castles", 1) == []
    assert not list(folder.parent.glob("*.tmp"))
    refused("none: cannot be read: No such file", opened, folder / "none")


def test_what_an_index_leaves_out_is_reported(opened, folder):
    (folder / ".hidden").write_bytes(b"\0")
    (folder / "again").symlink_to("deep")
    assert opened()[1][:2] == [
        "Skipped files and folders reached a second time: 1 (again)",
        "Skipped hidden: 1 (.hidden)",
    ]


@pytest.mark.parametrize(
    "passage",
    [
        ["a.txt", 2, "", 5],
        ["a.txt", "2", "", "text"],
        [1, 2, "", "text"],
        ["a.txt", 2, "", "text", "more"],
        ["a.txt"],
        {},
        None,
    ],
)
def test_an_index_with_forged_passages_is_made_again(opened, folder, passage):
    first, _ = opened()
    path = folder.parent / "kept.index"
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    rows = parts["passages.jsonl"].splitlines()
    rows[1] = json.dumps(passage).encode()
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in parts.items():
            is_rows = name == "passages.jsonl"
            packed.writestr(name, b"\n".join(rows) if is_rows else content)
    again, said = opened()
    assert "indexed 6 passages" in said[0]
    assert again.passages == first.passages


@pytest.mark.parametrize(
    ("part", "place", "value"),
    [("indices", 0, 99), ("indices", 0, -1), ("indptr", 1, 99), ("data", 0, 9)],
)
def test_an_index_with_forged_scores_is_made_again(
    opened, folder, part, place, value
):
    opened()
    path, name = folder.parent / "kept.index", f"{part}.csc.index.npy"
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    values = np.load(io.BytesIO(parts[name]))
    values[place] = float("nan") if part == "data" else value
    forged = io.BytesIO()
    np.save(forged, values)
    parts[name] = forged.getvalue()
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    assert "indexed 6 passages" in opened()[1][0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"fine\nb\0d", r"a.txt:2: found a byte 0"),
        ("a.jsonl", b'{"text": "a"}\n{', r"a.jsonl:2: .* one JSON object"),
        ("a.jsonl", b'{"text": 4.5}', r"text is the number 4.5; .*a text und"),
        ("a.json", b'{"data": [{"paragraphs": [{}]}]}', "a.json: data.0.: .*e"),
        ("a.json.gz", b"\x1f\x8b", r"a.json.gz: packed; .*gunzip"),
        ("kept.index", b"text", r"lies among the texts"),
    ],
)
def test_unreadable_texts_are_refused(tmp_path, name, content, message):
    place = tmp_path / "texts"
    place.mkdir()
    (place / name).write_bytes(content)
    path = (place if name == "kept.index" else tmp_path) / "kept.index"
    asked = str(place), str(path), "english", print
    refused(message, retrieval.open_index, *asked)
    assert not (tmp_path / "kept.index").exists()


@pytest.mark.parametrize("name", ["bm25s", "Stemmer"])
def test_without_its_extra_a_kept_index_names_it(opened, monkeypatch, name):
    opened()
    monkeypatch.setitem(sys.modules, name, None)
    refused(r"pip install .*\[ask\]", opened)


@pytest.fixture
def run(folder, finetuned_folder, tmp_path):
    """Runs the command; returns its answers."""

    def call(*words, task="facts"):
        out = tmp_path / "out.jsonl"
        words = [str(folder), *words, f"--model={finetuned_folder(task)}"]
        words += [f"--output={out}", "--overwrite"]
        assert ask.main(ask.parse_flags(["ask", *words])) == 0
        return [json.loads(line) for line in out.read_text().splitlines()]

    return call


def test_what_cannot_be_asked_is_refused(run, folder, tmp_path):
    output = tmp_path / "out.jsonl"
    output.touch()
    for words, task, message in (
        (["?!"], "facts", r"QUESTION: found '\?!'"),
        (["where is it?"], "reviews", "the task reviews; expected a model"),
        ([f"--fit={folder / 'a.txt'}"], "facts", "a.txt:2: malformed JSON"),
        ([f"--questions={output}"], "facts", "an input"),
        (["is it?", "--language=klingon"], "facts", "=klingon: .*french"),
    ):
        refused(message, run, *words, task=task)


@pytest.mark.parametrize("task", ["facts", "manuals"])
def test_an_answer_comes_with_its_source_and_scores(run, task):
    (said,) = run("where is the king?", "--weight=0.25", task=task)
    assert said["question"] == "where is the king?"
    for one in (said, *said["others"]):
        mixed = 0.75 * one["reader_score"] + 0.25 * one["retrieval_score"]
        assert one["score"] == pytest.approx(mixed)
        assert one["answerable"] == bool(one["answer"])
        assert ("null_odds" in one) == (task == "manuals")
        if one["answer"]:
            part = one["passage"][one["start"] : one["end"]]
            assert part.split() == one["answer"].split()
    assert len(said["others"]) == 2  # Passages that share no word are none.
    sources = {(one["file"], one["id"]) for one in (said, *said["others"])}
    assert ("c.json", "Kings/0") in sources


def test_questions_of_a_file_are_answered_in_order(run, tmp_path, capsys):
    path = tmp_path / "q.jsonl"
    asked = ["is it the king?", "zebras?", "was she for the city?"]
    rows = [{"question": text, "id": n} for n, text in enumerate(asked)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = run(f"--questions={path}", "--batch_size=2")
    assert [one["question"] for one in answers] == asked
    assert [one["question_id"] for one in answers] == [0, 1, 2]
    nothing = {"answer": "", "answerable": None, "others": []}
    nothing["reason"] = "no word of the question is in the index"
    assert nothing.items() <= answers[1].items()
    assert answers[0]["reason"] is None and answers[0]["answerable"]
    assert answers[1].keys() == answers[0].keys()
    assert "--fit fits one" in capsys.readouterr().err
    path.write_text('{"question": "is it?"}\n{"question": "??"}\n')
    refused(r"q.jsonl:2: .*question with words", run, f"--questions={path}")
    path.write_text('{"question": 1963}\n{"question": true}\n')
    words = r"q.jsonl:2: question is true; expected a text"
    refused(words, run, f"--questions={path}")


def test_a_fitted_weight_is_kept_for_its_model(run, folder, capsys):
    (report,) = run(f"--fit={folder / 'c.json'}")
    assert report["questions"] == report["gold_indexed"] == 1
    assert report["gold_in_first_5"] == 1.0
    kept = folder.parent / "texts.index.fit.json"
    fitted = json.loads(kept.read_text())
    assert fitted["weight"] == report["weight"]
    kept.write_text(json.dumps({**fitted, "weight": 1.0}))
    capsys.readouterr()
    (said,) = run("where is the king?")
    assert said["score"] == said["retrieval_score"]
    assert "weight" not in capsys.readouterr().err
    (index,) = fitted["model"]
    other = {**fitted, "weight": 1.0, "model": {index: "other weights"}}
    kept.write_text(json.dumps(other))
    run("where is the king?")
    assert "--fit fits one" in capsys.readouterr().err
    kept.write_text(json.dumps({**fitted, "weight": 2}))
    refused(r"fit.json: weight: found 2", run, "where is the king?")


@pytest.mark.parametrize("name", ["squad,chunk_model_1", "m[1]"])
def test_a_model_is_known_whatever_its_folder(finetuned_folder, tmp_path, name):
    place = shutil.copytree(finetuned_folder("facts"), tmp_path / name)
    (path,) = ask._identity(str(place))
    assert path == f"{place}/model.ckpt-7.index"
    os.remove(path)
    os.remove(f"{place}/checkpoint")
    refused("no model.ckpt-<step>", ask._identity, str(place))


def test_the_weight_is_fitted_where_it_answers_best():
    """Two passages a question; the reader is right by 4, BM25 wrong by 1."""

    def read(pairs):
        right = {"answer": "yes", "score": 2.0, "n_best": [1]}
        wrong = {"answer": "no way", "score": -2.0, "n_best": [1]}
        return [dict(right if "gold" in text else wrong) for _, text in pairs]

    class Predictor:
        task = QATask.__new__(QATask)
        __call__ = staticmethod(read)

    def search(question, count):
        return [(2 * int(question) + 1, 9.0), (2 * int(question), 8.0)]

    index, known = types.SimpleNamespace(passages=[], search=search), []
    for n in map(str, range(10)):
        for kind in ("gold", "other"):
            passage = retrieval.SourcePassage("f", int(n), "", f"{kind} {n}")
            index.passages.append(passage)
        gold = {"question_text": n, "doc_tokens": ["gold", n]}
        known.append(types.SimpleNamespace(**gold, answers=("yes",)))
    report = retrieval.fit(retrieval.Asker(index, Predictor(), 2), known, 10)
    all_right, none = ({"exact_match": x, "f1": x} for x in (100.0, 0.0))
    wanted = {"gold_in_first_1": 0.0, "gold_in_first_5": 1.0}
    wanted |= {"retrieved": all_right, "gold": all_right}
    wanted |= {"retrieval_alone": none, "lost": none}
    # Right while (1 - w) * 4 > w: the first of those weights.
    wanted["weight"] = 0.0
    assert wanted.items() <= report.items()
