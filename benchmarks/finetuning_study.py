# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes one model in two ways, with several seeds, task by task.

Every way and task is a `run_finetuning.py` of its own, so that an interrupted
study continues. Written beside each other: the mean of the main figure, its
standard deviation, the difference of the means and how many standard errors
of the difference (Welch) it amounts to; as table, JSON and PNG. With the
default question, whether pre-training helps:

  make pretrain-reference
  ln -s /path/of/finetuning_data runs/finetuning_data
  python benchmarks/finetuning_study.py --model_name=reference \
      --tasks=cola,mrpc,rte --num_trials=5 --output=runs/study

Any other pair of hparams can be asked about:

  python benchmarks/finetuning_study.py --model_name=reference \
      --tasks=mrpc,chunk --num_trials=5 --output=runs/decay \
      --first '{"fix_layerwise_lr_decay": true}' \
      --second '{"fix_layerwise_lr_decay": false}'
"""

import argparse
import json
import math
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

# Of the sizes of a pre-trained model, those that random weights need told.
SIZES = (
    "model_size",
    "embedding_size",
    "vocab_size",
    "model_hparam_overrides",
    "do_lower_case",
    "strip_accents",
)
WAYS = ("first", "second")


def parse_args():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data_dir", default="runs")
    parser.add_argument("--model_name", default="reference")
    parser.add_argument("--tasks", required=True, help="comma-separated")
    parser.add_argument("--num_trials", type=int, default=5)
    parser.add_argument("--output", required=True, help="a directory")
    parser.add_argument(
        "--hparams", default="{}", help="JSON, of both ways, all tasks"
    )
    parser.add_argument(
        "--task_hparams", default="{}", help="JSON: task -> hparams"
    )
    parser.add_argument("--first", default="{}", help="JSON hparams")
    parser.add_argument(
        "--second",
        help="JSON hparams; without it: random weights of the same sizes",
    )
    parser.add_argument("--first_name", default="pre-trained")
    parser.add_argument("--second_name", default="random weights")
    return parser.parse_args()


def random_weights(args):
    """Hparams that make a model of the same sizes from nothing."""
    path = os.path.join(args.data_dir, "models", args.model_name, "config.json")
    with open(path, encoding="utf-8") as file:
        trained = json.load(file)
    sizes = {name: trained[name] for name in SIZES if name in trained}
    return {**sizes, "init_checkpoint": None}


def fine_tune(args, way, task, hparams):
    """Runs one way and task; returns its main figure's name and values."""
    folder = os.path.abspath(os.path.join(args.output, way, task))
    os.makedirs(folder, exist_ok=True)
    results = os.path.join(folder, "results.json")
    hparams = {
        "seed": 0,
        **json.loads(args.hparams),
        **json.loads(args.task_hparams).get(task, {}),
        **hparams,
        "task_names": [task],
        "num_trials": args.num_trials,
        "model_dir": os.path.join(folder, "model"),
        "preprocessed_data_dir": os.path.abspath(
            os.path.join(args.output, "tfrecords", task)
        ),
        "results_json": results,
        "results_txt": os.path.join(folder, "results.txt"),
        "results_pkl": os.path.join(folder, "results.pkl"),
    }
    command = [
        sys.executable,
        os.path.join(ROOT, "run_finetuning.py"),
        f"--data-dir={args.data_dir}",
        f"--model-name={args.model_name}",
        f"--hparams={json.dumps(hparams)}",
    ]
    with open(os.path.join(folder, "log.txt"), "a", encoding="utf-8") as log:
        subprocess.run(command, check=True, stdout=log, stderr=log)
    with open(results, encoding="utf-8") as file:
        return read_results(json.load(file), task)


def read_results(found, task):
    """The main figure's name and its value in each trial."""
    from electra_tf.metrics.trials import main_figure

    figures = [trial["results"][task] for trial in found["trials"]]
    name = main_figure(list(figures[0]))
    collapsed = sum(task in trial["collapsed"] for trial in found["trials"])
    return name, [figure[name] for figure in figures], collapsed


def compare(first, second):
    """Difference of two means, and its size in standard errors (Welch)."""
    from electra_tf.metrics.trials import describe

    one, two = describe(first), describe(second)
    error = math.sqrt(one.std**2 / len(first) + two.std**2 / len(second))
    difference = one.mean - two.mean
    return {
        "means": [one.mean, two.mean],
        "stds": [one.std, two.std],
        "difference": difference,
        "standard_error": error,
        "standard_errors": difference / error if error else None,
    }


def table(result):
    """Markdown lines."""
    names = result["ways"]
    lines = [
        f"| task | figure | runs | {names[0]} | {names[1]} | difference |"
        " standard errors | one answer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task, row in result["tasks"].items():
        cells = [
            f"{mean:.2f} ± {std:.2f}"
            for mean, std in zip(row["means"], row["stds"], strict=True)
        ]
        size = row["standard_errors"]
        lines.append(
            f"| {task} | {row['figure']} | {len(row['values'][0])} |"
            f" {cells[0]} | {cells[1]} | {row['difference']:+.2f} |"
            f" {'-' if size is None else f'{size:+.1f}'} |"
            f" {row['collapsed'][0]}, {row['collapsed'][1]} |"
        )
    return lines


def draw(result, path):
    """A picture: each run a dot, each mean a bar."""
    from matplotlib.figure import Figure

    tasks = list(result["tasks"])
    columns = min(4, len(tasks))
    rows = -(-len(tasks) // columns)
    figure = Figure(
        figsize=(2.6 * columns + 0.6, 2.8 * rows + 0.4), layout="constrained"
    )
    for index, task in enumerate(tasks):
        row = result["tasks"][task]
        axes = figure.add_subplot(rows, columns, index + 1)
        for place, values in enumerate(row["values"]):
            color = ("tab:blue", "tab:orange")[place]
            spread = [place + 0.06 * (i - len(values) / 2) for i in range(99)]
            axes.plot(spread[: len(values)], values, "o", color=color, ms=4)
            mean = row["means"][place]
            axes.hlines(mean, place - 0.3, place + 0.3, color=color)
        axes.set_xticks([0, 1], result["ways"], fontsize=8)
        axes.set_xlim(-0.6, 1.6)
        axes.set_title(f"{task}: {row['figure']}", fontsize=10)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def main():
    """Runs what is left of the study and shows it."""
    args = parse_args()
    second = random_weights(args)
    if args.second is not None:
        second = json.loads(args.second)
    ways = dict(zip(WAYS, (json.loads(args.first), second), strict=True))
    result = {
        "ways": [args.first_name, args.second_name],
        "command": sys.argv,
        "tasks": {},
    }
    for task in args.tasks.split(","):
        found = [fine_tune(args, way, task, ways[way]) for way in WAYS]
        values = [values for _, values, _ in found]
        result["tasks"][task] = {
            "figure": found[0][0],
            "values": values,
            "collapsed": [collapsed for *_, collapsed in found],
            **compare(*values),
        }
        print("\n".join(table(result)), flush=True)
        path = os.path.join(args.output, "study")
        with open(f"{path}.json", "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
        with open(f"{path}.md", "w", encoding="utf-8") as file:
            file.write("\n".join(table(result)) + "\n")
        draw(result, f"{path}.png")


if __name__ == "__main__":
    main()
