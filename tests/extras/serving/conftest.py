# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small SavedModel with the signatures of an export, and a running server."""

import asyncio
import http.client
import json
import threading

import pytest
import tensorflow as tf


class Toy(tf.Module):
    """Counts characters: its answers are known without a model."""

    def __init__(self):
        super().__init__()
        self.labels = tf.Variable(["short", "long"], trainable=False)

    def signatures(self):
        strings = tf.TensorSpec([None], tf.string)
        floats = tf.TensorSpec([None], tf.float32)
        matrix = tf.TensorSpec([None, None], tf.int32)
        nothing = tf.zeros([0, 0], tf.int32)

        def serve_text(text):
            size = tf.cast(tf.strings.length(text), tf.float32)
            long = tf.sigmoid(size - 10.0)
            return {
                "label": tf.gather(self.labels, tf.cast(size > 10, tf.int32)),
                "probabilities": tf.stack([1 - long, long], 1),
            }

        def serving_default(input_ids, input_mask=nothing):
            check = tf.debugging.assert_less_equal(
                tf.shape(input_ids)[1], 8, "rows longer than 8"
            )
            with tf.control_dependencies([check]):
                total = tf.reduce_sum(input_ids, 1)
            masked = tf.cond(
                tf.size(input_mask) > 0,
                lambda: tf.reduce_sum(input_ids * input_mask, 1),
                lambda: total,
            )
            value = tf.cast(total, tf.float32)
            return {"sum": total, "masked": masked, "nan": value / 0.0}

        def two(text, text_pair):
            return {"both": tf.strings.join([text, text_pair], "+")}

        def describe():
            return {
                "kind": tf.constant("classification"),
                "labels": self.labels.read_value(),
                "config": tf.constant('{"kind": "classification"}'),
            }

        functions = {
            "serve_text": (serve_text, strings),
            "echo": (lambda text: {"echo": text}, strings),
            "echo_bytes": (lambda text: {"echo_bytes": text}, strings),
            "two": (two, strings, strings),
            "serving_default": (serving_default, matrix, matrix),
            "half": (lambda x: {"half": x / 2}, floats),
            "scalar": (lambda n: {"next": n + 1}, tf.TensorSpec([], tf.int32)),
            "describe": (describe,),
        }
        return {
            name: tf.function(function, input_signature=specs)
            for name, (function, *specs) in functions.items()
        }


@pytest.fixture(scope="session")
def toy_folder(tmp_path_factory):
    """Return a folder with versions 2 and 10, and an incomplete version."""
    folder = tmp_path_factory.mktemp("served") / "toy"
    toy = Toy()
    for version in (2, 10):
        tf.saved_model.save(toy, str(folder / str(version)), toy.signatures())
    (folder / "11").mkdir()
    return str(folder)


def ask(port, method, path, body=None, headers=None):
    """Return the status and the answer, decoded if it is JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, 60)
    try:
        if isinstance(body, dict | list):
            body = json.dumps(body)
        headers = {"Content-Type": "application/json"} | (headers or {})
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        raw = response.read()
        kind = response.headers.get_content_type()
        body = json.loads(raw) if kind == "application/json" else raw
        return response.status, body
    finally:
        connection.close()


class Running:
    """A server in a separate thread."""

    def __init__(self, model, limits=None, **settings):
        from electra_tf.extras.serving.application import ModelServer, serve

        self.server = ModelServer(model, limits, **settings)
        self._ready = threading.Event()

        async def run():
            self._stop = asyncio.Event()
            self._loop = asyncio.get_running_loop()
            await serve(self.server, "127.0.0.1", 0, self._listens, self._stop)

        self._thread = threading.Thread(target=asyncio.run, args=(run(),))
        self._thread.start()
        assert self._ready.wait(30)

    def _listens(self, address):
        self.address = address
        self.port = int(address.rpartition(":")[2])
        self._ready.set()

    def stop(self):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def ask(self, *request):
        return ask(self.port, *request)

    def predict(self, body, name="toy"):
        return self.ask("POST", f"/v1/models/{name}:predict", body)


@pytest.fixture(scope="session")
def toy_model(toy_folder):
    from electra_tf.extras.serving.served_model import open_model

    return open_model(toy_folder)


@pytest.fixture(scope="session")
def toy(toy_model):
    running = Running(toy_model)
    yield running
    running.stop()


@pytest.fixture
def start():
    """Yield a function that starts servers, which stop after the test."""
    running = []

    def make(model, *args, **settings):
        running.append(Running(model, *args, **settings))
        return running[-1]

    yield make
    for server in running:
        server.stop()
