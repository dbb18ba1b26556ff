# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tune an encoder with `fit` to find the chapter of a sentence.

The model is one `tf_keras.Model` from strings to logits. The sentences are from
five chapters of the Python language reference, which is part of every Python.

    make demo   # pre-trains demo/models/demo
    PYTHONPATH=. python examples/classification.py --model demo/models/demo
"""

import argparse
import random
import re
import sys
from pydoc_data import topics

import tensorflow as tf
import tf_keras

from electra_tf.keras import Encoder, Tokenizer

CHAPTERS = (
    "compound",
    "debugger",
    "formatstrings",
    "specialnames",
    "string-methods",
)


def labelled_sentences() -> list[tuple[str, int]]:
    """Return sentences and the numbers of their chapters, in a fixed order."""
    labels: dict[str, int] = {}
    for label, name in enumerate(CHAPTERS):
        for paragraph in re.split(r"\n\s*\n", topics.topics[name]):
            text = " ".join(paragraph.split())
            for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z])", text):
                if len(sentence) >= 40:
                    labels.setdefault(sentence, label)
    rows = list(labels.items())
    random.Random(1).shuffle(rows)
    return rows


def dataset(rows: list[tuple[str, int]], batch_size: int) -> tf.data.Dataset:
    """Return batches of strings [B] and labels [B]."""
    texts, labels = zip(*rows, strict=True)
    pairs = tf.data.Dataset.from_tensor_slices((list(texts), list(labels)))
    return pairs.batch(batch_size).prefetch(1)


def build_model(path: str, max_seq_length: int) -> tf_keras.Model:
    """Return a classifier of strings on a pre-trained encoder."""
    text = tf_keras.Input([], dtype="string", name="text")
    tokens = Tokenizer.from_pretrained(path, max_seq_length=max_seq_length)
    encoder = Encoder.from_pretrained(path, hidden_dropout_prob=0.1)
    hidden = encoder(tokens(text))["pooled_output"]
    hidden = tf_keras.layers.Dropout(0.1)(hidden)
    logits = tf_keras.layers.Dense(len(CHAPTERS), name="chapter")(hidden)
    return tf_keras.Model(text, logits, name="chapters")


def main(argv: list[str]) -> float:
    """Train, save and load; return the accuracy on unseen sentences."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="demo/models/demo")
    parser.add_argument("--output", default="demo/chapters.keras")
    parser.add_argument("--max_seq_length", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument(
        "--sentences", type=int, help="number of sentences; default: all"
    )
    args = parser.parse_args(argv)
    rows = labelled_sentences()[: args.sentences]
    held_out, rest = rows[: len(rows) // 5], rows[len(rows) // 5 :]
    train, dev = dataset(rest, 16), dataset(held_out, 64)

    model = build_model(args.model, args.max_seq_length)
    model.summary()
    steps = args.epochs * len(train)
    rate = tf_keras.optimizers.schedules.PolynomialDecay(5e-4, steps, 0.0)
    optimizer = tf_keras.optimizers.AdamW(rate, weight_decay=0.01)
    optimizer.exclude_from_weight_decay(var_names=["LayerNorm", "bias"])
    model.compile(
        optimizer,
        tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        train.shuffle(len(train), seed=1),
        validation_data=dev,
        epochs=args.epochs,
        verbose=2,
    )

    model.save(args.output)  # The saved file includes the vocabulary.
    again = tf_keras.models.load_model(args.output)
    accuracy = again.evaluate(dev, verbose=0, return_dict=True)["accuracy"]
    labels = [label for _, label in held_out]
    frequent = max(labels.count(label) for label in set(labels)) / len(labels)
    print(f"{len(held_out)} unseen sentences: accuracy {accuracy:.3f}")
    print(f"always the most frequent chapter: {frequent:.3f}")
    sentence = "Return a copy of the string without its first character."
    logits = again.predict(tf.constant([sentence]), verbose=0)
    print(f"{sentence} -> {CHAPTERS[int(logits[0].argmax())]}")
    return accuracy


if __name__ == "__main__":
    main(sys.argv[1:])
