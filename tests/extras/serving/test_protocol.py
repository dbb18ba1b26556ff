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


def test_rows_get_predictions(toy):
    rows = [{"text": "tiny"}, {"text": "rather a long text"}]
    status, answer = toy.predict({"signature_name": TEXT, "instances": rows})
    labels = [row["label"] for row in answer["predictions"]]
    assert (status, labels) == (200, ["short", "long"])
    share = 1 / (1 + math.exp(6))
    probabilities = answer["predictions"][0]["probabilities"]
    assert probabilities == pytest.approx([1 - share, share], abs=1e-6)


def test_columns_get_outputs(toy):
    body = {"signature_name": TEXT, "inputs": {"text": ["tiny"]}}
    status, answer = toy.predict(body)
    assert (status, answer["outputs"]["label"]) == (200, ["short"])


def test_texts_are_returned_unchanged(toy):
    texts = ["", "\u4e2d\u6587 \U0001f600", '"\\\n\t', "<b>&", "x" * 100_000]
    body = {"signature_name": "echo", "instances": texts}
    assert toy.predict(body) == (200, {"predictions": texts})


def test_half_a_surrogate_pair_is_removed(toy):
    body = '{"signature_name": "echo", "instances": ["a\\ud800b"]}'
    assert toy.predict(body) == (200, {"predictions": ["ab"]})


@pytest.mark.parametrize(
    ("row", "prediction"),
    [
        (
            {"input_ids": [1, 2, 3]},
            {"masked": 6, "nan": None, "sum": 6},
        ),
        (
            {"input_ids": [1, 2, 3], "input_mask": [1, 1, 0]},
            {"masked": 3, "nan": None, "sum": 6},
        ),
    ],
)
def test_an_input_with_a_default_may_be_absent(toy, row, prediction):
    body = {"instances": [row], "signature_name": ""}
    assert toy.predict(body) == (200, {"predictions": [prediction]})


def test_a_scalar_is_sent_as_a_column(toy):
    body = {"signature_name": "scalar", "inputs": 4}
    assert toy.predict(body) == (200, {"outputs": 5})


def test_a_scalar_is_refused_as_a_row(toy):
    body = {"signature_name": "scalar", "instances": [4]}
    status, answer = toy.predict(body)
    assert status == 400 and "shape" in answer["error"]


def test_numbers_have_the_digits_of_their_type(toy):
    body = {"signature_name": "half", "instances": [0.2, 3, -1e30]}
    assert toy.predict(body) == (200, {"predictions": [0.1, 1.5, -5e29]})


BYTES = {"b64": base64.b64encode(b"\xff\x00\xfe").decode()}


@pytest.mark.parametrize(
    ("inputs", "key"),
    [
        ({"instances": [BYTES]}, "predictions"),
        ({"instances": [{"text": BYTES}]}, "predictions"),
        ({"inputs": {"text": [BYTES]}}, "outputs"),
        ({"inputs": [BYTES]}, "outputs"),
    ],
)
def test_bytes_are_returned_unchanged(toy, inputs, key):
    answer = toy.predict({"signature_name": "echo_bytes", **inputs})
    assert answer == (200, {key: [BYTES]})


def test_bytes_in_a_text_are_decoded(toy):
    _, answer = toy.predict({"signature_name": "echo", "instances": [BYTES]})
    assert answer["predictions"] == ["\ufffd\x00\ufffd"]


def test_the_status_names_the_version(toy):
    status, answer = toy.ask("GET", "/v1/models/toy")
    assert status == 200
    (version,) = answer["model_version_status"]
    assert (version["version"], version["state"]) == ("10", "AVAILABLE")


def test_the_metadata_describe_the_signatures(toy):
    _, answer = toy.ask("GET", "/v1/models/toy/metadata")
    signature = answer["metadata"]["signature_def"]["signature_def"][TEXT]
    assert signature["inputs"]["text"]["dtype"] == "DT_STRING"
    shape = signature["inputs"]["text"]["tensor_shape"]
    assert shape["dim"] == [{"size": "-1"}]
    assert signature["method_name"] == "tensorflow/serving/predict"


def test_a_healthy_server_names_its_version(toy):
    status, answer = toy.ask("GET", "/healthz")
    assert (status, answer["status"], answer["version"]) == (200, "ok", 10)


