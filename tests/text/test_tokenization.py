# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 (similar letters are intended)
"""Vocabularies; tokens equal recorded and plainly computed tokens."""

import hashlib
import json
import pathlib
import pickle
import re
import shutil
import sys
import unicodedata

import hypothesis
import hypothesis.strategies as st
import pytest

from electra_tf.text import memo, vocabulary
from electra_tf.text.basic_tokenizer import BasicTokenizer
from electra_tf.text.bpe import BpeTokenizer
from electra_tf.text.opening import open_tokenizer
from electra_tf.text.settings_files import read_settings
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS as SPECIALS
from electra_tf.text.vocabulary import (
    check_vocab,
    read_bpe_vocab,
    refuse_other_vocab,
)
from tests.conftest import FIXTURES, ROOT, read_json, refused
from tests.text import reference_tokenizer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb", {"a": 0, "b": 1}),
        (" a\t\r\nb \r\n", {"a": 0, "b": 1}),
        ("a\nb\na\n", {"a": 2, "b": 1}),
        ("a\n\nb\n", {"a": 0, "": 1, "b": 2}),
        ("a\u2028b\nc\x0bd\n", {"a\u2028b": 0, "c\x0bd": 1}),
        ("e\x85f\n\u2028\r\n", {"e\x85f": 0, "\u2028": 1}),
    ],
)
def test_loading_accepts_any_file_as_the_original(write_vocab, text, expected):
    assert vocabulary.load_vocab(write_vocab(text=text)) == expected


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([" ", "\t"], "is empty"),
        ([*SPECIALS] + ["a", "b"] * 5, "8 duplicate.* 'a' of line 6"),
        ([*SPECIALS, "a", "\0b"], r"zero bytes on 1 line\(s\): 7"),
        (SPECIALS[2:], r"missing \[PAD\], \[UNK\]"),
        ([*SPECIALS[1::-1], *SPECIALS[2:]], r"line 2: \[PAD\] .*id 0"),
    ],
)
def test_errors_name_the_line(write_vocab, lines, message):
    path = write_vocab(*lines)
    refused(rf"{path}\b.*{message}", check_vocab, path)


@pytest.mark.parametrize(
    "read", [check_vocab, vocabulary.load_vocab, vocabulary.vocab_hash]
)
def test_a_missing_file_is_named(tmp_path, read):
    path = tmp_path / "nowhere.txt"
    refused(rf"{path}: no such file", read, str(path))


def test_a_directory_is_named(tmp_path):
    refused(rf"{tmp_path}\b.* is a directory", check_vocab, str(tmp_path))


