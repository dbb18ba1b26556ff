# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files as other programs write them: read by their meaning, or refused."""

import pytest

from electra_tf.commands import shared_flags
from electra_tf.commands.predict import parse_flags
from electra_tf.data import conll
from electra_tf.prediction.reader import Source

CONLL_U = """\
# newdoc id = d1
# sent_id = d1-1
# text = Sanal parçalarsa bunu yapamazlar.
1\tSanal\tsanal\tADJ\tAdj\t_\t2\tamod\t_\t_
2-3\tparçalarsa\t_\t_\t_\t_\t_\t_\t_\t_
2\tparçalar\tparça\tNOUN\tNoun\t_\t6\tnsubj\t_\t_
3\tsa\ti\tAUX\tZero\t_\t2\tcop\t_\t_
4\tbunu\tbu\tPRON\tDemons\t_\t5\tobj\t_\t_
5\tyapamazlar\tyap\tVERB\tVerb\t_\t0\troot\t_\tSpaceAfter=No
5.1\tyok\tyok\tVERB\tVerb\t_\t_\t_\t_\t_
6\t.\t.\tPUNCT\tPunc\t_\t5\tpunct\t_\t_

"""
GERMEVAL = """\
#\thttp://de.example.org/wiki/X\t[2009-10-17]
1\tAufgrund\tO\tO
2\tNew\tB-LOC\tO
3\tYork\tI-LOC\tO

#\thttp://de.example.org/wiki/Y\t[2010-01-01]
1\tHallo\tO\tO

"""
TAGGING = {"type": "tagging", "format": "conll"}


def tagged(task, split="train"):
    """Words and labels of a split, a sentence an item."""
    names = list(task.label_mapping)
    return [
        [
            f"{word}/{names[i]}"
            for word, i in zip(e.words, e.labels, strict=True)
        ]
        for e in task.get_examples(split)
    ]


def test_conll_u_has_the_words_of_its_numbered_lines(describe):
    columns = {"columns": {"word": 1, "tag": 3}, "tags": "words"}
    texts = {"train.txt": CONLL_U, "dev.txt": CONLL_U}
    task = describe({**TAGGING, **columns}, texts)
    words = "Sanal/ADJ parçalar/NOUN sa/AUX bunu/PRON yapamazlar/VERB"
    assert tagged(task) == [[*words.split(), "./PUNCT"]]
    assert "yok" not in task.label_mapping and not task.row_report.rows
    for split in ("train", "dev"):
        for kind, count in (
            (conll.COMMENTS, 3),
            (conll.RANGES, 1),
            (conll.EMPTY_NODES, 1),
        ):
            assert task.row_report.losses[f"{split}: {kind}"] == count


def test_germeval_has_no_words_of_its_comments(describe):
    columns = {"columns": {"word": 1, "tag": 2}}
    texts = {"train.txt": GERMEVAL, "dev.txt": GERMEVAL}
    task = describe({**TAGGING, **columns}, texts)
    assert tagged(task) == [
        ["Aufgrund/O", "New/B-LOC", "York/E-LOC"],
        ["Hallo/O"],
    ]
    assert task.row_report.losses[f"train: {conll.COMMENTS}"] == 2


def test_predict_counts_lines_that_are_no_words(tmp_path, capsys):
    path = tmp_path / "a.conllu"
    path.write_text(CONLL_U)
    args = parse_flags(["", "--model=m", "--columns=words=1", str(path)])
    with shared_flags.Run(args, {"words": ["words", 0]}) as run:
        (read,) = run.lines()
        run.say_summary("answers")
    words = "Sanal parçalar sa bunu yapamazlar .".split()
    assert (read.line, read.values) == (4, {"words": words})
    printed = capsys.readouterr().err
    assert "3 comment lines left out; 1 line of ranges (as 2-3)" in printed


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.tsv"])
def test_a_line_of_other_white_space_is_not_blank(tmp_path, name):
    path = tmp_path / name
    path.write_text("\u3000\n \n\t\n")
    source = Source(str(path), columns={"text": [0]})
    reads = list(source)
    assert [read.line for read in reads] == [1] and source.blank == 2
