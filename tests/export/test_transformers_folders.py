# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of transformers are exported as trials are."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.commands import export_model
from electra_tf.export.saved_model import make_task_module
from electra_tf.extras.serving.served_model import open_model
from electra_tf.prediction.loading import load_finetuned
from electra_tf.prediction.predictor import Predictor
from tests.transformers_folders import transformers_folder  # noqa: F401

TEXTS = ["the king of the north", "", "a city in time"]
SECOND = ["is that", "for her", ""]


@pytest.mark.parametrize("task", ["reviews", "topics", "grade"])
def test_second_texts_may_be_left_out(task, transformers_folder):  # noqa: F811
    _, folder = transformers_folder(task)
    loaded = load_finetuned(str(folder))
    serve = make_task_module(loaded).text_signatures()["serve_text"]
    key = "scaled" if task == "grade" else "logits"
    texts = tf.constant(TEXTS)
    alone = serve(texts)[key].numpy()
    empty = serve(texts, tf.constant(["", "", ""]))[key].numpy()
    np.testing.assert_array_equal(alone, empty)
    pairs = serve(texts, tf.constant(SECOND))[key].numpy()
    assert np.abs(pairs[0] - alone[0]).max() > 1e-3
    np.testing.assert_allclose(pairs[2], alone[2], atol=1e-5)
    answers = Predictor(loaded)([*zip(TEXTS, SECOND, strict=True)])
    if task == "grade":
        values = [answer["value"] for answer in answers]
        np.testing.assert_allclose(values, pairs, atol=1e-5)
    elif task == "reviews":
        shares = [[*answer["probabilities"].values()] for answer in answers]
        np.testing.assert_allclose(shares, tf.nn.softmax(pairs), atol=1e-5)


@pytest.mark.slow
def test_a_folder_is_exported_by_the_command(
    transformers_folder,  # noqa: F811
    tmp_path,
    capsys,
):
    _, folder = transformers_folder("reviews")
    flags = ["--model", str(folder), "--output_dir", str(tmp_path / "served")]
    export_model.main(export_model.parse_flags(["export_model", *flags]))
    printed = capsys.readouterr().out
    assert "serve_text(text, text_pair)" in printed
    model = open_model(str(tmp_path / "served"))
    assert model.labels == ["bad", "good", "Übermaß"]
    serve = model.signatures["serve_text"]
    assert "text_pair" in serve.defaults
    actual = serve({"text": np.array(TEXTS, object)})
    expected = Predictor.from_pretrained(str(folder))(TEXTS)
    labels = [label.decode() for label in actual["label"]]
    assert labels == [answer["label"] for answer in expected]
    export_model.main(
        export_model.parse_flags(
            ["export_model", "--check", str(tmp_path / "served" / "1")]
        )
    )
