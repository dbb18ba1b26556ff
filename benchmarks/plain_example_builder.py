# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The pure-Python route to pre-training records, kept only as a baseline.

tf-models-official's FullTokenizer, a plain example builder, tf.train.Example
and tf.io.TFRecordWriter: what one gets without any care for speed. The records
are the same as the fast builder's.
"""

import argparse
import os
import random

import tensorflow as tf
from official.nlp.tools import tokenization


class PlainExampleBuilder:
    """Lines -> tf.train.Example, one step at a time."""

    def __init__(self, tokenizer, max_length, rng):
        self.tokenizer = tokenizer
        self.max_length = self.target = max_length
        self.rng = rng
        self.sentences, self.length = [], 0

    def add_line(self, line):
        if not line and self.length:
            return self.make_example()
        tokens = self.tokenizer.tokenize(line)
        ids = self.tokenizer.convert_tokens_to_ids(tokens)
        self.sentences.append(ids)
        self.length += len(ids)
        return self.make_example() if self.length >= self.target else None

    def make_example(self):
        limit = 100000
        if self.rng.random() >= 0.1:
            limit = (self.target - 3) // 2
        first, second = [], []
        for ids in self.sentences:
            fits = not first or len(first) + len(ids) < limit
            if fits or (
                not second and len(first) < limit and self.rng.random() < 0.5
            ):
                first.extend(ids)
            else:
                second.extend(ids)
        first = first[: self.max_length - 2]
        second = second[: max(0, self.max_length - len(first) - 3)]
        self.sentences, self.length = [], 0
        self.target = self.max_length
        if self.rng.random() < 0.05:
            self.target = self.rng.randint(5, self.max_length)
        return self.to_example(first, second)

    def to_example(self, first, second):
        vocab = self.tokenizer.vocab
        ids = [vocab["[CLS]"], *first, vocab["[SEP]"]]
        segments = [0] * len(ids)
        if second:
            ids += [*second, vocab["[SEP]"]]
            segments += [1] * (len(second) + 1)
        example = tf.train.Example()
        for name, values in {
            "input_ids": ids,
            "input_mask": [1] * len(ids),
            "segment_ids": segments,
        }.items():
            padded = values + [0] * (self.max_length - len(values))
            example.features.feature[name].int64_list.value.extend(padded)
        return example


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--corpus_dir", "--vocab_file", "--output_dir"):
        parser.add_argument(name, required=True)
    parser.add_argument("--max_seq_length", type=int, default=128)
    parser.add_argument("--num_shards", type=int, default=1000)
    args = parser.parse_args()
    os.makedirs(args.output_dir)
    rng = random.Random(0)
    tokenizer = tokenization.FullTokenizer(args.vocab_file, do_lower_case=True)
    builder = PlainExampleBuilder(tokenizer, args.max_seq_length, rng)
    count = args.num_shards
    shards = [f"pretrain_data.tfrecord-{i}-of-{count}" for i in range(count)]
    writers = [
        tf.io.TFRecordWriter(os.path.join(args.output_dir, shard))
        for shard in shards
    ]
    names = sorted(os.listdir(args.corpus_dir))
    rng.shuffle(names)
    written = 0
    for name in names:
        with tf.io.gfile.GFile(os.path.join(args.corpus_dir, name)) as file:
            lines = (line.strip() for line in file)
            for line in [*lines, ""]:
                if example := builder.add_line(line):
                    writer = writers[written % len(writers)]
                    writer.write(example.SerializeToString())
                    written += 1
    for writer in writers:
        writer.close()


if __name__ == "__main__":
    main()
