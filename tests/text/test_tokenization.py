# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0

"""Tokenization against recorded values, and the habits of `FullTokenizer`."""

import json
import pickle
import unicodedata

import pytest

from configure.errors import UserError
from electra_tf.text import tokenization
from electra_tf.text.tokenization import FullTokenizer

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


# In Unicode 14.0 a spacing mark; before, a non-spacing one, which is stripped.
RECLASSED_IN_14 = "\u1734"


def comparable(examples):
    """Leaves out strings whose code points this Python classes otherwise."""
    kept = [e for e in examples if not depends_on_version(e["text"])]
    left_out = len(examples) - len(kept)
    version = tuple(map(int, unicodedata.unidata_version.split(".")))
    if version >= (14, 0, 0):
        assert left_out <= (17 if version > (14, 0, 0) else 0)
    return kept


def depends_on_version(text):
    if RECLASSED_IN_14 in text and unicodedata.category("\u1734") != "Mc":
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
    recorded = json.loads((golden_dir / "tokenization_dev.json").read_text())
    examples = comparable(recorded["examples"])
    assert len(recorded["examples"]) == 1571
    assert mismatches(examples, str(golden_dir / "vocab.txt")) == []


def test_the_kept_sample_gives_the_recorded_pieces(
    golden_sample, reference_tokenizer, write_vocab
):
    vocab = golden_sample["vocab"]
    lines = [f"[line{n}]" for n in range(golden_sample["vocab_size"])]
    for token, number in vocab.items():
        lines[number] = token
    examples = comparable(golden_sample["examples"])
    assert len(golden_sample["examples"]) == 197
    assert mismatches(examples, write_vocab(*lines)) == []
    for name in ("lower_strip", "lower_nostrip", "cased"):
        setting = SETTINGS[name]
        for example in examples:
            text = example["text"]
            pieces = reference_tokenizer.tokenize(text, vocab, *setting)
            assert pieces == example[name]


@pytest.mark.parametrize("text", [None, 3, ["a"], bytearray(b"a")])
def test_other_types_are_refused(text, tiny_vocab):
    with pytest.raises(ValueError, match="must be str or bytes"):
        FullTokenizer(tiny_vocab).tokenize(text)


def test_wordpiece_length_is_counted_after_accents_are_dropped(write_vocab):
    path = write_vocab("[UNK]", "e", "##e")
    assert len(FullTokenizer(path).tokenize("é" * 200)) == 200
    assert FullTokenizer(path).tokenize("é" * 201) == ["[UNK]"]
    accented = "e\u0301" * 200  # 400 code points
    assert len(FullTokenizer(path).tokenize(accented)) == 200
    assert FullTokenizer(path, True, False).tokenize(accented) == ["[UNK]"]


def test_ids_and_tokens_are_inverse_and_others_are_named(tiny_vocab):
    tokenizer = FullTokenizer(tiny_vocab)
    ids = list(range(200))
    tokens = tokenizer.convert_ids_to_tokens(ids)
    assert tokens == list(tokenizer.vocab)
    assert tokenizer.convert_tokens_to_ids(tokens) == ids
    with pytest.raises(UserError, match=r"'no such'.*200.*vocabulary"):
        tokenizer.convert_tokens_to_ids(["the", "no such"])
    with pytest.raises(UserError, match=r"Id 200 .*from 0 to 199"):
        tokenizer.convert_ids_to_tokens([3, 200])


def test_vocabulary_without_unk_tokenizes_but_cannot_encode(write_vocab):
    tokenizer = FullTokenizer(write_vocab("a", "b"))
    assert tokenizer.tokenize("a c") == ["a", "[UNK]"]
    assert tokenizer.encode("a b") == [0, 1]
    with pytest.raises(UserError, match=r"\[UNK\]"):
        tokenizer.encode("a c")


def memos(tokenizer):
    found = [
        value
        for value in vars(tokenizer).values()
        if isinstance(value, tokenization.Memo)
    ]
    assert len(found) == 3
    return found


def test_memo_stays_within_its_bound(tiny_vocab, monkeypatch):
    monkeypatch.setattr(tokenization, "MEMO_ENTRIES", 16)
    bounded = FullTokenizer(tiny_vocab)
    for number in range(500):
        text = f"w{number} the of,{number % 3} {'a' * number}"
        ids = bounded.encode(text)
        assert ids == bounded.convert_tokens_to_ids(bounded.tokenize(text))
        ids.append(-1)  # A result is the caller's, not the memo's.
        assert bounded.encode(text) == ids[:-1]
        assert all(len(memo) <= 16 for memo in memos(bounded))
        kept = {word for memo in memos(bounded) for word in memo}
        assert max(map(len, kept)) <= tokenization.MEMO_WORD_LENGTH


def test_pickled_copy_works_and_starts_with_an_empty_memo(tiny_vocab):
    tokenizer = FullTokenizer(tiny_vocab, strip_accents=False)
    ids = tokenizer.encode("the naïve end.")
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert all(not memo for memo in memos(copy))
    assert copy.encode("the naïve end.") == ids
    assert copy.vocab == tokenizer.vocab
