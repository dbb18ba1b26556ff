# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The words of CoNLL files in all dialects are read, comments are not."""

import hypothesis
import hypothesis.strategies as st
import pytest

from electra_tf.data import conll
from electra_tf.data.tables import Row
from electra_tf.files.lines import LineReader
from tests.conftest import refused

# White space of Unicode that is part of words.
ODD_SPACES = "\xa0\u3000\x85\u2028\u2029\x1c\x1f\x0b\x0c\u202f\u2003\ufeff"


@pytest.fixture
def read(tmp_path):
    """Return a function that reads a text.

    It returns sentences of (word, tag), bad lines, and counts of other lines.
    """

    def make(text, columns=None, **settings):
        path = tmp_path / "a.conll"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        columns = {"word": 0, "tag": -1} if columns is None else columns
        lines = LineReader(str(path))
        reader = conll.ConllReader(lines, columns, **settings)
        items = list(reader)
        bad = [item.line for item in items if isinstance(item, Row)]
        sentences = [
            list(zip(*item.columns.values(), strict=True))
            for item in items
            if isinstance(item, conll.Sentence)
        ]
        return sentences, bad, dict(reader.skipped)

    return make


def _row(number, word, tag):
    return f"{number}\t{word}\t{word}\t{tag}\t_\t_\t0\troot\t_\t_\n"


CONLL_U = (
    "# newdoc id = d1\n# sent_id = 1\n# text = Vámonos al mar .\n"
    + _row("1-2", "Vámonos", "_")
    + _row(1, "Vamos", "VERB")
    + _row(2, "nos", "PRON")
    + _row("3-4", "al", "_")
    + _row(3, "a", "ADP")
    + _row(4, "el", "DET")
    + _row(5, "mar", "NOUN")
    + _row("5.1", "hoy", "ADV")
    + _row(6, "#", "SYM")
    + "\n# text = 10 000 # 2-3\n"
    + _row("0.1", "son", "VERB")
    + _row(1, "10 000", "NUM")
    + _row(2, "#", "SYM")
    + _row(3, "2-3", "NUM")
    + "\n"
)
U = {"word": 1, "tag": 3}
GERMEVAL = (
    "#\thttp://de.example.org/X\t[2009]\n1\tAufgrund\tO\tO\n2\tvon\tO\tO\n"
    "3\tYork\tB-LOC\tO\n\n#\tn-tv.de\t[2010]\n1\t#\tO\tO\n\n"
)
COMMENTS, RANGES, NODES = conll.COMMENTS, conll.RANGES, conll.EMPTY_NODES

