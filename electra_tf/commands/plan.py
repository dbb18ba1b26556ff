# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Says what a pre-training run will take; trains nothing, writes nothing.

Takes the flags of run_pretraining.py. Parameters, operations, memory and disk
are counted from them; the records, where there are some, are counted, too.
With --measure some real steps of the model are timed on this machine.
"""

import argparse
import json
import os
from collections.abc import Sequence
from typing import Any

from configure import flags
from configure.pretraining import PretrainingConfig
from electra_tf.plan.plan import Plan, as_dict, make_plan, measured_batch_size
from electra_tf.plan.report import duration, plan_lines

_STEPS = 5

Parsed = tuple[PretrainingConfig, argparse.Namespace]


def plan_parser() -> flags.FrontDoorParser:
    """Returns run_pretraining.py's parser with the flags of a plan."""
    parser = flags.config_parser(PretrainingConfig, "plan")
    parser.description = " ".join(__doc__.split())
    parser.usage = (
        "python -m electra_tf plan --data-dir DIR --model-name NAME\n"
        "       [--measure [STEPS]] [--json] [any flag of run_pretraining.py]"
    )
    group = parser.add_argument_group("Plan")
    flags.add_flag(
        group,
        "measure",
        metavar="STEPS",
        nargs="?",
        const=_STEPS,
        type=_positive(int),
        help=f"time so many steps of the model here (default {_STEPS}), after"
        " two that are not timed, on the records or on random tokens",
    )
    flags.add_flag(
        group,
        "measure_batch_size",
        metavar="B",
        type=_positive(int),
        help="examples in a timed step; the time is scaled to the run's batch"
        " (default: a half, a quarter ... of it that this machine can do)",
    )
    flags.add_flag(
        group,
        "flops_per_second",
        metavar="X",
        type=_positive(float),
        help="reckon the time with this speed instead, such as 4e11",
    )
    flags.boolean_argument(group, "json", help="print JSON, not a screen")
    return parser


def parse_flags(argv: Sequence[str]) -> Parsed:
    """Turns a command line into a config and the plan's own flags.

    Raises:
      SystemExit: a flag that does not exist or a missing one (status 2), or
        a request to print something (status 0).
    """
    parser = plan_parser()
    config, args = flags.parse_config(PretrainingConfig, argv, parser)
    if args.measure and args.flops_per_second:
        parser.error("--measure and --flops-per-second: choose one")
    if args.measure_batch_size and not args.measure:
        parser.error("--measure-batch-size needs --measure")
    return config, args


def main(parsed: Parsed) -> None:
    """Prints the plan."""
    config, args = parsed
    plan = make_plan(config)
    speed: dict[str, Any] = {}
    if args.measure:
        speed = _measured(plan, args.measure, args.measure_batch_size)
    elif args.flops_per_second:
        speed = {"seconds_per_step": plan.step.total / args.flops_per_second}
    seconds = speed.get("seconds_per_step")
    if args.json:
        found = as_dict(plan) | speed
        found["seconds_to_finish"] = seconds and (
            seconds * config.num_train_steps
        )
        print(json.dumps(found, indent=1))
        return
    print("\n".join(plan_lines(plan, seconds)))
    if measured := speed.get("measured"):
        print("\n" + "\n".join(_measured_lines(plan, measured)))
    for text in plan.warnings():
        print(f"warning: {text}")


def _measured(plan: Plan, steps: int, batch: int | None) -> dict[str, Any]:
    """Times steps; the result is scaled to the run's batch."""
    # TensorFlow only from here on.
    from electra_tf.plan import timing

    config = plan.config
    batch = batch or measured_batch_size(config)
    found = timing.measure_steps(config, batch, steps, plan.records.usable)
    rate = plan.step.matmul / plan.step.examples / found.seconds_per_example
    return {
        "seconds_per_step": found.seconds_per_example * plan.step.examples,
        "measured": {
            "batch_size": batch,
            "seconds": list(found.seconds),
            "first_step_seconds": found.first_seconds,
            "real_batches": found.real_batches,
            "made_up_vocabulary": found.made_up_vocabulary,
            "matmul_flops_per_second": rate,
            "peak_memory_bytes": found.peak_bytes,
            "cores": _cores(),
            "devices": found.devices,
        },
    }


def _measured_lines(plan: Plan, measured: dict[str, Any]) -> list[str]:
    seconds = measured["seconds"]
    batches = "of the records" if measured["real_batches"] else "random"
    vocabulary = " (made-up vocabulary)" * measured["made_up_vocabulary"]
    peak = measured["peak_memory_bytes"]
    memory = f"; peak memory {peak / 2**30:.1f} GiB" if peak else ""
    rate = measured["matmul_flops_per_second"] / 1e9
    rate = measured["matmul_flops_per_second"] / 1e9
    # What an update takes does not grow with the batch.
    smaller = measured["batch_size"] < plan.step.examples
    bound = ", which is an upper bound" * smaller
    return [
        f"Measured on {measured['cores']} core(s): {len(seconds)} steps of"
        f" {measured['batch_size']} examples, {batches}{vocabulary}:",
        f"  {duration(min(seconds))} to {duration(max(seconds))} each, first"
        f" step {duration(measured['first_step_seconds'])},",
        f"  {rate:,.0f} GFLOP/s in matrix products{memory}.",
        f"  The time is scaled to {plan.step.examples} examples a step{bound}.",
    ]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _positive(kind: type) -> Any:
    def parse(text: str) -> Any:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
        return value

    parse.__name__ = kind.__name__
    return parse
