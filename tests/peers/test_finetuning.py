# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each project evaluates the other's fine-tuned models with equal results."""

import io
import json
import pickle
import shutil

import numpy as np
import pytest

from configure.finetuning import FinetuningConfig
from electra_tf.checkpoints.formats import open_weights
from electra_tf.checkpoints.tf1 import write_tf1
from electra_tf.finetuning import runner
from electra_tf.training.console import Console

TASKS = ("cola", "sts", "mnli", "chunk", "squad", "triviaqa")
ROWS = {
    "cola/train.tsv": 40,
    "cola/dev.tsv": 21,
    "mnli/train.tsv": 41,
    "mnli/dev_matched.tsv": 21,
    "chunk/train.txt": 1000,
    "chunk/dev.txt": 500,
    "triviaqa/train.jsonl": 4,
    "triviaqa/dev.jsonl": 4,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, reference_dir):
    """Write the first examples of every task; missing files repeat others."""
    folder = tmp_path_factory.mktemp("peers")
    source, data = reference_dir / "data", folder / "finetuning_data"
    shutil.copy(source / "vocab/vocab.txt", folder)
    for task in TASKS:
        (data / task).mkdir(parents=True)
    for name, count in ROWS.items():
        lines = (source / "finetuning_data" / name).open().readlines()
        (data / name).write_text("".join(lines[:count]))
    shutil.copy(data / "chunk/dev.txt", data / "chunk/test.txt")
    rows = (data / "cola/dev.tsv").read_text().splitlines()
    texts = [row.split("\t")[3] for row in rows]
    pairs = [f"{i}\t{t}\t{texts[i - 1]}" for i, t in enumerate(texts)]
    scored = [f"{pair}\t{i % 11 / 2}" for i, pair in enumerate(pairs)]
    for name, lines in (
        ("cola/test.tsv", pairs),
        ("sts/test.tsv", pairs),
        ("sts/train.tsv", scored),
        ("sts/dev.tsv", scored),
    ):
        (data / name).write_text("\n".join(["header", *lines, ""]))
    # The original answers test questions only if they are those of dev.
    for split, of in (("train", "train"), ("dev", "dev"), ("test", "dev")):
        path = source / f"finetuning_data/squad/{of}.json"
        squad = json.loads(path.read_text())
        squad["data"] = squad["data"][:1]
        squad["data"][0]["paragraphs"] = squad["data"][0]["paragraphs"][:2]
        (data / f"squad/{split}.json").write_text(json.dumps(squad))
    return folder


@pytest.fixture(scope="module")
def sides(original, folder, tiny_finetuning):
    """Return pairs of folders: the trained models, and the same evaluated.

    The other side evaluates: first this project, then the original.
    """
    models, trained = folder / "models", "finetuning_models"

    def hparams(task, do_train):
        return {
            **tiny_finetuning,
            "vocab_file": str(folder / "vocab.txt"),
            "vocab_size": 30522,
            "task_names": [task],
            "do_train": do_train,
            "write_test_outputs": task in ("cola", "sts", "squad"),
            "learning_rate": 5e-3,
            "max_seq_length": 64,
            "max_query_length": 16,
            "doc_stride": 32,
            "beam_size": 5,
            "n_best_size": 5,
        }

    def job(name, task, do_train):
        base = {"name": name, "data_dir": str(folder)}
        return "finetune", {**base, "hparams": hparams(task, do_train)}

    def run(name, task, do_train):
        settings = hparams(task, do_train)
        config = FinetuningConfig.create(name, str(folder), **settings)
        runner.run(config, Console(io.StringIO()))

    original(*(job("theirs", task, True) for task in TASKS))
    evaluated_here = models / "theirs_here"
    evaluated_by_original = models / "ours_there"
    shutil.copytree(models / "theirs" / trained, evaluated_here / trained)
    for task in TASKS:
        run("theirs_here", task, False)
        run("ours", task, True)
        trial = f"{trained}/{task}_model_1"
        weights = open_weights(str(models / "ours" / trial))
        converted = evaluated_by_original / trial
        converted.mkdir(parents=True)
        write_tf1(weights, str(converted / "model.ckpt-9"))
    paths = [predictions(evaluated_here, task) for task in ("cola", "sts")]
    reads = [("read_predictions", {"path": str(path)}) for path in paths]
    original(*(job("ours_there", task, False) for task in TASKS), *reads)
    return {
        "by_the_original": (models / "theirs", evaluated_here),
        "by_this_project": (models / "ours", evaluated_by_original),
    }


def predictions(model, task):
    return model / f"test_predictions/{task}_test_1_predictions.pkl"


TRAINED = ("by_the_original", "by_this_project")


@pytest.mark.parametrize("trained", TRAINED)
@pytest.mark.parametrize("task", TASKS)
def test_both_sides_give_a_model_equal_scores(sides, task, trained):
    paths = [m / f"results/{task}_results.pkl" for m in sides[trained]]
    trials = [pickle.loads(path.read_bytes()) for path in paths]
    assert [len(results) for results in trials] == [1, 1]
    a, b = (
        {name: float(value) for name, value in results[0][task].items()}
        for results in trials
    )
    print(f"trained {trained}, {task}: {a} and {b}")
    assert a == pytest.approx(b, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("trained", TRAINED)
@pytest.mark.parametrize(
    "name",
    [
        "results/squad_qa/squad_preds.json",
        "results/triviaqa_qa/triviaqa_preds.json",
        "results/squad_qa/squad_null_odds.json",
        "test_predictions/squad_test_1_predictions.pkl",
    ],
)
def test_answers_and_their_odds_are_equal(sides, name, trained):
    a, b = (json.loads((m / name).read_text()) for m in sides[trained])
    print(f"trained {trained}, {name}: {len(a)} questions")
    assert a == (pytest.approx(b, abs=1e-4) if "odds" in name else b)


@pytest.mark.parametrize("task", ["cola", "sts"])
def test_the_original_reads_predictions_equal_to_its_own(sides, task):
    original, port = (
        predictions(model, task) for model in sides["by_the_original"]
    )
    expected = pickle.loads(original.read_bytes())
    read = json.loads(port.with_suffix(".json").read_text())
    assert sorted(map(int, read)) == sorted(expected)
    errors = [np.abs(read[str(i)] - x).max() for i, x in expected.items()]
    print(f"{task}: {len(read)} predictions, within {max(errors):.1e}")
    assert len(read) == 21 and max(errors) < 1e-5
