# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The matrix products of a forward pass, and the work around them, by part.

A product of [m, k] and [k, n] counts 2 m k n operations: a multiplication and
an addition an element. Letters as in `electra_tf/modeling/__init__.py`.
"""

import dataclasses
from collections.abc import Sequence

from electra_tf.modeling.encoder_config import EncoderConfig

# Operations an element, forward and backward. Rough, and of no weight: all of
# them together are a few percent of the products.
BIAS = (1, 1)  # add; sum
RESIDUAL = (1, 1)
SCALE = (1, 1)
ACTIVATION = (5, 8)  # erf form: scale, erfc, two products, one more scale
LAYER_NORM = (8, 11)  # two means, difference, square, root, scale, shift
SOFTMAX = (5, 4)  # maximum, difference, exp, sum, division
DROPOUT = (4, 2)  # random number, comparison, two products
LOOKUP = (2, 3)  # segment and position vectors added; three sums
SAMPLING = (4, 0)  # temperature, exp, running sum, comparison


@dataclasses.dataclass(frozen=True)
class Product:
    """Matrix products of one shape.

    Attributes:
      name: what they compute.
      m: rows of the left matrix.
      k: columns of the left matrix, rows of the right one.
      n: columns of the right matrix.
      times: how many there are; those of attention are one batched operation.
    """

    name: str
    m: int
    k: int
    n: int
    times: int = 1

    @property
    def flops(self) -> int:
        """Operations of all of them, forward."""
        return 2 * self.m * self.k * self.n * self.times


@dataclasses.dataclass(frozen=True)
class ForwardPass:
    """What one part of a model computes in a forward pass.

    Attributes:
      name: of the part: "generator", "discriminator head" ...
      products: its matrix products.
      other: operations that are no matrix products, forward.
      other_backward: the same of its backward pass.
    """

    name: str
    products: tuple[Product, ...]
    other: int = 0
    other_backward: int = 0


class _Builder:
    """Collects a part's products and elementwise work."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.products: list[Product] = []
        self.forward = self.backward = 0

    def dense(
        self,
        name: str,
        rows: int,
        in_width: int,
        units: int,
        *after: tuple[int, int],
        times: int = 1,
    ) -> None:
        """Adds a dense layer with bias and what is done to its output."""
        self.products.append(Product(name, rows, in_width, units, times))
        for cost in (BIAS, *after):
            self.elementwise(times * rows * units, cost)

    def elementwise(self, elements: int, cost: tuple[int, int]) -> None:
        """Adds work on every element of a tensor."""
        self.forward += elements * cost[0]
        self.backward += elements * cost[1]

    def built(self) -> ForwardPass:
        return ForwardPass(
            self.name, tuple(self.products), self.forward, self.backward
        )


def encoder(
    name: str,
    config: EncoderConfig,
    embedding_width: int,
    batch: int,
    length: int,
) -> ForwardPass:
    """Counts an encoder: embeddings, projection and blocks."""
    part, rows = _Builder(name), batch * length
    hidden, inner = config.hidden_size, config.intermediate_size
    blocks, heads = config.num_hidden_layers, config.num_attention_heads
    for cost in (LOOKUP, LAYER_NORM, DROPOUT):
        part.elementwise(rows * embedding_width, cost)
    if embedding_width != hidden:
        part.dense("embedding projection", rows, embedding_width, hidden)
    part.dense("query, key, value", rows, hidden, hidden, times=3 * blocks)
    size, pairs = config.size_per_head, batch * heads * blocks
    part.products += [
        Product("attention scores", length, size, length, pairs),
        Product("mixed values", length, length, size, pairs),
    ]
    for cost in (SCALE, BIAS, SOFTMAX, DROPOUT):
        part.elementwise(pairs * length**2, cost)
    after = (DROPOUT, RESIDUAL, LAYER_NORM)
    part.dense("attention output", rows, hidden, hidden, *after, times=blocks)
    part.dense("feed-forward in", rows, hidden, inner, ACTIVATION, times=blocks)
    part.dense("feed-forward out", rows, inner, hidden, *after, times=blocks)
    return part.built()


def masked_lm_head(
    name: str,
    rows: int,
    in_width: int,
    embedding_width: int,
    vocab_size: int,
    sampled: bool = True,
) -> ForwardPass:
    """Counts the vocabulary softmax over some positions."""
    part = _Builder(name)
    part.dense(
        "hidden", rows, in_width, embedding_width, ACTIVATION, LAYER_NORM
    )
    part.dense("logits", rows, embedding_width, vocab_size, SOFTMAX)
    if sampled:
        part.elementwise(rows * vocab_size, SAMPLING)
    return part.built()


def discriminator_head(rows: int, hidden_size: int) -> ForwardPass:
    """Counts the head that gives a logit to each of the rows."""
    part = _Builder("discriminator head")
    part.dense("hidden", rows, hidden_size, hidden_size, ACTIVATION)
    part.dense("logit", rows, hidden_size, 1, SOFTMAX)
    return part.built()


def dense_head(rows: int, hidden_size: int, units: int) -> ForwardPass:
    """Counts a task's single dense layer."""
    part = _Builder("task head")
    part.dense("logits", rows, hidden_size, units, SOFTMAX)
    return part.built()


def question_answering_head(
    batch: int,
    length: int,
    hidden_size: int,
    inner: int,
    starts: int = 1,
    joint: bool = True,
    answerable: bool = True,
    answerable_uses_start: bool = True,
) -> ForwardPass:
    """Counts the head for answer spans.

    Args:
      answerable_uses_start: `answerable_uses_start_logits`.
    """
    part, rows = _Builder("task head"), batch * length
    part.dense("start logits", rows, hidden_size, 1, SOFTMAX)
    if joint:
        part.dense("tokens for the end", rows, hidden_size, inner)
        part.dense("start for the end", batch, hidden_size, inner, times=starts)
        part.elementwise(starts * rows * inner, ACTIVATION)
        part.dense("end logits", rows, inner, 1, SOFTMAX, times=starts)
    else:
        part.dense("end logits", rows, hidden_size, 1, SOFTMAX)
    if answerable:
        width = hidden_size
        if answerable_uses_start:
            part.elementwise(rows * hidden_size, (2, 4))
            part.dense("answerable", batch, 2 * width, inner, ACTIVATION)
            width = inner
        part.dense("answerable logit", batch, width, 1, SOFTMAX)
    return part.built()


def products_of(parts: Sequence[ForwardPass]) -> tuple[Product, ...]:
    """Returns all products of several parts, in order."""
    return tuple(product for part in parts for product in part.products)
