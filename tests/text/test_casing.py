# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The casing next to a vocabulary."""

import json

import pytest

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.commands import build_vocab
from electra_tf.data import corpora
from electra_tf.data.build_options import BuildOptions
from electra_tf.text import casing
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.vocabulary import SPECIAL_TOKENS
from tests.conftest import refused

CASED = {"do_lower_case": False, "strip_accents": False}


def write_vocab(folder, **fields):
    path = folder / "vocab.txt"
    path.write_text("\n".join([*SPECIAL_TOKENS, "Été", "ete", "été"]) + "\n")
    if fields:
        (folder / casing.CASING_FILE).write_text(json.dumps(fields))
    return str(path)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {}),
        ({"model_max_length": 512}, {}),
        ({"do_lower_case": False}, CASED),
        ({"do_lower_case": False, "strip_accents": None}, CASED),
        (
            {"do_lower_case": True},
            {"do_lower_case": True, "strip_accents": True},
        ),
        (
            {"strip_accents": False},
            {"do_lower_case": True, "strip_accents": False},
        ),
    ],
)
def test_the_file_next_to_a_vocabulary_states_both_switches(
    tmp_path, fields, expected
):
    assert casing.read_casing(write_vocab(tmp_path, **fields)) == expected


def write_tokenizer(folder, **fields):
    tokens = [*SPECIAL_TOKENS, "Été", "ete", "été"]
    vocab = {token: number for number, token in enumerate(tokens)}
    whole = {
        "model": {"type": "WordPiece", "vocab": vocab},
        "normalizer": {"type": "BertNormalizer", **fields},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "added_tokens": [
            {"id": number, "content": token, "special": True}
            for number, token in enumerate(SPECIAL_TOKENS)
        ],
    }
    (folder / "tokenizer.json").write_text(json.dumps(whole))


@pytest.mark.parametrize("config", [{}, {"model_max_length": 512}])
def test_a_tokenizer_json_states_the_casing_by_itself(tmp_path, config):
    path = write_vocab(tmp_path, **config)
    write_tokenizer(tmp_path, lowercase=False, strip_accents=None)
    assert casing.read_casing(path) == CASED
    assert FullTokenizer(path).tokenize("Été") == ["Été"]
    refused(
        r"do_lower_case is false in .*tokenizer\.json",
        casing.resolve_casing,
        path,
        {"do_lower_case": True},
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"do_lower_case": "false"}, "do_lower_case is 'false'; expected true"),
        ({"strip_accents": 0}, "strip_accents is 0; expected true or false"),
        (
            {
                "electra_tf": {"characters": "original"},
                "do_lower_case": False,
                "strip_accents": True,
            },
            "strip_accents is true, but do_lower_case is false",
        ),
    ],
)
def test_a_field_with_an_invalid_value_is_refused(tmp_path, fields, message):
    with pytest.raises(UserError, match=message):
        casing.read_casing(write_vocab(tmp_path, **fields))


def test_a_byte_level_vocabulary_has_no_such_file(tmp_path):
    write_vocab(tmp_path, do_lower_case=False)
    assert casing.read_casing(str(tmp_path / "tokenizer.json")) == {}


def test_without_the_file_everything_is_lower_cased(tmp_path):
    path = write_vocab(tmp_path)
    expected = {"do_lower_case": True, "strip_accents": True}
    assert casing.resolve_casing(path, {}) == expected


@pytest.mark.parametrize(
    ("requested", "label"),
    [
        ({"do_lower_case": True}, "hparam do_lower_case is true, but"),
        (
            {"do_lower_case": True, "strip_accents": False},
            "hparam do_lower_case is true, but",
        ),
    ],
)
def test_a_contradiction_names_both_sides(tmp_path, requested, label):
    path = write_vocab(tmp_path, **CASED)
    with pytest.raises(UserError) as raised:
        casing.resolve_casing(path, requested)
    assert label in str(raised.value)
    assert f" in {casing.casing_path(path)}," in str(raised.value)


