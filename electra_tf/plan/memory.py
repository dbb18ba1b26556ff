# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""How much memory training takes, estimated from the config.

Weights, slots and gradients are exact. Activations are what the backward pass
keeps, counted by tensor; what an update needs besides, and the program itself,
are what was measured on a CPU. Measured peaks lie within a factor of 1.5 of the
sum, mostly within 1.1.
"""

import dataclasses
import os
import pathlib
from typing import Any

from configure.pretraining import GeneratorKind, generator_kind
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.plan.parameters import (
    networks,
    pretraining_parameters,
)

MIB = 1 << 20
_FLOAT = 4
_HALF = 0.5  # Of what is kept in half precision.
_PROGRAM = 700 * MIB  # Python, TensorFlow, the other libraries.
_PROGRAM_PER_BLOCK = 19 * MIB  # The graph of a step, being optimized, too.

# Of a machine's memory, what an estimate may take before blocks are computed
# again: it may be too low, and other programs need theirs.
_SHARE_TO_KEEP = 0.75

# Of the weights' size, what lives while they are updated (clipped gradients,
# next moments, direction): two variables are updated at a time.
_UPDATE_COPIES = 0.5

# Tensors of a block that wait for the backward pass, by kind of size.
# Fitted to measured peaks, which are a little below the tensors named.
_HIDDEN_KEPT = 7  # q, k, v, mixed, two norms' outputs, dropout's masks
_INNER_KEPT = 2  # after the activation, its derivative
_PAIRS_KEPT = 1.75  # probabilities before and after dropout
_LOGITS_KEPT = 2.5  # logits, their gradient, the running sum for sampling


@dataclasses.dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that a training process holds at its peak, on one device."""

    weights: int
    slots: int  # the optimizer's two moments of each weight
    gradients: int  # with accumulation also their sum
    activations: int  # kept by the forward pass for the backward pass
    update: int  # computed by the optimizer on the way
    program: int  # interpreter, libraries and graph

    @property
    def total(self) -> int:
        """All of it; what activations leave is not used again at once."""
        return sum(dataclasses.astuple(self))


def pretraining_memory(
    config: Any, batch_size: int | None = None
) -> MemoryEstimate:
    """Estimates the peak of a training run."""
    batch = _batch_at_once(config, batch_size)
    encoders = [network.sizes for network in networks(config)]
    if config.training_schedule == "two_stage":
        encoders = encoders[-1:]  # Equal ones, one of them trained at a time.
    numbers = _kept_by_encoders(config, encoders, batch)
    kind, chosen = generator_kind(config), config.max_predictions_per_seq
    scored = 0  # Positions of an example that have logits.
    if not kind.is_fixed:
        two_towers = kind is GeneratorKind.TWO_TOWER
        scored = config.max_seq_length if two_towers else chosen
    if config.predicts_tokens:
        # All-Tokens MLM cannot do without logits of every token.
        everywhere = config.objective == "all_tokens_mlm"
        scored += config.max_seq_length if everywhere else chosen
    vocab_size = EncoderConfig.of(config).vocab_size
    numbers += _LOGITS_KEPT * batch * scored * vocab_size
    parameters = pretraining_parameters(config).total
    return _estimate(config, encoders, parameters, numbers)


def finetuning_memory(
    config: Any,
    sizes: EncoderConfig,
    parameters: int,
    batch_size: int | None = None,
) -> MemoryEstimate:
    """Estimates the peak of fine-tuning; what heads keep is not in it."""
    batch = _batch_at_once(config, batch_size)
    numbers = _kept_by_encoders(config, [sizes], batch)
    return _estimate(config, [sizes], parameters, numbers)


def keeps_too_much(estimate: MemoryEstimate, machine: int | None) -> bool:
    """Whether to compute activations again; an unknown machine is enough."""
    return machine is not None and estimate.total > _SHARE_TO_KEEP * machine


def checkpoint_bytes(config: Any) -> int:
    """Size of one checkpoint on disk: weights, slots, position in the data."""
    numbers = 3 * pretraining_parameters(config).total
    # The position holds the examples that are being shuffled.
    example = 3 * 8 * config.max_seq_length
    return _FLOAT * numbers + example * config.shuffle_buffer_size


def _batch_at_once(config: Any, batch_size: int | None) -> int:
    parts = config.gradient_accumulation_steps
    return -(-(batch_size or config.train_batch_size) // parts)


def _estimate(
    config: Any, encoders: list[EncoderConfig], parameters: int, kept: float
) -> MemoryEstimate:
    """The estimate of a model that keeps so many numbers of a batch."""
    weights = _FLOAT * parameters
    sums = 2 if config.gradient_accumulation_steps > 1 else 1
    blocks = sum(sizes.num_hidden_layers for sizes in encoders)
    return MemoryEstimate(
        weights=weights,
        slots=2 * weights,
        gradients=sums * weights,
        activations=round(_FLOAT * kept),
        update=round(_UPDATE_COPIES * weights),
        program=_PROGRAM + _PROGRAM_PER_BLOCK * blocks,
    )


def _kept_by_encoders(
    config: Any, encoders: list[EncoderConfig], batch: int
) -> float:
    """Numbers that the blocks keep of a batch for the backward pass."""
    rows, length = batch * config.max_seq_length, config.max_seq_length
    numbers = largest = 0.0
    for sizes in encoders:
        block = rows * (
            _HIDDEN_KEPT * sizes.hidden_size
            + _INNER_KEPT * sizes.intermediate_size
            + _PAIRS_KEPT * sizes.num_attention_heads * length
        )
        largest = max(largest, block)
        if config.recompute_grad:
            block = rows * sizes.hidden_size  # Its input.
        numbers += sizes.num_hidden_layers * block
    if config.recompute_grad:
        numbers += largest  # One block at a time is computed again.
    return numbers * _HALF if config.mixed_precision else numbers


# How much memory the machine has for a process, and has free.

_CGROUPS = "/sys/fs/cgroup"
_OWN_CGROUPS = "/proc/self/cgroup"


def machine_memory() -> int | None:
    """Bytes of this machine, or of the container that it is, where known."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    limits = []
    for path in _limit_files():
        try:
            with open(path) as file:
                limits.append(int(file.read()))
        except (OSError, ValueError):  # Not there, or "max".
            continue
    return min([whole, *limits])


def _limit_files() -> list[str]:
    """Files of limits, cgroups v1 and v2: of the own groups and those above."""
    v2, v1 = ("", "memory.max"), ("memory", "memory.limit_in_bytes")
    groups = dict.fromkeys((v2, v1), pathlib.PurePosixPath("/"))
    try:
        with open(_OWN_CGROUPS) as file:
            for line in file:
                _, kinds, path = line.rstrip("\n").split(":", 2)
                group = pathlib.PurePosixPath(path)
                if not kinds:
                    groups[v2] = group
                elif "memory" in kinds.split(","):
                    groups[v1] = group
    except (OSError, ValueError):
        pass
    return [
        os.path.join(_CGROUPS, folder, str(level).lstrip("/"), name)
        for (folder, name), group in groups.items()
        for level in (group, *group.parents)
    ]