DIALECTS = {
    "CoNLL-U": (
        CONLL_U,
        U,
        ["Vamos nos a el mar #".split(), ["10 000", "#", "2-3"]],
        {COMMENTS: 4, RANGES: 2, NODES: 2},
    ),
    "CoNLL-U with Windows line ends": (
        CONLL_U.replace("\n", "\r\n"),
        U,
        ["Vamos nos a el mar #".split(), ["10 000", "#", "2-3"]],
        {COMMENTS: 4, RANGES: 2, NODES: 2},
    ),
    "CoNLL-U without its numbers": (
        "# text = b\n_\ta\t_\tX\n_\tb\t_\tY\n\n#newpar = 1\n_\t#\t_\tX\n\n",
        U,
        [["a", "b"], ["#"]],
        {COMMENTS: 2},
    ),
    "GermEval": (
        GERMEVAL,
        {"word": 1, "tag": 2},
        [["Aufgrund", "von", "York"], ["#"]],
        {COMMENTS: 2},
    ),
    "CoNLL-2000 with the pound's sign": (
        "# # B-NP\n10 CD I-NP\n\n# # B-NP\n2-3 CD I-NP\n5.1 CD I-NP\n\n",
        None,
        [["#", "10"], ["#", "2-3", "5.1"]],
        {},
    ),
    "CoNLL-2003": (
        "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\n2-3 CD I-NP O\n\n",
        None,
        [["EU", "2-3"]],
        {},
    ),
    "CoNLL-2012": (
        "#begin document (bc/cctv/00); part 000\n"
        "bc/cctv/00 0 0 In IN *\nbc/cctv/00 0 1 # NN *\n\n#end document\n",
        {"word": 3, "tag": 4},
        [["In", "#"]],
        {COMMENTS: 2},
    ),
    "MultiCoNER": (
        "# id 3b37d5a9\tdomain=en\n# _ _ O\nthe _ _ O\n\n"
        "# id 3b37d5aa\tdomain=en\nthe _ _ O\n\n",
        None,
        [["#", "the"], ["the"]],
        {COMMENTS: 2},
    ),
    "hashtags": (
        "#hashtag X O\n# X O\n#b= X O\n\n#sent X O\n\n",
        None,
        [["#hashtag", "#", "#b="], ["#sent"]],
        {},
    ),
    "words alone": (
        "# text = Hi # there\n#hi\n#\nthere\n\n#\n\n#\nat\n\n",
        {"word": 0},
        [["#hi", "#", "there"], ["#"], ["#", "at"]],
        {COMMENTS: 1},
    ),
    "a sentence of comments alone": (
        "# a = 1\n\n# b = 2\n\nx O\n\n# the end = 1\n",
        None,
        [["x"]],
        {COMMENTS: 3},
    ),
    "a comment where a blank line is missing": (
        "a O\n# id = 2\nb O\n\n",
        None,
        [["a", "b"]],
        {COMMENTS: 1},
    ),
    "tabs and spaces mixed": (
        " a \tX\t O \n\t\n \t \nb   X\tO\t\n\n",
        None,
        [["a"], ["b"]],
        {},
    ),
    "a count of words of two sentences": (
        "1 CD B-NP\n2 CD I-NP\n\n7 CD B-NP\n\nof IN B-PP\n2-3 CD B-NP\n\n",
        None,
        [["1", "2"], ["7"], ["of", "2-3"]],
        {},
    ),
    "comments without the tabs of words": (
        "# newpar\na\tX\n#\tY\n# b c\n#d\tX\n\n# e\nb\tX\n\n",
        None,
        [["a", "#", "#d"], ["b"]],
        {COMMENTS: 3},
    ),
    "no final line end": ("a X\nb Y", None, [["a", "b"]], {}),
    "a byte order mark": (
        "\ufeff# a = b\nx O\n\n",
        None,
        [["x"]],
        {COMMENTS: 1},
    ),
    "white space that separates no columns": (
        "".join(f"{s}\tX\na{s}b\tY\n" for s in ODD_SPACES) + "\n",
        None,
        [[word for s in ODD_SPACES for word in (s, f"a{s}b")]],
        {},
    ),
}


def _words(sentences):
    return [[cells[0] for cells in sentence] for sentence in sentences]


@pytest.mark.parametrize("name", DIALECTS)
def test_the_words_of_a_dialect_are_read(read, name):
    text, columns, expected, skipped = DIALECTS[name]
    sentences, bad, counts = read(text, columns)
    assert _words(sentences) == expected
    assert (bad, counts) == ([], skipped)


def test_tags_are_those_of_the_words(read):
    (first, second), *_ = read(CONLL_U, U)
    assert [tag for _, tag in first] == "VERB PRON ADP DET NOUN SYM".split()
    assert second == [("10 000", "NUM"), ("#", "SYM"), ("2-3", "NUM")]


@pytest.mark.parametrize(
    ("text", "columns", "bad"),
    [
        ("a X\n#b\n\nc X\n\n", None, [2]),  # a hashtag without a tag
        ("#b\nc X\n\nd X\n\n", None, [1]),
        (CONLL_U + "x\ty\tz\tw\n\n", U, [20]),  # "x" numbers no word
        (CONLL_U + "1\ty\n\n", U, [20]),
        (CONLL_U + _row(1, " ", "X") + "\n", U, [20]),
        (b"a X\n\xff X\n\nb X\n\n", None, [2]),
        ("a X\n\u3000\nb X\n\n", None, [2]),  # U+3000 makes no blank line
    ],
)
def test_a_line_that_may_be_a_word_is_bad_and_no_comment(
    read, text, columns, bad
):
    assert read(text, columns)[1] == bad


FOUR = "EU NNP B-NP B-ORG\nbuys VBZ B-VP O\n\n"
NER = {"word": 0, "tag": -1}


