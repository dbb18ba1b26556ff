# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a pre-training run will take, before it is started.

Counting needs neither TensorFlow nor data; see `timing` for measured speed.
"""

import dataclasses
import math
import os
import shutil
from typing import Any

from absl import logging

from configure.errors import UserError
from configure.pretraining import PretrainingConfig, generator_kind
from electra_tf import files
from electra_tf.analysis.flops import FlopCount, pretraining_step_flops
from electra_tf.analysis.machine import free_memory, machine_memory
from electra_tf.analysis.memory import (
    MemoryEstimate,
    checkpoint_bytes,
    keeps_too_much,
    pretraining_memory,
)
from electra_tf.analysis.parameters import (
    ParameterCount,
    pretraining_parameters,
)
from electra_tf.analysis.published import PETAFLOP_DAY, paper_train_flops
from electra_tf.data.record_checks import (
    ExampleCount,
    check_records,
    count_training_examples,
)

MANY_EPOCHS = 100
# What a step that is only to be timed may take of a machine without a GPU.
_MEMORY_SHARE = 0.6
_MOST_FLOPS = 1e12


@dataclasses.dataclass(frozen=True)
class Records:
    """What was found where the training records should be.

    Attributes:
      count: of the examples; None where there are none.
      problem: why training would not start, or "".
      warnings: what training would warn of.
    """

    count: ExampleCount | None
    problem: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether training would start with them."""
        return self.count is not None and not self.problem


@dataclasses.dataclass(frozen=True)
class Disk:
    """What a run leaves on disk.

    Attributes:
      checkpoint: bytes of one checkpoint.
      saves: how many are written in all.
      kept: how many are there at the end; milestones are among them.
      free: bytes that are free where they go; None where that is unknown.
    """

    checkpoint: int
    saves: int
    kept: int
    free: int | None

    @property
    def needed(self) -> int:
        """Bytes at the worst moment: one is written before one is deleted."""
        return self.checkpoint * min(self.saves, self.kept + 1)


@dataclasses.dataclass(frozen=True)
class Plan:
    """Everything that is known of a run beforehand.

    Attributes:
      config: the run's.
      parameters: numbers learned.
      step: operations of a step, the optimizer's with them.
      memory: bytes at the peak, on one device.
      recomputed: the same without an accelerator, if activations will be
        computed again there for want of memory; else None.
      machine_memory: bytes of this machine; None where that is unknown.
      records: what there is to read.
      disk: what is written.
    """

    config: PretrainingConfig
    parameters: ParameterCount
    step: FlopCount
    memory: MemoryEstimate
    recomputed: MemoryEstimate | None
    machine_memory: int | None
    records: Records
    disk: Disk

    @property
    def flops(self) -> float:
        """Operations of the whole run."""
        return float(self.step.total * self.config.num_train_steps)

    @property
    def petaflop_days(self) -> float:
        """The same in petaflop/s-days."""
        return self.flops / PETAFLOP_DAY

    @property
    def paper_flops(self) -> float:
        """Operations of the run as the paper's tables count them."""
        return paper_train_flops(self.config)

    @property
    def examples(self) -> int:
        """Examples seen in all."""
        return self.step.examples * self.config.num_train_steps

    @property
    def tokens(self) -> int:
        """Wordpieces seen in all, padding with them."""
        return self.step.tokens * self.config.num_train_steps

    @property
    def epochs(self) -> float | None:
        """How often each example is seen; None without records."""
        count = self.records.count
        if count is None or not count.examples:
            return None
        return self.examples / count.examples

    def warnings(self) -> list[str]:
        """Returns what is probably not meant, or will not work."""
        found = list(self.config.warnings()) + list(self.records.warnings)
        if self.records.count is not None and self.records.problem:
            found.append(f"training would stop: {self.records.problem}")
        needed = self.recomputed or self.memory
        if self.machine_memory and needed.total > self.machine_memory:
            found.append(_memory_warning(self))
        if self.disk.free is not None and self.disk.needed > self.disk.free:
            found.append(
                f"the checkpoints need {self.disk.needed / 1e9:.1f} GB where"
                f" {self.disk.free / 1e9:.1f} GB are free; lower"
                " keep_checkpoint_max or choose another model_dir"
            )
        if self.epochs is not None and self.epochs > MANY_EPOCHS:
            found.append(
                f"each example is seen {self.epochs:,.0f} times: more text, or"
                " fewer steps, would serve better"
            )
        return found


