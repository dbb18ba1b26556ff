# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Says what a pre-training run will take; trains nothing, writes nothing.

Takes the flags of run_pretraining.py. Parameters, operations, memory and disk
are counted from them, without TensorFlow; the records, where there are some,
are counted, too. With --measure real steps of the model are timed here.
"""

import argparse
import dataclasses
import json
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from absl import logging

from configure import flags
from configure.errors import UserError
from configure.pretraining import PretrainingConfig, generator_kind
from electra_tf import files
from electra_tf.data.record_checks import check_records, count_training_examples
from electra_tf.plan import memory as memory_model
from electra_tf.plan.flops import (
    PETAFLOP_DAY,
    PUBLISHED_FLOPS,
    paper_train_flops,
    pretraining_step_flops,
)
from electra_tf.plan.memory import (
    MemoryEstimate,
    machine_memory,
    pretraining_memory,
)
from electra_tf.plan.parameters import encoder_sizes, pretraining_parameters

_MANY_EPOCHS = 100
_STEPS = 5
_WARM_UP = 2  # The first step makes the graph; the second fills memory.
# What a step that is only to be timed may take of a machine without a GPU.
_MEMORY_SHARE = 0.6
_MOST_FLOPS = 1e12
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_NOT_SHOWN = {"ELMo", "XLNet", "ALBERT", "T5-11B"}

Numbers = dict[str, Any]
Parsed = tuple[PretrainingConfig, argparse.Namespace]


def parse_flags(argv: Sequence[str]) -> Parsed:
    """Turns a command line into a config and the plan's own flags."""
    parser = flags.config_parser(PretrainingConfig, "plan")
    parser.description = " ".join(__doc__.split())
    parser.usage = (
        "python -m electra_tf plan --data-dir DIR --model-name NAME\n"
        "       [--measure [STEPS]] [--json] [any flag of run_pretraining.py]"
    )
    group = flags.add_flags(
        parser,
        "Plan",
        (
            *("measure_batch_size", int, "B"),
            "examples in a timed step; the time is scaled to the run's batch"
            " (default: a half, a quarter ... of it that this machine can do)",
        ),
        (
            *("flops_per_second", float, "X"),
            "reckon the time with this speed instead, such as 4e11",
        ),
        ("json", False, "", "print JSON, not a screen"),
    )
    flags.add_flag(
        group,
        "measure",
        metavar="STEPS",
        nargs="?",
        const=_STEPS,
        type=int,
        help=f"time so many steps of the model here (default {_STEPS}), after"
        " two that are not timed, on the records or on random tokens",
    )
    config, args = flags.parse_config(PretrainingConfig, argv, parser)
    for name in ("measure", "measure_batch_size", "flops_per_second"):
        value = getattr(args, name)
        if value is not None and not 0 < value < math.inf:
            parser.error(f"--{name} must be above 0, got {value}")
    if args.measure and args.flops_per_second:
        parser.error("--measure and --flops-per-second: choose one")
    if args.measure_batch_size and not args.measure:
        parser.error("--measure-batch-size needs --measure")
    return config, args


def main(parsed: Parsed) -> None:
    """Prints the plan."""
    config, args = parsed
    numbers = plan(config)
    if args.measure:
        batch = args.measure_batch_size or _measured_batch_size(config)
        real = bool(numbers["records"]) and not numbers["records_problem"]
        measured = measure_steps(config, batch, args.measure, real)
        # Scaled from the measured batch to the run's.
        an_example = statistics.median(measured["seconds"]) / batch
        examples = numbers["examples_per_step"]
        rate = numbers["flops_per_step"]["matmul"] / examples / an_example
        measured["matmul_flops_per_second"] = rate
        numbers["seconds_per_step"] = an_example * examples
        numbers["measured"] = measured
    elif args.flops_per_second:
        flops = numbers["flops_per_step"]["total"]
        numbers["seconds_per_step"] = flops / args.flops_per_second
    seconds = numbers.get("seconds_per_step")
    numbers["seconds_to_finish"] = seconds and seconds * config.num_train_steps
    if args.json:
        print(json.dumps(numbers, indent=1))
        return
    print(_screen(config, numbers))
    if args.measure:
        examples = numbers["examples_per_step"]
        print(_measured_screen(numbers["measured"], examples))
    for text in numbers["warnings"]:
        print(f"warning: {text}")


