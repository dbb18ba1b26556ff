# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files with 8-bit weights: their outputs, sizes and scores."""

import collections
import os
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export import conversions, formats
from electra_tf.export.card import check_card, render, write_card
from electra_tf.export.quantization import quantize
from electra_tf.export.saved_model import export, make_task_module
from electra_tf.export.signatures import Inputs
from electra_tf.files.json_files import read_json
from electra_tf.prediction.loading import load_finetuned
from tests.conftest import refused

DATA = "the O\nking B-PER\n\nof O\nnorth B-LOC\ncity I-LOC\n\n"
# In smaller models the graph would take most of the file.
SETTINGS = {
    "max_query_length": 12,
    "doc_stride": 16,
    "beam_size": 5,
    "embedding_size": 128,
    "model_hparam_overrides": {
        "hidden_size": 128,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "intermediate_size": 512,
        "max_position_embeddings": 512,
    },
}
LOGITS = {
    "reviews": "logits",
    "names": "logits",
    "facts": "start_logits",
}


@pytest.fixture(scope="module", params=["onnx", "lite"])
def kind(request):
    if request.param == "onnx":
        reason = "needs the extra onnx"
        pytest.importorskip("tf2onnx", reason=reason)
        pytest.importorskip("onnxruntime", reason=reason)
    return request.param


@pytest.fixture(scope="module")
def written(kind, finetuned_folder, tmp_path_factory):
    """Return a factory of module, float32 file and 8-bit file of a model."""
    made = {}

    def write(name):
        if name not in made:
            loaded = load_finetuned(finetuned_folder(name, **SETTINGS))
            module = make_task_module(loaded)
            folder = tmp_path_factory.mktemp(name)
            names = ("model.onnx", "model_int8.onnx")
            if kind == "onnx":
                conversions.write_onnx(module, str(folder), with_int8=True)
            else:
                names = ("model_float.tflite", "model_dynamic.tflite")
                conversions.write_lite(
                    module, str(folder), ["float", "dynamic"]
                )
            made[name] = (module, *(str(folder / kind / n) for n in names))
        return made[name]

    return write


def _inputs(module, shape=(4, 24)):
    ids = np.random.default_rng(3).integers(5, 200, shape, np.int32)
    ids[0, 15:] = 0
    mask = (ids > 0).astype(np.int32)
    segments = mask.copy()
    segments[:, :6] = 0
    if module.ALL_SECOND:
        segments = mask
    return Inputs(ids, mask, segments.astype(np.int32))


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGITS)
def test_8_bit_outputs_are_near_those_of_float32(name, written):
    module, float_path, int8_path = written(name)
    inputs = _inputs(module)
    real = inputs.input_mask > 0
    expected, outputs = (
        conversions.runner(path)(inputs) for path in (float_path, int8_path)
    )
    values, others = expected[LOGITS[name]], outputs[LOGITS[name]]
    if values.shape[:2] == real.shape:
        # Positions that cannot hold an answer have -1000.
        allowed = real & (values.reshape(*real.shape, -1)[..., 0] > -500)
        values, others = values[allowed], others[allowed]
    # Large random weights magnify rounding more than trained ones do.
    assert np.abs(values - others).max() > 0
    assert np.abs(values - others).mean() < 0.2 * values.std()
    assert np.corrcoef(values.ravel(), others.ravel())[0, 1] > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGITS)
def test_weights_are_stored_in_8_bits(name, written, kind):
    _, float_path, int8_path = written(name)
    float_bytes, int8_bytes = map(os.path.getsize, (float_path, int8_path))
    assert int8_bytes < 0.75 * float_bytes
    described = conversions.describe_weights(int8_path)
    counts = collections.Counter()
    for part in described.split(", "):
        number, dtype = part.split(" ")[:2]
        counts[dtype] += int(number)
    # The block has six dense layers.
    assert counts["int8"] >= 6
    assert "int8" not in conversions.describe_weights(float_path)
    if kind == "onnx":
        import onnx

        weights = onnx.load(int8_path).graph.initializer
        int8 = [w for w in weights if w.data_type == onnx.TensorProto.INT8]
        assert counts["int8"] == sum(len(w.dims) > 1 for w in int8)
        largest = max(onnx.numpy_helper.to_array(w).size for w in int8)
        assert largest >= 128 * 512


