# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (similar letters are intended)
"""Ids and offsets of the tokenizer in a graph equal those in Python."""

import itertools
import sys
import unicodedata

import hypothesis
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from electra_tf.text import characters, vocabulary
from electra_tf.text.basic_tokenizer import BasicTokenizer
from electra_tf.text.graph_normalization import GraphNormalizer
from electra_tf.text.graph_tokenization import GraphTokenizer, plain_characters
from electra_tf.text.tokenization import FullTokenizer
from tests.conftest import read_json, refused
from tests.text.reference_tokenizer import TELLING, read_characters

SETTINGS = [(True, True), (True, False), (False, True)]
STRINGS = st.one_of(
    st.text(max_size=30),
    st.text(st.sampled_from(TELLING), max_size=20),
    st.text(st.characters(categories=["L", "M"]), max_size=12),
    st.text(st.characters(categories=["M", "Lm", "Sk", "Lu"]), max_size=12),
).map(lambda text: text.encode())
NOT_ALWAYS_UTF8 = st.one_of(
    STRINGS,
    st.binary(max_size=12),
    st.lists(
        st.sampled_from(
            [bytes([b]) for b in b"\xc0\xc2\xe0\xed\xef\xf0\xf4\xf5\x80\xa0 a"]
            + ["é".encode(), "中".encode(), b"\xf0\x9f\x98", b"\xed\xa0\x80"]
        ),
        max_size=8,
    ).map(b"".join),
)


def both(path, *setting):
    return GraphTokenizer(path, *setting), FullTokenizer(path, *setting)