def test_a_byte_that_is_not_utf_8_is_named(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[PAD]\n[UNK]\n\xff\xfe\n")
    refused(rf"{path}:3: byte 12.*UTF-8", check_vocab, str(path))


SETTINGS = {
    "lower_strip": (True, True),
    "lower_nostrip": (True, False),
    "cased": (False, True),
    "cased_nostrip": (False, False),
}

# Code points of the recorded strings that had no meaning in Unicode 14.0, with
# which they were recorded, and so were removed as control characters.
UNASSIGNED_IN_14 = frozenset(
    "\U0001fae8\U0001ffff\U0002a6e0\U0002a6ff\U0002b81e\U0002b81f\U0002ceae"
    "\U0002ceaf\U0002f7ff\U0002fa1e\U0002fa20\U000436dd\U000c6d91\ufafe\ufaff"
)


def comparable(examples):
    """Leave out strings that this Python version classes differently."""
    selected = [e for e in examples if not depends_on_version(e["text"])]
    left_out = len(examples) - len(selected)
    version = tuple(map(int, unicodedata.unidata_version.split(".")))
    if version >= (14, 0, 0):
        assert left_out <= (17 if version > (14, 0, 0) else 0)
    return selected


def depends_on_version(text):
    # In Unicode 14.0 a spacing mark; before, a non-spacing one, stripped.
    if "\u1734" in text and unicodedata.category("\u1734") != "Mc":
        return True
    return any(
        (unicodedata.category(char) == "Cn") != (char in UNASSIGNED_IN_14)
        for char in text
    )


def mismatches(examples, vocab_file):
    wrong = []
    for name, (lower, strip) in SETTINGS.items():
        tokenizer = FullTokenizer(vocab_file, lower, strip)
        field = "cased" if name == "cased_nostrip" else name
        for example in examples:
            text = example["text"]
            if tokenizer.tokenize(text) != example[field]:
                wrong.append((name, example["category"], text))
            if name == "lower_strip":
                ids = example["lower_strip_ids"]
                if tokenizer.encode(text) != ids:
                    wrong.append(("ids", example["category"], text))
                if tokenizer.convert_tokens_to_ids(example[field]) != ids:
                    wrong.append(("convert", example["category"], text))
    return wrong


def test_every_recorded_string_gives_the_recorded_pieces(golden_dir):
    recorded = read_json(golden_dir / "tokenization_dev.json")
    examples = comparable(recorded["examples"])
    assert len(recorded["examples"]) == 1571
    assert mismatches(examples, str(golden_dir / "vocab.txt")) == []


@pytest.fixture(scope="module")
def golden_sample():
    return read_json(FIXTURES / "golden" / "tokenization_sample.json")


def test_the_sample_in_the_tests_gives_the_recorded_pieces(
    golden_sample, write_vocab
):
    lines = [f"[line{n}]" for n in range(golden_sample["vocab_size"])]
    for token, token_id in golden_sample["vocab"].items():
        lines[token_id] = token
    examples = comparable(golden_sample["examples"])
    assert len(golden_sample["examples"]) == 197
    assert mismatches(examples, write_vocab(*lines)) == []


@pytest.mark.parametrize("name", ["lower_strip", "lower_nostrip", "cased"])
def test_the_plain_tokenizer_gives_the_recorded_pieces(golden_sample, name):
    examples = comparable(golden_sample["examples"])
    pieces = [
        reference_tokenizer.tokenize(
            example["text"], golden_sample["vocab"], *SETTINGS[name]
        )
        for example in examples
    ]
    assert pieces == [example[name] for example in examples]


@pytest.mark.parametrize("text", [None, 3, ["a"], bytearray(b"a")])
def test_other_types_are_refused(text, tiny_vocab):
    with pytest.raises(ValueError, match="expected str or bytes"):
        FullTokenizer(tiny_vocab).tokenize(text)


ACCENTED = "e\u0301" * 200  # 400 code points


@pytest.mark.parametrize(
    ("text", "strip_accents", "count"),
    [
        ("é" * 200, True, 200),
        ("é" * 201, True, 1),
        (ACCENTED, True, 200),
        (ACCENTED, False, 1),
    ],
)
def test_words_of_more_than_200_characters_are_unknown(
    write_vocab, text, strip_accents, count
):
    path = write_vocab("[UNK]", "e", "##e")
    pieces = FullTokenizer(path, True, strip_accents).tokenize(text)
    assert len(pieces) == count
    assert (pieces == ["[UNK]"]) == (count == 1)


def test_a_vocabulary_may_lack_unk_until_a_word_needs_it(write_vocab):
    tokenizer = FullTokenizer(write_vocab("a", "b"))
    assert tokenizer.tokenize("a c") == ["a", "[UNK]"]
    assert tokenizer.encode("a b") == [0, 1]
    refused(r"\[UNK\]", tokenizer.encode, "a c")


def test_conversions_of_ids_and_tokens_are_inverse(tiny_vocab):
    tokenizer = FullTokenizer(tiny_vocab)
    tokens = tokenizer.convert_ids_to_tokens(list(range(200)))
    assert tokens == list(tokenizer.vocab)
    assert tokenizer.convert_tokens_to_ids(tokens) == list(range(200))


def test_unknown_ids_and_tokens_are_named(tiny_vocab):
    tokenizer = FullTokenizer(tiny_vocab)
    to_ids = tokenizer.convert_tokens_to_ids
    refused(r"'no such'.*vocabulary of 200", to_ids, ["the", "no such"])
    to_tokens = tokenizer.convert_ids_to_tokens
    refused(r"Id 200 .*from 0 to 199", to_tokens, [3, 200])


def memos(tokenizer):
    values = vars(tokenizer).values()
    own_memos = [v for v in values if isinstance(v, memo.Memo)]
    assert len(own_memos) == 3
    return own_memos


@pytest.fixture
def small_memos(monkeypatch):
    monkeypatch.setattr(memo, "MEMO_ENTRIES", 16)


def test_memos_stay_within_their_bounds(tiny_vocab, small_memos):
    tokenizer = FullTokenizer(tiny_vocab)
    sizes, lengths = set(), set()
    for number in range(500):
        tokenizer.tokenize(f"w{number} the of,{number % 3} {'a' * number}")
        tokenizer.encode(f"w{number} the of,{number % 3} {'a' * number}")
        sizes.update(map(len, memos(tokenizer)))
        lengths.update(
            len(word) for entry in memos(tokenizer) for word in entry
        )
    assert max(sizes) <= 16
    assert max(lengths) <= memo.MEMO_WORD_LENGTH


def test_changing_a_result_does_not_change_the_memo(tiny_vocab, small_memos):
    tokenizer = FullTokenizer(tiny_vocab)
    ids = tokenizer.encode("the end of, the")
    ids.append(-1)
    assert tokenizer.encode("the end of, the") == ids[:-1]


def test_pickled_copy_works_and_starts_with_an_empty_memo(tiny_vocab):
    tokenizer = FullTokenizer(tiny_vocab, strip_accents=False)
    ids = tokenizer.encode("the naïve end.")
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert all(not memo for memo in memos(copy))
    assert copy.encode("the naïve end.") == ids
    assert copy.vocab == tokenizer.vocab


any_text = st.text() | st.text(reference_tokenizer.TELLING, max_size=40)
surrogate_text = st.text(st.characters(exclude_categories=[]), max_size=20)

VOCABULARIES = [
    ["[UNK]"],
    ["[PAD]", "[UNK]", "a", "##a", "aa", "##aaa", "σ", "##ς", "##σ", "中"],
    ["[UNK]", "##", "#", "", "[", "]", "mask", "##k", "e", "##e", "é", "##é"],
    ["[UNK]", "[UNK]", "a", "a", "b", "##b ", " c", "0", "##9", ".", "。"],
    ["[UNK]", "i", "##i", "\u0307", "##\u0307", "ᄀ", "##ᅡ", "가", "가", "ß"],
]
pieces = st.text(alphabet="abσςé中.#", min_size=1, max_size=3)
small_vocabularies = st.lists(pieces | pieces.map("##{}".format), max_size=30)


FAST = {setting: BasicTokenizer(*setting) for setting in SETTINGS.values()}


@pytest.mark.parametrize("setting", FAST)
def test_every_character_in_context_splits_as_in_the_plain_tokenizer(setting):
    different = [
        text
        for text in character_contexts()
        if FAST[setting].tokenize(text)
        != reference_tokenizer.basic_tokenize(text, *setting)
    ]
    assert different == []


def character_contexts():
    """Yield texts of every assigned character; of large classes every 97th."""
    text = []
    for code_point in range(sys.maxunicode + 1):
        char = chr(code_point)
        category = unicodedata.category(char)
        uniform = category in ("Lo", "Cn", "Co", "Cs") and code_point > 0x3000
        if uniform and code_point % 97:
            continue
        text.append(f"{char} Éa{char}Σ{char}. {char}\u0301\u0323")
        if len(text) == 200:
            yield " ".join(text)
            text = []
    yield " ".join(text)


@hypothesis.settings(max_examples=800)
@hypothesis.given(
    lines=st.sampled_from(VOCABULARIES)
    | small_vocabularies.map(lambda pieces: ["[UNK]", *pieces]),
    setting=st.sampled_from([*FAST]),
    text=any_text
    | surrogate_text
    | st.binary(max_size=60)
    | st.text(alphabet="abσςΣé中.# A", max_size=30),
)
def test_words_and_pieces_equal_the_plain_tokenizers(
    tmp_path_factory, lines, setting, text
):
    expected = reference_tokenizer.basic_tokenize(text, *setting)
    assert FAST[setting].tokenize(text) == expected
    path = tmp_path_factory.getbasetemp() / "odd_vocab.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = FullTokenizer(str(path), *setting)
    vocab = {token.strip(): number for number, token in enumerate(lines)}
    assert tokenizer.vocab == vocab
    pieces = reference_tokenizer.tokenize(text, vocab, *setting)
    assert tokenizer.tokenize(text) == pieces
    assert tokenizer.encode(text) == [vocab[piece] for piece in pieces]


@pytest.fixture(scope="module")
def path(bpe_file):
    return bpe_file()


@pytest.fixture(scope="module")
def pair(path):
    """Return this project's and the library's tokenizer of a file."""
    import tokenizers

    return open_tokenizer(path), tokenizers.Tokenizer.from_file(path)


@hypothesis.given(st.text())
@hypothesis.example("the king  of\tthe north \u4e2d\u6587 \U0001f600 caf\xe9\n")
def test_ids_of_bpe_equal_the_library_s(pair, text):
    tokenizer, library_tokenizer = pair
    text = text.encode("utf-8", "ignore").decode()
    # Special tokens that are spelt out are not special here.
    hypothesis.assume(not re.search("</?s>|<(pad|unk|mask)>", text))
    ids = tokenizer.encode(text)
    assert ids == library_tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.encode(text.encode()) == ids
    assert library_tokenizer.decode(ids) == text
    tokens = tokenizer.convert_ids_to_tokens(ids)
    assert tokenizer.convert_tokens_to_ids(tokens) == ids


def test_special_tokens_of_bpe_have_the_names_of_wordpiece(path, bpe_file):
    vocab = check_vocab(path)
    assert [vocab[token] for token in SPECIALS] == [1, 3, 0, 2, 4]
    assert list(vocab.values()) == list(range(290))
    vocab = check_vocab(bpe_file(special=SPECIALS))
    assert [vocab[token] for token in SPECIALS] == [0, 1, 2, 3, 4]


def test_special_tokens_in_a_text_are_not_special(path):
    ids = open_tokenizer(path).encode("<s>a<mask>b</s><pad><unk>")
    assert min(ids) > 4


def test_lone_surrogates_are_ignored(path):
    tokenizer = open_tokenizer(path)
    assert tokenizer.encode("\ud800a") == tokenizer.encode("a")


def test_the_normalizer_of_a_bpe_file_applies(bpe_file):
    tokenizer = open_tokenizer(bpe_file(lowercase=True))
    assert tokenizer.encode("THE King") == tokenizer.encode("the king")


def test_padding_and_truncation_of_a_bpe_file_do_not_apply(path, tmp_path):
    import tokenizers

    padded = tokenizers.Tokenizer.from_file(path)
    padded.enable_padding(length=50)
    padded.enable_truncation(3)
    other = tmp_path / "tokenizer.json"
    padded.save(str(other))
    text = "the king of the north is in the city"
    ids = open_tokenizer(str(other)).encode(text)
    assert ids == open_tokenizer(path).encode(text)


def test_a_pickled_bpe_tokenizer_gives_the_same_ids(path):
    tokenizer = open_tokenizer(path)
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert isinstance(copy, BpeTokenizer)
    assert copy.encode("<mask> the") == tokenizer.encode("<mask> the")


def vocab(content):
    return content["model"]["vocab"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda c: c["model"].update(type="WordPiece"), "with the vocab.txt"),
        (lambda c: c.update(pre_tokenizer=None), "expected 'BPE' and Byte"),
        (
            lambda c: (c["added_tokens"].pop(4), vocab(c).pop("<mask>")),
            r"missing \[MASK\] \(or <mask>\)",
        ),
        (
            lambda c: vocab(c).update({"\u0100x": vocab(c).pop("\u0100")}),
            "1 of the 256 bytes have .*initial_alphabet",
        ),
        (
            lambda c: c["model"].update(merges=[["x", "none"]]),
            "tokenizers cannot read",
        ),
        (lambda c: c["model"].update(dropout=0.1), "model.dropout is 0.1"),
    ],
)
def test_unusable_bpe_files_are_refused(path, tmp_path, change, complaint):
    content = read_json(pathlib.Path(path))
    change(content)
    other = tmp_path / "tokenizer.json"
    other.write_text(json.dumps(content))
    refused(f"tokenizer.json.*{complaint}", open_tokenizer, str(other))


