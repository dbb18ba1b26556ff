# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tag words with your own head, by their lost capitalization.

The model reads lower-cased words and classifies each as `lower`, `Capital` or
`UPPER`. The head is a plain Keras layer: it averages the outputs of all layers
with learned weights, at each word's first wordpiece.

    make demo   # pre-trains demo/models/demo
    PYTHONPATH=. python examples/tagging.py --model demo/models/demo
"""

import argparse
import random
import re
import sys

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.commands.demo import corpus_lines
from electra_tf.keras import Encoder
from electra_tf.prediction.loading import read_settings
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.vocabulary import CLS, SEP

TAGS = ("lower", "Capital", "UPPER")


@tf_keras.saving.register_keras_serializable("examples")
class WordTagger(tf_keras.layers.Layer):
    """Layer from hidden states and wordpieces [B, W] to logits [B, W, tags]."""

    def __init__(self, num_tags: int, **kwargs) -> None:
        super().__init__(**kwargs)
        self.num_tags = num_tags
        self.dense = tf_keras.layers.Dense(num_tags)

    def build(self, shapes) -> None:
        hidden_states, _ = shapes
        self.mixture = self.add_weight("mixture", [len(hidden_states)])
        self.dense.build([None, None, hidden_states[0][-1]])
        super().build(shapes)

    def call(self, inputs) -> tf.Tensor:
        hidden_states, starts = inputs
        weights = tf.unstack(tf.nn.softmax(self.mixture))
        mixed = tf.add_n(
            [w * x for w, x in zip(weights, hidden_states, strict=True)]
        )
        return self.dense(tf.gather(mixed, starts, batch_dims=1))

    def get_config(self) -> dict:
        return {**super().get_config(), "num_tags": self.num_tags}


def tag(word: str) -> int:
    """Return the index of a word's tag."""
    if word == word.lower():
        return 0
    return 2 if len(word) > 1 and word == word.upper() else 1


def sentences() -> list[list[str]]:
    """Return the sentences of the Python language reference, shuffled."""
    lines = dict.fromkeys(corpus_lines())
    written = (text for text in lines if re.match(r"[A-Z][\w ,]{40}", text))
    rows = [re.findall(r"\w+|[^\w\s]", text) for text in written]
    random.Random(1).shuffle(rows)
    return rows


def features(
    rows: list[list[str]], tokenizer: FullTokenizer, length: int
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return inputs, tags and weights (0: no word), all [N, L]."""
    ids = np.zeros([len(rows), length], np.int32)
    starts, tags = np.zeros_like(ids), np.zeros_like(ids)
    weights = np.zeros(ids.shape, np.float32)
    cls_id, sep_id = tokenizer.convert_tokens_to_ids([CLS, SEP])
    for row, words in enumerate(rows):
        pieces, count = [cls_id], 0
        for word in words:
            word_pieces = tokenizer.encode(word.lower())
            if not word_pieces or len(pieces) + len(word_pieces) >= length:
                break
            starts[row, count], tags[row, count] = len(pieces), tag(word)
            pieces, count = pieces + word_pieces, count + 1
        ids[row, : len(pieces) + 1] = [*pieces, sep_id]
        weights[row, :count] = 1.0
    return {"input_ids": ids, "starts": starts}, tags, weights


def build_model(path: str) -> tf_keras.Model:
    """Return a tagger on a pre-trained encoder."""
    ids = tf_keras.Input([None], dtype="int32", name="input_ids")
    starts = tf_keras.Input([None], dtype="int32", name="starts")
    encoded = Encoder.from_pretrained(path, return_hidden_states=True)(ids)
    tagger = WordTagger(len(TAGS), name="tags")
    logits = tagger((encoded["hidden_states"], starts))
    return tf_keras.Model([ids, starts], logits, name="capitals")


def main(argv: list[str]) -> float:
    """Train and print; return the accuracy on capitalized words."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="demo/models/demo")
    parser.add_argument("--max_seq_length", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument(
        "--sentences", type=int, help="number of sentences; default: all"
    )
    args = parser.parse_args(argv)
    settings = read_settings(args.model)
    tokenizer = FullTokenizer(
        settings.vocab_file, settings.do_lower_case, settings.strip_accents
    )
    rows = sentences()[: args.sentences]
    cut = len(rows) // 5
    dev, train = (
        features(part, tokenizer, args.max_seq_length)
        for part in (rows[:cut], rows[cut:])
    )

    model = build_model(args.model)
    model.summary()
    model.compile(
        tf_keras.optimizers.AdamW(5e-4, weight_decay=0.01),
        tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=["accuracy"],
    )
    inputs, tags, weights = train
    model.fit(
        inputs,
        tags,
        sample_weight=weights,
        validation_data=dev,
        batch_size=32,
        epochs=args.epochs,
        verbose=2,
    )

    inputs, tags, weights = dev
    predicted = model.predict(inputs, verbose=0).argmax(-1)
    words, capitals = weights > 0, (weights > 0) & (tags > 0)
    right = predicted == tags
    print(f"{words.sum()} unseen words: accuracy {right[words].mean():.3f}")
    print(f"always lower: {(tags[words] == 0).mean():.3f}")
    accuracy = float(right[capitals].mean())
    print(f"{capitals.sum()} capitalized ones: accuracy {accuracy:.3f}")
    most = int(capitals.sum(1).argmax())  # the sentence with the most capitals
    seen = rows[most][: int(weights[most].sum())]
    write = (str.lower, str.capitalize, str.upper)
    tagged = zip(seen, predicted[most], strict=False)
    print(" ".join(word.lower() for word in seen))
    print("->", " ".join(write[number](word) for word, number in tagged))
    return accuracy


if __name__ == "__main__":
    main(sys.argv[1:])
