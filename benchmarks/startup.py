# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time cold starts, from the command line to the first training step.

Every run is a new process of ELECTRA-Small with an empty model directory, on
existing records. Times are measured from the start of the process to the lines
that it prints: settings (TensorFlow is imported), model, the first step, the
end. For comparison, `--help` and, as the minimum, `import tensorflow` are also
timed.

  python benchmarks/startup.py --repeats=5 --before=../before \
      --variants='{"XLA": {"hparams": {"jit_compile": true}}}'
"""

import json
import os
import re
import shutil
import sys
import tempfile

import harness

# stage -> pattern of the line that a run prints when it reaches the stage
STAGES = {
    "imports": re.compile(r"Config:"),
    "model": re.compile(r"Model: "),
    "training": re.compile(r"Running training"),
    "first step": re.compile(r"1/\d+ = "),
}
COLUMNS = (*STAGES, "end", "processor", "peak")


def build_records(args, folder):
    corpus, data_dir = (os.path.join(folder, name) for name in ("corpus", "d"))
    os.mkdir(corpus)
    os.mkdir(data_dir)
    name = sorted(os.listdir(args.corpus_dir))[0]
    with open(os.path.join(args.corpus_dir, name), "rb") as source:
        text = source.read(500_000)
    with open(os.path.join(corpus, "part.txt"), "wb") as copy:
        copy.write(text[: text.rfind(b"\n") + 1])
    shutil.copyfile(args.vocab_file, os.path.join(data_dir, "vocab.txt"))
    records = os.path.join(data_dir, "pretrain_tfrecords")
    command = [sys.executable, "build_pretraining_dataset.py"]
    command += [f"--corpus_dir={corpus}", f"--vocab_file={data_dir}/vocab.txt"]
    command += [f"--output_dir={records}", f"--max_seq_length={args.length}"]
    harness.Program([*command, "--num_shards=4"], harness.ROOT).finish()
    return data_dir


def make_arms(args, data_dir):
    """Return (command, root, environment) by name, in the order of turns."""
    with open(args.vocab_file, encoding="utf-8") as file:
        vocab_size = sum(1 for _ in file)
    hparams = {"model_size": args.model_size, "vocab_size": vocab_size}
    hparams |= {"train_batch_size": args.batch, "max_seq_length": args.length}
    hparams |= {"num_train_steps": 1, "num_warmup_steps": 0}
    hparams |= {"log_every_n_steps": 1, **args.hparams}

    def run(variant):
        text = json.dumps({**hparams, **variant})
        arguments = [f"--data_dir={data_dir}", "--model_name=cold"]
        return ["run_pretraining.py", *arguments, f"--hparams={text}"]

    checkouts = harness.checkouts(args).items()
    arms = {name: (run({}), root, {}) for name, root in checkouts}
    for name, variant in args.variants.items():
        command = run(variant.get("hparams", {}))
        arms[name] = (command, harness.ROOT, variant.get("environment", {}))
    quiet = (harness.ROOT, {"TF_CPP_MIN_LOG_LEVEL": "2"})
    arms["--help"] = (["run_pretraining.py", "--help"], *quiet)
    arms["import tensorflow"] = (["-c", "import tensorflow"], *quiet)
    return {name: arms[name] for name in arms if name in (args.arms or arms)}


def main():
    parser = harness.parser(__doc__, repeats=5)
    add = parser.add_argument
    add(
        "--corpus_dir",
        default=harness.CORPUS,
        help="corpus, of which a small part is used",
    )
    add("--vocab_file", default=harness.VOCAB)
    add("--model_size", default="small")
    add("--batch", type=int, default=16)
    add("--length", type=int, default=128)
    more = "number of first runs that are not measured"
    add("--warm_up", type=int, default=1, help=more)
    add("--hparams", type=json.loads, default={}, help="JSON of more hparams")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data_dir = build_records(args, folder)
        model_dir = os.path.join(data_dir, "models", "cold")

        def start(arm):
            command, root, environment = arm
            shutil.rmtree(model_dir, ignore_errors=True)
            command = [sys.executable, *command]
            return harness.Program(command, root, environment, STAGES).finish()

        arms = make_arms(args, data_dir)
        turns = harness.take_turns(arms, start, args.repeats, args.warm_up)
    rows, ends = [], {}
    for name, runs in turns.items():
        ends[name] = [run.get("first step", run["end"]) for run in runs]
        row = {"": name}
        for column in COLUMNS:
            values = [run[column] for run in runs if column in run]
            digits = 0 if column == "peak" else 2
            row[column] = ""
            if values:
                row[column] = harness.Spread.of(values).shown(digits)
        rows.append(row)
    faster = harness.faster(ends)
    for row in rows:
        row["ours is faster"] = harness.shown(faster, row[""])
    title = f"Cold starts, {args.model_size}, {args.batch} x {args.length},"
    title += " seconds since the process began (peak: MB)"
    result = {"runs": turns, "faster": faster}
    result["versions"] = harness.versions("tensorflow", "tf_keras")
    harness.report(args, title, result, rows)


if __name__ == "__main__":
    main()
