# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Run the pre-training step on any device of JAX, without TensorFlow.

  python benchmarks/accelerator.py export FOLDER --model_size=small \
      --batch=128 --length=128 --precision=bf16 --steps=10000 \
      --records='pretrain_data.tfrecord*' --vocab_file=vocab.txt
  python accelerator.py run FOLDER --steps=4000 --output=TRAINED
  python benchmarks/accelerator.py home FOLDER TRAINED MODEL_DIR

With `jit_compile` a step is one XLA program. `export` writes the program, the
weights and the records to FOLDER; it needs TensorFlow and JAX. `run` needs this
file, FOLDER, JAX and NumPy: it repeats the exported steps and compares their
numbers with TensorFlow's (`--check`), times steps (`--time`), or trains.
`home` needs TensorFlow, and writes a checkpoint that every command reads.

The learning rate's schedule is a part of the program. `run --steps=N` spreads
its steps over the whole schedule, so that a run of any length ends at the last
rate.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

PROGRAM, STATE, RECORDS = "step.jaxexport", "start.npz", "records.npz"
ABOUT, WEIGHTS, LOG = "step.json", "weights.npz", "log.jsonl"
STEP = "global_step"
TURNS = 5  # repetitions of each timing
LOG_EVERY = 100  # steps


class Program:
    """An exported step on the first device of JAX."""

    def __init__(self, folder):
        import jax
        import jax.export
        import jax.numpy as jnp
        import numpy as np

        jax.config.update("jax_enable_x64", True)  # The step counter is int64.
        self._jax, self._np = jax, np
        folder = pathlib.Path(folder)
        self.about = json.loads((folder / ABOUT).read_text())
        self.device = jax.devices()[0]
        self._start = folder / STATE
        rows, length = self.about["shape"]
        self.rows = rows
        with np.load(folder / RECORDS) as stored:
            self._records = {
                name: jax.device_put(stored[name], self.device)
                for name in stored.files
            }
        self.examples = self._records["length"].shape[0]
        exported = jax.export.deserialize((folder / PROGRAM).read_bytes())

        def step(state, records, chosen):
            positions = jnp.arange(length, dtype=jnp.int32)[None]
            count = records["length"][chosen][:, None]
            second = records["second_segment"][chosen][:, None]
            mask = positions < count
            batch = {
                "input_ids": records["input_ids"][chosen].astype(jnp.int32),
                "input_mask": mask.astype(jnp.int32),
                "segment_ids": (mask & (positions >= second)).astype(jnp.int32),
            }
            return exported.call(batch, state)

        self._step = jax.jit(step, donate_argnums=0)
        self._names = [part["name"] for part in self.about["state"]]

    def start(self):
        """Return the state of step 0, a list of arrays on the device."""
        with self._np.load(self._start) as stored:
            return [
                self._jax.device_put(stored[name], self.device)
                for name in self._names
            ]

    def update(self, state, rows):
        """Make one step; return the values to log, and the next state.

        Args:
          state: the state; the device reuses its memory for the next state.
          rows: int [B], the indices of the batch's records.
        """
        return self._step(state, self._records, self._np.asarray(rows))

    def set_step(self, state, step):
        """Set the count of updates, which determines the rate and the draws."""
        value = self._np.asarray(step, self._np.int64)
        state[self._names.index(STEP)] = self._jax.device_put(
            value, self.device
        )

    def wait(self, values):
        return self._jax.block_until_ready(values)

    def arrays(self, state):
        """Return variables and slots by name, as NumPy arrays."""
        arrays = {}
        for part, value in zip(self.about["state"], state, strict=True):
            flat = self._np.asarray(value).reshape(-1)
            begin = 0
            for name, shape in part["members"]:
                size = int(self._np.prod(shape, dtype=self._np.int64))
                arrays[name] = flat[begin : begin + size].reshape(shape)
                begin += size
        return arrays

    def memory(self):
        """Return the peak of device memory in MiB; None if JAX reports none."""
        stats = self.device.memory_stats() or {}
        peak = stats.get("peak_bytes_in_use")
        return None if peak is None else round(peak / 2**20)


def make_folder(path):
    """Create a folder; exit if it exists, so that nothing is replaced."""
    folder = pathlib.Path(path)
    if folder.exists():
        sys.exit(
            f"error: {folder} exists; expected a new folder. Pass another path"
        )
    folder.mkdir(parents=True)
    return folder


def check(program):
    """Return the largest difference of each value from TensorFlow's."""
    state, worst = program.start(), {}
    for index, expected in enumerate(program.about["expected"]):
        begin = index * program.rows
        rows = [
            i % program.examples for i in range(begin, begin + program.rows)
        ]
        numbers, state = program.update(state, rows)
        pairs = zip(program.about["numbers"], numbers, expected, strict=True)
        for name, actual, reference in pairs:
            scale = max(abs(reference), 1e-12)
            difference = abs(float(actual) - reference) / scale
            worst[name] = max(worst.get(name, 0.0), difference)
    return {"steps": len(program.about["expected"]), "differences": worst}


