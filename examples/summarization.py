# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cross-validate extractive summaries; compare them with lead and oracle.

A small extractor with random initial weights is trained on four fifths of the
articles and scored on the rest, five times. The table shows means of ROUGE and
their bootstrap standard errors.

    PYTHONPATH=. python examples/summarization.py articles.jsonl vocab.txt out
"""

import json
import pathlib
import sys

import numpy as np

from configure.finetuning import FinetuningConfig
from electra_tf.files.reading import read_text
from electra_tf.finetuning import runner
from electra_tf.metrics.summaries import BASELINES, ROUGE
from electra_tf.text.vocabulary import check_vocab

FOLDS = 5
SETTINGS = {
    "model_hparam_overrides": {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 256,
    },
    "embedding_size": 64,
    "init_checkpoint": None,
    "max_seq_length": 256,
    "train_batch_size": 8,
    # The encoder would memorize eighty articles, so it learns far more slowly
    # than the head.
    "learning_rate": 1e-2,
    "layerwise_lr_decay": 0.1,
    "num_train_epochs": 3.0,
}
DIFFERENCES = (("oracle", "model"), ("model", "random"), ("model", "lead"))


def summaries_of_fold(
    fold: int, lines: list[str], vocab: str, out: str
) -> list:
    """Train without a fold; return the scored summaries of its articles."""
    folder = pathlib.Path(out, f"fold_{fold}")
    data = folder / "finetuning_data" / "summarization"
    data.mkdir(parents=True, exist_ok=True)
    dev = lines[fold::FOLDS]
    train = [line for line in lines if line not in dev]
    for split, rows in (("train", train), ("dev", dev)):
        (data / f"{split}.jsonl").write_text("\n".join([*rows, ""]))
    config = FinetuningConfig.create(
        "extractor",
        str(folder),
        task_names=["summarization"],
        vocab_file=vocab,
        vocab_size=len(check_vocab(vocab)),
        **SETTINGS,
    )
    runner.run(config)
    return json.loads(read_text(config.qa_file("summarization", "summaries")))


def main(articles: str, vocab: str, out: str) -> None:
    """Print the table, and write it as JSON."""
    lines = read_text(articles).splitlines()
    folds = [summaries_of_fold(k, lines, vocab, out) for k in range(FOLDS)]
    rows = [row for fold in folds for row in fold]
    values = {
        name: np.array([[row[name]["rouge"][f] for f in ROUGE] for row in rows])
        for name in ("model", *BASELINES)
    }
    values |= {f"{a} - {b}": values[a] - values[b] for a, b in DIFFERENCES}
    # All systems are scored on the same resampled articles.
    shape = [10_000, len(rows)]
    drawn = np.random.default_rng(0).integers(len(rows), size=shape)
    table: dict[str, dict] = {}
    print(f"{len(rows)} articles", *ROUGE)
    for name, scores in values.items():
        errors = scores[drawn].mean(1).std(0)
        pairs = [*zip(scores.mean(0).tolist(), errors.tolist(), strict=True)]
        table[name] = dict(zip(ROUGE, pairs, strict=True))
        print(name, *(f"{mean:.2f} ± {error:.2f}" for mean, error in pairs))
    path = pathlib.Path(out, "rouge.json")
    path.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
