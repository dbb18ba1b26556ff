# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batches of requests, and a server that stops without losing any."""

import asyncio
import http.client
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from electra_tf.commands import serve
from electra_tf.extras.serving import application, batching, protocol
from tests.conftest import ROOT, refused
from tests.extras.serving.conftest import ask


def _request(model, *texts, signature="echo"):
    body = {"signature_name": signature, "instances": list(texts)}
    return protocol.parse_request(json.dumps(body).encode(), model)


def _ids(model, *numbers):
    signature = model.signatures["serving_default"]
    return protocol.make_request(signature, {"input_ids": np.int32([numbers])})


def _run(use, **limits):
    async def main():
        batcher = batching.Batcher(batching.Limits(**limits))
        batcher.start()
        try:
            return await use(batcher), batcher.counts
        finally:
            await batcher.stop()

    return asyncio.run(main())


def test_requests_at_once_make_few_batches(toy_model):
    async def use(batcher):
        requests = [_request(toy_model, f"a{i}", f"b{i}") for i in range(20)]
        return await asyncio.gather(*map(batcher.ask, requests))

    answers, counts = _run(use, max_batch=8, max_wait=0.05)
    texts = [[b"a%d" % i, b"b%d" % i] for i in range(20)]
    assert [outputs["echo"].tolist() for outputs in answers] == texts
    assert (counts.requests, counts.rows, counts.batches) == (20, 40, 5)


def test_only_compatible_requests_share_a_batch(toy_model):
    async def use(batcher):
        requests = [
            _request(toy_model, "a"),
            _request(toy_model, 2, signature="half"),
            _request(toy_model, "b"),
            _ids(toy_model, 1, 2),
            _ids(toy_model, 1),
            _ids(toy_model, 3, 4),
        ]
        return await asyncio.gather(*map(batcher.ask, requests))

    answers, counts = _run(use, max_wait=0.05)
    assert answers[0]["echo"].tolist() == [b"a"]
    assert answers[1]["half"].tolist() == [1.0]
    assert answers[2]["echo"].tolist() == [b"b"]
    assert [outputs["sum"].tolist() for outputs in answers[3:]] == [
        [3],
        [1],
        [7],
    ]
    assert counts.batches == 4


def test_requests_of_a_failed_batch_are_tried_one_by_one():
    tried = []

    class Fussy:
        name = "fussy"

        def __call__(self, arrays):
            tried.append(len(arrays["x"]))
            if len(arrays["x"]) > 1 or arrays["x"][0] == 7:
                raise ValueError("no")
            return {"y": arrays["x"]}

    rows = [{"x": np.array([x])} for x in (1, 7, 2)]
    requests = [
        protocol.PredictRequest(Fussy(), row, 1, ("fussy",), True)
        for row in rows
    ]
    answers = batching.compute(requests)
    assert tried == [3, 1, 1, 1]
    assert answers[0]["y"] == [1] and answers[2]["y"] == [2]
    assert isinstance(answers[1], ValueError)


def test_a_single_request_may_exceed_the_waiting_limit(toy_model):
    request = _request(toy_model, "a", "b", "c")
    answers, _ = _run(lambda batcher: batcher.ask(request), max_waiting=2)
    assert len(answers["echo"]) == 3


def test_a_busy_server_gathers_and_refuses_requests(toy_model, monkeypatch):
    started, release = threading.Event(), threading.Event()
    compute = batching.compute
    sizes = []

    def slow(requests):
        sizes.append(len(requests))
        started.set()
        assert release.wait(30)
        return compute(requests)

    monkeypatch.setattr(batching, "compute", slow)

    async def use(batcher):
        first = asyncio.ensure_future(batcher.ask(_request(toy_model, "a")))
        await asyncio.to_thread(started.wait, 30)
        others = [
            asyncio.ensure_future(batcher.ask(_request(toy_model, str(i))))
            for i in range(5)
        ]
        await asyncio.sleep(0)
        with pytest.raises(protocol.RequestError) as refused:
            await batcher.ask(_request(toy_model, "one too many"))
        assert refused.value.status == 503
        others[1].cancel()  # a client disconnects
        release.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    answers, _ = _run(use, max_batch=16, max_wait=0.0, max_waiting=5)
    assert sizes == [1, 4]
    assert isinstance(answers[2], asyncio.CancelledError)
    answered = [
        outputs["echo"].tolist()
        for number, outputs in enumerate(answers)
        if number != 2
    ]
    assert answered == [[b"a"], [b"0"], [b"2"], [b"3"], [b"4"]]


