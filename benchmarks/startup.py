# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cold starts: from the command line to the first training step.

Every run is a fresh process with an empty model directory: ELECTRA-Small (or
another size), 30,522 words, on records built beforehand. Timed from starting
the process to each line it prints: settings (TensorFlow is imported), model
(it is built), the first step's numbers, and the end (checkpoint, curves and
exports are written). Beside it `--help` and, as what nobody can go below, a
bare `import tensorflow`. The arms take turns.

  python benchmarks/startup.py --repeats=5 --output=runs/performance

The same of other checkouts (before and after) and with other variables:

  --checkouts='{"before": "../before"}'
  --environments='{"no oneDNN": {"TF_ENABLE_ONEDNN_OPTS": "0"}}'
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, ROOT)

import comparing  # noqa: E402

# What a run prints when it gets there.
STAGES = {
    "imports": re.compile(r"Config:"),
    "model": re.compile(r"Model: "),
    "training": re.compile(r"Running training"),
    "first step": re.compile(r"1/\d+ = "),
}
END = "end"


def parse_args():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = os.path.join(os.path.dirname(ROOT), "shared")
    data = os.environ.get("ELECTRA_TF_REFERENCE", default)
    add = parser.add_argument
    add(
        "--corpus_dir",
        default=os.path.join(data, "data", "pretrain_corpus"),
        help="a little of it is made into records",
    )
    add(
        "--vocab_file",
        default=os.path.join(data, "data", "vocab", "vocab.txt"),
    )
    add("--model_size", default="small")
    add("--batch", type=int, default=16)
    add("--length", type=int, default=128)
    add("--repeats", type=int, default=5)
    add("--warm_up", type=int, default=1, help="runs not counted")
    add("--hparams", type=json.loads, default={}, help="JSON, further ones")
    add("--checkouts", type=json.loads, default={}, help="JSON: name, path")
    add("--environments", type=json.loads, default={}, help="JSON: name, dict")
    add("--output", default="", help="directory of JSON, Markdown, PNG")
    return parser.parse_args()


class Start:
    """A command whose stages are timed.

    Args:
      command: after the interpreter's name.
      root: checkout it belongs to.
      environment: variables to add.
      model_dir: emptied before each run.
    """

    def __init__(self, command, root=ROOT, environment=None, model_dir=None):
        self._command = [sys.executable, *command]
        self._root, self._model_dir = root, model_dir
        self._environment = {**os.environ, **(environment or {})}

    def run(self):
        """Runs to the end.

        Returns:
          Seconds by stage, of `END` among them; `processor`, seconds of all
          threads together; `peak`, resident megabytes.

        Raises:
          RuntimeError: it failed; with what it said.
        """
        if self._model_dir:
            shutil.rmtree(self._model_dir, ignore_errors=True)
        found, said = {}, []
        with tempfile.TemporaryFile("w+") as errors:
            started = time.perf_counter()
            process = subprocess.Popen(
                self._command,
                cwd=self._root,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            for line in process.stdout:
                now = time.perf_counter() - started
                said.append(line)
                for name, pattern in STAGES.items():
                    if name not in found and pattern.match(line):
                        found[name] = now
            process.stdout.close()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            found[END] = time.perf_counter() - started
            if process.returncode:
                errors.seek(0)
                words = "".join(said)[-1000:] + errors.read()[-2000:]
                raise RuntimeError(f"{self._command}: {words}")
        found["processor"] = used.ru_utime + used.ru_stime
        found["peak"] = used.ru_maxrss / 1024
        return found


def build_records(args, folder):
    """Makes a few hundred examples of the corpus; returns the data dir."""
    corpus = os.path.join(folder, "corpus")
    os.mkdir(corpus)
    name = sorted(os.listdir(args.corpus_dir))[0]
    with open(os.path.join(args.corpus_dir, name), "rb") as source:
        text = source.read(500_000)
    with open(os.path.join(corpus, "part.txt"), "wb") as copy:
        copy.write(text[: text.rfind(b"\n") + 1])
    data_dir = os.path.join(folder, "data")
    os.mkdir(data_dir)
    shutil.copyfile(args.vocab_file, os.path.join(data_dir, "vocab.txt"))
    subprocess.run(
        [
            sys.executable,
            os.path.join(ROOT, "build_pretraining_dataset.py"),
            f"--corpus_dir={corpus}",
            f"--vocab_file={args.vocab_file}",
            f"--output_dir={os.path.join(data_dir, 'pretrain_tfrecords')}",
            f"--max_seq_length={args.length}",
            "--num_shards=4",
        ],
        check=True,
        capture_output=True,
    )
    return data_dir


def make_arms(args, data_dir):
    """The commands by name, in the order of their turns."""
    with open(args.vocab_file, encoding="utf-8") as file:
        words = sum(1 for _ in file)
    hparams = {
        "model_size": args.model_size,
        "train_batch_size": args.batch,
        "max_seq_length": args.length,
        "vocab_size": words,
        "num_train_steps": 1,
        "num_warmup_steps": 0,
        "log_every_n_steps": 1,
        **args.hparams,
    }
    flags = [
        f"--data_dir={data_dir}",
        "--model_name=cold",
        f"--hparams={json.dumps(hparams)}",
    ]
    model_dir = os.path.join(data_dir, "models", "cold")
    script = "run_pretraining.py"
    places = {"ours": (ROOT, {})}
    for name, path in args.checkouts.items():
        places[f"ours, {name}"] = (os.path.abspath(path), {})
    for name, environment in args.environments.items():
        places[f"ours, {name}"] = (ROOT, environment)
    arms = {
        name: Start([script, *flags], root, environment, model_dir)
        for name, (root, environment) in places.items()
    }
    arms["--help"] = Start([script, "--help"])
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "2"}
    arms["import tensorflow"] = Start(["-c", "import tensorflow"], ROOT, quiet)
    return arms


def report(args, found):
    """Markdown of the medians, and the values to draw."""
    stages = [*STAGES, END, "processor", "peak"]
    rows, drawn = [], {}
    for name, runs in found.items():
        cells = []
        for stage in stages:
            values = [run[stage] for run in runs if stage in run]
            digits = 0 if stage == "peak" else 2
            shown = comparing.Spread.of(values).shown(digits) if values else ""
            cells.append(shown)
        rows.append([name, *cells])
        last = "first step" if "first step" in runs[0] else END
        drawn[f"{name}: {last}"] = [run[last] for run in runs]
    units = [f"{s}, s" for s in stages[:-1]] + ["peak, MB"]
    table = comparing.table(["", *units], rows)
    title = (
        f"Cold starts, {args.model_size}, batch {args.batch}, length"
        f" {args.length}"
    )
    text = (
        f"{title}: seconds since the process began; medians of"
        f" {args.repeats} runs (lowest to highest).\n\n{table}"
    )
    return title, text, drawn


def main():
    """Measures and shows."""
    args = parse_args()
    with tempfile.TemporaryDirectory() as folder:
        arms = make_arms(args, build_records(args, folder))
        found = comparing.take_turns(
            arms, Start.run, args.repeats, args.warm_up
        )
    title, text, drawn = report(args, found)
    versions = comparing.versions("tensorflow", "tf_keras")
    result = {"arguments": vars(args), "versions": versions, "runs": found}
    comparing.write_report(args.output, "startup", result, text)
    if args.output:
        path = os.path.join(args.output, "startup.png")
        comparing.draw_bars(path, title, "seconds", drawn)


if __name__ == "__main__":
    main()