def test_stripping_cased_text_has_no_effect_and_is_no_contradiction(tmp_path):
    path = write_vocab(tmp_path, **CASED)
    requested = {"do_lower_case": False, "strip_accents": True}
    assert casing.resolve_casing(path, requested) == requested


def test_a_config_takes_the_casing_of_its_vocabulary(tmp_path):
    path = write_vocab(tmp_path, **CASED)
    config = PretrainingConfig.create("m", str(tmp_path), vocab_file=path)
    config = casing.with_vocab_casing(config)
    assert (config.do_lower_case, config.strip_accents) == (False, False)
    assert config.origins["do_lower_case"] == "vocabulary"


def test_a_config_with_a_different_casing_is_refused(tmp_path):
    path = write_vocab(tmp_path, **CASED)
    config = PretrainingConfig.create(
        "m", str(tmp_path), vocab_file=path, do_lower_case=True
    )
    with pytest.raises(UserError, match="hparam do_lower_case is true"):
        casing.with_vocab_casing(config)


def test_an_evaluation_infers_the_casing_of_its_run_again(tmp_path):
    path = write_vocab(tmp_path, **CASED)
    config = PretrainingConfig.create("m", str(tmp_path), vocab_file=path)
    run = json.loads(casing.with_vocab_casing(config).to_json())
    later = config.with_run_settings(run)
    assert not later.is_explicit("do_lower_case")


def test_a_tokenizer_takes_the_casing_of_its_vocabulary(tmp_path):
    path = write_vocab(tmp_path, **CASED)
    assert FullTokenizer(path).tokenize("Été") == ["Été"]
    assert FullTokenizer(path, True, True).tokenize("Été") == ["ete"]


def test_a_build_takes_the_casing_of_its_vocabulary(tmp_path):
    corpus, path = corpora.Corpus(""), write_vocab(tmp_path, **CASED)
    options = BuildOptions(corpus, path, "").with_casing()
    assert (options.do_lower_case, options.do_strip_accents) == (False, False)


def test_a_lower_casing_build_refuses_a_cased_vocabulary(tmp_path):
    corpus, path = corpora.Corpus(""), write_vocab(tmp_path, **CASED)
    options = BuildOptions(corpus, path, "", do_lower_case=True)
    with pytest.raises(UserError) as raised:
        options.with_casing()
    assert "--do_lower_case is true" in str(raised.value)
    assert str(tmp_path / casing.CASING_FILE) in str(raised.value)


def run_build_vocab(folder, *arguments):
    corpus = folder / "corpus.txt"
    corpus.write_text("Été à la mer, été à la mer.\n" * 20)
    argv = ["build_vocab", str(corpus), "--vocab_size=150", *arguments]
    build_vocab.main(build_vocab.parse_flags(argv))


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        ([], {"do_lower_case": True, "strip_accents": True}),
        (["--no-lower-case"], CASED),
        (
            ["--no-strip-accents"],
            {"do_lower_case": True, "strip_accents": False},
        ),
    ],
)
def test_build_vocab_writes_the_casing(tmp_path, switches, expected):
    output = str(tmp_path / "mine" / "vocab.txt")
    run_build_vocab(tmp_path, f"--output={output}", *switches)
    assert casing.read_casing(output) == expected


def test_build_vocab_refuses_to_change_the_casing_of_another_vocabulary(
    tmp_path,
):
    run_build_vocab(
        tmp_path, f"--output={tmp_path}/cased.txt", "--nolower_case"
    )
    with pytest.raises(UserError, match="another vocabulary in this folder"):
        run_build_vocab(tmp_path, f"--output={tmp_path}/vocab.txt")
    assert not (tmp_path / "vocab.txt").exists()
    assert casing.read_casing(f"{tmp_path}/cased.txt") == CASED
