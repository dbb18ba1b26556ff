# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of a plan's numbers for the terminal."""

import datetime
from collections.abc import Iterator

from configure.pretraining import PretrainingConfig
from configure.text_tables import render_rows
from electra_tf.commands.plan_numbers import Numbers, format_gib
from electra_tf.plan.flops import PUBLISHED_FLOPS

_WIDTH = 80  # characters per line, even if the output is not a terminal
_THIS_RUN = "> this run"


def screen_lines(config: PretrainingConfig, numbers: Numbers) -> list[str]:
    """Return the lines of a plan, without its warnings."""
    generator = numbers["generator"].replace("_", "-")
    facts = [
        *_size_rows(numbers),
        *_flops_rows(numbers),
        *_data_rows(config, numbers),
        *_memory_rows(numbers),
        *_progress_rows(numbers),
    ]
    return [
        f"{config.model_name}: {config.objective_facts.title}, model_size"
        f" {config.model_size}, {generator} generator",
        f"{config.num_train_steps:,} steps of {config.train_batch_size}"
        f" examples of {config.max_seq_length} wordpieces",
        "",
        *render_rows(facts, width=_WIDTH),
        "",
        *render_rows([*_comparison_rows(numbers)], left=1, width=_WIDTH),
    ]


def _size_rows(numbers: Numbers) -> Iterator[list[str]]:
    counts = numbers["parameters"]
    millions = {name: f"{n / 1e6:,.2f} M" for name, n in counts.items()}
    yield ["Parameters", millions["total"]]
    yield ["  only in the generator", millions["generator"]]
    yield ["  only in the discriminator", millions["discriminator"]]
    yield ["  in both", millions["shared"]]
    yield ["  counted as in the paper", millions["discriminator_alone"]]


def _flops_rows(numbers: Numbers) -> Iterator[list[str]]:
    flops = numbers["flops_per_step"]
    yield ["Operations a step", f"{flops['total']:.3e}"]
    for name, part in flops["parts"].items():
        share = (part["matmul"] + part["other"]) / flops["total"]
        yield [f"  {name}", f"{share:.1%}"]
    for stage, part in numbers.get("stages", {}).items():
        yield [
            f"  in stage {stage}",
            f"{part['total']:.3e}, {part['steps']:,} steps",
        ]
    yield [
        "  in all steps",
        f"{numbers['flops']:.3e} = {numbers['petaflop_days']:.3g}"
        " petaflop/s-days",
    ]


def _data_rows(
    config: PretrainingConfig, numbers: Numbers
) -> Iterator[list[str]]:
    yield [
        "Wordpieces a step",
        f"{numbers['tokens_per_step']:,}; {numbers['tokens']:.3e} in all steps",
    ]
    records = numbers["records"]
    if not records:
        path = config.pretrain_text or config.pretrain_tfrecords
        yield ["Epochs", f"no records at {path}"]
        return
    about = "" if records["exact"] else "about "
    yield [
        "Epochs",
        f"{numbers['epochs'] or 0:,.3g} over {about}{records['examples']:,}"
        f" examples ({records['files']} files)",
    ]


def _memory_rows(numbers: Numbers) -> Iterator[list[str]]:
    parts = dict(numbers["memory_bytes"])
    yield ["Memory at the peak", f"about {format_gib(parts.pop('total'))}"]
    for name, size in parts.items():
        yield [f"  {name}", format_gib(size)]
    if machine_bytes := numbers["machine_memory_bytes"]:
        yield ["  this machine has", format_gib(machine_bytes)]
    if checkpointed := numbers["memory_bytes_recomputed"]:
        yield [
            "  with recompute_grad",
            f"about {format_gib(checkpointed['total'])} with activation"
            " checkpointing, which training without an accelerator uses (about"
            " 1.4 times the time)",
        ]


def _progress_rows(numbers: Numbers) -> Iterator[list[str]]:
    disk = numbers["checkpoints"]
    yield [
        "Checkpoints",
        f"{format_gib(disk['checkpoint'])}, {disk['kept']:,} of"
        f" {disk['saves']:,} kept: {format_gib(disk['needed'])} on disk",
    ]
    measured = numbers.get("measured")
    if not measured:
        yield ["Time to finish", "unknown; pass --measure B to time some steps"]
        return
    seconds = measured["seconds"]
    extremes = dict.fromkeys(f"{f(seconds):.3g}" for f in (min, max))
    left = datetime.timedelta(seconds=round(numbers["seconds_to_finish"]))
    yield [
        "Time to finish",
        f"{left}, since {len(seconds)} steps of {measured['batch_size']}"
        f" examples took {' to '.join(extremes)} s each on this machine",
    ]


def _comparison_rows(numbers: Numbers) -> Iterator[list[str]]:
    """Yield rows of published models and this run, sorted by operations."""
    run_flops = numbers["flops_the_papers_way"]
    models = {**PUBLISHED_FLOPS, _THIS_RUN: run_flops}
    yield ["Operations as the paper counts them", "", "ratio to this run"]
    for name in sorted(models, key=models.get):
        ratio = "-"  # for a run of 0 steps, which has no operations
        if run_flops:
            ratio = f"{models[name] / run_flops:,.2f}"
        yield [name, f"{models[name]:.2e}", ratio]
