# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizer files of Hugging Face folders: equal ids, or an error."""

import itertools
import json
import random

import pytest
import tokenizers
from tokenizers import AddedToken

from configure.errors import UserError
from electra_tf.text.huggingface_tokenizer import read_tokenizer
from electra_tf.text.settings_files import copy_settings
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.vocabulary import check_vocab
from tests.conftest import refused

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = """
    the fox Fox fo foo bar ab ##ab ##x ##o a ##a b ##b e ##e é É ##é 主 教 中
    国 ##中 か が ##か ά \u03b1 ##ς ##\u03c3 \u03c3 ς i ##i \u0131 İ ß ##ß ﬁ
    \u0627 ##\u0627 क ##क ก ##ก [ ] E ##1 [E1] # ##2 e1 ! , . - ' 1 ##3 한
    ##한 國 к ##к \u041a covid ##covid
""".split()
TOKENS = [*SPECIAL, *WORDS]
# Added tokens in the order of their addition; some are wordpieces, too.
ADDED = {
    "none": (),
    "special": (
        AddedToken("[E1]", special=True),
        AddedToken("<e>", special=True, lstrip=True, rstrip=True),
        AddedToken("É中x", special=True),
        AddedToken("covid-19", special=True),
        AddedToken("covid", special=True),
    ),
    "normalized": (
        AddedToken("[E2]", normalized=True),
        AddedToken("foo Bar", normalized=True),
        AddedToken("é", normalized=True),
        AddedToken("中国", normalized=True),
        AddedToken("qu", normalized=False),
        AddedToken("[E1]", special=True),
    ),
}
SETTINGS = [
    pytest.param(*values, id="-".join(map(str, values)))
    for values in itertools.product(
        (True, False), (True, False, None), (True, False), (True, False), ADDED
    )
]
# Characters that the two programs, or versions of Unicode, class differently.
ODD = (
    "\x00\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x7f\x85\xa0\xad\u061c\u180e\u200b\u200d"
    "\u2028\u2029\u202f\ue000\ufeff\ufffd\ufa6e\u0378\u0301\u0307\u0327\u0345"
    "\u03a3\u03c3\u0130\u0131\u1e9e\u212a\u2126\u07fd\u166d\u1734\u3099\u0e31"
    "\U00011938\U000111c9\U00010d50\U0001e95e\U0002b820\U0002b920\U000e0001"
)


def a_character(draw: random.Random) -> str:
    """Draw any character but a surrogate, frequent ones more often."""
    first, last = draw.choice(
        [
            (0x20, 0x7F),
            (0x80, 0x600),
            (0x600, 0xD800),
            (0xE000, 0x10000),
            (0x10000, 0x20000),
            (0x20000, 0x110000),
        ]
    )
    return chr(draw.randrange(first, last))


def texts(count: int, seed: str) -> list[str]:
    """Draw texts of words, wordpieces, added tokens and odd characters."""
    draw = random.Random(seed)
    contents = [t.content for tokens in ADDED.values() for t in tokens]
    pieces = [word.removeprefix("##") for word in TOKENS]
    drawn = []
    for _ in range(count):
        parts = []
        for _ in range(draw.randrange(14)):
            kind = draw.randrange(8)
            if kind < 2:
                parts.append(draw.choice(contents))
            elif kind < 4:
                parts.append(draw.choice(pieces))
            elif kind == 4:
                parts.append(draw.choice([*contents, *pieces]).upper())
            elif kind == 5:
                parts.append(draw.choice(ODD))
            elif kind == 6 and draw.random() < 0.1:
                parts.append("ab" * draw.randrange(45, 110))
            else:
                size = draw.randrange(1, 6)
                parts += [a_character(draw) for _ in range(size)]
            parts.append(draw.choice(["", "", " ", "  "]))
        drawn.append("".join(parts))
    return drawn


