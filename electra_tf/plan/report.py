# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A plan as one screen of text."""

import textwrap
from typing import Any

from configure.pretraining import generator_kind
from electra_tf.analysis.published import PETAFLOP_DAY, PUBLISHED_MODELS
from electra_tf.plan.plan import Plan

_LABEL = 22
_SHOWN = (
    "ELECTRA-Small",
    "BERT-Small (the paper's)",
    "GPT",
    "ELECTRA-Base",
    "BERT-Base",
    "BERT-Large",
    "ELECTRA-400K",
    "ELECTRA-Large (1.75M)",
    "RoBERTa",
)


def plan_lines(plan: Plan, seconds_per_step: float | None) -> list[str]:
    """Returns the lines of the screen, without speed's own and warnings.

    Args:
      seconds_per_step: measured or reckoned; None leaves the time out.
    """
    config = plan.config
    lines = [
        f"{config.model_name}: {_objective(config)}",
        f"{config.num_train_steps:,} steps of {plan.step.examples} examples of"
        f" {config.max_seq_length} wordpieces",
        "",
        *_parameter_lines(plan),
        *_flop_lines(plan),
        *_data_lines(plan),
        *_space_lines(plan),
    ]
    if seconds_per_step is None:
        time = "not reckoned; --measure times some steps here"
    else:
        whole = duration(seconds_per_step * config.num_train_steps)
        time = f"{whole} ({1 / seconds_per_step:.3g} steps a second)"
    lines += [_row("Time to finish", time), "", *_published_lines(plan)]
    return lines


def duration(seconds: float) -> str:
    """Returns a time in the unit that suits it."""
    for unit, size in (
        ("years", 365 * 86400),
        ("days", 86400),
        ("hours", 3600),
        ("minutes", 60),
    ):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} seconds"


def _row(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"


def _objective(config: Any) -> str:
    if config.electric_objective:
        name = "Electric"
    elif config.electra_objective:
        name = "ELECTRA"
    else:
        return f"masked language model, model_size {config.model_size}"
    kind = generator_kind(config).value.replace("_", "-")
    return f"{name}, model_size {config.model_size}, {kind} generator"


def _millions(count: int) -> str:
    return f"{count / 1e6:,.2f} M"


def _bytes(count: float) -> str:
    if count >= 2**30:
        return f"{count / 2**30:,.1f} GiB"
    return f"{count / 2**20:,.0f} MiB"


def _parameter_lines(plan: Plan) -> list[str]:
    count = plan.parameters
    lines = [
        _row(
            "Parameters",
            f"{_millions(count.total)}: {_millions(count.generator)} only in"
            f" the generator,",
        ),
        _row(
            "",
            f"{_millions(count.discriminator)} only in the discriminator,"
            f" {_millions(count.shared)} shared",
        ),
    ]
    if count.discriminator_alone:
        alone = _millions(count.discriminator_alone)
        lines.append(
            _row("", f"{alone} are the discriminator's, as the paper counts")
        )
    return lines


def _flop_lines(plan: Plan) -> list[str]:
    step = plan.step
    shares = ", ".join(
        f"{part.name} {100 * part.total / step.total:.1f}%"
        for part in step.parts
    )
    shares += f"; {100 * step.matmul / step.total:.1f}% in matrix products"
    return [
        _row(
            "Operations a step",
            f"{step.total:.3e}; {step.total_per_token:.3g} a wordpiece",
        ),
        *(_row("", line) for line in textwrap.wrap(shares, 58)),
        _row(
            "  in all",
            f"{plan.flops:.3e} = {plan.petaflop_days:.3g} petaflop/s-days",
        ),
    ]


def _data_lines(plan: Plan) -> list[str]:
    lines = [
        _row(
            "Wordpieces a step",
            f"{plan.step.tokens:,}; {plan.tokens:.3e} in all",
        )
    ]
    count = plan.records.count
    if count is None:
        epochs = f"no records at {plan.config.pretrain_tfrecords}"
    else:
        about = "" if count.exact else "about "
        epochs = (
            f"{plan.epochs:,.3g} over {about}{count.examples:,} examples"
            f" ({count.files} files)"
        )
    return [*lines, _row("Epochs", epochs)]


def _space_lines(plan: Plan) -> list[str]:
    memory, disk = plan.memory, plan.disk
    kept = f"{disk.kept:,} of {disk.saves:,} kept"
    have = ""
    if plan.machine_memory:
        have = f"; this machine has {_bytes(plan.machine_memory)}"
    return [
        _row("Memory at the peak", f"about {_bytes(memory.total)}{have}"),
        _row(
            "",
            f"weights {_bytes(memory.weights)}, slots"
            f" {_bytes(memory.slots)}, gradients {_bytes(memory.gradients)},",
        ),
        _row(
            "",
            f"activations {_bytes(memory.activations)}, update"
            f" {_bytes(memory.update)}, program {_bytes(memory.program)}",
        ),
        *_recomputation_lines(plan),
        _row(
            "Checkpoint",
            f"{_bytes(disk.checkpoint)}, {kept}: {_bytes(disk.needed)} on disk",
        ),
    ]


def _recomputation_lines(plan: Plan) -> list[str]:
    if plan.recomputed is None:
        return []
    total = _bytes(plan.recomputed.total)
    return [
        _row("", f"without an accelerator: about {total}, as activations are"),
        _row(
            "", "computed again, in about 1.4 times the time (recompute_grad)"
        ),
    ]


def _published_lines(plan: Plan) -> list[str]:
    """The run among the paper's models, cheapest first."""
    rows = [
        (model.name, model.train_flops)
        for model in PUBLISHED_MODELS
        if model.name in _SHOWN
    ]
    rows.append(("> this run", plan.paper_flops))
    rows.sort(key=lambda row: row[1])
    title = "Counted the paper's way *"
    lines = [f"{title:<28}{'operations':>12}{'PF/s-days':>12}{'to this':>12}"]
    for name, flops in rows:
        days, times = flops / PETAFLOP_DAY, flops / plan.paper_flops
        lines.append(
            f"{name:<28}{flops:>12.2e}{_short(days):>12}{_short(times):>12}"
        )
    lines.append("* a backward pass like a forward pass, lookups as products")
    return lines


def _short(number: float) -> str:
    """Three digits, and never an exponent for large numbers."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
