# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The numbers of a plan, and the errors that would stop training."""

import contextlib
import dataclasses
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from configure.errors import UserError
from configure.generator import generator_kind
from configure.pretraining import PretrainingConfig
from configure.problems import Problem, collect_error
from electra_tf.checkpoints.formats import resolve_reference
from electra_tf.checkpoints.hparam_changes import check_same_model
from electra_tf.checkpoints.hub import hub_hint
from electra_tf.data.example_count import count_training_examples
from electra_tf.data.record_checks import find_problems
from electra_tf.files import filesystem
from electra_tf.files.json_files import read_json
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.plan.flops import (
    PETAFLOP_DAY,
    paper_train_flops,
    pretraining_step_flops,
    steps_per_stage,
)
from electra_tf.plan.machine import machine_memory
from electra_tf.plan.memory import (
    MemoryEstimate,
    activations_limit,
    checkpoint_bytes,
    pretraining_memory,
)
from electra_tf.plan.network_sizes import check_equal_sizes, list_networks
from electra_tf.plan.parameters import pretraining_parameters
from electra_tf.text.vocabulary import check_vocab, check_vocab_size

Numbers = dict[str, Any]


def plan(config: PretrainingConfig) -> Numbers:
    """Return the numbers of a run that are known before training, for JSON."""
    if not config.do_train:
        raise UserError(
            "do_train is false, but only training can be planned. Remove"
            " --do_train=false"
        )
    parameters = pretraining_parameters(config)
    flops = pretraining_step_flops(config, parameters=parameters.total)
    memory, machine = pretraining_memory(config), machine_memory()
    # Memory with activation checkpointing, if a lack of memory requires it.
    checkpointed = None
    is_too_large = memory.total > activations_limit(machine)
    if config.recompute_grad is None and is_too_large:
        checkpointed = pretraining_memory(
            dataclasses.replace(config, recompute_grad=True)
        )
    records, problems = _count_records(config), _find_problems(config)
    strict = config.strict
    fatal = [str(problem) for problem in problems if problem.is_fatal(strict)]
    obstacles = [*dict.fromkeys(fatal)]  # each message once
    steps, examples = config.num_train_steps, config.train_batch_size
    epochs = None
    if records and records["examples"]:
        epochs = examples * steps / records["examples"]
    numbers = {
        "generator": generator_kind(config).value,
        "parameters": {
            **dataclasses.asdict(parameters),
            "total": parameters.total,
            "discriminator_alone": parameters.discriminator_alone,
        },
        "flops_per_step": flops.as_dict(),
        "flops": float(flops.total * steps),
        "petaflop_days": flops.total * steps / PETAFLOP_DAY,
        "flops_the_papers_way": paper_train_flops(config),
        "examples_per_step": examples,
        "tokens_per_step": flops.tokens,
        "tokens": flops.tokens * steps,
        "records": records,
        "obstacles": obstacles,
        "epochs": epochs,
        "memory_bytes": _memory_parts(memory),
        "memory_bytes_recomputed": checkpointed and _memory_parts(checkpointed),
        "machine_memory_bytes": machine,
        "checkpoints": _checkpoints(config, parameters.total),
    }
    stages = steps_per_stage(steps, config.two_stage_steps)
    if len(stages) > 1:
        numbers["stages"] = _stages(config, stages, parameters.total)
    warnings = [str(p) for p in problems if not p.is_fatal(strict)]
    warnings += [f"training would stop: {text}" for text in obstacles]
    warnings += _memory_warnings(config, memory, checkpointed, machine)
    warnings += _disk_warnings(numbers["checkpoints"])
    return numbers | {"warnings": [*config.warnings(), *warnings]}


def _stages(
    config: PretrainingConfig,
    steps_by_stage: Mapping[int | None, int],
    parameters: int,
) -> Numbers:
    """Return the operations and steps of each stage of a schedule."""
    stages = {}
    for stage, steps in steps_by_stage.items():
        flops = pretraining_step_flops(
            config, parameters=parameters, stage=stage
        )
        stages[stage] = {**flops.as_dict(), "steps": steps}
    return stages


def _count_records(config: PretrainingConfig) -> Numbers | None:
    """Count the training examples; return None if the data is invalid.

    `_find_problems` reports why the data is invalid.
    """
    with contextlib.suppress(UserError):
        return count_training_examples(config)._asdict()
    return None


def _find_problems(config: PretrainingConfig) -> list[Problem]:
    """Return the problems of the data, of the networks and of checkpoints."""
    problems = [*find_problems(config, training=True)]
    if config.eval_every_n_steps:
        problems += find_problems(config, training=False)
    if config.training_schedule == "two_stage":
        networks = list_networks(config)
        collect_error(problems, lambda: check_equal_sizes(networks))
    collect_error(problems, lambda: _check_vocab(config))
    collect_error(problems, lambda: _check_initial_checkpoint(config))
    collect_error(problems, lambda: _check_earlier_run(config))
    return [*dict.fromkeys(problems)]


