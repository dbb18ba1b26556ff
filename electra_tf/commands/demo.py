# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pre-train a tiny ELECTRA on text that comes with every Python.

The demo is real pre-training at a small size: a corpus, a WordPiece vocabulary
learned from it, records, training with held-out evaluation, results and curves.
"""

import argparse
import os
import re
import time
from collections.abc import Mapping, Sequence

from configure import flags
from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from configure.text_tables import render_rows
from electra_tf.data.build import build_records
from electra_tf.data.build_options import BuildOptions
from electra_tf.data.corpora import Corpus
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.text.vocab_builder import build_vocab

_PRESET = "demo"
PARAGRAPHS_PER_DOCUMENT = 12
_SHORTEST_PARAGRAPH = 40  # characters

# Title and metric of a result; title and metric of its baseline.
_RESULTS = (
    (
        "generator: right word at [MASK]",
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
    """Return sentences of Python's reference; "" begins each document."""
    from pydoc_data import topics

    paragraphs: set[str] = set()
    lines: list[str] = []
    for name in sorted(topics.topics):
        count = 0
        for paragraph in re.split(r"\n\s*\n", topics.topics[name]):
            text = " ".join(paragraph.split())
            if len(text) < _SHORTEST_PARAGRAPH or text in paragraphs:
                continue
            paragraphs.add(text)
            if count % PARAGRAPHS_PER_DOCUMENT == 0:
                lines.append("")
            count += 1
            lines += re.split(r"(?<=[.!?:])\s+(?=[A-Z])", text)
    return lines


def prepare(output_dir: str) -> int:
    """Write the corpus, vocabulary and records; return the vocabulary size."""
    corpus_dir = os.path.join(output_dir, "corpus")
    vocab_file = os.path.join(output_dir, "vocab.txt")
    corpus_file = os.path.join(corpus_dir, "python_reference.txt")
    if filesystem.exists(vocab_file) and not filesystem.exists(corpus_file):
        raise UserError(
            f"{vocab_file} was not written by the demo, and would be replaced."
            " Pass another --output_dir."
        )
    lines = corpus_lines()
    model = PretrainingConfig.create("demo", output_dir, preset=_PRESET)
    tokens = build_vocab(lines, vocab_size=model.vocab_size, num_unused=0)
    write_atomically(corpus_file, "\n".join(lines) + "\n")
    write_atomically(vocab_file, "\n".join(tokens) + "\n")
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
    """Parse the command line."""
    parser = flags.FlagParser("demo", __doc__)
    flags.add_flags(
        parser,
        "the run",
        (
            "output_dir",
            "demo",
            "DIR",
            "directory for all files; files of an earlier demo are replaced",
        ),
        ("steps", 1500, "N", "training steps"),
    )
    return parser.parse_args(list(argv[1:]))


def main(args: argparse.Namespace) -> int:
    """Prepare the data, pre-train, and compare with the baselines."""
    started = time.time()
    vocab_size = prepare(args.output_dir)
    # TensorFlow is imported late, because --help does not need it.
    from electra_tf.pretraining import runner

    config = PretrainingConfig.create(
        "demo",
        args.output_dir,
        vocab_size=vocab_size,
        num_train_steps=args.steps,
        num_warmup_steps=args.steps // 10,
        unigram_steps=args.steps // 4,
        eval_every_n_steps=max(1, args.steps // 6),
        save_checkpoints_steps=max(1, args.steps // 6),
        overwrite=True,
        preset=_PRESET,
    )
    result = runner.run(config)
    if "interrupted" in result:
        return 128 + int(result["interrupted"])
    print("\n".join(_result_lines(result)))
    print(f"Took {time.time() - started:.0f} s.")
    print(f"Curves: {os.path.join(config.model_dir, 'curves.png')}")
    return 0


def _result_lines(result: Mapping[str, float]) -> list[str]:
    """Return the lines of a table of results and baselines."""
    rows = [["On held-out documents", "model", "baseline", ""]]
    for title, metric, baseline_title, baseline in _RESULTS:
        is_better = result[metric] > result[baseline]
        verdict = "beaten" if is_better else "NOT beaten"
        rows.append(
            [
                title,
                f"{result[metric]:.3f}",
                f"{result[baseline]:.3f}",
                f"{baseline_title}: {verdict}",
            ]
        )
    share = f"{result['replaced_share']:.1%}"
    rows.append(["tokens that the generator replaced", share, "", ""])
    lines = render_rows([row[:-1] for row in rows], left=1)
    notes = [row[-1] for row in rows]
    return [
        f"{line}  {note}".rstrip()
        for line, note in zip(lines, notes, strict=True)
    ]