@pytest.mark.parametrize(
    ("text", "columns", "bad"),
    [
        (FOUR + "Peter NNP B-NP\n\n", NER, {4: "3 columns"}),
        (FOUR + "a b\tNNP\tB-NP B-PER\n\n", NER, {4: "5 columns"}),
        (FOUR + "x N B-NP\ny N\n\nz N B O\n", NER, {4: "3 ", 5: "2 "}),
        ("-DOCSTART- O\n\n# a = b\n" + FOUR + "x N O\n", NER, {7: "3 col"}),
        (FOUR + "x N O\n", {"word": -4}, {4: "x N O"}),
        # The first usable line defines the columns.
        ("x\n\n" + FOUR + "y N O\n", NER, {1: "x", 6: "3 columns"}),
        # A missing last cell does not shift columns counted from the start.
        (FOUR + "Peter NNP B-NP\n\n", {"word": 0, "tag": 1}, {}),
        (FOUR + "Peter NNP B-NP\n\n", {"word": 0, "tag": 3}, {4: "Peter"}),
        (FOUR + "-DOCSTART-\n\nx N B O\n", NER, {}),
        (_row(1, "a", "X") + _row(2, "b c", "X"), {"word": 1, "tag": -7}, {}),
    ],
)
def test_lines_lack_no_cell_if_a_column_counts_from_the_end(
    tmp_path, text, columns, bad
):
    path = tmp_path / "a.conll"
    path.write_text(text)
    reader = conll.ConllReader(LineReader(str(path)), columns)
    rows = [item for item in reader if isinstance(item, Row)]
    assert [row.line for row in rows] == list(bad)
    starts = zip(rows, bad.values(), strict=True)
    assert all(row.content.startswith(start) for row, start in starts)


def test_the_first_line_of_each_reading_defines_the_columns(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("a X O\n\n")
    reader = conll.ConllReader(LineReader(str(path)), NER)
    assert [item.columns["tag"] for item in reader] == [["O"]]
    path.write_text("a O\n\n")
    assert [item.columns["tag"] for item in reader] == [["O"]]


def test_a_line_that_lacks_a_cell_names_the_first_line(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(FOUR + "Peter NNP B-NP\n\n")
    *_, row = conll.ConllReader(LineReader(str(path)), NER)
    assert (row.line, row.content) == (4, "3 columns")
    assert row.expected.startswith("4, as in line 1 (")


@pytest.mark.parametrize("text", [CONLL_U, "1 a O\n2 b O\n3 c O\n\n"])
def test_numbers_of_words_are_not_taken_for_words(read, text):
    refused(r"a\.conll: column 0 contains the numbers .* word=1", read, text)


@pytest.mark.parametrize(
    ("ends", "expected"), [(False, [["a", "b"]]), (True, [["a"], ["b"]])]
)
def test_documents_end_sentences_if_requested(read, ends, expected):
    text = "a O\n-DOCSTART- O\nb O\n"
    sentences, *_ = read(text, {"word": 0}, documents_end_sentences=ends)
    assert _words(sentences) == expected


@pytest.mark.parametrize(("keeps", "bad"), [(True, []), (False, [3])])
def test_a_sentence_at_the_end_of_the_file_is_kept_or_bad(read, keeps, bad):
    sentences, bad_lines, _ = read("a O\n\nb O\n", keeps_unended=keeps)
    assert len(sentences) == 2 - len(bad) and bad_lines == bad


def test_columns_with_names_are_refused(read):
    message = (
        "column 'tag' for tag is a name, but CoNLL files have no header.*number"
    )
    refused(message, read, "a O\n", {"word": 0, "tag": "tag"})


WORDS = st.text(
    st.characters(
        exclude_categories=["Cs"], exclude_characters="#\t \r\n\ufeff"
    ),
    min_size=1,
)


@hypothesis.settings(
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(st.lists(st.lists(WORDS, min_size=1), min_size=1))
def test_any_words_between_tabs_and_line_feeds_are_read_back(read, expected):
    lines = []
    for sentence in expected:
        lines += [f"{word}\tX\n" for word in sentence]
        lines.append("\n")
    text = "".join(lines)
    hypothesis.assume("-DOCSTART-" not in text)
    hypothesis.assume("1\tX\n2\tX\n" not in text)
    sentences, bad, skipped = read(text)
    assert _words(sentences) == expected
    assert not bad and not skipped