def test_a_version_may_be_named(toy):
    path = "/v1/models/toy/versions/10:predict"
    body = {"signature_name": "echo", "instances": ["a"]}
    assert toy.ask("POST", path, body) == (200, {"predictions": ["a"]})


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/models/toy/versions/2:predict", 404),
        ("POST", "/v1/models/other:predict", 404),
        ("POST", "/v1/models/toy:classify", 405),
        ("GET", "/v1/models/toy:predict", 405),
        ("OPTIONS", "/v1/models/toy/versions/10:predict", 405),
        ("PUT", "/v1/models/toy", 405),
        ("GET", "/../etc/passwd", 404),
    ],
)
def test_other_paths_have_errors_in_json(toy, method, path, status):
    answer_status, answer = toy.ask(method, path, b"{}")
    assert answer_status == status
    assert isinstance(answer["error"], str) and answer["error"]


TEXTS = {"signature_name": "echo"}
TWO = {"signature_name": "two"}
HALF = b'{"signature_name": "half", "instances": [%s]}'
MALFORMED = {
    "cut": (b'{"instances": ["a"', "not JSON"),
    "bad UTF-8": (b'{"instances": ["\xff"]}', "not UTF-8: byte 16"),
    "NaN": (HALF % b"NaN", "NaN"),
    "huge": (HALF % b"1e999", "finite number"),
    "deep": (b"[" * 100_000, "cannot be parsed"),
    "twice": (b'{"inputs": 1, "inputs": 2}', "more than once"),
    "no input": (TEXTS, "either instances"),
    "unknown key": ({**TEXTS, "instances": ["a"], "x": 1}, 'key "x"'),
    "unknown signature": (
        {"signature_name": "none", "instances": ["a"]},
        'Unknown signature "none"; expected one of describe',
    ),
    "no rows": ({**TEXTS, "instances": []}, "a list of rows"),
    "number for text": ({**TEXTS, "instances": [7]}, "expected a text"),
    "text without signature": ({"instances": ["a text"]}, '"serve_text" to'),
    "mixed": ({**TEXTS, "instances": ["a", {"text": "b"}]}, "Only some rows"),
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
def test_a_malformed_request_has_status_400(toy, name):
    body, message = MALFORMED[name]
    status, answer = toy.predict(body)
    assert status == 400, answer
    assert message in answer["error"]
    assert toy.ask("GET", "/healthz")[0] == 200


PACKED = gzip.compress(b'{"instances": ["' + b"a" * 2**23 + b'"]}')
ROWS = b'{"signature_name": "echo", "instances": ["a"' + b', "a"' * 1024


@pytest.mark.parametrize(
    ("body", "headers", "expected", "message"),
    [
        (b"x" * 50 * 2**20, {}, 413, "the limit is"),
        (PACKED, {"Content-Encoding": "gzip"}, 413, "too large"),
        (iter([b" " * 2**20] * 8), {}, 413, "too large"),
        (b"not packed", {"Content-Encoding": "gzip"}, 400, "encoding"),
        (ROWS + b"]}", {}, 413, "1025 rows"),
    ],
    ids=["long", "packed", "chunks", "gzip", "rows"],
)
def test_a_body_that_is_too_large_is_refused(
    toy, body, headers, expected, message
):
    path = "/v1/models/toy:predict"
    status, answer = toy.ask("POST", path, body, headers)
    assert status == expected and message in answer["error"]
    assert toy.ask("GET", "/healthz")[0] == 200


def test_a_folder_is_opened_at_its_latest_whole_version(toy_folder):
    model = open_model(toy_folder)
    assert (model.name, model.version) == ("toy", 10)
    assert (model.kind, model.labels) == ("classification", ["short", "long"])


def test_a_folder_is_opened_at_a_version(toy_folder):
    assert open_model(toy_folder, version=2).version == 2


def test_the_folder_of_a_version_is_opened_alone(toy_folder):
    model = open_model(f"{toy_folder}/2")
    assert (model.name, model.version) == ("toy", 2)


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [
        ("/2", 3, "--version=3: .*/2 is version 2"),
        ("", 11, "expected one of 2, 10"),
        ("x", None, "no such folder"),
        ("/11", None, "contains no <version>"),
    ],
)
def test_a_version_that_does_not_exist_is_refused(
    toy_folder, name, version, message
):
    refused(message, open_model, toy_folder + name, version=version)