@pytest.mark.parametrize("num_rows", [0, 1])
def test_requests_with_and_without_rows_fill_the_queue(toy_model, num_rows):
    body = {"signature_name": "echo", "inputs": {"text": ["a"] * num_rows}}
    data = json.dumps(body).encode()

    async def use(batcher):
        requests = [
            batcher.ask(protocol.parse_request(data, toy_model))
            for _ in range(7)
        ]
        return await asyncio.gather(*requests, return_exceptions=True)

    answers, _ = _run(use, max_wait=0.05, max_waiting=5)
    statuses = [getattr(answer, "status", 200) for answer in answers]
    assert statuses == [200] * 5 + [503] * 2


@pytest.fixture
def process(toy_folder):
    """Yield the command on a free port; ended in any case."""
    flags = [toy_folder, "--port=0", "--max_body_mb=1"]
    running = subprocess.Popen(
        [sys.executable, "-m", "electra_tf", "serve", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
    )
    line = next((line for line in running.stdout if "Predict:" in line), "")
    assert line, running.stderr.read()
    running.port = int(line.split("/v1/")[0].rpartition(":")[2])
    yield running
    running.kill()
    running.communicate()


def _predict(port, text):
    body = {"signature_name": "echo", "instances": [text]}
    return ask(port, "POST", "/v1/models/toy:predict", body)


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.heavy)],
)
def test_a_signal_stops_the_server_after_its_answers(process, number):
    assert _predict(process.port, "a") == (200, {"predictions": ["a"]})
    answers = []
    stop = time.monotonic() + 20

    def keep_asking():
        while time.monotonic() < stop:
            try:
                answers.append(_predict(process.port, "b")[0])
            except ConnectionRefusedError:
                return
            except (ConnectionError, http.client.HTTPException) as error:
                # The system accepted the connection, the server did not.
                answers.append(error)
                return

    askers = [threading.Thread(target=keep_asking) for _ in range(4)]
    for asker in askers:
        asker.start()
    while len(answers) <= 20 and all(a.is_alive() for a in askers):
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(30) == 0
    for asker in askers:
        asker.join()
    assert process.stdout.read().endswith("Stopped.\n")
    assert len(answers) > 20
    lost = [answer for answer in answers if answer != 200]
    assert len(lost) <= 4 and all(
        isinstance(e, ConnectionError | http.client.HTTPException) for e in lost
    )
    assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize("turns", range(7))
def test_a_new_connection_does_not_delay_the_stop(toy_model, turns):
    async def run():
        stop, address = asyncio.Event(), asyncio.Queue()
        listening = "127.0.0.1", 0, address.put_nowait
        server = application.ModelServer(toy_model)
        running = asyncio.create_task(
            application.serve(server, *listening, stop)
        )
        port = int((await address.get()).rpartition(":")[2])
        # The system accepts the connection at once; the server accepts it
        # some turns of the event loop later.
        with socket.create_connection(("127.0.0.1", port)):
            for _ in range(turns):
                await asyncio.sleep(0)
            stop.set()
            limit = application.SHUTDOWN_SECONDS / 2
            await asyncio.wait_for(running, limit)

    asyncio.run(run())


def test_a_port_in_use_and_a_missing_extra_are_messages(
    toy_folder, monkeypatch
):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        args = serve.parse_flags(["serve", toy_folder, f"--port={port}"])
        refused("Pass a different --port", serve.main, args)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    refused(r'pip install .*"\.\[serve\]"', serve.main, args)


def test_many_clients_and_malformed_requests_leave_the_server_healthy(toy):
    load = runpy.run_path(str(ROOT / "benchmarks" / "serving_load.py"))
    settings = {"requests": 300, "clients": 8, "malformed": 40, "seconds": 120}
    result = load["run"](toy.port, **settings)
    assert result["ok"], result
    assert result["load"]["errors"] == 0
    assert result["malformed"]["answered_4xx"] == 40
    assert set(result["malformed"]["statuses"]) == {"400", "413"}
