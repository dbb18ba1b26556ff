# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A few batches of real text on which two models are compared."""

import random
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from configure.errors import UserError
from electra_tf.data.example_builder import ExampleBuilder, Segments
from electra_tf.data.records import (
    FEATURE_NAMES,
    BrokenRecordError,
    decode_example,
    read_records,
)
from electra_tf.text.tokenization import FullTokenizer
from electra_tf.text.vocab import CLS, SEP

Features = dict[str, np.ndarray]


def features_from_lines(
    lines: Iterable[str],
    tokenizer: FullTokenizer,
    length: int,
    count: int,
    seed: int,
) -> Features:
    """Makes examples of text, as pre-training does.

    Returns:
      int32 [B, L] `input_ids`, `input_mask` and `segment_ids`.
    """
    builder = ExampleBuilder(length, random.Random(seed), split_long_lines=True)
    examples: list[Segments] = []
    for line in lines:
        ids = tokenizer.encode(line)
        examples += builder.add(ids) if ids else builder.flush()
        if len(examples) >= count:
            break
    examples = (examples + builder.flush())[:count]
    if not examples:
        raise UserError("The text to compare on holds no words.")
    special = (tokenizer.vocab[CLS], tokenizer.vocab[SEP])
    rows = [_row(example, length, *special) for example in examples]
    return {
        name: np.array([row[name] for row in rows], np.int32)
        for name in FEATURE_NAMES
    }


def _row(
    segments: Segments, length: int, cls_id: int, sep_id: int
) -> dict[str, list[int]]:
    first, second = segments
    ids = [cls_id, *first, sep_id]
    kinds = [0] * len(ids)
    if second:
        ids += [*second, sep_id]
        kinds += [1] * (len(second) + 1)
    padding = [0] * (length - len(ids))
    row = (ids + padding, [1] * len(ids) + padding, kinds + padding)
    return dict(zip(FEATURE_NAMES, row, strict=True))


def features_from_records(
    patterns: str, count: int, vocab_size: int, max_length: int
) -> Features:
    """Takes the first examples of pre-training records."""
    rows: list[dict[str, list[int]]] = []
    paths = [
        path
        for pattern in patterns.split(",")
        for path in sorted(tf.io.gfile.glob(pattern.strip()))
    ]
    if not paths:
        raise UserError(f"No record file matches --records={patterns!r}.")
    for path in paths:
        if len(rows) >= count:
            break
        rows += _records_of(path, count - len(rows))
    if not rows:
        raise UserError(f"The files of --records={patterns!r} are empty.")
    lengths = {len(row[name]) for row in rows for name in FEATURE_NAMES}
    if len(lengths) > 1:
        raise UserError(
            f"--records={patterns!r}: records of different lengths"
            f" {sorted(lengths)}; choose files of one."
        )
    features = {
        name: np.array([row[name] for row in rows], np.int32)
        for name in FEATURE_NAMES
    }
    check_features(features, f"--records={patterns!r}", vocab_size, max_length)
    return features


def _records_of(path: str, count: int) -> list[dict[str, list[int]]]:
    rows = []
    try:
        for payload in read_records(path):
            row = decode_example(payload)
            absent = [name for name in FEATURE_NAMES if name not in row]
            if absent:
                raise UserError(
                    f"{path}: no int64 feature {absent[0]!r}; are these"
                    " pre-training records?"
                )
            rows.append(row)
            if len(rows) == count:
                break
    except BrokenRecordError as error:
        raise UserError(f"{error}: the file is damaged.") from error
    except (IndexError, KeyError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not tf.train.Example records.") from error
    return rows


def check_features(
    features: Features, where: str, vocab_size: int, max_length: int
) -> None:
    """Refuses inputs that the models have no tables for.

    Args:
      features: int32 [B, L] each.
    """
    ids = features["input_ids"]
    if ids.min() < 0 or ids.max() >= vocab_size:
        raise UserError(
            f"{where}: token ids from {ids.min()} to {ids.max()}, but the"
            f" models' vocab_size is {vocab_size}; they belong to another"
            " vocabulary."
        )
    if ids.shape[1] > max_length:
        raise UserError(
            f"{where}: examples of {ids.shape[1]} wordpieces, but the models"
            f" have {max_length} positions; choose shorter ones."
        )