def plan(config: PretrainingConfig) -> Numbers:
    """Everything that is known of a run beforehand, ready for JSON."""
    if not config.do_train:
        raise UserError(
            "do_train is false: only training is planned; leave it out"
        )
    parameters = pretraining_parameters(config)
    flops = pretraining_step_flops(config, parameters=parameters.total)
    memory, recomputed = pretraining_memory(config), None
    if config.recompute_grad is None and memory_model.keeps_too_much(
        memory, machine_memory()
    ):
        again = dataclasses.replace(config, recompute_grad=True)
        recomputed = pretraining_memory(again)
    records, problem, warnings = _records(config)
    steps, examples = config.num_train_steps, flops.examples
    paper = paper_train_flops(config)
    numbers = {
        "model_name": config.model_name,
        "generator": generator_kind(config).value,
        "parameters": {
            **dataclasses.asdict(parameters),
            "total": parameters.total,
            "discriminator_alone": parameters.discriminator_alone,
        },
        "flops_per_step": flops.as_dict(),
        "flops": float(flops.total * steps),
        "petaflop_days": flops.total * steps / PETAFLOP_DAY,
        "flops_the_papers_way": paper,
        "petaflop_days_the_papers_way": paper / PETAFLOP_DAY,
        "num_train_steps": steps,
        "examples_per_step": examples,
        "examples": examples * steps,
        "tokens_per_step": flops.tokens,
        "tokens": flops.tokens * steps,
        "records": records,
        "records_problem": problem or None,
        "epochs": None,
        "memory_bytes": _bytes_of(memory),
        "memory_bytes_recomputed": recomputed and _bytes_of(recomputed),
        "machine_memory_bytes": machine_memory(),
        "checkpoints": _checkpoints(config),
    }
    if records and records["examples"]:
        numbers["epochs"] = examples * steps / records["examples"]
    numbers["warnings"] = [
        *config.warnings(),
        *warnings,
        *_obstacles(config, numbers),
    ]
    return numbers


def _records(config: PretrainingConfig) -> tuple[Numbers | None, str, list]:
    """What is there to read, why training would stop, and what it says."""
    try:
        count = count_training_examples(config)
    except UserError as error:
        return None, str(error), []
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)  # They are in the plan.
    try:
        return count._asdict(), "", list(check_records(config, training=True))
    except UserError as error:
        return count._asdict(), str(error), []
    finally:
        logging.set_verbosity(verbosity)


