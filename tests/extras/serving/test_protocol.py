# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Serving's REST protocol, request by request."""

import base64
import gzip
import math

import pytest

from electra_tf.extras.serving.served_model import open_model
from tests.conftest import refused

TEXT = "serve_text"


def test_rows_get_predictions_and_columns_get_outputs(toy):
    rows = [{"text": "tiny"}, {"text": "rather a long text"}]
    status, said = toy.predict({"signature_name": TEXT, "instances": rows})
    assert status == 200
    assert [row["label"] for row in said["predictions"]] == ["short", "long"]
    short = said["predictions"][0]["probabilities"]
    share = 1 / (1 + math.exp(6))
    assert short == pytest.approx([1 - share, share], abs=1e-6)
    body = {"signature_name": TEXT, "inputs": {"text": ["tiny"]}}
    status, said = toy.predict(body)
    assert (status, said["outputs"]["label"]) == (200, ["short"])


def test_texts_bytes_defaults_and_scalars_come_back_whole(toy):
    texts = ["", "\u4e2d\u6587 \U0001f600", '"\\\n\t', "<b>&", "x" * 100_000]
    body = {"signature_name": "echo", "instances": texts}
    assert toy.predict(body) == (200, {"predictions": texts})
    lone = '{"signature_name": "echo", "instances": ["a\\ud800b"]}'
    assert toy.predict(lone) == (200, {"predictions": ["ab"]})
    status, said = toy.predict({"instances": [{"input_ids": [1, 2, 3]}]})
    assert (status, said["predictions"][0]["sum"]) == (200, 6)
    rows = [{"input_ids": [1, 2, 3], "input_mask": [1, 1, 0]}]
    _, said = toy.predict({"instances": rows, "signature_name": ""})
    assert said["predictions"] == [{"masked": 3, "nan": None, "sum": 6}]
    body = {"signature_name": "scalar", "inputs": 4}
    assert toy.predict(body) == (200, {"outputs": 5})
    status, said = toy.predict({"signature_name": "scalar", "instances": [4]})
    assert status == 400 and "shape" in said["error"]
    body = {"signature_name": "half", "instances": [0.2, 3, -1e30]}
    assert toy.predict(body) == (200, {"predictions": [0.1, 1.5, -5e29]})
    packed = {"b64": base64.b64encode(b"\xff\x00\xfe").decode()}
    for given, key in (
        ({"instances": [packed]}, "predictions"),
        ({"instances": [{"text": packed}]}, "predictions"),
        ({"inputs": {"text": [packed]}}, "outputs"),
        ({"inputs": [packed]}, "outputs"),
    ):
        said = toy.predict({"signature_name": "echo_bytes", **given})
        assert said == (200, {key: [packed]})
    _, said = toy.predict({"signature_name": "echo", "instances": [packed]})
    assert said["predictions"] == ["\ufffd\x00\ufffd"]


def test_status_metadata_health_and_versions(toy):
    status, said = toy.ask("GET", "/v1/models/toy")
    assert status == 200
    assert said["model_version_status"][0]["version"] == "10"
    assert said["model_version_status"][0]["state"] == "AVAILABLE"
    assert toy.ask("GET", "/v1/models/toy/versions/10")[0] == 200
    _, said = toy.ask("GET", "/v1/models/toy/metadata")
    found = said["metadata"]["signature_def"]["signature_def"][TEXT]
    assert found["inputs"]["text"]["dtype"] == "DT_STRING"
    assert found["inputs"]["text"]["tensor_shape"]["dim"] == [{"size": "-1"}]
    assert found["method_name"] == "tensorflow/serving/predict"
    status, said = toy.ask("GET", "/healthz")
    assert (status, said["status"], said["version"]) == (200, "ok", 10)
    path = "/v1/models/toy/versions/10:predict"
    body = {"signature_name": "echo", "instances": ["a"]}
    assert toy.ask("POST", path, body) == (200, {"predictions": ["a"]})


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models/toy/versions/2", 404),
        ("POST", "/v1/models/other:predict", 404),
        ("POST", "/v1/models/toy:classify", 405),
        ("GET", "/v1/models/toy:predict", 405),
        ("OPTIONS", "/v1/models/toy/versions/10:predict", 405),
        ("PUT", "/v1/models/toy", 405),
        ("GET", "/../etc/passwd", 404),
    ],
)
def test_other_places_have_errors_in_json(toy, method, path, status):
    found, said = toy.ask(method, path, b"{}")
    assert found == status
    assert isinstance(said["error"], str) and said["error"]


