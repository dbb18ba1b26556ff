# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sentences are cut into examples by the original's rule."""

import itertools
import random

import hypothesis
import pytest
from hypothesis import strategies as st

from electra_tf.data.segments import ExampleBuilder

SENTENCES = st.lists(
    st.one_of(st.integers(0, 12), st.integers(0, 90)), max_size=40
)


def _sentences(lengths):
    """Return sentences of distinct tokens, so that tokens can be followed."""
    ends = list(itertools.accumulate(lengths))
    return [
        list(range(end - length, end))
        for length, end in zip(lengths, ends, strict=True)
    ]


def _run(lengths, max_length, seed, split):
    builder = ExampleBuilder(max_length, random.Random(seed), split)
    examples = []
    for sentence in _sentences(lengths):
        examples += builder.add(sentence)
    return builder, examples + builder.flush()


@hypothesis.given(
    SENTENCES, st.integers(5, 40), st.integers(0, 2**32), st.booleans()
)
def test_examples_fit_and_losses_are_counted(lengths, max_length, seed, split):
    builder, examples = _run(lengths, max_length, seed, split)
    assert all(first for first, _ in examples)
    sizes = [len(a) + len(b) + (3 if b else 2) for a, b in examples]
    assert max(sizes, default=0) <= max_length
    tokens = [t for first, second in examples for t in first + second]
    assert len(tokens) == len(set(tokens))
    assert set(tokens) <= set(range(sum(lengths)))
    assert builder.tokens_in == sum(lengths)
    assert builder.tokens_dropped == sum(lengths) - len(tokens)
    assert not (split and builder.tokens_dropped)


def _plain_examples(sentences, max_length, rng):
    """Return the examples by the rule, written as plainly as possible."""
    target, waiting, examples = max_length, [], []
    for sentence in [*sentences, None]:
        if sentence is not None:
            waiting.append(sentence)
        length = sum(map(len, waiting))
        ends = sentence is None and length
        if not (ends or (sentence is not None and length >= target)):
            continue
        limit = 100000 if rng.random() < 0.1 else (target - 3) // 2
        first, second = [], []
        for s in waiting:
            if not first or len(first) + len(s) < limit:
                first = first + s
            elif not second and len(first) < limit and rng.random() < 0.5:
                first = first + s
            else:
                second = second + s
        first = first[: max_length - 2]
        second = second[: max(0, max_length - len(first) - 3)]
        examples.append((first, second))
        waiting = []
        target = max_length
        if rng.random() < 0.05:
            target = rng.randint(5, max_length)
    return examples


@hypothesis.given(SENTENCES, st.integers(5, 40), st.integers(0, 2**32))
def test_examples_and_draws_equal_the_plain_rule(lengths, max_length, seed):
    builder, examples = _run(lengths, max_length, seed, split=False)
    rng = random.Random(seed)
    assert examples == _plain_examples(_sentences(lengths), max_length, rng)
    assert builder.random.random() == rng.random()


class _CountedSlices(list):
    """A list that counts the items that slices of it copy."""

    copied = 0

    def __getitem__(self, key):
        items = super().__getitem__(key)
        if isinstance(key, slice):
            self.copied += len(items)
        return items


@pytest.mark.parametrize("length", [1_000, 64_000])
def test_each_token_of_a_long_line_is_copied_once(length):
    line = _CountedSlices(range(length))
    builder = ExampleBuilder(128, random.Random(1), split_long_lines=True)
    examples = builder.add(line) + builder.flush()
    assert [t for a, b in examples for t in a + b] == list(range(length))
    assert line.copied == length
