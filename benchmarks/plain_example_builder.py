# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The pure-Python route to pre-training records, kept only as a baseline.

tf-models-official's FullTokenizer, a plain example builder, tf.train.Example
and tf.io.TFRecordWriter: what one gets without any care for speed. The records
are the same as the fast builder's.
"""

import argparse
import itertools
import os
import random

import tensorflow as tf
from official.nlp.tools import tokenization


def sentences_to_examples(lines, tokenizer, max_length, rng):
    """Yields the examples of stripped lines, one step at a time."""
    sentences, target = [], max_length
    for line in lines:
        if line or not sum(map(len, sentences)):
            tokens = tokenizer.tokenize(line)
            sentences.append(tokenizer.convert_tokens_to_ids(tokens))
            if sum(map(len, sentences)) < target:
                continue
        limit = 100000 if rng.random() < 0.1 else (target - 3) // 2
        first, second = [], []
        for ids in sentences:
            fits = not first or len(first) + len(ids) < limit
            if fits or (
                not second and len(first) < limit and rng.random() < 0.5
            ):
                first.extend(ids)
            else:
                second.extend(ids)
        first = first[: max_length - 2]
        second = second[: max(0, max_length - len(first) - 3)]
        yield to_example(first, second, tokenizer.vocab, max_length)
        sentences, target = [], max_length
        if rng.random() < 0.05:
            target = rng.randint(5, max_length)


def to_example(first, second, vocab, max_length):
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
        padded = values + [0] * (max_length - len(values))
        example.features.feature[name].int64_list.value.extend(padded)
    return example


def read_lines(folder, names):
    """All lines, stripped, and an empty one after each file."""
    for name in names:
        with tf.io.gfile.GFile(os.path.join(folder, name)) as file:
            yield from (line.strip() for line in file)
        yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--corpus_dir", "--vocab_file", "--output_dir"):
        parser.add_argument(name, required=True)
    parser.add_argument("--max_seq_length", type=int, default=128)
    parser.add_argument("--num_shards", type=int, default=1000)
    args = parser.parse_args()
    os.makedirs(args.output_dir)
    tokenizer = tokenization.FullTokenizer(args.vocab_file, do_lower_case=True)
    count = args.num_shards
    writers = [
        tf.io.TFRecordWriter(
            f"{args.output_dir}/pretrain_data.tfrecord-{i}-of-{count}"
        )
        for i in range(count)
    ]
    rng, names = random.Random(0), sorted(os.listdir(args.corpus_dir))
    rng.shuffle(names)
    lines = read_lines(args.corpus_dir, names)
    examples = sentences_to_examples(lines, tokenizer, args.max_seq_length, rng)
    for writer, example in zip(itertools.cycle(writers), examples):
        writer.write(example.SerializeToString())
    for writer in writers:
        writer.close()


if __name__ == "__main__":
    main()
