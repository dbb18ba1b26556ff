# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pre-trains a tiny ELECTRA on prose that every Python carries.

Everything the real work does, small: a corpus, a WordPiece vocabulary learned
from it, records, training with held-out evaluation, results and curves.
"""

import argparse
import os
import re
import time
from collections.abc import Sequence

from configure import flags
from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.data.build import build_records
from electra_tf.data.build_options import BuildOptions
from electra_tf.data.corpora import Corpus
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.text.vocab_builder import build_vocab

_PRESET = "demo"
PARAGRAPHS_PER_DOCUMENT = 12

# Title and metric; the baseline's title and metric.
_RESULTS = (
    (
        "generator: right word where [MASK] shows",
        "masked_lm_accuracy_at_mask",
        "always the most frequent word",
        "masked_lm_most_frequent_accuracy",
    ),
    (
        "discriminator: AUC, replaced against real",
        "disc_auc_real_tokens",
        "ranking words by rarity",
        "disc_auc_frequency_rank",
    ),
)


def corpus_lines() -> list[str]:
    """Python's reference, a sentence a line, a blank between documents."""
    from pydoc_data import topics

    seen: set[str] = set()
    lines: list[str] = []
    for name in sorted(topics.topics):
        count = 0
        for paragraph in re.split(r"\n\s*\n", topics.topics[name]):
            text = " ".join(paragraph.split())
            if len(text) < 40 or text in seen:
                continue
            seen.add(text)
            if count % PARAGRAPHS_PER_DOCUMENT == 0:
                lines.append("")
            count += 1
            lines += re.split(r"(?<=[.!?:])\s+(?=[A-Z])", text)
    return lines


def prepare(output_dir: str) -> int:
    """Writes corpus, vocabulary and records; returns the vocabulary's size."""
    corpus_dir = os.path.join(output_dir, "corpus")
    vocab_file = os.path.join(output_dir, "vocab.txt")
    own = os.path.join(corpus_dir, "python_reference.txt")
    if filesystem.exists(vocab_file) and not filesystem.exists(own):
        raise UserError(
            f"{output_dir}: its vocabulary is not the demo's; choose another"
        )
    lines = corpus_lines()
    model = PretrainingConfig.create("demo", output_dir, preset=_PRESET)
    tokens = build_vocab(lines, vocab_size=model.vocab_size, num_unused=0)
    for path, texts in ((own, lines), (vocab_file, tokens)):
        write_atomically(path, "\n".join(texts) + "\n")
    print(f"Corpus: {len(lines):,} lines; vocabulary: {len(tokens):,} tokens")
    build_records(
        BuildOptions(
            corpus=Corpus(corpus_dir),
            vocab_file=vocab_file,
            output_dir=os.path.join(output_dir, "pretrain_tfrecords"),
            max_seq_length=model.max_seq_length,
            num_shards=4,
            draws="document",
            held_out_fraction=0.1,
            split_long_lines=True,
            overwrite=True,
        )
    )
    return len(tokens)


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("demo", __doc__)
    flags.add_flags(
        parser,
        "the run",
        (
            *("output_dir", "demo", "DIR"),
            "where everything goes; its files are replaced",
        ),
        ("steps", 1500, "N", "training steps"),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Runs the demo."""
    started = time.time()
    vocab_size = prepare(args.output_dir)
    from electra_tf.pretraining import runner  # TensorFlow only from here on

    config = PretrainingConfig.create(
        "demo",
        args.output_dir,
        vocab_size=vocab_size,
        num_train_steps=args.steps,
        num_warmup_steps=args.steps // 10,
        eval_every_n_steps=max(1, args.steps // 6),
        save_checkpoints_steps=max(1, args.steps // 6),
        overwrite=True,
        preset=_PRESET,
    )
    result = runner.run(config)
    if "interrupted" in result:
        return 128 + int(result["interrupted"])
    print(f"{'On held-out documents':44}{'model':>8}   baseline")
    for name, value, baseline, chance in _RESULTS:
        verdict = "beaten" if result[value] > result[chance] else "NOT beaten"
        print(
            f"  {name:42}{result[value]:8.3f}   {result[chance]:.3f}"
            f" {baseline}: {verdict}"
        )
    name, share = "tokens that the generator replaced", result["replaced_share"]
    print(f"  {name:42}{share:8.1%}")
    print(f"Took {time.time() - started:.0f} s.")
    print(f"Curves: {os.path.join(config.model_dir, 'curves.png')}")
    return 0
