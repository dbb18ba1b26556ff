# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning and evaluation with length buckets against a fixed length.

The same model, data and order of batches; the arms take turns. In training
both see the same batches, padded to their longest row or to max_seq_length;
in evaluation the bucketed arm also regroups rows by length. Printed: examples
(questions make several windows, which are what is counted) per second of each
arm, and the median of the ratios of runs that followed each other.

  python benchmarks/finetuning_speed.py --task=sst --max_seq_length=128 \
      --data_dir=runs --vocab_file=../shared/data/vocab/vocab.txt \
      --repeats=5 --output=runs/performance

Evaluation alone, of as many questions as there is time for, spread evenly
over the paragraphs of the file:

  python benchmarks/finetuning_speed.py --task=squad --max_seq_length=512 \
      --data_dir=runs --vocab_file=../shared/data/vocab/vocab.txt \
      --questions=600 --only=evaluate --repeats=3 --output=runs/performance
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import comparing  # noqa: E402

ARMS = ("fixed", "buckets")
PARTS = ("train", "evaluate")


def parse_args():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--task", default="sst")
    parser.add_argument("--data_dir", default="runs")
    parser.add_argument("--vocab_file", required=True)
    parser.add_argument("--model_size", default="small")
    parser.add_argument("--max_seq_length", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--steps", type=int, default=30, help="of training, in each repeat"
    )
    parser.add_argument("--eval_batch_size", type=int, default=32)
    parser.add_argument("--only", choices=PARTS, help="default: both")
    parser.add_argument(
        "--questions",
        type=int,
        default=0,
        help="of a SQuAD file's, at most; 0: all",
    )
    parser.add_argument("--json", default="", help="file to write")
    parser.add_argument(
        "--output", default="", help="directory of JSON, Markdown, PNG"
    )
    return parser.parse_args()


class Arm:
    """A model in training, and its evaluation, at one setting.

    Args:
      args: the command line.
      buckets: whether batches are as long as their longest row.
      data_dir: holds finetuning_data.
      cache: directory of the records.
    """

    def __init__(self, args, buckets, data_dir, cache):
        import tensorflow as tf

        from configure.finetuning import FinetuningConfig
        from electra_tf.finetuning import build, registry, scoring
        from electra_tf.finetuning.preprocessing import Preprocessor

        self.config = FinetuningConfig.create(
            "benchmark",
            data_dir,
            model_size=args.model_size,
            task_names=[args.task],
            vocab_file=args.vocab_file,
            init_checkpoint=None,
            eval_batch_size=args.eval_batch_size,
            max_seq_length=args.max_seq_length,
            length_buckets=buckets,
            preprocessed_data_dir=cache,
            log_examples=False,
        )
        self.tasks = registry.get_tasks(self.config)
        preprocessor = Preprocessor(self.config, self.tasks)
        self.model = build.build_model(self.config, self.tasks)
        strategy = tf.distribute.get_strategy()
        self._evaluator = scoring.Evaluator(
            self.config, self.model, self.tasks, preprocessor, strategy
        )
        if args.only != "evaluate":
            self._make_training(preprocessor, strategy)

    def _make_training(self, preprocessor, strategy):
        import orbit

        from electra_tf.finetuning import build, scoring
        from electra_tf.finetuning.scoring import FinetuningLoop

        batches, num_steps = preprocessor.prepare_train()
        dataset = batches(seed=0)
        self._train = FinetuningLoop(
            parts=1,
            element_spec=dataset.element_spec,
            compute=lambda features, seed, training: scoring.with_total_loss(
                self.model.compute(features, training, seed)
            ),
            variables=list(self.model.trainable_variables),
            optimizer=build.build_optimizer(self.config, self.model, num_steps),
            iterator=iter(dataset),
            step=orbit.utils.create_global_step(),
            seed=0,
            strategy=strategy,
            step_values=lambda features, outputs: {},
        )

    def train(self, steps):
        """Trains; returns examples per second."""
        import tensorflow as tf

        started = time.perf_counter()
        self._train.train(tf.constant(steps))
        seconds = time.perf_counter() - started
        return steps * self.config.train_batch_size / seconds

    def evaluate(self):
        """Evaluates the dev set; returns rows per second."""
        rows = 0

        def count(row):
            nonlocal rows
            del row
            rows += 1

        started = time.perf_counter()
        self._evaluator.predict(self.tasks[0], "dev", count)
        return rows / (time.perf_counter() - started)


def measure(args):
    """Lets the arms take turns; examples per second by part and arm."""
    turns = {
        "train": lambda arm: arm.train(args.steps),
        "evaluate": lambda arm: arm.evaluate(),
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        data_dir = args.data_dir
        if args.questions:
            data_dir = fewer_questions(args, folder)
        arms = {
            name: Arm(args, name == "buckets", data_dir, folder)
            for name in ARMS
        }
        for part in [args.only] if args.only else PARTS:
            found[part] = comparing.take_turns(arms, turns[part], args.repeats)
    return found


def fewer_questions(args, folder):
    """Makes a data directory whose SQuAD files have fewer questions."""
    inner = os.path.join("finetuning_data", args.task)
    os.makedirs(os.path.join(folder, inner))
    for name in ("train.json", "dev.json"):
        source = os.path.join(args.data_dir, inner, name)
        with open(source, encoding="utf-8") as file:
            content = json.load(file)
        paragraphs = [
            paragraph
            for article in content["data"]
            for paragraph in article["paragraphs"]
        ]
        total = sum(len(paragraph["qas"]) for paragraph in paragraphs)
        wanted, taken = args.questions, 0
        if wanted >= total:
            paragraphs = []  # All of them.
        for number, paragraph in enumerate(paragraphs, start=1):
            # Spread evenly; what one has too few of, the next ones give.
            share = wanted * number // len(paragraphs) - taken
            paragraph["qas"] = paragraph["qas"][:share]
            taken += len(paragraph["qas"])
        with open(
            os.path.join(folder, inner, name), "w", encoding="utf-8"
        ) as file:
            json.dump(content, file)
    vocab = os.path.join(folder, "vocab.txt")
    shutil.copyfile(args.vocab_file, vocab)
    return folder


def main():
    """Measures and shows."""
    args = parse_args()
    found = measure(args)
    result = {
        "arguments": vars(args),
        "machine": comparing.machine(),
        "versions": comparing.versions("tensorflow", "tf_keras"),
        "examples_per_second": found,
        "ratios": {},
    }
    title = f"{args.task}, {args.model_size}, length {args.max_seq_length}"
    rows = []
    for part, rates in found.items():
        # Of rates: above is ours.
        ratio = comparing.ratios(rates["buckets"], rates["fixed"])
        result["ratios"][part] = ratio.median
        medians = [statistics.median(rates[name]) for name in ARMS]
        rows.append(
            [part, *(f"{rate:.1f}" for rate in medians), ratio.shown(2, "x")]
        )
    header = ["", *(f"{name}, rows/s" for name in ARMS), "buckets are faster"]
    text = f"{title}: {args.repeats} turns\n\n{comparing.table(header, rows)}"
    name = f"finetuning_speed_{args.task}_{args.max_seq_length}"
    comparing.write_report(args.output, name, result, text)
    if args.output:
        for part, rates in found.items():
            path = os.path.join(args.output, f"{name}_{part}.png")
            comparing.draw_bars(path, f"{part}: {title}", "rows/s", rates)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
