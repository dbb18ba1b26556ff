# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning and evaluation with length buckets against a fixed length.

The same model, data and order of batches; the arms take turns. In training
both see the same batches, padded to their longest row or to max_seq_length;
in evaluation the bucketed arm also regroups rows by length. Printed: examples
per second of each arm, and the median of the ratios of runs that followed
each other.

  python benchmarks/finetuning_speed.py --task=sst --max_seq_length=128 \
      --data_dir=runs --vocab_file=../shared/data/vocab/vocab.txt \
      --repeats=5 --json=sst.json
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

ARMS = ("fixed", "buckets")


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
    parser.add_argument("--json", default="")
    return parser.parse_args()


class Arm:
    """A model in training, and its evaluation, at one setting.

    Args:
      args: the command line.
      buckets: whether batches are as long as their longest row.
      cache: directory of the records.
    """

    def __init__(self, args, buckets, cache):
        import orbit
        import tensorflow as tf

        from configure.finetuning import FinetuningConfig
        from electra_tf.finetuning import build, registry, scoring
        from electra_tf.finetuning.preprocessing import Preprocessor
        from electra_tf.finetuning.steps import FinetuningLoop

        self.config = FinetuningConfig.create(
            "benchmark",
            args.data_dir,
            model_size=args.model_size,
            task_names=[args.task],
            vocab_file=args.vocab_file,
            init_checkpoint=None,
            max_seq_length=args.max_seq_length,
            length_buckets=buckets,
            preprocessed_data_dir=cache,
            log_examples=False,
        )
        self.tasks = registry.get_tasks(self.config)
        preprocessor = Preprocessor(self.config, self.tasks)
        batches, num_steps = preprocessor.prepare_train()
        self.model = build.build_model(self.config, self.tasks)
        dataset = batches(seed=0)
        strategy = tf.distribute.get_strategy()
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
        self._evaluator = scoring.Evaluator(
            self.config, self.model, self.tasks, preprocessor, strategy
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
    """Lets the arms take turns."""
    with tempfile.TemporaryDirectory() as cache:
        arms = {name: Arm(args, name == "buckets", cache) for name in ARMS}
        found = {
            what: {name: [] for name in ARMS} for what in ("train", "evaluate")
        }
        for arm in arms.values():
            arm.train(3)
            arm.evaluate()
        for _ in range(args.repeats):
            for name, arm in arms.items():
                found["train"][name].append(arm.train(args.steps))
        for _ in range(args.repeats):
            for name, arm in arms.items():
                found["evaluate"][name].append(arm.evaluate())
    return found


def main():
    """Measures and shows."""
    args = parse_args()
    found = measure(args)
    result = {
        "arguments": vars(args),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_average": os.getloadavg(),
        "examples_per_second": found,
        "ratios": {},
    }
    print(f"{args.task}, {args.model_size}, length {args.max_seq_length}")
    for what, rates in found.items():
        pairs = zip(rates["buckets"], rates["fixed"], strict=True)
        ratios = [ours / fixed for ours, fixed in pairs]
        result["ratios"][what] = statistics.median(ratios)
        medians = {name: statistics.median(rates[name]) for name in ARMS}
        print(
            f"{what:9} fixed {medians['fixed']:8.1f}/s, buckets"
            f" {medians['buckets']:8.1f}/s: {result['ratios'][what]:.2f}x"
            f" ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
