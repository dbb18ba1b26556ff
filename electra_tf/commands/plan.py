# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Print the requirements of a pre-training run without training it.

The flags are those of run_pretraining.py. Parameters, operations, memory and
disk space are computed from the flags, without TensorFlow; existing records are
counted. With --measure, steps of the model are timed on this machine.
"""

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from typing import Any

from configure import flags
from configure.pretraining import PretrainingConfig
from electra_tf.commands.plan_numbers import Numbers, plan
from electra_tf.commands.plan_screen import screen_lines
from electra_tf.extras import memory_curve
from electra_tf.plan.flops import steps_per_stage
from electra_tf.plan.machine import peak_memory
from electra_tf.text.casing import with_vocab_casing

Parsed = tuple[PretrainingConfig, argparse.Namespace]


def parse_flags(argv: Sequence[str]) -> Parsed:
    """Parse the command line into a config and the flags of the plan."""
    parser = flags.config_parser(PretrainingConfig, "plan")
    parser.description = " ".join(__doc__.split())
    parser.usage = (
        "python -m electra_tf plan --data-dir DIR --model-name NAME\n"
        "       [--measure B] [--json] [--memory_curve DIR]\n"
        "       [any flag of run_pretraining.py]"
    )
    flags.add_flags(
        parser,
        "Plan",
        (
            "measure",
            int,
            "B",
            "measure the time of a step on B random examples, on this machine"
            " and after two untimed steps; the time is scaled to the run's"
            " batch",
        ),
        ("measured_steps", 5, "N", "number of steps that --measure times"),
        ("json", False, "", "print JSON instead of tables"),
        (
            "memory_curve",
            None,
            "DIR",
            "instead of the plan, predict peak memory for several lengths and"
            " sizes, and measure each point in a separate process (about a"
            " minute); write memory.txt, memory.json and memory.png to DIR. The"
            " same command continues an interrupted measurement",
        ),
        (
            "memory_gib",
            float,
            "G",
            "--memory_curve: maximum memory of the longest rows and largest"
            " batches; points above this limit are not measured (default: three"
            " quarters of the machine's memory)",
        ),
    )
    config, args = flags.parse_config(PretrainingConfig, argv, parser)
    for name in ("measure", "measured_steps", "memory_gib"):
        value = getattr(args, name)
        if value is not None and not 0 < value < math.inf:
            parser.error(
                f"--{name} is {value}; expected a finite number above 0. Pass"
                " another value"
            )
    return config, args


def main(parsed: Parsed) -> None:
    """Print the plan, or the curve of --memory_curve."""
    config, args = parsed
    config = with_vocab_casing(config)
    if args.memory_curve:
        limit = memory_curve.memory_limit(args.memory_gib)
        curve = memory_curve.MemoryCurve(config, limit)
        print(curve.write(args.memory_curve), end="")
        return
    numbers = plan(config)
    if args.measure:
        numbers |= _measure(config, args.measure, args.measured_steps)
    if args.json:
        print(json.dumps(numbers, indent=1))
        return
    print("\n".join(screen_lines(config, numbers)))
    for text in numbers["warnings"]:
        print(f"warning: {text}")


def _measure(config: PretrainingConfig, batch_size: int, count: int) -> Numbers:
    """Return measured times of steps, and the estimated time of the run.

    Args:
      config: the settings of the run.
      batch_size: the number of examples of a measured step.
      count: the number of steps to measure in each stage of the schedule.
    """
    # TensorFlow is imported late, because only --measure needs it.
    from electra_tf.commands.step_timer import time_steps

    seconds: list[float] = []
    first_step, mean_step = 0, 0.0
    stages = steps_per_stage(config.num_train_steps, config.two_stage_steps)
    for steps in stages.values():
        times = time_steps(config, batch_size, count, first_step)
        example_seconds = statistics.median(times) / batch_size
        share = steps / max(config.num_train_steps, 1)
        mean_step += share * example_seconds * config.train_batch_size
        seconds += times
        first_step += steps
    measured: dict[str, Any] = {
        "batch_size": batch_size,
        "seconds": seconds,
        "peak_bytes": peak_memory(),
    }
    return {
        "measured": measured,
        "seconds_per_step": mean_step,
        "seconds_to_finish": mean_step * config.num_train_steps,
    }