def make_plan(config: PretrainingConfig) -> Plan:
    """Counts and looks; writes nothing and imports no TensorFlow."""
    if not config.do_train:
        raise UserError(
            "do_train is false: only training is planned; leave it out"
        )
    parameters, machine = pretraining_parameters(config), machine_memory()
    memory, recomputed = pretraining_memory(config), None
    if config.recompute_grad is None and keeps_too_much(memory, machine):
        recomputed = pretraining_memory(_recomputing(config))
    return Plan(
        config=config,
        parameters=parameters,
        step=pretraining_step_flops(config, parameters=parameters.total),
        memory=memory,
        recomputed=recomputed,
        machine_memory=machine,
        records=_look_at_records(config),
        disk=_disk(config),
    )


def measured_batch_size(config: PretrainingConfig) -> int:
    """Chooses a batch that a step can be timed with on this machine.

    Returns:
      The batch that a step computes at a time, or a half, a quarter ... of it
      that fits in memory and takes seconds, not minutes, on a CPU.
    """
    batch = config.train_batch_size // config.gradient_accumulation_steps
    free = free_memory() or math.inf
    plain = dataclasses.replace(config, gradient_accumulation_steps=1)
    while batch > 1 and (
        pretraining_memory(plain, batch).total > _MEMORY_SHARE * free
        or pretraining_step_flops(plain, batch).matmul > _MOST_FLOPS
    ):
        batch //= 2
    return batch


def as_dict(plan: Plan) -> dict[str, Any]:
    """Returns a plan's numbers by name, ready for JSON."""
    parameters, records, memory = plan.parameters, plan.records, plan.memory
    return {
        "model_name": plan.config.model_name,
        "generator": generator_kind(plan.config).value,
        "parameters": {
            **dataclasses.asdict(parameters),
            "total": parameters.total,
            "discriminator_alone": parameters.discriminator_alone,
        },
        "flops_per_step": plan.step.as_dict(),
        "flops": plan.flops,
        "petaflop_days": plan.petaflop_days,
        "flops_the_papers_way": plan.paper_flops,
        "petaflop_days_the_papers_way": plan.paper_flops / PETAFLOP_DAY,
        "num_train_steps": plan.config.num_train_steps,
        "examples_per_step": plan.step.examples,
        "examples": plan.examples,
        "tokens_per_step": plan.step.tokens,
        "tokens": plan.tokens,
        "records": records.count._asdict() if records.count else None,
        "records_problem": records.problem or None,
        "epochs": plan.epochs,
        "memory_bytes": _bytes_of(memory),
        "memory_bytes_recomputed": _bytes_of(plan.recomputed),
        "machine_memory_bytes": plan.machine_memory,
        "checkpoints": dataclasses.asdict(plan.disk),
        "warnings": plan.warnings(),
    }


def _look_at_records(config: PretrainingConfig) -> Records:
    try:
        count = count_training_examples(config)
    except UserError as error:
        return Records(None, str(error))
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)  # They are in the plan.
    try:
        return Records(count, "", tuple(check_records(config, training=True)))
    except UserError as error:
        return Records(count, str(error))
    finally:
        logging.set_verbosity(verbosity)


def _disk(config: PretrainingConfig) -> Disk:
    steps, every = config.num_train_steps, config.save_checkpoints_steps
    saves = math.ceil(steps / every) if every else 1
    kept = min(config.keep_checkpoint_max or saves, saves)
    if milestones := config.keep_every_n_steps:
        # The newest ones may be milestones, too.
        kept = min(saves, kept + steps // milestones)
    return Disk(checkpoint_bytes(config), saves, kept, _free(config.model_dir))


def _free(path: str) -> int | None:
    """Bytes free on the disk of a directory that may not be there yet."""
    if files.is_remote(path):
        return None
    path = os.path.abspath(path)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return shutil.disk_usage(path).free


def _recomputing(config: PretrainingConfig) -> PretrainingConfig:
    return dataclasses.replace(config, recompute_grad=True)


def _bytes_of(memory: MemoryEstimate | None) -> dict[str, int] | None:
    if memory is None:
        return None
    return {**dataclasses.asdict(memory), "total": memory.total}


def _memory_warning(plan: Plan) -> str:
    config, have = plan.config, plan.machine_memory
    batch, parts = config.train_batch_size, config.gradient_accumulation_steps
    needed, other = plan.memory, "of an accelerator, compare its own"
    if plan.recomputed:
        needed, config = plan.recomputed, _recomputing(config)
        other = f"an accelerator needs {plan.memory.total / 2**30:.1f}"
    text = (
        f"{needed.total / 2**30:.1f} GiB of memory are needed at"
        f" train_batch_size {batch}, and this machine has {have / 2**30:.1f};"
        f" {other}"
    )
    while batch % (2 * parts) == 0:
        parts *= 2
        split = dataclasses.replace(config, gradient_accumulation_steps=parts)
        if pretraining_memory(split).total <= have:
            return f"{text}. --gradient_accumulation_steps={parts} would fit"
    return text
