# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Says what a pre-training run will take; trains nothing.

Takes the flags of run_pretraining.py. Parameters, operations, memory and disk
are counted from them, without TensorFlow; the records, where there are some,
are counted, too. With --measure steps of the model are timed here.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from configure import flags
from configure.errors import UserError
from configure.generator import GeneratorKind, generator_kind
from configure.pretraining import PretrainingConfig
from configure.problems import Level
from electra_tf.checkpoints.formats import resolve_reference
from electra_tf.checkpoints.hub import hub_hint
from electra_tf.checkpoints.sizes import check_same_model
from electra_tf.data.example_count import count_training_examples
from electra_tf.data.record_checks import find_problems
from electra_tf.extras import memory_curve
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.files.json_files import read_json
from electra_tf.modeling.encoder_config import EncoderConfig
from electra_tf.plan.flops import (
    PETAFLOP_DAY,
    PUBLISHED_FLOPS,
    paper_train_flops,
    pretraining_step_flops,
    steps_per_stage,
)
from electra_tf.plan.machine import machine_memory, peak_memory
from electra_tf.plan.memory import (
    MemoryEstimate,
    activations_limit,
    checkpoint_bytes,
    pretraining_memory,
)
from electra_tf.plan.networks import check_equal_sizes
from electra_tf.plan.parameters import pretraining_parameters
from electra_tf.text.casing import with_vocab_casing
from electra_tf.text.vocabulary import check_vocab, check_vocab_size

_WARM_UP = 2  # The first makes the graph, the second fills memory.
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

Numbers = dict[str, Any]
Parsed = tuple[PretrainingConfig, argparse.Namespace]


def parse_flags(argv: Sequence[str]) -> Parsed:
    """Turns a command line into a config and the plan's own flags."""
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
            *("measure", int, "B"),
            "time steps of so many random examples here, after two that are"
            " not timed; the time is scaled to the run's batch",
        ),
        ("measured_steps", 5, "N", "how many steps --measure times"),
        ("json", False, "", "print JSON, not a screen"),
        (
            *("memory_curve", None, "DIR"),
            "instead: peak memory over lengths and sizes, predicted, and"
            " measured in a process a point (about a minute each); the same"
            " command continues. DIR gets memory.txt, .json and .png",
        ),
        (
            *("memory_gib", float, "G"),
            "for --memory_curve: the longest rows and largest batches that fit"
            " are named, and nothing is measured beyond it; default: three"
            " quarters of the machine's memory",
        ),
    )
    config, args = flags.parse_config(PretrainingConfig, argv, parser)
    for name in ("measure", "measured_steps", "memory_gib"):
        value = getattr(args, name)
        if value is not None and not 0 < value < math.inf:
            parser.error(f"--{name} must be finite, above 0, got {value}")
    return config, args


