# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Does half precision train like float32? Loss curves of several seeds.

Every precision and seed is a `run_pretraining.py` of its own, on the same
records, so that an interrupted study continues. At each logged window of steps
the mean loss of a half precision run is held against the lowest and highest of
the float32 seeds. Written: a table, JSON and a PNG. It tells about numbers and
not about speed, for which the processor must know the format.

  make pretrain-reference  # for its records
  python benchmarks/precision_curves.py --data_dir=runs \
      --precisions=bf16,fp16 --output=runs/precision
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, ROOT)

import comparing  # noqa: E402
import step_arms  # noqa: E402

MODEL = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}


def parse_args():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data_dir", default="runs", help="of `make pretrain-reference`")
    add("--precisions", type=step_arms.names, default=["bf16"])
    add("--seeds", type=int, default=3, help="of every precision")
    add("--steps", type=int, default=1000)
    add("--window", type=int, default=50, help="steps a mean is taken over")
    add("--batch", type=int, default=32)
    add("--output", required=True, help="a directory")
    return parser.parse_args()


def curve(args, precision, seed):
    """Trains; returns steps and mean losses of the windows before them."""
    name = f"{precision or 'float32'}_{seed}"
    hparams = {
        "model_dir": os.path.join(os.path.abspath(args.output), name),
        "pretrain_tfrecords": os.path.join(
            args.data_dir, "pretrain_tfrecords_32", "pretrain_data.tfrecord*"
        ),
        "vocab_file": os.path.join(args.data_dir, "vocab.txt"),
        "vocab_size": 4096,
        "embedding_size": 64,
        "max_seq_length": 32,
        "model_hparam_overrides": {**MODEL, "max_position_embeddings": 32},
        "train_batch_size": args.batch,
        "learning_rate": 5e-4,
        "num_train_steps": args.steps,
        "num_warmup_steps": args.steps // 10,
        "log_every_n_steps": args.window,
        "save_checkpoints_steps": args.steps,
        "mixed_precision": precision,
        "seed": seed,
    }
    command = [
        sys.executable,
        os.path.join(ROOT, "run_pretraining.py"),
        f"--data-dir={args.data_dir}",
        f"--model-name={name}",
        f"--hparams={json.dumps(hparams)}",
    ]
    with open(f"{hparams['model_dir']}.log", "a", encoding="utf-8") as log:
        subprocess.run(command, check=True, stdout=log, stderr=log)
    path = os.path.join(hparams["model_dir"], "train_log.jsonl")
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows = [row for row in rows if row["step"] % args.window == 0]
    return [row["step"] for row in rows], [row["loss"] for row in rows]


def compare(curves, seeds):
    """One precision's curves against float32's.

    Returns:
      Of the windows of all runs, the share inside float32's range; the largest
      distance from it relative to the loss; the difference of the mean losses
      of the last quarter in standard errors.
    """
    plain = [curves["", seed][1] for seed in range(seeds)]
    low, high = list(map(min, *plain)), list(map(max, *plain))
    last = len(low) * 3 // 4

    def end(losses):
        return statistics.fmean(losses[last:])

    found = {}
    for precision in dict.fromkeys(name for name, _ in curves if name):
        runs = [curves[precision, seed][1] for seed in range(seeds)]
        outside = [
            max(bottom - loss, loss - top, 0.0) / loss
            for run in runs
            for loss, bottom, top in zip(run, low, high, strict=True)
        ]
        ours, theirs = list(map(end, runs)), list(map(end, plain))
        error = (
            (statistics.variance(ours) + statistics.variance(theirs)) / seeds
        ) ** 0.5
        difference = statistics.fmean(ours) - statistics.fmean(theirs)
        found[precision] = {
            "share_inside": outside.count(0.0) / len(outside),
            "farthest_outside": max(outside),
            "end": ours,
            "end_float32": theirs,
            "difference": difference,
            "standard_errors": difference / error,
        }
    return found


def main():
    """Trains and shows."""
    args = parse_args()
    os.makedirs(args.output, exist_ok=True)
    curves = {}
    for seed in range(args.seeds):
        for precision in ("", *args.precisions):
            curves[precision, seed] = curve(args, precision, seed)
    found = compare(curves, args.seeds)
    rows = [
        [
            precision,
            f"{row['share_inside']:.0%}",
            f"{row['farthest_outside']:.2%}",
            f"{statistics.fmean(row['end']):.3f}",
            f"{statistics.fmean(row['end_float32']):.3f}",
            f"{row['standard_errors']:+.1f}",
        ]
        for precision, row in found.items()
    ]
    header = [
        "precision",
        "windows within float32's range",
        "farthest outside",
        "loss of the last quarter",
        "float32's",
        "difference, standard errors",
    ]
    text = (
        f"{args.seeds} seeds each, {args.steps} steps, windows of"
        f" {args.window}:\n\n{comparing.table(header, rows)}"
    )
    named = {
        f"{name or 'float32'}, seed {seed}": points
        for (name, seed), points in curves.items()
    }
    result = {"curves": named, "compared": found, "arguments": vars(args)}
    comparing.write_report(args.output, "precision_curves", result, text)
    comparing.draw_lines(
        os.path.join(args.output, "precision_curves.png"),
        f"Pre-training loss, means of {args.window} steps",
        "step",
        "loss",
        named,
        logarithmic=False,
    )


if __name__ == "__main__":
    main()
