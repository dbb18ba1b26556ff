# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Memory of training, estimated from the config.

Weights, slots and gradients are exact. Activations are counted by tensor:
tensors that wait for the backward pass, and the working set at its beginning.
The memory of the program itself was measured on a CPU. Measured peaks are
within a factor of 1.5 of the sum, mostly within 1.12 (docs/studies.md).
"""

import dataclasses
import functools
import math

from configure.finetuning import FinetuningConfig
from configure.generator import GeneratorKind, generator_kind
from configure.objectives import Positions
from configure.pretraining import PretrainingConfig
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.plan import machine
from electra_tf.plan.network_sizes import list_networks, select_generator
from electra_tf.plan.parameters import pretraining_parameters

MIB = 1 << 20
_FLOAT = 4
_HALF = 0.5  # half-precision size as a share of float32's size
_PROGRAM = 700 * MIB  # Python, TensorFlow and other libraries
# Graph of a step per transformer block, including the memory that optimizing
# the graph takes.
_PROGRAM_PER_BLOCK = 19 * MIB

# Share of a machine's memory above which an estimate enables activation
# checkpointing. The share is below 1, because the estimate can be too low and
# other programs need memory, too.
_SHARE_TO_KEEP = 0.75

# Temporary tensors of an update (clipped gradients, next moments, direction) as
# a share of the weights' size; two variables are updated at a time.
_UPDATE_COPIES = 0.5

# Numbers of tensors per block, by shape: [B, L, H], [B, L, intermediate], [B,
# A, L, L].
_Tensors = tuple[float, float, float]
# Tensors that wait for the backward pass, if XLA fuses no operations (fused
# layers keep fewer; see `graph_modes.fuses`): q, k, v, mixed values, and for
# each of two sublayers the dropout mask, the normalized sum and the output; the
# activation and its slope; probabilities before and after dropout.
_KEPT: _Tensors = (10, 2, 2)
# Tensors in use during one block's backward pass. [B, L, H]: the gradients of
# q, k, v and a residual sum. [B, L, intermediate]: the gradients before and
# after the activation, and a transposed copy. [B, A, L, L]: the gradients of
# probabilities and scores, and two intermediate terms.
_AT_WORK: _Tensors = (4, 3, 4)
_LOGITS_AT_WORK = 3  # logits, their softmax, their gradient
# Share of the generator's activations that remains at the end of the
# discriminator's forward pass, during which the generator's backward pass runs.
_GENERATOR_LEFT = 0.5


@dataclasses.dataclass(frozen=True)
class MemoryEstimate:
    """Peak memory of a training process on one device, in bytes."""

    weights: int
    slots: int  # two moments of each weight
    gradients: int  # one copy per core, and possibly their sum
    activations: int  # kept tensors, and the working set of the backward pass
    program: int  # interpreter, libraries and graph

    @property
    def total(self) -> int:
        """Sum of all parts, as if all of them reached their peak together."""
        return sum(dataclasses.astuple(self))


def pretraining_memory(
    config: PretrainingConfig, batch_size: int | None = None
) -> MemoryEstimate:
    """Estimate the peak memory of pre-training."""
    micro_batches = config.gradient_accumulation_steps
    batch = -(-(batch_size or config.train_batch_size) // micro_batches)
    vocab = EncoderConfig.of(config).vocab_size
    networks = list_networks(config)
    encoders = [network.sizes for network in networks]
    first = [network.sizes for network in select_generator(networks)]
    numbers_of = functools.partial(
        _numbers_of,
        batch=batch,
        length=config.max_seq_length,
        in_half_precision=bool(config.mixed_precision),
        recomputes=bool(config.recompute_grad),
    )
    kind, chosen = generator_kind(config), config.max_predictions_per_seq
    two_towers = kind is GeneratorKind.TWO_TOWER
    scored = batch * (config.max_seq_length if two_towers else chosen)
    stored, work = numbers_of(first)
    needed = stored + max(work, _LOGITS_AT_WORK * scored * vocab * bool(first))
    if config.has_two_networks:
        # Each token with a loss of the second network also needs logits.
        scored = 0
        if config.token_positions is Positions.CHOSEN:
            scored = batch * chosen
        elif config.token_positions is Positions.ALL:
            scored = batch * config.max_seq_length
        left = 0.0 if config.two_stage_steps else _GENERATOR_LEFT * stored
        discriminator, work = numbers_of(encoders[-1:])
        work = max(work, _LOGITS_AT_WORK * scored * vocab)
        needed = max(needed, left + discriminator + work)
    if config.training_schedule == "two_stage":
        # The networks have equal sizes, and are trained one at a time.
        encoders = encoders[-1:]
    parameters = pretraining_parameters(config).total
    cores = machine.configured_cores(
        config.micro_batch_size, config.lets_cores_share
    )
    gradients = _gradient_copies(cores, micro_batches)
    return _estimate(encoders, parameters, needed, gradients)


def finetuning_memory(
    config: FinetuningConfig,
    sizes: EncoderConfig,
    parameters: int,
    batch_size: int | None = None,
) -> MemoryEstimate:
    """Estimate the peak memory of fine-tuning, excluding heads' activations."""
    micro_batches = config.gradient_accumulation_steps
    needed = sum(
        _numbers_of(
            [sizes],
            -(-(batch_size or config.train_batch_size) // micro_batches),
            config.max_seq_length,
            in_half_precision=bool(config.mixed_precision),
            recomputes=bool(config.recompute_grad),
        )
    )
    cores = machine.configured_cores(
        config.micro_batch_size, config.lets_cores_share
    )
    gradients = _gradient_copies(cores, micro_batches)
    return _estimate([sizes], parameters, needed, gradients)


def activations_limit(machine_bytes: int | None) -> float:
    """Return the bytes of memory up to which training keeps all activations.

    A larger estimate enables activation checkpointing. A machine with unknown
    memory (None) counts as large enough.
    """
    if machine_bytes is None:
        return math.inf
    return _SHARE_TO_KEEP * machine_bytes


def checkpoint_bytes(
    parameters: int, max_seq_length: int, shuffle_buffer_size: int
) -> int:
    """Return the bytes of a checkpoint's weights, slots and data position."""
    # The data position contains the examples in the shuffle buffer.
    example = 3 * 8 * max_seq_length
    return _FLOAT * 3 * parameters + example * shuffle_buffer_size


def _gradient_copies(cores: int, micro_batches: int) -> int:
    """Return the number of gradient copies: one per core, and possibly a sum.

    Args:
      cores: number of cores that share a batch.
      micro_batches: number of micro-batches per batch.
    """
    return cores + 1 if cores > 1 or micro_batches > 1 else cores


def _estimate(
    encoders: list[EncoderConfig],
    parameters: int,
    needed: float,
    gradient_copies: int,
) -> MemoryEstimate:
    """Return the memory estimate for `needed` float32 activation elements."""
    weights = _FLOAT * parameters
    blocks = sum(sizes.num_hidden_layers for sizes in encoders)
    return MemoryEstimate(
        weights=weights,
        slots=2 * weights,
        gradients=gradient_copies * weights,
        # The update starts after the last activations are released.
        activations=max(
            round(_FLOAT * needed), round(_UPDATE_COPIES * weights)
        ),
        program=_PROGRAM + _PROGRAM_PER_BLOCK * blocks,
    )


def _numbers_of(
    encoders: list[EncoderConfig],
    batch: int,
    length: int,
    in_half_precision: bool,
    recomputes: bool,
) -> tuple[float, float]:
    """Return the numbers of elements in kept tensors and in the working set."""
    rows = batch * length

    def numbers(sizes: EncoderConfig, tensors: _Tensors) -> float:
        hidden, inner, pairs = tensors
        pairs *= sizes.num_attention_heads * length
        width = hidden * sizes.hidden_size + inner * sizes.intermediate_size
        factor = _HALF if in_half_precision else 1.0
        return factor * rows * (width + pairs)

    stored = work = 0.0
    for sizes in encoders:
        block, at_work = numbers(sizes, _KEPT), numbers(sizes, _AT_WORK)
        if recomputes:
            # Blocks are recomputed one at a time, each from its input.
            at_work += block
            block = numbers(sizes, (1, 0, 0))
        stored += sizes.num_hidden_layers * block
        work = max(work, at_work)
    return stored, work