def _checkpoints(config: PretrainingConfig) -> Numbers:
    """Bytes of one checkpoint, how many are written and kept, bytes free."""
    steps, every = config.num_train_steps, config.save_checkpoints_steps
    saves = math.ceil(steps / every) if every else 1
    kept = min(config.keep_checkpoint_max or saves, saves)
    if milestones := config.keep_every_n_steps:
        # The newest ones may be milestones, too.
        kept = min(saves, kept + steps // milestones)
    path, free = os.path.abspath(config.model_dir), None
    if not files.is_remote(config.model_dir):
        while not os.path.exists(path):
            path = os.path.dirname(path)
        free = shutil.disk_usage(path).free
    size = memory_model.checkpoint_bytes(config)
    return {"checkpoint": size, "saves": saves, "kept": kept, "free": free}


def _disk_needed(checkpoints: Numbers) -> int:
    """Bytes at the worst moment: one is written before one is deleted."""
    most = min(checkpoints["saves"], checkpoints["kept"] + 1)
    return checkpoints["checkpoint"] * most


def _obstacles(config: PretrainingConfig, numbers: Numbers) -> list[str]:
    """What is probably not meant, or will not work."""
    found = []
    if numbers["records"] and numbers["records_problem"]:
        found.append(f"training would stop: {numbers['records_problem']}")
    have = numbers["machine_memory_bytes"]
    needed = numbers["memory_bytes_recomputed"] or numbers["memory_bytes"]
    if have and needed["total"] > have:
        found.append(_memory_warning(config, numbers))
    disk = numbers["checkpoints"]
    if disk["free"] is not None and _disk_needed(disk) > disk["free"]:
        found.append(
            f"the checkpoints need {_disk_needed(disk) / 1e9:.1f} GB where"
            f" {disk['free'] / 1e9:.1f} GB are free; lower"
            " keep_checkpoint_max or choose another model_dir"
        )
    if (numbers["epochs"] or 0) > _MANY_EPOCHS:
        found.append(
            f"each example is seen {numbers['epochs']:,.0f} times: more text,"
            " or fewer steps, would serve better"
        )
    return found


def _memory_warning(config: PretrainingConfig, numbers: Numbers) -> str:
    have, needed = numbers["machine_memory_bytes"], numbers["memory_bytes"]
    other = "of an accelerator, compare its own"
    if numbers["memory_bytes_recomputed"]:
        other = f"an accelerator needs {needed['total'] / 2**30:.1f}"
        needed = numbers["memory_bytes_recomputed"]
        config = dataclasses.replace(config, recompute_grad=True)
    text = (
        f"{needed['total'] / 2**30:.1f} GiB of memory are needed at"
        f" train_batch_size {config.train_batch_size}, and this machine has"
        f" {have / 2**30:.1f}; {other}"
    )
    parts = config.gradient_accumulation_steps
    while config.train_batch_size % (2 * parts) == 0:
        parts *= 2
        split = dataclasses.replace(config, gradient_accumulation_steps=parts)
        if pretraining_memory(split).total <= have:
            return f"{text}. --gradient_accumulation_steps={parts} would fit"
    return text


def _bytes_of(memory: MemoryEstimate) -> dict[str, int]:
    return {**dataclasses.asdict(memory), "total": memory.total}


# Real training steps, timed; nothing is written and nothing kept.


def _measured_batch_size(config: PretrainingConfig) -> int:
    """The micro-batch, halved until it fits and takes seconds on a CPU."""
    batch = config.train_batch_size // config.gradient_accumulation_steps
    free = memory_model.free_memory() or math.inf
    plain = dataclasses.replace(config, gradient_accumulation_steps=1)
    while batch > 1 and (
        pretraining_memory(plain, batch).total > _MEMORY_SHARE * free
        or pretraining_step_flops(plain, batch).matmul > _MOST_FLOPS
    ):
        batch //= 2
    return batch


def measure_steps(
    config: PretrainingConfig, batch_size: int, steps: int, real_batches: bool
) -> Numbers:
    """Trains a fresh model for some steps, in seconds each, and forgets it."""
    # TensorFlow only from here on.
    import orbit
    import tensorflow as tf

    from electra_tf.data.input_pipeline import build_dataset
    from electra_tf.pretraining import build
    from electra_tf.training import strategy as strategies
    from electra_tf.training.loop import LossScale

    strategies.use_threads(config.threads)
    config = dataclasses.replace(
        config,
        do_train=True,
        train_batch_size=batch_size,
        gradient_accumulation_steps=1,
    )
    strategy = strategies.from_config(config)
    made_up = not tf.io.gfile.exists(config.vocab_file)
    with tempfile.TemporaryDirectory() as folder:
        if made_up:
            config = _with_vocabulary(config, folder)
        with strategies.creation_scope(strategy):
            model = build.build_model(config)
            optimizer = build.build_optimizer(config, model)
            step = orbit.utils.create_global_step()
            loss_scale = LossScale.of(config.mixed_precision)
    if real_batches:
        with tf.device("/cpu:0"):
            batches = iter(build_dataset(config, batch_size, training=True))
    else:
        batches = _random_batches(config, model.encoder_config.vocab_size)
    loop = build.build_train_loop(
        config, model, optimizer, batches, step, strategy, loss_scale
    )
    times = []
    for _ in range(_WARM_UP + steps):
        start = time.perf_counter()
        loop.train(tf.constant(1))
        loop.take_chunk()  # Waits for the numbers.
        times.append(time.perf_counter() - start)
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count()
    return {
        "batch_size": batch_size,
        "seconds": times[_WARM_UP:],
        "first_step_seconds": times[0],
        "real_batches": real_batches,
        "made_up_vocabulary": made_up,
        "peak_memory_bytes": peak_memory(),
        "cores": cores,
        "devices": strategies.describe(strategy),
    }


def peak_memory() -> int:
    """The process's peak of resident memory in bytes (Linux; or 0)."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def _with_vocabulary(
    config: PretrainingConfig, folder: str
) -> PretrainingConfig:
    """Writes a vocabulary of the right size to a folder that will go."""
    path = os.path.join(folder, "vocab.txt")
    size = encoder_sizes(config).vocab_size
    words = (f"word{i}" for i in range(size - len(_SPECIAL)))
    with open(path, "w") as file:
        file.write("\n".join([*_SPECIAL, *words]) + "\n")
    return dataclasses.replace(config, vocab_file=path)


def _random_batches(
    config: PretrainingConfig, vocab_size: int
) -> Iterator[dict[str, Any]]:
    """Batches without padding, tokens drawn uniformly."""
    import numpy as np
    import tensorflow as tf

    draws = np.random.default_rng(config.seed)
    shape = [config.train_batch_size, config.max_seq_length]
    while True:
        ids = draws.integers(len(_SPECIAL), vocab_size, shape)
        yield {
            "input_ids": tf.constant(ids, tf.int32),
            "input_mask": tf.ones(shape, tf.int32),
            "segment_ids": tf.zeros(shape, tf.int32),
        }


# The screen.


_SCREEN = """\
{model_name}: {objective}
{num_train_steps:,} steps of {examples_per_step} examples of {length} wordpieces

Parameters            {params[total]}: {params[generator]} only in the\
 generator,
                      {params[discriminator]} only in the discriminator,\
 {params[shared]} shared{alone}
Operations a step     {flops_per_step[total]:.3e};\
 {flops_per_step[per_token]:.3g} a wordpiece{parts}
  in all              {flops:.3e} = {petaflop_days:.3g} petaflop/s-days
Wordpieces a step     {tokens_per_step:,}; {tokens:.3e} in all
Epochs                {seen}
Memory at the peak    about {memory[total]}{machine}
                      weights {memory[weights]}, slots {memory[slots]},\
 gradients {memory[gradients]},
                      activations {memory[activations]}, update\
 {memory[update]}, program {memory[program]}{again}
Checkpoint            {checkpoint}, {checkpoints[kept]:,} of\
 {checkpoints[saves]:,} kept: {disk} on disk
Time to finish        {finish}

Counted the paper's way *     operations   PF/s-days     to this
{published}
* a backward pass like a forward pass, lookups as products"""
_NEXT = "\n" + 22 * " "  # A row that goes on with the one before.
_AGAIN = (
    f"{_NEXT}without an accelerator: about {{}}, as activations"
    f"{_NEXT}are computed again, in about 1.4 times the time (recompute_grad)"
)
_MEASURED = """
Measured on {cores} core(s): {steps} steps of {batch_size} examples, {batches}:
  {shortest} to {longest} each, first step {first},
  {rate:,.0f} GFLOP/s in matrix products{peak}.
  The time is scaled to {examples} examples a step{bound}."""


def _screen(config: PretrainingConfig, numbers: Numbers) -> str:
    """The numbers, without warnings."""
    count, flops = numbers["parameters"], numbers["flops_per_step"]
    params = {name: f"{n / 1e6:,.2f} M" for name, n in count.items()}
    alone = f"{_NEXT}{params['discriminator_alone']} are the discriminator's,"
    shares = {
        name: 100 * (part["matmul"] + part["other"]) / flops["total"]
        for name, part in flops["parts"].items()
    }
    seen = f"no records at {config.pretrain_tfrecords}"
    if records := numbers["records"]:
        about = "" if records["exact"] else "about "
        seen = (
            f"{numbers['epochs'] or 0:,.3g} over {about}"
            f"{records['examples']:,} examples ({records['files']} files)"
        )
    memory = {n: _bytes(size) for n, size in numbers["memory_bytes"].items()}
    again = numbers["memory_bytes_recomputed"]
    have = numbers["machine_memory_bytes"]
    finish = "not reckoned; --measure times some steps here"
    if seconds := numbers.get("seconds_per_step"):
        whole = duration(numbers["seconds_to_finish"])
        finish = f"{whole} ({1 / seconds:.3g} steps a second)"
    # The run among the paper's models, cheapest first.
    own = numbers["flops_the_papers_way"]
    models = {**PUBLISHED_FLOPS, "> this run": own}
    shown = sorted(models.keys() - _NOT_SHOWN, key=models.get)
    disk = numbers["checkpoints"]
    return _SCREEN.format(
        **numbers,
        objective=_objective(config),
        length=config.max_seq_length,
        params=params,
        alone=f"{alone} as the paper counts" * bool(count["discriminator"]),
        parts="".join(f"{_NEXT}{x:>5.1f}% {n}" for n, x in shares.items()),
        seen=seen,
        memory=memory,
        machine=f"; this machine has {_bytes(have)}" if have else "",
        again=_AGAIN.format(_bytes(again["total"])) if again else "",
        checkpoint=_bytes(disk["checkpoint"]),
        disk=_bytes(_disk_needed(disk)),
        finish=finish,
        published="\n".join(
            f"{name:<28}{models[name]:>12.2e}"
            f"{_short(models[name] / PETAFLOP_DAY):>12}"
            f"{_short(models[name] / own):>12}"
            for name in shown
        ),
    )


def _measured_screen(measured: Numbers, examples: int) -> str:
    peak = measured["peak_memory_bytes"]
    batches = "of the records" if measured["real_batches"] else "random"
    # What an update takes does not grow with the batch.
    bound = ", which is an upper bound" * (measured["batch_size"] < examples)
    return _MEASURED.format(
        **measured,
        steps=len(measured["seconds"]),
        batches=batches
        + " (made-up vocabulary)" * measured["made_up_vocabulary"],
        shortest=duration(min(measured["seconds"])),
        longest=duration(max(measured["seconds"])),
        first=duration(measured["first_step_seconds"]),
        rate=measured["matmul_flops_per_second"] / 1e9,
        peak=f"; peak memory {peak / 2**30:.1f} GiB" if peak else "",
        examples=examples,
        bound=bound,
    )


def _objective(config: PretrainingConfig) -> str:
    size = f"model_size {config.model_size}"
    if not (config.electric_objective or config.electra_objective):
        return f"masked language model, {size}"
    name = "Electric" if config.electric_objective else "ELECTRA"
    kind = generator_kind(config).value.replace("_", "-")
    return f"{name}, {size}, {kind} generator"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    units = {"years": 365 * 86400, "days": 86400, "hours": 3600, "minutes": 60}
    for unit, size in units.items():
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:{'.1f' if seconds >= 1 else '.3g'}} seconds"


def _bytes(count: float) -> str:
    if count >= 2**30:
        return f"{count / 2**30:,.1f} GiB"
    return f"{count / 2**20:,.0f} MiB"


def _short(number: float) -> str:
    """Three digits, and never an exponent for large numbers."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