def by_setting(path):
    """Return both tokenizers of each casing (lower case, strip accents)."""
    return {setting: both(str(path), *setting) for setting in SETTINGS}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Return tokenizers whose vocabulary distinguishes most letters."""
    numbers = [*range(0x21, 0x500), *range(0x500, 0x20000, 61)]
    parts = {
        part
        for char in TELLING + "".join(map(chr, numbers))
        for form in (char, char.lower())
        for part in form + unicodedata.normalize("NFD", form)
        if unicodedata.category(part)[0] in "LNSPM"
    }
    tokens = [*vocabulary.SPECIAL_TOKENS, "ab", "##ab", *sorted(parts)]
    tokens += [f"##{part}" for part in sorted(parts)]
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_bytes("".join(f"{token}\n" for token in tokens).encode())
    return by_setting(path)


@pytest.fixture(scope="module")
def tiny_pair(tiny_vocab):
    return both(tiny_vocab)


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def differing(pair, texts):
    """Return the texts whose ids differ from those in Python."""
    graph, plain = pair
    rows = graph.encode([as_bytes(text) for text in texts]).to_list()
    return [
        text
        for text, ids in zip(texts, rows, strict=True)
        if ids != plain.encode(text)
    ]


@pytest.fixture(scope="module")
def golden_pairs(golden_dir):
    return by_setting(golden_dir / "vocab.txt")


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_recorded_string_gets_the_ids_of_python(
    setting, golden_dir, golden_pairs
):
    examples = read_json(golden_dir / "tokenization_dev.json")["examples"]
    texts = [e["text"].encode("utf-8", "surrogatepass") for e in examples]
    assert len(texts) == 1571
    assert differing(golden_pairs[setting], texts) == []
    # A string's ids must not depend on the batch it is in.
    alone = [differing(golden_pairs[setting], [text]) for text in texts[::40]]
    assert alone == [[]] * len(alone)


@pytest.mark.slow
@pytest.mark.skipif(
    unicodedata.unidata_version != "14.0.0",
    reason="the ids were recorded with Unicode 14.0",
)
def test_every_recorded_string_gets_the_recorded_ids(golden_dir, golden_pairs):
    examples = read_json(golden_dir / "tokenization_dev.json")["examples"]
    texts = [e["text"].encode("utf-8", "surrogatepass") for e in examples]
    graph, _ = golden_pairs[True, True]
    expected = [example["lower_strip_ids"] for example in examples]
    assert graph.encode(texts).to_list() == expected


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_words_around_every_character_equal_those_in_python(setting):
    graph, plain = GraphNormalizer(*setting), BasicTokenizer(*setting)
    chars = [
        chr(number)
        for number in range(sys.maxunicode + 1)
        if unicodedata.category(chr(number)) not in ("Cn", "Co", "Cs")
        # All characters of these ranges behave in the same way.
        and not "\u4e02" < chr(number) < "\u9ff0"
        and not "\uac22" < chr(number) < "\ud7a0"
        and not "\U00020002" < chr(number) < "\U0002a6d0"
        and not "\U0002a702" < chr(number) < "\U0002b730"
        and not "\U0002b822" < chr(number) < "\U0002ebd0"
    ]
    chars += ["\U000a0000", "\ue000", "\U0010ffff", "\u0378"]
    texts = [f"a{char}Σ {char}AΣ{char}" for char in chars]
    batch = graph.split(graph.decode([text.encode() for text in texts]))
    rows = tf.RaggedTensor.from_row_splits(batch.values, batch.string_splits)
    expected = []
    for text in texts:
        expected.append([word.encode() for word in plain.tokenize(text)])
    assert len(texts) > 40_000
    assert rows.to_list() == expected


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_plain_strings_get_the_ids_of_python(setting, write_vocab):
    codes = plain_characters(*setting)
    assert codes.size > 30_000
    plain = BasicTokenizer(*setting)
    texts = [f"b{chr(code)}b" for code in codes[::3]]
    tokens = {token: None for text in texts for token in plain.tokenize(text)}
    path = write_vocab(*vocabulary.SPECIAL_TOKENS, "b", "##b", *tokens)
    pair = both(path, *setting)
    assert differing(pair, texts) == []
    assert pair[0]._plain.accepts(texts).numpy().all()


@pytest.mark.heavy
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_line_of_the_corpus_gets_the_ids_of_python(
    setting, reference_dir, golden_pairs
):
    num_lines, different = 0, []
    for file in (reference_dir / "data" / "pretrain_corpus").iterdir():
        lines = file.read_bytes().split(b"\n")
        num_lines += len(lines)
        for start in range(0, len(lines), 2000):
            rows = lines[start : start + 2000]
            different += differing(golden_pairs[setting], rows)
    assert different == []
    assert num_lines > 300_000


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("letter", ["a", "é", "中", "가", "\U00010400", "ß"])
def test_words_of_more_than_200_characters_are_unknown(letter, setting, pairs):
    texts = [f"x {letter * n}, y" for n in (99, 100, 101, 199, 200)]
    texts += [f"{letter * 201}", f"b{letter * 201}.", letter * 5000]
    assert differing(pairs[setting], texts) == []


def test_the_fast_tokenizer_accepts_usual_text_alone(tiny_pair):
    graph, _ = tiny_pair
    texts = [
        "Plain words, and a line\nof 2 “quotes” – don’t worry.",
        "Éric naïvely paid 30 € in São Paulo. " * 50,
        "Быстрая лиса, 敏捷的棕色狐狸。",
        "dots …",
        "ΟΔΟΣ",
        "가",
        "a\x01",
        "e\u0301",
        b"\xff",
        "x" * 201,
        "",
    ]
    plain = graph._plain.accepts([as_bytes(text) for text in texts])
    assert plain.numpy().tolist() == [True] * 3 + [False] * 7 + [True]


def test_an_empty_batch_gives_no_ids(tiny_pair):
    graph, _ = tiny_pair
    no_strings = tf.constant([], tf.string)
    assert graph.encode(no_strings).to_list() == []
    parts = graph.encode_with_offsets(no_strings)
    assert [part.to_list() for part in parts] == [[], [], []]


def test_strings_without_tokens_give_empty_rows(tiny_pair):
    graph, _ = tiny_pair
    assert graph.encode(["", " ", "\u200b", b"\xff"]).to_list() == [[]] * 4
    assert differing(tiny_pair, ["", "the", "", "ΟΔΟΣ the…", "", " of"]) == []


def test_huge_strings_get_the_ids_of_python(tiny_pair):
    texts = ["the of, " * 100_000, "the ΟΔΟΣ e\u0301… " * 30_000, "a" * 500_000]
    assert differing(tiny_pair, texts) == []


def test_ids_have_tokens_and_unknown_ids_unk(tiny_pair):
    graph, plain = tiny_pair
    specials = [graph.pad_id, graph.cls_id, graph.sep_id, graph.mask_id]
    tokens = graph.id_to_token([*specials, -1, 200, 7]).numpy()
    expected = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "[UNK]"]
    expected.append(plain.inv_vocab[7])
    assert tokens.tolist() == [token.encode() for token in expected]


@pytest.mark.parametrize(
    "lines",
    [
        ["a", "", "##b", "", " ", "##", "###", "##b"],
        ["a", "a", "##b", "b", "a"],
        ["a b", "##b c", "a\tb", "ab", "##\u200bb", "a\u0085b"],
        ["a.", "##.", ".", "a.b", "[a]", "##a]", "#", "#a", "[UNK]b"],
        ["##a", "b"],
        ["x" * 300, "x" * 201, "x" * 200, "##" + "x" * 200, "a"],
        ["A", "É", "e\u0301", "ﬁ", "\u0301", "##\u0301"],
        ["\0", "a\0", "\ufffd", "\ue000", "##\ue000", "\ue000\ue000", "a"],
        ["中", "##中", "中文", "a中", "##a"],
        [],
    ],
)
def test_unusual_vocabularies_give_the_ids_of_python(lines, write_vocab):
    path = write_vocab(*lines, "[PAD]", "[CLS]", "[UNK]", "[SEP]", "[MASK]")
    texts = ["a", "ab", "abb", "b", "a b", "a.b", "##b", "#", "##", "# b", "#a"]
    texts += ["[UNK]", "[UNK]b", "[a]", "中文", "a中文b", "É e\u0301 ﬁ", "A"]
    texts += ["x" * 200, "x" * 201, "x" * 400, "\0 a\0", "\ue000", "a\ue000"]
    texts += [text + " …" for text in texts]
    assert differing(both(path, True), texts) == []
    # Capital letters of a vocabulary match only in cased text.
    if "A" in lines or "[UNK]b" in lines:
        assert differing(both(path, False), texts) == []


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["a", "[UNK]", "[CLS]", "[SEP]"], r"missing \[PAD\], \[MASK\]"),
        ([*vocabulary.SPECIAL_TOKENS, "ก" * 100], "has 300 bytes"),
    ],
)
def test_vocabularies_that_a_graph_cannot_use_are_refused(
    tokens, message, write_vocab
):
    refused(message, GraphTokenizer, write_vocab(*tokens))


def stretch(chars, lower, strip):
    """Extend each character over the stripped accents after it."""
    result, base = [], None
    for char, start, end in chars:
        result.append([char, start, end])
        text = unicodedata.normalize("NFD", char.lower())
        if lower and strip and all(map(characters.is_accent, text)):
            if base:
                base[2] = end
        elif not characters.is_removed(char):
            base = result[-1]
    return list(map(tuple, result))


def parts_of(chars):
    """Yield cleaned characters between white space and ideographs."""
    part = []
    for char, start, end in chars:
        if characters.is_removed(char):
            continue
        if char.isspace() or characters.is_cjk(char):
            yield part
            part = []
            if characters.is_cjk(char):
                yield [(char, start, end)]
        else:
            part.append((char, start, end))
    yield part


def normalized(part, lower, strip):
    """Return characters after lower-casing and decomposition."""
    if not lower:
        return part
    lowered = "".join(char for char, _, _ in part).lower()
    left, result = iter(lowered), []
    for char, start, end in part:
        piece = "".join(itertools.islice(left, len(char.lower())))
        if strip:
            piece = unicodedata.normalize("NFD", piece)
        result += [(letter, start, end) for letter in piece]
    assert next(left, None) is None
    if not strip:
        return result
    order = [unicodedata.combining(char) for char, _, _ in result]
    bases = [*itertools.accumulate(not kind for kind in order)]
    indices = sorted(range(len(order)), key=lambda i: (bases[i], order[i]))
    result = [result[index] for index in indices]
    whole = "".join(char for char, _, _ in result)
    assert whole == unicodedata.normalize("NFD", lowered)
    return [entry for entry in result if not characters.is_accent(entry[0])]


def words_of(part):
    """Return the words and punctuation marks of normalized characters."""
    result, is_closed = [], True
    for entry in part:
        is_mark = characters.is_punctuation(entry[0])
        if is_mark or is_closed:
            result.append([])
        result[-1].append(entry)
        is_closed = is_mark
    return result


def reference(tokenizer, chars, lower, strip):
    """Yield id, start and end of each token, computed plainly."""
    for part in parts_of(stretch(chars, lower, strip)):
        for word in words_of(normalized(part, lower, strip)):
            position, text = 0, "".join(char for char, _, _ in word)
            for piece in tokenizer.wordpiece_tokenizer.split_word(text):
                size = len(piece) - 2 if position else len(piece)
                entries = word[position : position + size]
                if piece == "[UNK]":
                    entries = word
                position += size
                start = min(entry[1] for entry in entries)
                end = max(entry[2] for entry in entries)
                yield tokenizer.vocab[piece], start, end


def tokens_in_graph(graph, raws):
    """Return id, start and end of each token of each string."""
    parts = [part.to_list() for part in graph.encode_with_offsets(raws)]
    return [list(zip(*row, strict=True)) for row in zip(*parts, strict=True)]


@pytest.fixture(scope="module")
def check(pairs):
    """Return a check that the graph equals a plain computation."""

    def run(raws):
        chars = [read_characters(raw) for raw in raws]
        for setting, (graph, plain) in pairs.items():
            expected = [list(reference(plain, row, *setting)) for row in chars]
            ids = [[token[0] for token in row] for row in expected]
            assert ids == [plain.encode(raw) for raw in raws]
            assert tokens_in_graph(graph, raws) == expected
            assert differing((graph, plain), raws) == []

    return run


@hypothesis.given(raws=st.lists(NOT_ALWAYS_UTF8, min_size=1, max_size=6))
def test_ids_and_offsets_of_any_text_equal_those_in_python(raws, check):
    check(raws)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("ab c", ["ab", "c"]),
        ("É, é!", ["É", ",", "é", "!"]),
        # An accent belongs to its letter; a removed character belongs to a
        # token only between two characters of the token.
        ("ae\u0301 b\u200b", ["a", "e\u0301", "b"]),
        ("a\u200bb", ["a\u200bb"]),
        ("\u0301a \u0301 b", ["a", "b"]),
        # One character, several tokens.
        ("가", ["가", "가"]),
        ("zzz☃ b", ["zzz☃", "b"]),
        ("中\u0301文", ["中\u0301", "文"]),
        ("a" * 201 + " b", ["a" * 201, "b"]),
    ],
)
def test_each_token_spans_its_characters(text, spans, pairs):
    raw = text.encode()
    [tokens] = tokens_in_graph(pairs[True, True][0], [raw])
    assert [raw[start:end].decode() for _, start, end in tokens] == spans


def test_letters_whose_lower_case_has_another_length_get_right_offsets(check):
    letters = [
        char
        for char in map(chr, range(0x10000))
        if not 0xD800 <= ord(char) < 0xE000
        and len(char.encode()) != len(char.lower().encode())
    ]
    assert "\u023e" in letters
    check([f"{char} {char}b ab".encode() for char in letters])
