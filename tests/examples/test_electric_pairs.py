# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Electric against pseudo-likelihood: the texts, the figures, the command."""

import json
import pathlib
import random
import runpy

import numpy as np
import pytest

from configure.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLA = """\
a\t1\t\tThe cat sat on the mat.
a\t0\t*\tThe cat sat mat the on.
b\t1\t\tA dog ran after the cat!
b\t1\t\tNo.
"""


@pytest.fixture(scope="module")
def program():
    return runpy.run_path(str(ROOT / "examples/electric_pairs.py"))


@pytest.fixture
def cola(tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text(COLA)
    return path


def test_only_accepted_sentences_of_some_words_are_used(program, cola):
    found = program["sound_sentences"](str(cola))
    assert found == [
        "The cat sat on the mat".split(),
        "A dog ran after the cat".split(),
    ]


def test_another_file_is_refused_by_line_and_value(program, cola):
    cola.write_text(f"{COLA}x\tyes\t\tWhat is this?\n")
    with pytest.raises(UserError, match=r"dev.tsv:5: found .*yes.*0 or 1"):
        program["sound_sentences"](str(cola))
    cola.write_text("a\t1\t\tNo.\n")
    with pytest.raises(UserError, match="0 accepted sentences of 4 words"):
        program["sound_sentences"](str(cola))


def test_every_edit_is_what_it_is_called(program):
    words, counts = "a b c d".split(), {"a": 1, "x": 2}
    for seed in range(50):
        draws = random.Random(seed)
        corrupted = program["corrupted"]
        swapped = corrupted(words, "swapped", counts, draws)
        assert sorted(swapped) == words
        assert sum(a != b for a, b in zip(words, swapped, strict=True)) == 2
        replaced = corrupted(words, "replaced", counts, draws)
        assert sum(a != b for a, b in zip(words, replaced, strict=True)) == 1
        dropped = corrupted(words, "dropped", counts, draws)
        assert len(dropped) == 3 and set(dropped) < set(words)


def test_texts_are_those_of_their_seed(program):
    sentences = [["a", "b", "c", "d"], ["e", "f", "g", "h", "i"]]
    texts, edits = program["make_texts"](sentences, 1)
    assert texts == program["make_texts"](sentences, 1)[0]
    assert texts != program["make_texts"](sentences, 2)[0]
    assert edits.shape == (2, program["TEXTS"])
    groups = np.reshape(texts, edits.shape)
    for group, made in zip(groups, edits, strict=True):
        assert list(made[:4]) == [0, 1, 1, 1]
        assert made[4:].min() >= 1 and made[4:].max() <= 3
        assert group[0] not in group[1:]


def test_the_higher_score_wins_and_equal_ones_half(program):
    edits = np.array([[0, 1, 1, 1, *[2] * 9], [0, 1, 1, 1, *[3] * 9]])
    scores = np.zeros(edits.shape)
    scores[0, 1:] = -1  # the first sentence beats all
    scores[1, 1] = 1  # a twin is above the second, another below it
    scores[1, 2] = -1
    scores[1, 12] = 2
    found = program["judge"](scores, edits)
    assert found["pairs"] == pytest.approx((3 + 0 + 1 + 0.5) / 6)
    assert found["swapped"] == 0.5
    assert found["replaced"] == 1.0
    assert found["dropped"] == 0.75
    assert found["lists"] == 0.5
    assert found["edits left"] == 1.5


@pytest.mark.slow
def test_models_are_scored(program, cola, pretrained_folder, tmp_path, capsys):
    electric = pretrained_folder(
        electra_objective=False, electric_objective=True
    )
    mlm = pretrained_folder(electra_objective=False)
    output = tmp_path / "output"
    argv = ["electric_pairs.py", f"--cola={cola}", f"--output={output}"]
    argv += [f"--model=electric={electric}", f"--model=mlm={mlm}"]
    program["main"](program["parse_flags"](argv))
    found = json.loads((output / "results.json").read_text())
    assert (found["sentences"], found["texts"]) == (2, 2 * program["TEXTS"])
    for name in ("electric", "mlm"):
        lines = (output / f"{name}.jsonl").read_text().splitlines()
        scores = [json.loads(line)["score"] for line in lines]
        edits = np.array(
            program["make_texts"](program["sound_sentences"](str(cola)), 1)[1]
        )
        scores = np.reshape(scores, edits.shape)
        assert (
            found[f"{name}, sum"]["pairs"]
            == (program["judge"](scores, edits)["pairs"])
        )
    assert "electric, mean" in capsys.readouterr().out
