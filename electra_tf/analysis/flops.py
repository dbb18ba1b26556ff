# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Floating-point operations of a training step, counted from its config.

Matrix products are counted exactly and tested against the products in the
graph; everything else is estimated from the number of elements and kept apart.
The backward pass of a product y = x w is two products of the same size, one
for x and one for w, so it is twice the forward pass.

Source: google-research/electra, flops_computation.py; paper appendix B.
Differs, so that the result is what is computed here:
  - a backward pass is twice its forward pass, not equal to it. This alone
    makes a step 3 / 2 of the original's count;
  - looking up an embedding is not a product with a one-hot matrix, which is
    40% of the original's count of the small model;
  - the softmax's share of positions is max_predictions_per_seq / L, and the
    generator's heads and layers are the config's;
  - sequence lengths, vocabulary and sizes come from the config.
"""

import dataclasses
from typing import Any

from configure.pretraining import GeneratorKind, generator_kind
from electra_tf.analysis import matrix_products
from electra_tf.analysis.matrix_products import ForwardPass, Product
from electra_tf.analysis.parameters import encoder_sizes, generator_sizes
from electra_tf.modeling.encoder_config import EncoderConfig

# Adam with decay and clipping, a parameter: norm 2, clipping 1, moments 7,
# direction 3, decay 2, update 2.
_UPDATE_FLOPS = 17


@dataclasses.dataclass(frozen=True)
class PartFlops:
    """Operations of one part of a model, for one batch.

    Attributes:
      name: "generator", "generator head", "discriminator", "discriminator
        head", "task head" or "optimizer".
      products: the matrix products of the forward pass.
      matmul_forward: their operations.
      matmul_backward: operations of the backward pass's products.
      other_forward: everything else, estimated.
      other_backward: everything else of the backward pass; of the optimizer,
        all.
    """

    name: str
    products: tuple[Product, ...]
    matmul_forward: int
    matmul_backward: int
    other_forward: int
    other_backward: int

    @property
    def matmul(self) -> int:
        """Operations in matrix products."""
        return self.matmul_forward + self.matmul_backward

    @property
    def other(self) -> int:
        """Operations in everything else."""
        return self.other_forward + self.other_backward

    @property
    def total(self) -> int:
        """All operations."""
        return self.matmul + self.other


@dataclasses.dataclass(frozen=True)
class FlopCount:
    """Operations of one step, by part.

    Attributes:
      parts: in the order data passes through them, the optimizer last.
      examples: B.
      tokens: B L, padding included.
    """

    parts: tuple[PartFlops, ...]
    examples: int
    tokens: int

    @property
    def matmul_forward(self) -> int:
        """Operations in the forward pass's matrix products."""
        return sum(part.matmul_forward for part in self.parts)

    @property
    def matmul(self) -> int:
        """Operations in matrix products, forward and backward."""
        return sum(part.matmul for part in self.parts)

    @property
    def other(self) -> int:
        """Operations in everything else, estimated."""
        return sum(part.other for part in self.parts)

    @property
    def total(self) -> int:
        """All operations."""
        return self.matmul + self.other

    @property
    def matmul_per_token(self) -> float:
        """Operations in matrix products for each token of the batch."""
        return self.matmul / self.tokens

    @property
    def total_per_token(self) -> float:
        """All operations for each token of the batch."""
        return self.total / self.tokens

    @property
    def products(self) -> tuple[Product, ...]:
        """Every matrix product of the forward pass, with its shape."""
        return tuple(p for part in self.parts for p in part.products)

    def part(self, name: str) -> PartFlops:
        """Returns a part by its name; KeyError where there is none."""
        return {part.name: part for part in self.parts}[name]

    def as_dict(self) -> dict[str, Any]:
        """Returns the counts by name, ready for JSON."""
        return {
            "matmul": self.matmul,
            "matmul_forward": self.matmul_forward,
            "other": self.other,
            "total": self.total,
            "per_token": self.total_per_token,
            "parts": {
                part.name: {"matmul": part.matmul, "other": part.other}
                for part in self.parts
            },
        }


def pretraining_step_flops(
    config: Any,
    batch_size: int | None = None,
    training: bool = True,
    parameters: int = 0,
) -> FlopCount:
    """Counts one step of pre-training."""
    batch = batch_size or config.train_batch_size
    forward = _pretraining_parts(config, batch)
    return _counted(forward, batch, config.max_seq_length, training, parameters)


def finetuning_step_flops(
    encoder: EncoderConfig,
    embedding_width: int,
    heads: list[ForwardPass],
    batch_size: int,
    length: int,
    training: bool = True,
    parameters: int = 0,
) -> FlopCount:
    """Counts one step of fine-tuning, or a forward pass of its model."""
    body = matrix_products.encoder(
        "encoder", encoder, embedding_width, batch_size, length
    )
    return _counted([body, *heads], batch_size, length, training, parameters)


def _counted(
    forward: list[ForwardPass],
    batch: int,
    length: int,
    training: bool,
    parameters: int,
) -> FlopCount:
    parts = []
    for part in forward:
        matmul = sum(product.flops for product in part.products)
        parts.append(
            PartFlops(
                part.name,
                part.products,
                matmul,
                2 * matmul if training else 0,
                part.other,
                part.other_backward if training else 0,
            )
        )
    if training and parameters:
        update = parameters * _UPDATE_FLOPS
        parts.append(PartFlops("optimizer", (), 0, 0, 0, update))
    return FlopCount(tuple(parts), batch, batch * length)


def _pretraining_parts(config: Any, batch: int) -> list[ForwardPass]:
    sizes = encoder_sizes(config)
    width = config.embedding_size or sizes.hidden_size
    rows = batch * config.max_seq_length
    parts = _generator_parts(config, sizes, width, batch)
    if config.electra_objective or config.electric_objective:
        parts += [
            matrix_products.encoder(
                "discriminator", sizes, width, batch, config.max_seq_length
            ),
            matrix_products.discriminator_head(rows, sizes.hidden_size),
        ]
    return parts


def _generator_parts(
    config: Any, sizes: EncoderConfig, width: int, batch: int
) -> list[ForwardPass]:
    kind, length = generator_kind(config), config.max_seq_length
    if kind is GeneratorKind.UNIFORM:
        return []
    if kind is not GeneratorKind.FULL:
        sizes = generator_sizes(config, sizes)
        if config.untied_generator_embeddings:
            width = sizes.hidden_size
    names, scored, in_width = ["generator"], config.max_predictions_per_seq, 1
    if kind is GeneratorKind.TWO_TOWER:
        names, scored, in_width = ["left tower", "right tower"], length, 2
    return [
        *(
            matrix_products.encoder(name, sizes, width, batch, length)
            for name in names
        ),
        matrix_products.masked_lm_head(
            "generator head",
            batch * scored,
            in_width * sizes.hidden_size,
            width,
            sizes.vocab_size,
            sampled=config.electra_objective or config.electric_objective,
        ),
    ]
