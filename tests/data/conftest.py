# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small corpora and builds of them."""

import contextlib
import io
import random
import types

import pytest

from electra_tf.data.build import build_records
from electra_tf.data.build_options import BuildOptions
from electra_tf.data.corpora import Corpus
from electra_tf.text.vocabulary import SPECIAL_TOKENS

WORDS = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(300)]


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIAL_TOKENS, *WORDS]) + "\n")
    return str(path)


@pytest.fixture
def corpus_dir(tmp_path):
    """Return a folder of documents, separated by blank lines."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for i, documents in enumerate((400, 150, 3)):
        draw, text = random.Random(i), []
        for _ in range(documents):
            for _ in range(draw.randint(1, 12)):
                words = draw.choices(WORDS, k=draw.randint(1, 30))
                text.append(" ".join(words) + "\n")
            text.append("\n")
        (folder / f"text_{i}.txt").write_text("".join(text[:-1]))
    return folder


@pytest.fixture
def build(tmp_path, vocab_file, corpus_dir):
    """Return a function that builds into a folder and returns the manifest.

    The lines that the build printed are in `build.printed`.
    """

    def run(output, corpus=None, **settings):
        corpus = {"path": str(corpus_dir)} | (corpus or {})
        defaults = {
            "vocab_file": vocab_file,
            "max_seq_length": 32,
            "output_dir": str(tmp_path / output),
            "num_shards": 4,
        }
        options = BuildOptions(Corpus(**corpus), **(defaults | settings))
        with contextlib.redirect_stdout(io.StringIO()) as stdout:
            manifest = build_records(options)
        run.printed = stdout.getvalue().splitlines()
        return manifest

    run.printed = []
    run.tmp_path = tmp_path
    return run


@pytest.fixture
def config(build, vocab_file):
    """Return hparams of a run over a small build with held-out records."""
    build("records", held_out_fraction=0.2)
    folder = build.tmp_path / "records"
    return types.SimpleNamespace(
        folder=folder,
        pretrain_tfrecords=f"{folder}/pretrain_data.tfrecord*",
        eval_tfrecords=f"{folder}/eval_data.tfrecord*",
        pretrain_text="",
        eval_text="",
        origins={},
        strict=False,
        vocab_file=vocab_file,
        vocab_size=305,
        max_seq_length=32,
        shuffle_buffer_size=100,
        seed=11,
        deterministic_input=True,
        generator="sized",
        do_lower_case=True,
        strip_accents=True,
    )
