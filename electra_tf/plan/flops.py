# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Floating-point operations of a training step, computed from the config.

A product of [m, k] and [k, n] counts as 2 m k n operations, and its backward
pass as twice that number. Products are counted exactly (tests compare the
counts with the graph's); other operations are estimated from the number of
elements and reported separately.

Source: google-research/electra, flops_computation.py; paper appendix B.
Differs, so that the result matches this project's computation:
  - a backward pass is twice its forward pass, not equal to it. This alone
    makes a step 3 / 2 of the original's count;
  - an embedding lookup is not a product with a one-hot matrix, which is 40% of
    the original's count for the small model;
  - the softmax's share of positions is max_predictions_per_seq / L, and the
    generator's heads and layers are those of the config;
  - sequence lengths, vocabulary and sizes come from the config.
`paper_train_flops` counts as the original does.
"""

import dataclasses
from typing import Any

from configure.objectives import Positions
from configure.pretraining import PretrainingConfig
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.plan.network_sizes import (
    Network,
    list_networks,
    select_generator,
)
from electra_tf.plan.parameters import pretraining_parameters

# Operations per element in the forward and in the backward pass. Rough
# estimates suffice, because all of these operations together are only a few
# percent of the operations in matrix products.
_BIAS = _RESIDUAL = _SCALE = (1, 1)
_ACTIVATION = (5, 8)  # erf form: scale, erf, scale, sum, product
_LAYER_NORM = (8, 11)  # two means, difference, square, root, scale, shift
_SOFTMAX = (5, 4)  # maximum, difference, exp, sum, division
_DROPOUT = (4, 2)  # random number, comparison, two products
_LOOKUP = (2, 3)  # two additions; the sums of three tables' gradients
_SUM = (1, 0)  # sum of two tables' rows, whose gradient is unchanged
_SAMPLING = (4, 0)  # temperature, exp, running sum, comparison
# The mixture with token counts takes a separate softmax, a product, a sum, a
# maximum and a logarithm.
_MIXTURE = (9, 0)
# Operations per parameter in a step of Adam with decay and clipping: 2 for the
# norm, 1 for clipping, 7 for the moments, 3 for the direction, 2 for the decay
# and 2 for the update.
_UPDATE = 17

_SECOND_HEAD = "second masked LM's head"

# Operations of one day at one petaflop per second.
PETAFLOP_DAY = 1e15 * 24 * 60 * 60

# Training operations of published models.
# Source: output of google-research/electra, flops_computation.py, rounded to
# four digits. All models except the two small ones are counted at 512
# wordpieces throughout, even BERT, which was mostly trained on 128. BERT-Large
# has BERT-Base's batch and steps. RoBERTa, ALBERT and T5 differ slightly from
# the counted transformer.
PUBLISHED_FLOPS = {
    "ELECTRA-Small": 1.294e18,
    "BERT-Small (the paper's)": 1.419e18,
    "ELMo": 3.411e18,
    "GPT": 3.969e19,
    "ELECTRA-Base": 6.425e19,
    "BERT-Base": 6.428e19,
    "BERT-Large": 1.917e20,
    "ELECTRA-400K": 7.118e20,
    "ELECTRA-Large (1.75M)": 3.114e21,
    "RoBERTa": 3.187e21,
    "XLNet": 3.857e21,
    "ALBERT": 3.114e22,
    "T5-11B": 4.582e22,
}


@dataclasses.dataclass
class PartFlops:
    """Operation counts of one part of a model for one batch."""

    name: str
    matmul_forward: int = 0  # matrix products of the forward pass
    matmul: int = 0  # matrix products, forward and backward
    other_forward: int = 0  # other operations of the forward pass, estimated
    other: int = 0  # other operations, forward and backward, estimated

    @property
    def total(self) -> int:
        return self.matmul + self.other

    def product(self, m: int, k: int, n: int, times: int = 1) -> None:
        self.matmul_forward += 2 * m * k * n * times
        self.matmul += 3 * 2 * m * k * n * times

    def elementwise(self, elements: int, *costs: tuple[int, int]) -> None:
        """Add the costs of operations on each element of a tensor."""
        for forward, backward in costs:
            self.other_forward += elements * forward
            self.other += elements * (forward + backward)

    def average(self, learning: int, running: int, steps: int) -> None:
        """Average the counts over steps, of which only some train the part.

        The part runs both passes in `learning` steps and only the forward pass
        in `running` steps. The remaining steps do not use the part.
        """
        for kind in ("matmul", "other"):
            whole, ahead = getattr(self, kind), getattr(self, f"{kind}_forward")
            mean = (learning * whole + running * ahead) // steps
            setattr(self, kind, mean)
            mean = (learning + running) * ahead // steps
            setattr(self, f"{kind}_forward", mean)

    def dense(
        self,
        rows: int,
        in_width: int,
        units: int,
        *after: tuple[int, int],
        times: int = 1,
    ) -> None:
        """Add dense layers with bias, and operations on their outputs."""
        self.product(rows, in_width, units, times)
        self.elementwise(times * rows * units, _BIAS, *after)


@dataclasses.dataclass(frozen=True)
class StepFlops:
    """Operation counts of one training step, by part; the optimizer is last."""

    parts: tuple[PartFlops, ...]
    tokens: int  # B * L tokens, including padding

    @property
    def matmul(self) -> int:
        return sum(part.matmul for part in self.parts)

    @property
    def total(self) -> int:
        return sum(part.total for part in self.parts)

    def as_dict(self) -> dict[str, Any]:
        return {
            "matmul": self.matmul,
            "matmul_forward": sum(p.matmul_forward for p in self.parts),
            "other": self.total - self.matmul,
            "total": self.total,
            "per_token": self.total / self.tokens,
            "parts": {
                part.name: {"matmul": part.matmul, "other": part.other}
                for part in self.parts
            },
        }


def pretraining_step_flops(
    config: PretrainingConfig, parameters: int = 0, stage: int | None = None
) -> StepFlops:
    """Return the operation counts of a pre-training step, by part.

    If `parameters` is 0, the optimizer is left out. With two stages, the counts
    are those of a step of `stage`; without `stage`, they are the mean over all
    steps of the run.
    """
    batch, length = config.train_batch_size, config.max_seq_length
    networks = list_networks(config)
    parts = [_encoder(network, batch, length) for network in networks]
    if config.has_delta:
        elements = batch * length * networks[-1].width
        parts[-1].elementwise(elements, _SUM)
    if towers := select_generator(networks):
        _, sizes, width = towers[0]
        scored = length if len(towers) > 1 else config.max_predictions_per_seq
        head, rows = PartFlops("generator head"), batch * scored
        in_width = len(towers) * sizes.hidden_size
        head.dense(rows, in_width, width, _ACTIVATION, _LAYER_NORM)
        head.dense(rows, width, sizes.vocab_size, _SOFTMAX)
        if config.has_two_networks:
            head.elementwise(rows * sizes.vocab_size, _SAMPLING)
        if config.mixes_token_counts:
            head.elementwise(rows * sizes.vocab_size, _MIXTURE)
        parts.insert(len(towers), head)
        if config.training_schedule == "adversarial":
            baseline = PartFlops("reward baseline")
            baseline.dense(rows, in_width, 1, _SOFTMAX)
            parts.append(baseline)
    sizes = EncoderConfig.of(config)
    hidden = sizes.hidden_size
    if config.has_discriminator_head:
        head = PartFlops("discriminator head")
        head.dense(batch * length, hidden, hidden, _ACTIVATION)
        head.dense(batch * length, hidden, 1, _SOFTMAX)
        parts.append(head)
    if config.token_positions is not Positions.NONE:
        name = "correction head" if config.corrects else _SECOND_HEAD
        head, rows = PartFlops(name), batch * length
        if config.token_positions is Positions.CHOSEN:
            rows = batch * config.max_predictions_per_seq
        width = config.embedding_size or hidden
        head.dense(rows, hidden, width, _ACTIVATION, _LAYER_NORM)
        head.dense(rows, width, sizes.vocab_size, _SOFTMAX)
        parts.append(head)
    stages = steps_per_stage(config.num_train_steps, config.two_stage_steps)
    if len(stages) > 1:
        first, second = (
            steps if stage in (None, name) else 0
            for name, steps in stages.items()
        )
        parts = _average_stages(parts, first, second)
        if parameters:
            count = pretraining_parameters(config)
            parameters = first * count.generator + second * count.discriminator
            parameters //= first + second
    if parameters:
        parts.append(PartFlops("optimizer", other=parameters * _UPDATE))
    return StepFlops(tuple(parts), batch * length)


def _average_stages(
    parts: list[PartFlops], first: int, second: int
) -> list[PartFlops]:
    """Average the counts over the steps of two stages, and drop unused parts.

    The generator is trained in the first stage, and only run in the second.
    """
    for part in parts:
        learning, running = second, 0
        if part.name.startswith("generator"):
            learning, running = first, second
        part.average(learning, running, first + second)
    return [part for part in parts if part.total]


def steps_per_stage(
    num_train_steps: int, two_stage_steps: int | None
) -> dict[int | None, int]:
    """Return the number of steps by stage; the key None means a single stage.

    Args:
      num_train_steps: number of steps of all stages.
      two_stage_steps: number of steps of the first stage; None: a single stage.
    """
    if not two_stage_steps:
        return {None: num_train_steps}
    return {1: two_stage_steps, 2: num_train_steps - two_stage_steps}


def paper_train_flops(config: PretrainingConfig) -> float:
    """Return the number of operations of a run, as the paper counts them.

    Source: google-research/electra, flops_computation.py,
    get_electra_train_flops.
    """
    length = config.max_seq_length
    rows = config.train_batch_size * length
    vocab_size = EncoderConfig.of(config).vocab_size
    lookups = {
        network.name: 2 * rows * network.width * (vocab_size + length + 2)
        for network in list_networks(config)
    }
    stages = steps_per_stage(config.num_train_steps, config.two_stage_steps)
    total = 0
    for stage, steps in stages.items():
        for part in pretraining_step_flops(config, stage=stage).parts:
            forward = part.matmul_forward + part.other_forward
            passes = 1 if part.matmul == part.matmul_forward else 2
            total += steps * passes * (forward + lookups.get(part.name, 0))
    return float(total)


def _encoder(network: Network, batch: int, length: int) -> PartFlops:
    """Return the operation counts of an encoder, including its embeddings."""
    name, sizes, width = network
    part, rows = PartFlops(name), batch * length
    hidden, inner = sizes.hidden_size, sizes.intermediate_size
    blocks = sizes.num_hidden_layers
    part.elementwise(rows * width, _LOOKUP, _LAYER_NORM, _DROPOUT)
    if width != hidden:
        part.dense(rows, width, hidden)
    part.dense(rows, hidden, hidden, times=3 * blocks)
    # Attention computes the scores of all pairs of tokens, and mixes the
    # values.
    pairs = batch * sizes.num_attention_heads * blocks
    part.product(length, sizes.size_per_head, length, times=pairs)
    part.product(length, length, sizes.size_per_head, times=pairs)
    part.elementwise(pairs * length**2, _SCALE, _BIAS, _SOFTMAX, _DROPOUT)
    after = (_DROPOUT, _RESIDUAL, _LAYER_NORM)
    part.dense(rows, hidden, hidden, *after, times=blocks)
    part.dense(rows, hidden, inner, _ACTIVATION, times=blocks)
    part.dense(rows, inner, hidden, *after, times=blocks)
    return part
