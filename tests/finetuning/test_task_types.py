# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every type of task goes from rows through a model to figures."""

import re

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.finetuning.model import FinetuningModel
from electra_tf.finetuning.preprocessing import Preprocessor

TEXT = {"text_a": "text", "label": "label"}
TSV = {
    "classification": "text\tlabel\na b\tx\nc\ty\nd\tz\na\tx\nb\ty\n",
    "regression": "text\tlabel\na b\t1\nc\t2.5\nd\t4\na\t3\nb\t2\n",
    "multilabel": "text\tlabel\na b\tx,y\nc\ty\nd\t\na\tz\nb\tx\n",
}
CONLL = "a B-X\nb I-X\nc O\n\nd O\ne B-Y\n\n"
CASES = {
    "classification": ({"columns": TEXT}, "accuracy"),
    "f1": ({"columns": TEXT, "metric": "f1"}, "f1"),
    "mcc": ({"columns": TEXT, "metric": "mcc"}, "mcc"),
    "regression": ({"columns": TEXT, "type": "regression"}, "pearson"),
    "multilabel": (
        {"columns": TEXT, "type": "multilabel", "metric": "macro_f1"},
        "macro_f1",
    ),
    "spans": ({"type": "tagging"}, "f1"),
    "words": ({"type": "tagging", "tags": "words"}, "accuracy"),
}


@pytest.fixture(params=sorted(CASES))
def case(request, describe):
    """The task and its metric's name."""
    description, metric = CASES[request.param]
    kind = description.get("type", "classification")
    text = CONLL if kind == "tagging" else TSV[kind]
    end = "txt" if kind == "tagging" else "tsv"
    files = {f"{split}.{end}": text for split in ("train", "dev")}
    return describe(description, files), metric


def test_data_head_and_scorer_fit_together(case, scored):
    task, metric = case
    preprocessor = Preprocessor(task.config, [task])
    train, steps = preprocessor.prepare_train()
    assert steps >= 3
    model = FinetuningModel(task.config, [task])
    batch = next(iter(train()))
    with tf.GradientTape() as tape:
        loss = model.compute(batch, training=True)["loss"]
    gradients = tape.gradient(loss, model.heads[0].trainable_variables)
    assert np.isfinite(loss) and all(g is not None for g in gradients)
    scorer = scored(model, preprocessor, task)
    figures = dict(scorer.get_results())
    assert metric in figures
    assert np.isfinite(figures["loss"])
    assert task.main_metric in (None, *figures)
    # A wrong `keep_best` is known before anything is computed.
    assert {*figures, *dict(scorer.get_details())} == set(scorer.figures)


LABELS = {
    "classification": (
        {"columns": TEXT},
        TSV["classification"],
        "text\tlabel\na\tx\nb\tnew\nc\tnew\n",
        "2 of 3 .*'new' 2",
    ),
    "multilabel": (
        {"columns": TEXT, "type": "multilabel"},
        TSV["multilabel"],
        "text\tlabel\na\tx,new\n",
        "1 of 2 .*'new' 1",
    ),
    "tagging": (
        {"type": "tagging"},
        CONLL,
        "a S-NEW\nb O\nc S-NEW\n\n",
        "2 of 3 .*'S-NEW' 2",
    ),
    "none": (
        {"columns": TEXT},
        TSV["classification"],
        TSV["classification"],
        None,
    ),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("strict", [False, True])
def test_labels_of_dev_alone_are_counted(name, strict, describe, capsys):
    description, train, dev, told = LABELS[name]
    end = "txt" if name == "tagging" else "tsv"
    files = {f"train.{end}": train, f"dev.{end}": dev}
    task = describe(description, files, strict=strict)
    # The second time from records of the first.
    for _ in range(1 if strict else 2):
        preprocessor = Preprocessor(task.config, [task])
        preprocessor.prepare_train()
        if strict and told:
            with pytest.raises(UserError, match=f"{told}.*--strict"):
                preprocessor.prepare_predict([task], "dev")
            continue
        preprocessor.prepare_predict([task], "dev")
        preprocessor.prepare_predict([task], "dev")
        said = re.findall("WARNING: .*", capsys.readouterr().out)
        assert len(said) == bool(told)
        assert not told or re.search(f"mine: {told}", said[0])
