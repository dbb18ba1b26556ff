# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE, from text to predictions of a fine-tuned model."""

import pathlib
import shutil

import pytest

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf.data.build import build_records
from electra_tf.data.build_options import BuildOptions
from electra_tf.data.corpora import Corpus
from electra_tf.data.record_checks import check_records
from electra_tf.data.tfrecords import (
    decode_example,
    read_records,
)
from electra_tf.export.saved_model import make_task_module
from electra_tf.finetuning import runner as finetuning
from electra_tf.prediction.embedding import Embedder
from electra_tf.prediction.predictor import Predictor
from electra_tf.pretraining import runner
from electra_tf.pretraining.loading import load_pretrained
from electra_tf.pretraining.model import PretrainingModel
from electra_tf.text.opening import open_tokenizer
from tests.conftest import refused

TEXT = "the king of the north\nis in the city\n\nand that was for her\n\n"


@pytest.fixture(scope="module")
def vocab_file(bpe_file):
    return bpe_file()


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory, settings_in, vocab_file):
    """Return a run on raw text, and its settings."""
    root = tmp_path_factory.mktemp("bpe_run")
    (root / "text.txt").write_text(TEXT * 9)
    hparams = {"vocab_file": vocab_file, "vocab_size": 290}
    settings = settings_in(
        root, pretrain_text=str(root / "text.txt"), **hparams
    )
    result = runner.run(PretrainingConfig.create("m", str(root), **settings))
    assert result["global_step"] == 20
    return root / "run", settings


@pytest.fixture
def finetune(pretrained, task_dir, hparams):
    """Return a function that fine-tunes a model; it returns the folder."""
    for name in ("vocab_file", "vocab_size", "model_hparam_overrides"):
        del hparams[name]

    def run(start=pretrained[0], **changes):
        changes = {"init_checkpoint": str(start), **changes}
        settings = {**hparams, "num_train_epochs": 1, **changes}
        config = FinetuningConfig.create("bpe", str(task_dir), **settings)
        finetuning.run(config)
        return f"{config.model_dir}_1"

    return run


def test_a_task_uses_the_tokenizer_of_the_run(pretrained, finetune, vocab_file):
    for folder in (pretrained[0], pretrained[0] / "export/discriminator"):
        tokenizer_file = folder / "tokenizer.json"
        assert (
            tokenizer_file.read_bytes() == pathlib.Path(vocab_file).read_bytes()
        )
        assert not (folder / "vocab.txt").exists()
        assert "tokenizer.json" in (folder / "digests.json").read_text()
    folder = finetune()
    predictor = Predictor.from_pretrained(folder)
    (answer,) = predictor(["the king of the north"])
    assert answer["label"] in ("0", "1")
    row = predictor.answerer.example("the king", 0)
    ids = predictor.task.featurize(row, False)["input_ids"]
    text = open_tokenizer(vocab_file).encode("the king")
    assert ids[: len(text) + 2] == [0, *text, 2]
    for call, argument in (
        (make_task_module, predictor.loaded),
        (Embedder.from_pretrained, folder),
        (load_pretrained, str(pretrained[0])),
    ):
        refused("needs a WordPiece", call, argument)


@pytest.mark.parametrize(
    ("task", "kind"), [("ner", "tagging"), ("squad", "question answering")]
)
def test_tasks_on_words_refuse_bpe(finetune, task, kind):
    with pytest.raises(UserError, match=rf"{task} \({kind}\) needs a Word"):
        finetune(task_names=[task], max_query_length=8)


def test_a_different_or_damaged_tokenizer_is_refused(
    pretrained, bpe_file, tmp_path, finetune
):
    folder, settings = pretrained
    for call, change, message in (
        (runner.run, {"vocab_file": bpe_file("other words ")}, "differs from"),
        (PretrainingModel, {"whole_word_mask": True}, "mask needs a WordPiece"),
    ):
        changed = {**settings, **change}
        config = PretrainingConfig.create("m", str(tmp_path), **changed)
        refused(message, call, config)
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "tokenizer.json").write_text("{}")
    refused("tokenizer.json: checksum differs", finetune, copy)


def test_records_need_the_tokenizer_that_built_them(
    tmp_path, vocab_file, bpe_file, pretrained
):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "text.txt").write_text(TEXT * 9)
    options = BuildOptions(
        Corpus(str(tmp_path / "corpus")),
        vocab_file=vocab_file,
        output_dir=str(tmp_path / "pretrain_tfrecords"),
        max_seq_length=16,
        num_shards=1,
    )
    build_records(options)
    (path,) = (tmp_path / "pretrain_tfrecords").glob("pretrain_data*")
    first = decode_example(next(iter(read_records(str(path)))))
    ids = open_tokenizer(vocab_file).encode("the king of the north")
    assert first["input_ids"][0] == 0 and first["input_ids"][1:4] == ids[:3]
    settings = {**pretrained[1], "pretrain_text": ""}
    config = PretrainingConfig.create("m", str(tmp_path), **settings)
    assert check_records(config, training=True) == []
    settings["vocab_file"] = bpe_file(text="some other words ")
    config = PretrainingConfig.create("m", str(tmp_path), **settings)
    with pytest.raises(UserError, match="built with a different vocabulary"):
        check_records(config, training=True)
