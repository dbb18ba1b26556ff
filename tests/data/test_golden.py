# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Examples equal those of the original's builder."""

import gzip
import json

import numpy as np
import pytest

from electra_tf.data.build import ExampleWriter
from electra_tf.data.build_options import BuildOptions
from electra_tf.data.corpora import Corpus, list_sources
from electra_tf.data.jobs import Job
from electra_tf.data.tfrecords import (
    FEATURE_NAMES,
    decode_example,
    read_records,
)
from electra_tf.text.tokenization import FullTokenizer

CONFIGS = {
    "seq128_blanks_false": (128, False, True, 1, 12345),
    "seq128_blanks_true": (128, True, True, 1, 12345),
    "seq64_blanks_false": (64, False, True, 1, 12345),
    "seq64_blanks_true": (64, True, True, 1, 12345),
    "seq128_blanks_true_3files_cased": (128, True, False, 3, 777),
}


def _write(config, corpus_dir, vocab_file, output_dir):
    """Build as one process does; return examples, file order, next draw."""
    length, blanks, lower, shards, seed = config
    options = BuildOptions(
        Corpus(str(corpus_dir), blanks_separate_docs=blanks),
        str(vocab_file),
        str(output_dir),
        max_seq_length=length,
        do_lower_case=lower,
        num_shards=shards,
        seed=seed,
    )
    sources = list_sources(options.corpus).sources
    tokenizer = FullTokenizer(str(vocab_file), lower)
    writer = ExampleWriter(options, Job(0, 1, sources), tokenizer)
    writer.random.shuffle(sources)
    for source in sources:
        writer.write(source)
    writer.finish()
    start = f"{output_dir}/pretrain_data.tfrecord"
    files = [[*read_records(f"{start}-{i}-of-{shards}")] for i in range(shards)]
    count = sum(map(len, files))
    payloads = [files[n % shards][n // shards] for n in range(count)]
    examples = [*map(decode_example, payloads)]
    return examples, [source.name for source in sources], writer.random.random()


def _assert_equal(examples, npz_path):
    expected = np.load(npz_path)
    for name in FEATURE_NAMES:
        values = np.array([example[name] for example in examples])
        np.testing.assert_array_equal(values, expected[name])


@pytest.mark.parametrize("name", CONFIGS)
def test_examples_equal_the_originals(name, golden_dir, tmp_path):
    folder = golden_dir / "pretrain_data"
    info = json.loads((folder / "info.json").read_text())
    examples, order, draw = _write(
        CONFIGS[name], folder / "corpus", golden_dir / "vocab.txt", tmp_path
    )
    _assert_equal(examples, folder / f"{name}.npz")
    assert draw == info[name]["next_random_random_after_run"]
    assert order == info["file_order_after_shuffle"][str(CONFIGS[name][4])]


def test_examples_equal_the_originals_in_this_repository(request, tmp_path):
    fixture = request.config.rootpath / "tests/fixtures/golden/pretrain_data"
    (tmp_path / "corpus").mkdir()
    (tmp_path / "records").mkdir()
    for packed in [fixture / "vocab.txt.gz", *fixture.glob("corpus/*.gz")]:
        target = tmp_path / packed.relative_to(fixture).with_suffix("")
        target.write_bytes(gzip.decompress(packed.read_bytes()))
    examples, _, draw = _write(
        CONFIGS["seq64_blanks_true"],
        tmp_path / "corpus",
        tmp_path / "vocab.txt",
        tmp_path / "records",
    )
    _assert_equal(examples, fixture / "seq64_blanks_true.npz")
    assert draw == 0.9334035149326606