def main(parsed: Parsed) -> None:
    """Prints the plan."""
    config, args = parsed
    config = with_vocab_casing(config)
    if args.memory_curve:
        found = memory_curve.run(config, args.memory_curve, args.memory_gib)
        print(found, end="")
        return
    numbers = plan(config)
    if args.measure:
        seconds, done, a_step = [], 0, 0.0
        for steps in steps_per_stage(config).values():
            timed = measure_steps(
                config, args.measure, args.measured_steps, done
            )
            an_example = statistics.median(timed) / args.measure
            share = steps / max(config.num_train_steps, 1)
            a_step += share * an_example * config.train_batch_size
            seconds, done = seconds + timed, done + steps
        numbers["measured"] = {
            **{"batch_size": args.measure, "seconds": seconds},
            "peak_bytes": peak_memory(),
        }
        numbers["seconds_per_step"] = a_step
        numbers["seconds_to_finish"] = a_step * config.num_train_steps
    if args.json:
        print(json.dumps(numbers, indent=1))
        return
    print(_screen(config, numbers))
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
    memory, machine = pretraining_memory(config), machine_memory()
    recomputed = None
    limit = activations_limit(machine)
    if config.recompute_grad is None and memory.total > limit:
        again = dataclasses.replace(config, recompute_grad=True)
        recomputed = pretraining_memory(again)
    records, obstacles, warnings = _records(config)
    obstacles += [t for t in _other_obstacles(config) if t not in obstacles]
    steps, examples = config.num_train_steps, config.train_batch_size
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
        "epochs": None,
        "memory_bytes": _bytes_of(memory),
        "memory_bytes_recomputed": recomputed and _bytes_of(recomputed),
        "machine_memory_bytes": machine,
        "checkpoints": _checkpoints(config),
    }
    if len(stages := steps_per_stage(config)) > 1:
        numbers["stages"] = {
            stage: pretraining_step_flops(
                config, parameters=parameters.total, stage=stage
            ).as_dict()
            | {"steps": steps}
            for stage, steps in stages.items()
        }
    if records and records["examples"]:
        numbers["epochs"] = examples * steps / records["examples"]
    warnings += [f"training would stop: {text}" for text in obstacles]
    warnings += _lack_of_memory(config, numbers)
    needed, free = (numbers["checkpoints"][n] for n in ("needed", "free"))
    if free is not None and needed > free:
        warnings.append(
            f"the checkpoints need {_gib(needed)} where {_gib(free)} are free;"
            " lower keep_checkpoint_max or choose another model_dir"
        )
    return numbers | {"warnings": [*config.warnings(), *warnings]}


def _records(config: PretrainingConfig) -> tuple[Numbers | None, list, list]:
    """What is there to read, why training would stop, and what it says."""
    count = None
    problems = [*find_problems(config, training=True)]
    if config.eval_every_n_steps:
        problems += find_problems(config, training=False)
    with contextlib.suppress(UserError):  # It is among the problems.
        count = count_training_examples(config)._asdict()
    errors, warnings = [], []
    for problem in dict.fromkeys(problems):
        is_error = problem.level is Level.ERROR or (
            problem.level is Level.DOUBT and config.strict
        )
        (errors if is_error else warnings).append(str(problem))
    return count, errors, warnings


def _other_obstacles(config: PretrainingConfig) -> Iterator[str]:
    """Why training would stop, records apart."""
    try:
        check_equal_sizes(config)
        rows = EncoderConfig.of(config).vocab_size
        check_vocab_size(config, len(check_vocab(config.vocab_file, rows)))
    except UserError as error:
        yield str(error)
    start, folder = config.init_checkpoint, config.model_dir
    with contextlib.suppress(UserError):
        start = start and resolve_reference(start)
    if start and not any(map(filesystem.exists, (start, f"{start}.index"))):
        yield (
            f"init_checkpoint {start}: no such folder or checkpoint."
            + hub_hint(start)
        )
    before = os.path.join(folder, "config.json")
    is_begun = all(map(filesystem.exists, (before, f"{folder}/checkpoint")))
    if is_begun and not config.overwrite:
        try:
            check_same_model(read_json(before), config.as_dict(), folder)
        except UserError as error:
            yield str(error)