def library_tokenizer(lower=True, strip=None, chinese=True, clean=True):
    """Return the library's tokenizer of BERT."""
    model = tokenizers.models.WordPiece(
        {token: number for number, token in enumerate(TOKENS)},
        unk_token="[UNK]",
        max_input_chars_per_word=100,
    )
    made = tokenizers.Tokenizer(model)
    made.normalizer = tokenizers.normalizers.BertNormalizer(
        clean, chinese, strip, lower
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    made.add_special_tokens(SPECIAL)
    return made


def add(made, tokens):
    for token in tokens:
        if token.special:
            made.add_special_tokens([token])
        else:
            made.add_tokens([token])


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a vocabulary."""
    path = tmp_path / "model"
    path.mkdir()
    (path / "vocab.txt").write_text("".join(f"{t}\n" for t in TOKENS))
    return path


def write(folder, name, content):
    (folder / name).write_text(json.dumps(content))


def check_ids(made, folder, lower, strip, count, seed):
    tokenizer = FullTokenizer(
        str(folder / "vocab.txt"), lower, strip is None or strip
    )
    different = [
        text
        for text in texts(count, seed)
        if tokenizer.encode(text)
        != made.encode(text, add_special_tokens=False).ids
    ]
    assert different == []


@pytest.mark.parametrize(
    ("lower", "strip", "chinese", "clean", "added"), SETTINGS
)
def test_ids_equal_those_of_the_library(
    folder, lower, strip, chinese, clean, added
):
    made = library_tokenizer(lower, strip, chinese, clean)
    add(made, ADDED[added])
    made.save(str(folder / "tokenizer.json"))
    seed = f"{lower} {strip} {chinese} {clean} {added}"
    check_ids(made, folder, lower, strip, 60, seed)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("lower", "strip", "chinese", "clean", "added"), SETTINGS
)
def test_ids_of_many_texts_equal_those_of_the_library(
    folder, lower, strip, chinese, clean, added
):
    made = library_tokenizer(lower, strip, chinese, clean)
    add(made, ADDED[added])
    made.save(str(folder / "tokenizer.json"))
    check_ids(made, folder, lower, strip, 5000, "many")


def test_a_copy_of_the_vocabulary_keeps_the_ids(folder, tmp_path):
    made = library_tokenizer(clean=False)
    add(made, ADDED["normalized"])
    made.save(str(folder / "tokenizer.json"))
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "vocab.txt").write_bytes((folder / "vocab.txt").read_bytes())
    copy_settings(str(folder / "vocab.txt"), str(copy))
    check_ids(made, copy, True, None, 60, "copy")
    assert not (copy / "tokenizer.json").exists()


FOX = {"content": "[E1]", "normalized": False, "special": True}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", {"additional_special_tokens": ["[E1]"]}),
        ("tokenizer_config.json", {"extra_special_tokens": ["[E1]"]}),
        ("tokenizer_config.json", {"extra_special_tokens": {"e": "[E1]"}}),
        ("tokenizer_config.json", {"bos_token": "[E1]"}),
        ("tokenizer_config.json", {"never_split": ["[E1]"]}),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {str(TOKENS.index("[E1]")): FOX}},
        ),
        ("special_tokens_map.json", {"additional_special_tokens": [FOX]}),
        ("added_tokens.json", {"[E1]": TOKENS.index("[E1]")}),
    ],
)
def test_an_added_token_stays_whole(folder, name, content):
    # R-BERT, for example, marks entities by such special tokens.
    write(folder, name, content)
    tokenizer = FullTokenizer(str(folder / "vocab.txt"))
    assert tokenizer.tokenize("the [E1] fox") == ["the", "[E1]", "fox"]


def test_a_token_of_the_model_stays_whole_in_a_text(folder):
    write(folder, "config.json", {"model_type": "electra"})
    tokenizer = FullTokenizer(str(folder / "vocab.txt"))
    assert tokenizer.tokenize("[MASK]fox") == ["[MASK]", "fox"]


def test_new_tokens_come_after_the_vocabulary(folder):
    write(folder, "added_tokens.json", {"[E8]": len(TOKENS)})
    vocab = check_vocab(str(folder / "vocab.txt"))
    assert vocab["[E8]"] == len(vocab) - 1 == len(TOKENS)
    tokenizer = FullTokenizer(str(folder / "vocab.txt"))
    # The token is not special, so lower-cased text matches it.
    assert tokenizer.encode("[e8]") == [len(TOKENS)]


def test_an_added_token_does_not_match_inside_a_word(folder):
    write(folder, "added_tokens.json", {"zz": len(TOKENS)})
    write(
        folder,
        "tokenizer_config.json",
        {"additional_special_tokens": ["zz"], "do_lower_case": True},
    )
    tokenizer = FullTokenizer(str(folder / "vocab.txt"))
    assert tokenizer.tokenize("zz ZZ") == ["zz", "[UNK]"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("the Fox", ["the", "Fox"]),
        ("Fox, fox", ["fox", ",", "fox"]),
        ("国Fox国", ["国", "Fox", "国"]),
        ("F\u200box", ["Fox"]),
        ("COVID", ["covid"]),
    ],
)
def test_never_split_words_stay_whole_between_white_space(folder, text, tokens):
    write(folder, "tokenizer_config.json", {"never_split": ["Fox", "covid"]})
    tokenizer = FullTokenizer(str(folder / "vocab.txt"))
    assert tokenizer.tokenize(text) == tokens


CONFIG = "tokenizer_config.json"
WHOLE = "tokenizer.json"
LAST = len(TOKENS)


def sequence(*types):
    return {"type": "Sequence", "normalizers": [{"type": t} for t in types]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({CONFIG: {"do_basic_tokenize": False}}, "do_basic_tokenize is false"),
        ({CONFIG: {"split_special_tokens": True}}, "split_special_tokens is"),
        ({CONFIG: {"tokenizer_class": "XLMTokenizer"}}, "tokenizer_class is"),
        ({CONFIG: {"word_tokenizer_type": "mecab"}}, "word_tokenizer_type"),
        ({CONFIG: {"truncation_side": "left"}}, "truncation_side is 'left'"),
        ({CONFIG: {"do_lower_case": "yes"}}, "do_lower_case is 'yes'"),
        ({CONFIG: {"do_lower_case": 1}}, "do_lower_case is 1"),
        ({CONFIG: {"unk_token": "<unk>"}}, "unk_token is '<unk>'"),
        ({CONFIG: {"clean_text": False}}, "clean_text is false"),
        ({CONFIG: {"never_split": ["xyz"]}}, "never_split is 'xyz'"),
        ({"special_tokens_map.json": {"mask_token": "<m>"}}, "mask_token is"),
        ({"added_tokens.json": {"[E8]": 900}}, "has id 900; expected"),
        ({"added_tokens.json": {"fox": 900}}, "has id 900; expected 6"),
        ({"added_tokens.json": {" x": LAST}}, "neither begins nor ends"),
        ({"added_tokens.json": {"x": "one"}}, "expected a whole number"),
        (
            {
                CONFIG: {"additional_special_tokens": ["[E1]"]},
                "special_tokens_map.json": {
                    "additional_special_tokens": ["[E3]"]
                },
            },
            r"\[E1\] in tokenizer_config.json, but .*special_tokens_map.json",
        ),
        (
            {CONFIG: {"added_tokens_decoder": {"5": {"content": "fox"}}}},
            "has id 5; expected 6",
        ),
        ({WHOLE: {"normalizer": sequence("NFKC", "Lowercase")}}, "of NFKC, Lo"),
        ({WHOLE: {"normalizer": {"type": "NFKC"}}}, "normalizer.type is 'NFKC"),
        ({WHOLE: {"normalizer": None}}, "normalizer.type is None"),
        ({WHOLE: {"pre_tokenizer": {"type": "Whitespace"}}}, "'Whitespace'"),
        ({WHOLE: {"model.type": "BPE"}}, "model.type is 'BPE'"),
        ({WHOLE: {"model.unk_token": "[MASK]"}}, "model.unk_token is"),
        ({WHOLE: {"model.continuing_subword_prefix": "@"}}, "prefix is '@'"),
        ({WHOLE: {"model.max_input_chars_per_word": 0}}, "per_word is 0"),
        ({WHOLE: {"truncation": {"direction": "Left"}}}, "truncation.direct"),
        ({WHOLE: {"post_processor.single": []}}, "post_processor is"),
        ({WHOLE: {"model.vocab": {"[PAD]": 1}}}, "not consecutive"),
        ({WHOLE: {"added_tokens": [{"content": "x", "id": 999}]}}, "id 999"),
        (
            {
                WHOLE: {
                    "added_tokens": [
                        {"content": "[E1]", "id": 0, "single_word": True}
                    ]
                }
            },
            "single_word of",
        ),
    ],
)
def test_an_unsupported_field_is_named(folder, changes, message):
    whole = json.loads(library_tokenizer().to_str())
    for name, content in changes.items():
        if name == WHOLE:
            for field, value in content.items():
                part, _, inner = field.partition(".")
                if inner:
                    whole[part][inner] = value
                else:
                    whole[part] = value
            content = whole
        write(folder, name, content)
    with pytest.raises(UserError) as error:
        read_tokenizer(str(folder))
    text = str(error.value)
    assert next(iter(changes)) in text
    refused(message, read_tokenizer, str(folder))


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"do_lower_case": False}, ("do_lower_case", "normalizer.lowercase")),
        ({"strip_accents": False}, ("strip_accents", "normalizer.strip")),
        (
            {"tokenize_chinese_chars": False},
            ("tokenize_chinese_chars", "normalizer.handle_chinese_chars"),
        ),
        ({"clean_text": False}, ("clean_text", "normalizer.clean_text")),
        ({"additional_special_tokens": ["[E1]"]}, ("additional_", "[E1]")),
        (
            {"added_tokens_decoder": {"7": {"content": "Fox"}}},
            ("tokenizer_config.json", "Fox"),
        ),
    ],
)
def test_files_that_contradict_each_other_are_both_named(
    folder, changes, names
):
    library_tokenizer().save(str(folder / WHOLE))
    write(folder, CONFIG, {"do_lower_case": True, "strip_accents": None})
    assert read_tokenizer(str(folder)).hparams == {"do_lower_case": True}
    write(folder, CONFIG, changes)
    with pytest.raises(UserError) as error:
        read_tokenizer(str(folder))
    expected = [*names, CONFIG, WHOLE]
    assert [name for name in expected if name in str(error.value)] == expected


@pytest.mark.parametrize("change", ["swap", "more", "fewer"])
def test_vocabularies_that_contradict_each_other_are_refused(folder, change):
    library_tokenizer().save(str(folder / WHOLE))
    lines = {
        "swap": [*TOKENS[:6], TOKENS[7], TOKENS[6], *TOKENS[8:]],
        "more": [*TOKENS, "new"],
        "fewer": TOKENS[:-1],
    }[change]
    (folder / "vocab.txt").write_text("".join(f"{t}\n" for t in lines))
    refused(f"vocab.txt:.*{WHOLE}", read_tokenizer, str(folder))


@pytest.mark.parametrize(
    "content",
    [
        {"model_max_length": 512, "clean_up_tokenization_spaces": True},
        {"never_split": None, "strip_accents": None, "do_basic_tokenize": True},
        {"padding_side": "right", "mask_token": {"content": "[MASK]"}},
        {"name_or_path": "x", "special_tokens_map_file": None},
    ],
)
def test_a_field_without_effect_on_ids_is_accepted(folder, content):
    made = library_tokenizer()
    made.enable_truncation(8)
    made.enable_padding(length=8)
    made.save(str(folder / WHOLE))
    write(folder, CONFIG, content)
    assert read_tokenizer(str(folder)).hparams == {"do_lower_case": True}
