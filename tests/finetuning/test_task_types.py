# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every type of task goes from rows through a model to figures."""

import json

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.finetuning import registry
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
def case(request, tmp_path, finetuning_config):
    description, metric = CASES[request.param]
    kind = description.get("type", "classification")
    text = CONLL if kind == "tagging" else TSV[kind]
    end = "txt" if kind == "tagging" else "tsv"
    for split in ("train", "dev"):
        (tmp_path / f"{split}.{end}").write_text(text)
    files = {split: f"{split}.{end}" for split in ("train", "dev")}
    path = tmp_path / "task.json"
    path.write_text(json.dumps({"name": "t", "files": files, **description}))
    config = finetuning_config("t", task_config=str(path))
    return config, metric


def test_data_head_and_scorer_fit_together(case):
    config, metric = case
    (task,) = registry.get_tasks(config)
    preprocessor = Preprocessor(config, [task])
    train, steps = preprocessor.prepare_train()
    assert steps >= 3
    model = FinetuningModel(config, [task])
    batch = next(iter(train()))
    with tf.GradientTape() as tape:
        loss = model.compute(batch, training=True)["loss"]
    gradients = tape.gradient(loss, model.heads[0].trainable_variables)
    assert np.isfinite(loss) and all(g is not None for g in gradients)
    dev, _ = preprocessor.prepare_predict([task], "dev")
    scorer = task.get_scorer("dev")
    for batch in dev():
        outputs = model.compute(batch, training=False)["t"]
        for row in np.flatnonzero(batch["task_id"].numpy() == 0):
            scorer.update({k: v.numpy()[row] for k, v in outputs.items()})
    figures = dict(scorer.get_results())
    assert metric in figures
    assert np.isfinite(figures["loss"])
    assert task.main_metric in (None, *figures)


def test_trimmed_batches_give_the_same_outputs(case):
    config, _ = case
    (task,) = registry.get_tasks(config)
    dev, _ = Preprocessor(config, [task]).prepare_predict([task], "dev")
    model = FinetuningModel(config, [task])
    (trimmed,) = [b for b in list(dev())[:1]]
    width = trimmed["input_ids"].shape[1]
    assert width == 16 < config.max_seq_length
    whole = {
        name: tf.pad(tensor, [[0, 0], [0, 16]])
        if tensor.shape[1:] == [width]
        else tensor
        for name, tensor in trimmed.items()
    }
    got = model.compute(trimmed, training=False)
    wanted = model.compute(whole, training=False)
    np.testing.assert_allclose(got["loss"], wanted["loss"], rtol=1e-5)
    for name in ("logits", "predictions"):
        if name in got["t"]:
            part = got["t"][name].numpy()
            full = wanted["t"][name].numpy()
            mask = trimmed.get("t_labels_mask")
            if mask is not None:
                keep = mask.numpy() > 0
                part, full = part[keep], full[:, :width][keep]
            np.testing.assert_allclose(part, full, atol=1e-5)
