# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
r"""A bidirectional LSTM on the data of a task, as one model of an ensemble.

The model predicts classes, numbers or tags. Words are lower-cased; their
vectors are learned, starting from random values or from a file of lines `word
number number ...` (GloVe's format). Predictions have the format of `python -m
electra_tf predict`.

    PYTHONPATH=. python examples/lstm.py --data_dir data --task sst \
        --output lstm.jsonl
"""

import argparse
import collections
import json
import sys

import numpy as np
import tf_keras

from configure.errors import UserError
from electra_tf.extras.ensemble.predictions import make_answer, open_task
from electra_tf.files.atomic import write_atomically
from electra_tf.files.lines import LineReader
from electra_tf.finetuning.classification import RegressionTask
from electra_tf.finetuning.tagging import TaggingTask
from electra_tf.finetuning.task import Task
from electra_tf.prediction.answers import make_answerer
from electra_tf.text.words import split_words

PADDING, UNKNOWN, SEPARATOR = range(3)  # number of ids before those of words


def words_of(example) -> list[str]:
    """Return an example's words; an empty word separates two texts."""
    if hasattr(example, "words"):
        return [word.lower() for word in example.words]
    words = _lower_words(example.text_a)
    if example.text_b:
        words += ["", *_lower_words(example.text_b)]
    return words


def _lower_words(text: str) -> list[str]:
    return [text[start:end].lower() for start, end in split_words(text)]


def read_vectors(path: str, ids: dict[str, int], table: np.ndarray) -> int:
    """Copy a file's vectors into the rows of known words; return the count."""
    count, width = 0, table.shape[1]
    for number, line in enumerate(LineReader(path).texts(), 1):
        word, *values = line.rstrip().split(" ")
        if word not in ids:
            continue
        try:
            vector = np.array(values, np.float32)
        except ValueError:
            vector = np.array([np.nan])
        if len(vector) != width or not np.isfinite(vector).all():
            raise UserError(
                f"{path}:{number}: found {len(values)} values for {word!r};"
                f" expected {width} finite numbers (--width). Correct the"
                " line, or pass another --width."
            )
        table[ids[word]] = vector
        count += 1
    return count


def arrays(
    task: Task, examples: list, ids: dict[str, int], length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ids [N, L], targets [N] or, for tags, [N, L], and weights."""
    inputs = np.full([len(examples), length], PADDING)
    tags = isinstance(task, TaggingTask)
    targets = np.zeros(inputs.shape if tags else len(examples), np.float32)
    for row, example in enumerate(examples):
        words = words_of(example)[:length]
        inputs[row, : len(words)] = [ids.get(word, UNKNOWN) for word in words]
        if tags:
            targets[row, : len(words)] = example.labels[:length]
        else:
            targets[row] = task.label_value(example.label)
    weights = (inputs != PADDING) if tags else np.ones(len(examples))
    return inputs, targets, weights.astype(np.float32)


def build_model(task: Task, table: np.ndarray, units: int, rate: float):
    """Return a model from ids to probabilities or to a number."""
    layers, tags = tf_keras.layers, isinstance(task, TaggingTask)
    number = isinstance(task, RegressionTask)
    labels = () if number else task.label_mapping if tags else task.labels
    start = tf_keras.initializers.Constant(table)
    stack = [
        layers.Embedding(*table.shape, start, mask_zero=True),
        layers.Dropout(0.3),
        layers.Bidirectional(layers.LSTM(units, return_sequences=tags)),
        layers.Dropout(0.3),
        layers.Dense(len(labels) or 1, None if number else "softmax"),
    ]
    model = tf_keras.Sequential(stack)
    loss = "mse" if number else "sparse_categorical_crossentropy"
    model.compile(tf_keras.optimizers.Adam(rate), loss)
    return model


def parse_flags(argv: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--task")
    parser.add_argument("--task_config")
    parser.add_argument("--vocab_file")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--output", required=True)
    parser.add_argument("--vectors", help="a file in GloVe's format")
    for name, value in {
        "width": 100,
        "units": 64,
        "length": 64,
        "epochs": 3,
        "batch_size": 32,
        "most_words": 20000,
        "seed": 1,
        "rows": None,  # number of rows of the train split; None: all
    }.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--rate", type=float, default=1e-3)
    return parser.parse_args(argv)


def main(argv: list[str]) -> None:
    """Train on the task's train split, and predict another split."""
    args = parse_flags(argv)
    tf_keras.utils.set_random_seed(args.seed)
    task = open_task(
        args.data_dir, args.task, args.vocab_file, args.task_config
    )
    train = task.get_examples("train")[: args.rows]
    counts = collections.Counter(w for e in train for w in words_of(e) if w)
    vocabulary = [
        "",
        *(word for word, _ in counts.most_common(args.most_words)),
    ]
    ids = {word: i for i, word in enumerate(vocabulary, SEPARATOR)}
    table = np.random.default_rng(args.seed).normal(
        0, 0.1, [len(ids) + SEPARATOR, args.width]
    )
    if args.vectors:
        count = read_vectors(args.vectors, ids, table)
        print(f"{count:,} of {len(vocabulary):,} words have vectors")
    model = build_model(task, table, args.units, args.rate)
    inputs, targets, weights = arrays(task, train, ids, args.length)
    model.fit(
        inputs,
        targets,
        batch_size=args.batch_size,
        epochs=args.epochs,
        sample_weight=weights,
        verbose=2,
    )
    examples = task.get_examples(args.split)
    cut = sum(len(words_of(e)) > args.length for e in [*train, *examples])
    print(f"{cut:,} texts are longer than --length {args.length} and were cut")
    inputs, _, _ = arrays(task, examples, ids, args.length)
    answerer, lines = make_answerer(task, n_best=1), []
    answerer.all_tags = True
    predicted = model.predict(inputs, batch_size=256, verbose=0)
    for example, outputs in zip(examples, predicted, strict=True):
        if isinstance(task, TaggingTask):
            outputs = outputs[: len(example.words)]
        outputs = outputs.reshape(-1, predicted.shape[-1])
        lines.append(make_answer(answerer, example, outputs))
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    write_atomically(args.output, text)
    print(f"{len(examples):,} predictions in {args.output}")


if __name__ == "__main__":
    main(sys.argv[1:])