TEXTS = {"signature_name": "echo"}
TWO = {"signature_name": "two"}
HALF = b'{"signature_name": "half", "instances": [%s]}'
MALFORMED = {
    "cut": (b'{"instances": ["a"', "not JSON"),
    "bad UTF-8": (b'{"instances": ["\xff"]}', "not UTF-8: byte 16"),
    "NaN": (HALF % b"NaN", "NaN"),
    "huge": (HALF % b"1e999", "finite number"),
    "deep": (b"[" * 100_000, "read"),
    "twice": (b'{"inputs": 1, "inputs": 2}', "more than once"),
    "no input": (TEXTS, "either instances"),
    "unknown key": ({**TEXTS, "instances": ["a"], "x": 1}, 'key "x"'),
    "unknown signature": (
        {"signature_name": "none", "instances": ["a"]},
        'no signature "none"; there are: describe',
    ),
    "no rows": ({**TEXTS, "instances": []}, "at least one row"),
    "number for text": ({**TEXTS, "instances": [7]}, "expected a text"),
    "text without signature": ({"instances": ["a text"]}, '"serve_text".'),
    "mixed": ({**TEXTS, "instances": ["a", {"text": "b"}]}, "kinds"),
    "unknown input": ({**TEXTS, "instances": [{"x": "a"}]}, 'input "x"'),
    "no base64": ({**TEXTS, "instances": [{"b64": "?"}]}, "not base64"),
    "missing": ({**TWO, "instances": [{"text": "a"}]}, "text_pair is missing"),
    "unnamed": ({**TWO, "instances": ["a"]}, "an object"),
    "other lengths": (
        {**TWO, "inputs": {"text": ["a"], "text_pair": []}},
        "numbers of rows",
    ),
    "text for ids": ({"instances": [{"input_ids": ["a"]}]}, "a number"),
    "1.5 for ids": ({"instances": [{"input_ids": [1.5]}]}, "whole number"),
    "2**31": ({"instances": [{"input_ids": [2**31]}]}, "int32"),
    "ragged": ({"inputs": {"input_ids": [[1], [1, 2]]}}, "different lengths"),
    "no matrix": ({"instances": [{"input_ids": 1}]}, "shape [1]; expected"),
    "too long": ({"instances": [{"input_ids": [1] * 9}]}, "longer than 8"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_malformed_is_refused_and_said(toy, name):
    body, part = MALFORMED[name]
    status, said = toy.predict(body)
    assert status == 400, said
    assert part in said["error"]
    assert toy.ask("GET", "/healthz")[0] == 200


PACKED = gzip.compress(b'{"instances": ["' + b"a" * 2**23 + b'"]}')
ROWS = b'{"signature_name": "echo", "instances": ["a"' + b', "a"' * 1024


@pytest.mark.parametrize(
    ("body", "headers", "wanted", "part"),
    [
        (b"x" * 50 * 2**20, {}, 413, "at most"),
        (PACKED, {"Content-Encoding": "gzip"}, 413, "too large"),
        (iter([b" " * 2**20] * 8), {}, 413, "too large"),
        (b"not packed", {"Content-Encoding": "gzip"}, 400, "cannot be read"),
        (ROWS + b"]}", {}, 413, "1025 rows"),
    ],
    ids=["long", "packed", "chunks", "gzip", "rows"],
)
def test_what_is_too_large_is_refused(toy, body, headers, wanted, part):
    status, said = toy.ask("POST", "/v1/models/toy:predict", body, headers)
    assert status == wanted and part in said["error"]
    assert toy.ask("GET", "/healthz")[0] == 200


def test_folders_are_opened_by_their_newest_whole_version(toy_folder):
    newest = open_model(toy_folder)
    assert (newest.name, newest.version) == ("toy", 10)
    assert (newest.kind, newest.labels) == ("classification", ["short", "long"])
    assert open_model(toy_folder, version=2).version == 2
    second = f"{toy_folder}/2"
    single = open_model(second)
    assert (single.name, single.version) == ("toy", 2)
    refused("--version=3: .*/2 is version 2", open_model, second, version=3)
    refused("there are: 2, 10", open_model, toy_folder, version=11)
    refused("no such folder", open_model, toy_folder + "x")
    refused("holds no <version>", open_model, f"{toy_folder}/11")