def time_steps(program, steps):
    """Time steps in several turns; return the seconds of a step."""
    import numpy as np

    rng = np.random.default_rng(0)

    def turn(state, count):
        begin = time.perf_counter()
        for _ in range(count):
            rows = rng.integers(program.examples, size=program.rows)
            numbers, state = program.update(state, rows)
        program.wait((numbers, state))
        return state, (time.perf_counter() - begin) / count

    state, compilation = turn(program.start(), 1)
    state, _ = turn(state, min(steps, 10))
    seconds = []
    for _ in range(TURNS):
        state, each = turn(state, steps)
        seconds.append(each)
    return {
        "seconds": seconds,
        "median": statistics.median(seconds),
        "compilation": compilation,
        "peak_mib": program.memory(),
    }


def train(program, steps, seed, output):
    """Train on all records in epochs; write the log and the weights."""
    import numpy as np

    scheduled = program.about["steps"]
    if steps > scheduled:
        sys.exit(
            f"error: --steps={steps}: the exported schedule has {scheduled}"
            " steps; expected at most this number, because each step of the"
            f" schedule has different draws. Export with --steps={steps} or"
            " more."
        )
    output = make_folder(output)
    rng, order = np.random.default_rng(seed), np.zeros(0, int)
    state, pending, begin = program.start(), [], time.perf_counter()
    with open(output / LOG, "w", encoding="utf-8") as log:
        for step in range(steps):
            while len(order) < program.rows:
                order = np.append(order, rng.permutation(program.examples))
            rows, order = order[: program.rows], order[program.rows :]
            if steps < scheduled:
                program.set_step(state, step * scheduled // steps)
            numbers, state = program.update(state, rows)
            pending.append(numbers)
            if len(pending) == LOG_EVERY or step + 1 == steps:
                means = np.mean([np.asarray(values) for values in pending], 0)
                named = zip(
                    program.about["numbers"], means.tolist(), strict=True
                )
                row = {"step": step + 1, **dict(named)}
                log.write(json.dumps(row) + "\n")
                log.flush()
                seconds = time.perf_counter() - begin
                left = seconds / (step + 1) * (steps - step - 1)
                print(
                    f"step {step + 1:,} of {steps:,}, {left:.0f} s left:"
                    f" total_loss {row['total_loss']:.3f}",
                    flush=True,
                )
                pending = []
    arrays = program.arrays(state)
    arrays[STEP] = np.asarray(steps, np.int64)
    with open(output / WEIGHTS, "wb") as file:
        np.savez(file, **arrays)
    return {"steps": steps, "seconds": time.perf_counter() - begin, "last": row}


def run(args):
    import jax

    program = Program(args.folder)
    report = {"jax": jax.__version__, "device": program.device.device_kind}
    if args.check:
        report["check"] = check(program)
    if args.time:
        report["time"] = time_steps(program, args.time)
    if args.steps:
        if not args.output:
            sys.exit("error: --steps needs a folder for weights. Pass --output")
        report["train"] = train(program, args.steps, args.seed, args.output)
        report["train"]["peak_mib"] = program.memory()
    text = json.dumps(report, indent=1)
    print(text)
    if args.json:
        pathlib.Path(args.json).write_text(text + "\n")


def export(args):
    import accelerator_export

    accelerator_export.export(args)


def home(args):
    import accelerator_export

    accelerator_export.bring_home(args.folder, args.trained, args.model_dir)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser(
        "export", help="write the program, the weights and the records"
    )
    command.set_defaults(run=export)
    add = command.add_argument
    add("folder")
    add("--model_size", default="small")
    add("--batch", type=int, default=128)
    add("--length", type=int, default=128)
    add("--precision", default="float32", choices=("float32", "bf16"))
    add("--steps", type=int, default=100_000, help="steps of the schedule")
    add("--hparams", type=json.loads, default={}, help="JSON of more hparams")
    add("--vocab_file", required=True)
    add(
        "--records",
        default="",
        help="pattern of files that build_pretraining_dataset.py wrote",
    )
    add("--examples", type=int, help="maximum number of records; default: all")
    add("--check", type=int, default=3, help="steps for run --check")
    command = commands.add_parser("run", help="check, time or train")
    command.set_defaults(run=run)
    add = command.add_argument
    add("folder")
    add("--check", action="store_true", help="compare with TensorFlow")
    add("--time", type=int, metavar="STEPS", help="steps of a timed turn")
    add("--steps", type=int, help="steps to train")
    add("--seed", type=int, default=0, help="seed of the order of the records")
    add("--output", default="", help="folder for weights and log")
    add("--json", default="", metavar="FILE", help="file for the report")
    command = commands.add_parser("home", help="write a checkpoint")
    command.set_defaults(run=home)
    add = command.add_argument
    add("folder", help="folder of the exported program")
    add("trained", help="folder that run --output wrote")
    add("model_dir", help="new folder for the checkpoint")
    args = parser.parse_args(arguments)
    args.run(args)


if __name__ == "__main__":
    main()