def _checkpoints(config: PretrainingConfig) -> Numbers:
    """Bytes of one checkpoint, how many are written and kept, bytes free."""
    steps, every = config.num_train_steps, config.save_checkpoints_steps
    # One before the first step.
    saves = 1 + (math.ceil(steps / every) if every else 1)
    kept = min(config.keep_checkpoint_max or saves, saves)
    if milestones := config.keep_every_n_steps:
        # The newest ones may be milestones, too.
        kept = min(saves, kept + steps // milestones)
    size, free = checkpoint_bytes(config), None
    if not filesystem.is_remote(path := config.model_dir):
        path = os.path.abspath(path)
        while not os.path.exists(path):
            path = os.path.dirname(path)
        free = shutil.disk_usage(path).free
    # At the worst moment one is written before one is deleted; in best/, too.
    needed = size * (min(saves, kept + 1) + 2 * bool(config.keep_best))
    return {
        **{"checkpoint": size, "saves": saves, "kept": kept},
        **{"needed": needed, "free": free},
    }


def _lack_of_memory(
    config: PretrainingConfig, numbers: Numbers
) -> Iterator[str]:
    have, needed = numbers["machine_memory_bytes"], numbers["memory_bytes"]
    again = numbers["memory_bytes_recomputed"]
    least = again or needed
    if not have or least["total"] <= have:
        return
    # Where no core has gradients of its own.
    there = pretraining_memory(dataclasses.replace(config, threads=1))
    if again:
        config = dataclasses.replace(config, recompute_grad=True)
    text = (
        f"{_gib(least['total'])} of memory are needed at train_batch_size"
        f" {config.train_batch_size}, and this machine has {_gib(have)}; an"
        f" accelerator needs {_gib(there.total)}"
    )
    parts = config.gradient_accumulation_steps
    while config.train_batch_size % (2 * parts) == 0:
        parts *= 2
        split = dataclasses.replace(config, gradient_accumulation_steps=parts)
        if pretraining_memory(split).total <= have:
            text += f". --gradient_accumulation_steps={parts} would fit"
            break
    yield text


def _bytes_of(memory: MemoryEstimate) -> dict[str, int]:
    return {**dataclasses.asdict(memory), "total": memory.total}


def measure_steps(
    config: PretrainingConfig, batch_size: int, steps: int, first_step: int = 0
) -> list[float]:
    """Seconds of training steps of a fresh model, which is then forgotten."""
    # TensorFlow only from here on.
    import numpy as np
    import orbit
    import tensorflow as tf

    from electra_tf.modeling.activation_checkpointing import needs_checkpointing
    from electra_tf.modeling.precision import LossScale
    from electra_tf.pretraining import build
    from electra_tf.pretraining.model import build_model
    from electra_tf.training.devices import create_strategy
    from electra_tf.training.replicas import creation_scope
    from electra_tf.training.threads import set_threads

    vocab_size = EncoderConfig.of(config).vocab_size
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vocab.txt")
        words = (f"word{i}" for i in range(vocab_size - len(_SPECIAL)))
        write_atomically(path, "\n".join([*_SPECIAL, *words, ""]))
        config = dataclasses.replace(
            config,
            train_batch_size=batch_size,
            gradient_accumulation_steps=1,
            vocab_file=path,
            recompute_grad=needs_checkpointing(
                config.recompute_grad,
                pretraining_memory(config).total,
                activations_limit(machine_memory()),
            ),
        )
        set_threads(config)
        strategy = create_strategy(config)
        if generator_kind(config) is GeneratorKind.UNIGRAM:
            # There are no counts of these words; the operations are the same.
            config = dataclasses.replace(
                config, generator="uniform", uniform_generator=True
            )
        with creation_scope(strategy):
            model = build_model(config)
            optimizer = build.build_optimizer(config, model)
            step = orbit.utils.create_global_step()
            loss_scale = LossScale.of(config.mixed_precision)
        step.assign(first_step)

    def batches() -> Iterator[dict[str, tf.Tensor]]:
        """Rows without padding, tokens drawn uniformly."""
        draws = np.random.default_rng(config.seed)
        shape = [batch_size, config.max_seq_length]
        while True:
            ids = draws.integers(len(_SPECIAL), vocab_size, shape)
            yield {
                "input_ids": tf.constant(ids, tf.int32),
                "input_mask": tf.ones(shape, tf.int32),
                "segment_ids": tf.zeros(shape, tf.int32),
            }

    loop = build.build_train_loop(
        config, model, optimizer, batches(), step, strategy, loss_scale
    )
    times = []
    for _ in range(_WARM_UP + steps):
        start = time.perf_counter()
        loop.train(1)
        loop.take_chunk()  # Waits for the numbers.
        times.append(time.perf_counter() - start)
    return times[_WARM_UP:]


def _screen(config: PretrainingConfig, numbers: Numbers) -> str:
    """The numbers, without warnings."""
    count, flops = numbers["parameters"], numbers["flops_per_step"]
    millions = {n: f"{x / 1e6:,.2f} M" for n, x in count.items()}
    shares = (
        f"{(part['matmul'] + part['other']) / flops['total']:.1%} {name}"
        for name, part in flops["parts"].items()
    )
    epochs = (
        f"no records at {config.pretrain_text or config.pretrain_tfrecords}"
    )
    if records := numbers["records"]:
        epochs = (
            f"{numbers['epochs'] or 0:,.3g} over"
            f"{'' if records['exact'] else ' about'}"
            f" {records['examples']:,} examples ({records['files']} files)"
        )
    memory = {n: _gib(size) for n, size in numbers["memory_bytes"].items()}
    disk, time_left = numbers["checkpoints"], "--measure B times some steps"
    if measured := numbers.get("measured"):
        left = datetime.timedelta(seconds=round(numbers["seconds_to_finish"]))
        each = (f"{f(measured['seconds']):.3g}" for f in (min, max))
        time_left = (
            f"{left}, as {len(measured['seconds'])} steps of"
            f" {measured['batch_size']} examples took"
            f" {' to '.join(dict.fromkeys(each))} s each here"
        )
    lines = [
        f"{config.model_name}: {config.objective_facts.title}, model_size"
        f" {config.model_size},"
        f" {numbers['generator'].replace('_', '-')} generator",
        f"{config.num_train_steps:,} steps of {config.train_batch_size}"
        f" examples of {config.max_seq_length} wordpieces",
        "",
        f"Parameters          {millions['total']}: {millions['generator']} only"
        f" in the generator, {millions['discriminator']}",
        f"                    only in the discriminator, {millions['shared']}"
        " in both",
        f"  the paper counts  {millions['discriminator_alone']}",
        f"Operations a step   {flops['total']:.3e}",
        *(f"                    {share:>6}" for share in shares),
        *(
            f"  in stage {stage}        {part['total']:.3e},"
            f" {part['steps']:,} steps"
            for stage, part in numbers.get("stages", {}).items()
        ),
        f"  in all            {numbers['flops']:.3e} ="
        f" {numbers['petaflop_days']:.3g} petaflop/s-days",
        f"Wordpieces a step   {numbers['tokens_per_step']:,};"
        f" {numbers['tokens']:.3e} in all",
        f"Epochs              {epochs}",
        f"Memory at the peak  about {memory.pop('total')}:",
        *(f"  {name:<18}{size}" for name, size in memory.items()),
    ]
    if have := numbers["machine_memory_bytes"]:
        lines.append(f"  this machine has  {_gib(have)}")
    if again := numbers["memory_bytes_recomputed"]:
        lines.append(
            f"  recompute_grad    about {_gib(again['total'])}: without an"
            " accelerator activations are\n                    computed again,"
            " in about 1.4 times the time"
        )
    lines += [
        f"Checkpoints         {_gib(disk['checkpoint'])}, {disk['kept']:,} of"
        f" {disk['saves']:,} kept: {_gib(disk['needed'])} on disk",
        f"Time to finish      {time_left}",
        "",
        "Operations as the paper counts them       to this",
    ]
    own = numbers["flops_the_papers_way"]
    models = {**PUBLISHED_FLOPS, "> this run": own}
    for name in sorted(models, key=models.get):
        ratio = f"{models[name] / own:,.2f}" if own else "-"  # No step.
        lines.append(f"{name:<28}{models[name]:>10.2e} {ratio:>10}")
    return "\n".join(lines)


def _gib(count: float) -> str:
    return f"{count / 2**30:,.2f} GiB"