def test_a_different_vocabulary_is_refused(path, bpe_file, tiny_vocab):
    refuse_other_vocab(path, path, "the model")
    message = "differs from .*the vocabulary of the model"
    other = bpe_file(text="other words ")
    refused(message, refuse_other_vocab, path, other, "the model")
    refused(message, refuse_other_vocab, path, tiny_vocab, "the model")


@pytest.mark.parametrize(
    ("message", "function", "argument"),
    [
        ("290 tokens, but the model has 9", check_vocab, 9),
        ("defines the normalization of text", open_tokenizer, False),
    ],
)
def test_unsuitable_settings_of_bpe_are_refused(
    path, message, function, argument
):
    refused(message, function, path, argument)


def test_wordpiece_refuses_a_bpe_file(path):
    refused("needs a WordPiece vocabulary", FullTokenizer, path)


def test_without_the_library_its_extra_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert check_vocab(path)["[MASK]"] == 4  # needs no library
    refused(r'pip install .*"\.\[bpe\]"', open_tokenizer, path)


def test_a_vocabulary_in_a_plain_folder_of_transformers_equals_its_copy(
    tmp_path,
):
    path = ROOT / "models" / "reference" / "discriminator" / "vocab.txt"
    copied = shutil.copy(path, tmp_path)
    assert read_settings(str(path)).added_tokens
    assert not read_settings(copied).added_tokens
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    assert vocabulary.vocab_hash(str(path)) == expected
    assert vocabulary.vocab_hash(copied) == expected


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("model",), 5),
        (("model", "vocab"), []),
        (("model", "vocab", "<s>"), "0"),
        (("model", "vocab", "<s>"), None),
        (("model", "vocab", "<s>"), True),
        (("pre_tokenizer",), "ByteLevel"),
        (("pre_tokenizer", "pretokenizers"), 5),
        (("pre_tokenizer", "pretokenizers"), [5]),
        (("added_tokens",), True),
        (("added_tokens", 0), "x"),
        (("added_tokens", 0), None),
        (("added_tokens", 0, "content"), 5),
        (("added_tokens", 0, "id"), "x"),
        (("added_tokens", 0, "id"), None),
    ],
)
def test_a_bpe_file_with_another_type_is_refused(
    bpe_file, tmp_path, keys, value
):
    content = json.loads(pathlib.Path(bpe_file()).read_text())
    parent = content
    for key in keys[:-1]:
        parent = parent[key]
    parent[keys[-1]] = value
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    refused("tokenizer.json.* (expected|has no) ", read_bpe_vocab, str(path))