def _check_vocab(config: PretrainingConfig) -> None:
    rows = EncoderConfig.of(config).vocab_size
    check_vocab_size(
        config.vocab_file,
        len(check_vocab(config.vocab_file, rows)),
        config.token_rows,
        config.implied_rows_origin,
    )


def _check_initial_checkpoint(config: PretrainingConfig) -> None:
    initial = config.init_checkpoint
    with contextlib.suppress(UserError):
        initial = initial and resolve_reference(initial)
    if not initial:
        return
    if not any(map(filesystem.exists, (initial, f"{initial}.index"))):
        raise UserError(
            f"init_checkpoint {initial}: no such folder or checkpoint."
            " Correct the path." + hub_hint(initial)
        )


def _check_earlier_run(config: PretrainingConfig) -> None:
    """Raise a UserError if the config cannot continue the run in model_dir."""
    folder = config.model_dir
    earlier = os.path.join(folder, "config.json")
    checkpoint = os.path.join(folder, "checkpoint")
    is_begun = filesystem.exists(earlier) and filesystem.exists(checkpoint)
    if is_begun and not config.overwrite:
        check_same_model(read_json(earlier), config.as_dict(), folder)


def _checkpoints(config: PretrainingConfig, parameters: int) -> Numbers:
    """Return the size and numbers of checkpoints, and the free disk space."""
    steps, every = config.num_train_steps, config.save_checkpoints_steps
    # One checkpoint is written before step 1.
    saves = 1 + (math.ceil(steps / every) if every else 1)
    kept_count = min(config.keep_checkpoint_max or saves, saves)
    if milestones := config.keep_every_n_steps:
        # The latest checkpoints may also be milestones, so the sum is an upper
        # bound.
        kept_count = min(saves, kept_count + steps // milestones)
    size = checkpoint_bytes(
        parameters, config.max_seq_length, config.shuffle_buffer_size
    )
    # A checkpoint is written before the oldest is deleted, also in best/.
    needed_count = min(saves, kept_count + 1)
    if config.keep_best:
        needed_count += 2
    return {
        "checkpoint": size,
        "saves": saves,
        "kept": kept_count,
        "needed": size * needed_count,
        "free": _free_bytes(config.model_dir),
    }


def _free_bytes(path: str) -> int | None:
    """Return the free bytes of a folder's disk; None for remote paths."""
    if filesystem.is_remote(path):
        return None
    path = os.path.abspath(path)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return shutil.disk_usage(path).free


def _memory_warnings(
    config: PretrainingConfig,
    memory: MemoryEstimate,
    checkpointed: MemoryEstimate | None,
    machine_bytes: int | None,
) -> Iterator[str]:
    """Yield a warning if the machine has too little memory for the run."""
    needed = (checkpointed or memory).total
    if not machine_bytes or needed <= machine_bytes:
        return
    # An accelerator needs one copy of the gradients; a CPU needs one copy per
    # core.
    accelerator = pretraining_memory(dataclasses.replace(config, threads=1))
    if checkpointed:
        config = dataclasses.replace(config, recompute_grad=True)
    text = (
        f"{format_gib(needed)} of memory are needed at train_batch_size"
        f" {config.train_batch_size}, but this machine has"
        f" {format_gib(machine_bytes)}; an accelerator needs"
        f" {format_gib(accelerator.total)}"
    )
    micro_batches = config.gradient_accumulation_steps
    while config.train_batch_size % (2 * micro_batches) == 0:
        micro_batches *= 2
        split = dataclasses.replace(
            config, gradient_accumulation_steps=micro_batches
        )
        if pretraining_memory(split).total <= machine_bytes:
            text += f". Pass --gradient_accumulation_steps={micro_batches}"
            break
    yield text


def _disk_warnings(checkpoints: Numbers) -> Iterator[str]:
    """Yield a warning if the disk has too little space for checkpoints."""
    needed, free = checkpoints["needed"], checkpoints["free"]
    if free is not None and needed > free:
        yield (
            f"the checkpoints need {format_gib(needed)}, but only"
            f" {format_gib(free)} are free. Lower keep_checkpoint_max, or"
            " choose another model_dir"
        )


def _memory_parts(memory: MemoryEstimate) -> dict[str, int]:
    return {**dataclasses.asdict(memory), "total": memory.total}


def format_gib(count: float) -> str:
    """Format a number of bytes in gibibytes."""
    return f"{count / 2**30:,.2f} GiB"