def test_an_operation_that_cannot_be_quantized_stays_float32(
    finetuned_module, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("tf2onnx", reason="needs the extra onnx")
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    import onnx
    from onnxruntime import quantization

    original = quantization.quantize_dynamic

    def without_gather(model, path, op_types_to_quantize, **settings):
        if "Gather" in op_types_to_quantize:
            raise RuntimeError("no kernel\nfor tables")
        original(
            model, path, op_types_to_quantize=op_types_to_quantize, **settings
        )

    monkeypatch.setattr(quantization, "quantize_dynamic", without_gather)
    _, module = finetuned_module("reviews")
    conversions.write_onnx(module, str(tmp_path), with_int8=True)
    printed = capsys.readouterr().out
    message = "cannot quantize Gather (for tables). The weights of Gather stay"
    assert message in printed
    described = conversions.describe_weights(
        str(tmp_path / "onnx" / "model_int8.onnx")
    )
    assert "int8" in described and "float32 (Gather, Slice)" in described

    def never(*args, **settings):
        raise RuntimeError("no kernel")

    monkeypatch.setattr(quantization, "quantize_dynamic", never)
    refused("can quantize no operation", quantize, onnx.ModelProto())


@pytest.fixture
def scored(finetuned_folder):
    """Return a tagger with dev data, and its module."""
    source = finetuned_folder("names", seed=11)
    data_dir = pathlib.Path(source).parent.parent
    for split in ("train", "dev"):
        (data_dir / f"{split}.txt").write_text(DATA)
    loaded = load_finetuned(source)
    return loaded, make_task_module(loaded)


@pytest.mark.slow
def test_the_card_lists_weights_sizes_and_scores(scored, tmp_path):
    loaded, module = scored

    def finish(folder):
        conversions.write_lite(module, folder, ["float", "dynamic"])
        write_card(folder, loaded, module, "dev")

    folder = export(module, str(tmp_path / "served"), finish=finish)
    facts = read_json(os.path.join(folder, "assets.extra/card_facts.json"))
    rows = facts["recorded"]["formats"]
    assert [*rows] == [
        "SavedModel",
        "lite/model_dynamic.tflite",
        "lite/model_float.tflite",
    ]
    sentences = tf.constant(["the king", "of north city"])
    served = module.signatures()["serve_words"](sentences)
    gold = ["O", "S-PER", "O", "B-LOC", "E-LOC"]
    gold = [loaded.tasks[0].label_mapping[tag] for tag in gold]
    shares = served["probabilities"].numpy()
    shares = [*shares[0, :2], *shares[1]]
    losses = [-np.log(p[tag]) for p, tag in zip(shares, gold, strict=True)]
    # The scorer reports twice the mean, as the original does.
    loss = 2 * np.mean(losses)
    assert [row["dev rows"] for row in rows.values()] == [2, 2, 2]
    assert [row["dev loss"] for row in rows.values()] == [
        pytest.approx(loss, rel=1e-3),
        pytest.approx(loss, rel=0.2),
        pytest.approx(loss, rel=1e-3),
    ]
    assert (
        rows["SavedModel"]["dev f1"]
        == rows["lite/model_float.tflite"]["dev f1"]
    )
    text = pathlib.Path(folder, "MODEL_CARD.md").read_text("utf-8")
    assert "## Size and scores of each format" in text
    assert f"| {rows['lite/model_dynamic.tflite']['bytes']} |" in text
    assert check_card(folder) == []
    del facts["recorded"]["formats"]
    assert "each format" not in render(facts)


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("reviews", "test", "no labelled split test. Pass one of: dev"),
        ("news", "dev", "from the ids of a summarization export"),
    ],
)
def test_a_split_that_cannot_be_scored_is_refused(
    name, split, message, finetuned_module
):
    module = finetuned_module(name)[1]
    refused(message, formats.check_scoring, module, split)


def test_absent_data_is_refused(finetuned_folder):
    module = make_task_module(load_finetuned(finetuned_folder("pairs")))
    refused("no such file", formats.check_scoring, module, "dev")


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    refused(r"--onnx needs tf2onnx.*\[onnx\]", conversions.check_onnx_installed)
