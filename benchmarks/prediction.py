# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time the prediction of class probabilities; compare with transformers.

One classifier with nearly random weights runs in these forms: a fine-tuned
folder with `Predictor`, its export with `serve_text`, the export's ONNX files
in onnxruntime (both compute a whole batch at once, or groups of 8 rows), and a
Hugging Face folder with AutoTokenizer and PyTorch, which may be compiled. Texts
are sentences of SST; a batch is padded to its longest row. Probabilities are
compared first: those of 8-bit weights may differ by some hundredths. Each turn
has different texts.

  python benchmarks/prediction.py --python=PEER/bin/python --before=../before

The arms of onnxruntime need the extra onnx in the Python of this program.
"""

import importlib.util
import itertools
import json
import os
import shutil
import statistics
import sys
import tempfile

import harness
import numpy as np

# Name of an export -> number of rows that serve_text computes at once (0: all).
SERVED = {"served": 0, "served in groups": 8}
# Name of an arm of onnxruntime -> ONNX file of the export, rows at once.
ONNX = {
    "onnxruntime": ("model", 0),
    "onnxruntime in groups": ("model", 8),
    "onnxruntime int8": ("model_int8", 0),
    "onnxruntime int8 in groups": ("model_int8", 8),
}
TRAINED, COMPARED = 64, 64


def make_forms(args, lines, folder):
    """Make the classifier; return the paths of its forms by name."""
    task = os.path.join(folder, "finetuning_data", "sst")
    os.makedirs(task)
    for split in ("train", "dev"):
        with open(os.path.join(task, f"{split}.tsv"), "w") as file:
            file.writelines(lines[: TRAINED + 1])
    shutil.copyfile(args.vocab_file, os.path.join(folder, "vocab.txt"))
    hparams = {"model_size": args.model_size, "max_seq_length": args.length}
    hparams |= {"task_names": ["sst"], "init_checkpoint": None}
    hparams |= {"do_eval": False, "num_train_epochs": 1}
    # With the usual standard deviation, all texts would get equal outputs.
    hparams["model_hparam_overrides"] = {"initializer_range": 0.08}
    train = [sys.executable, "run_finetuning.py", f"--data-dir={folder}"]
    train += ["--model-name=one", f"--hparams={json.dumps(hparams)}"]
    # The oldest checkout makes the run, so that all checkouts can read it.
    *_, oldest = harness.checkouts(args).values()
    harness.Program(train, oldest).finish()
    run = os.path.join(folder, "models/one/finetuning_models/sst_model_1")
    paths = {"run": run, "huggingface": os.path.join(folder, "huggingface")}

    def make(root, name, *arguments):
        command = [*harness.module_command(root, name), *arguments]
        harness.Program(command, root).finish()

    if _has_onnx():
        paths["onnx"] = os.path.join(folder, "onnx")
        arguments = ("--model", run, "--output_dir", paths["onnx"])
        make(harness.ROOT, "export_model", *arguments, "--onnx", "--int8")
    for checkout, root in harness.checkouts(args).items():
        for form, rows in SERVED.items():
            export_dir = paths[f"{form}, {checkout}"] = tempfile.mkdtemp(
                dir=folder
            )
            arguments = ("--model", run, "--output_dir", export_dir)
            make(root, "export_model", *arguments, f"--rows_at_once={rows}")
    arguments = (run, paths["huggingface"], "--output_format=huggingface")
    make(
        harness.ROOT, "convert_checkpoint", *arguments, "--drop_unrepresentable"
    )
    save_head(paths)
    return paths


def _has_onnx():
    return all(map(importlib.util.find_spec, ("tf2onnx", "onnxruntime")))


def save_head(paths):
    """Save the head as arrays; transformers' own head has different layers."""
    import tensorflow as tf

    reader, tensors = tf.train.load_checkpoint(paths["run"]), {}
    for key in reader.get_variable_to_shape_map():
        name = key.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE")
        name = name.replace(".S", "/")
        if name.startswith("model/") and "/sst/" in name:
            tensors[os.path.basename(name)] = reader.get_tensor(key)
    np.savez(os.path.join(paths["huggingface"], "head.npz"), **tensors)


def planned_arms(args, paths):
    arms = {}
    kinds, more = ("ours", "transformers"), {"paths": paths}
    kinds = (*kinds, "transformers compiled")
    planned = harness.plan(args, kinds, **more, length=args.length)
    if "onnx" in paths and (not args.arms or "ours" in args.arms):
        _, spec = planned["ours"]
        for name, (file, rows) in ONNX.items():
            path = os.path.join(paths["onnx"], "1", "onnx", f"{file}.onnx")
            onnx = {**spec, "task": "OnnxRuntime", "path": path}
            arms[name] = ("ours", {**onnx, "rows_at_once": rows})
    for name, (kind, spec) in planned.items():
        if kind == "transformers":
            arms[name] = (kind, {**spec, "task": "Answering"})
            continue
        arms[f"Predictor, {name}"] = (kind, {**spec, "task": "Predictor"})
        for form in SERVED:
            path = paths.get(f"{form}, {name}", paths[f"{form}, ours"])
            served = {**spec, "task": "Served", "path": path}
            arms[f"{form}, {name}"] = (kind, served)
    return arms


def measure(args, texts, paths):
    with harness.Arms(args, planned_arms(args, paths)) as arms:
        about = arms.ask_all("describe")
        differences = compare(arms, texts[:COMPARED])
        seconds, stream = {}, itertools.cycle(texts[COMPARED:])
        for size in map(int, args.batches.split(",")):
            count = max(1, args.texts // size)
            asked = turns_of(stream, size, count, len(arms))

            def run(arm, asked=asked):
                return statistics.median(arm.ask("run", batches=next(asked)))

            seconds[size] = harness.take_turns(arms, run, args.repeats, 2)
        return {
            "about": about,
            "largest_difference": differences,
            "seconds": seconds,
            "memory": arms.ask_all("memory"),
        }, arms.failed


def compare(arms, texts):
    """Return each arm's largest difference from the first arm's output."""
    answers = arms.ask_all("probabilities", texts=texts)
    first = next(iter(answers.values()))
    if len({round(row[0], 6) for row in first}) < len(texts) // 2:
        raise RuntimeError(
            "the model gives most texts the same probabilities, so the arms"
            " cannot be compared. Raise initializer_range"
        )
    differences = {n: np.subtract(row, first) for n, row in answers.items()}
    return {
        n: float(np.abs(difference).max())
        for n, difference in differences.items()
    }


def turns_of(stream, size, count, arms):
    """Yield the batches of each arm's turn; all arms of a turn share texts."""
    while True:
        turn = [list(itertools.islice(stream, size)) for _ in range(count)]
        yield from [turn] * arms


def tables(result):
    rows, result["faster"] = [], {}
    for size, seconds in result["seconds"].items():
        for name, runs in seconds.items():
            spread = harness.Spread.of([1000 * run for run in runs])
            row = {"batch": size, "arm": name, "ms per call": spread.shown(2)}
            row["texts/s"] = f"{1000 * size / spread.median:.0f}"
            before = name.replace(", ours", ", before")
            bases = {"transformers": "transformers", "before": before}
            bases["compiled"] = "transformers compiled"
            for what, base in bases.items():
                row[f"faster than {what}"] = ""
                if base in seconds and base != name:
                    ratio = harness.ratios(seconds[base], runs)
                    result["faster"][f"{name}, {size}, than {base}"] = ratio
                    row[f"faster than {what}"] = ratio.shown(2, "x")
            rows.append(row)
    more = []
    for name, about in result["about"].items():
        row = {"arm": name, "start, s": f"{about['start']:.1f}"}
        row["peak, MB"] = f"{result['memory'][name]['peak']:.0f}"
        row["difference"] = f"{result['largest_difference'][name]:.1e}"
        more.append(row)
    return rows, more


def main():
    parser = harness.parser(__doc__, repeats=9)
    add = parser.add_argument
    add(
        "--data_dir",
        default=harness.DATA,
        help="folder that contains finetuning_data/sst",
    )
    add("--vocab_file", default=harness.VOCAB)
    add("--model_size", default="small")
    add("--length", type=int, default=128, help="maximum wordpieces of a text")
    add("--batches", default="1,32", help="batch sizes, separated by commas")
    add("--texts", type=int, default=192, help="texts of each turn")
    args = parser.parse_args()
    path = os.path.join(args.data_dir, "finetuning_data", "sst", "train.tsv")
    with open(path, encoding="utf-8") as file:
        lines = list(file)
    texts = [line.split("\t")[0].strip() for line in lines[1:]]
    with tempfile.TemporaryDirectory() as folder:
        paths = make_forms(args, lines, folder)
        result, failed = measure(args, texts, paths)
    title = f"Raw text to probabilities, {args.model_size}, SST, {args.texts}"
    title += f" texts a turn, {args.threads} threads"
    harness.report(args, title, result, *tables(result), failed=failed)


if __name__ == "__main__":
    main()
