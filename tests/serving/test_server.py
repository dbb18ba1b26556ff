# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command: it starts, says where, and stops when told, losing nothing."""

import asyncio
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from configure.errors import UserError
from electra_tf.commands import serve
from electra_tf.serving.application import SHUTDOWN_SECONDS, ModelServer
from electra_tf.serving.application import serve as run_server

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def process(toy_folder):
    """The command on a free port; ended in any case."""
    words = [toy_folder, "--port=0", "--max_body_mb=1"]
    running = subprocess.Popen(
        [sys.executable, "-m", "electra_tf", "serve", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
    )
    lines = []
    for line in running.stdout:
        lines.append(line)
        if "Predict:" in line:
            break
    assert lines and "Predict:" in lines[-1], running.stderr.read()
    running.port = int(lines[-1].split("/v1/")[0].rpartition(":")[2])
    yield running
    if running.poll() is None:
        running.kill()
    running.communicate()


def _predict(port, text):
    connection = http.client.HTTPConnection("127.0.0.1", port, 60)
    body = {"signature_name": "echo", "instances": [text]}
    path = "/v1/models/toy:predict"
    connection.request("POST", path, json.dumps(body))
    response = connection.getresponse()
    return response.status, json.loads(response.read())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_what_is_in_has_been_answered(process, number):
    assert _predict(process.port, "a") == (200, {"predictions": ["a"]})
    answers = []
    stop = time.monotonic() + 20

    def ask():
        while time.monotonic() < stop:
            try:
                answers.append(_predict(process.port, "b")[0])
            except ConnectionRefusedError:
                return
            except (ConnectionError, http.client.HTTPException) as error:
                # Accepted by the system, never by the server.
                answers.append(error)
                return

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    time.sleep(0.5)
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
def test_a_connection_taken_as_it_stops_does_not_hold_it_up(toy_model, turns):
    async def run():
        stop, address = asyncio.Event(), asyncio.Queue()
        running = asyncio.create_task(
            run_server(
                ModelServer(toy_model),
                "127.0.0.1",
                0,
                address.put_nowait,
                stop,
            )
        )
        port = int((await address.get()).rpartition(":")[2])
        # The system takes it at once; the server, some turns of its loop later.
        with socket.create_connection(("127.0.0.1", port)):
            for _ in range(turns):
                await asyncio.sleep(0)
            stop.set()
            await asyncio.wait_for(running, SHUTDOWN_SECONDS / 2)

    asyncio.run(run())


def test_without_the_extra_it_says_what_to_install(toy_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(UserError, match=r'pip install "electra_tf\[serve\]"'):
        serve.main(serve.parse_flags(["serve", str(toy_folder)]))


def test_a_port_that_is_taken_is_a_message(toy_folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        args = serve.parse_flags(["serve", toy_folder, f"--port={port}"])
        with pytest.raises(UserError, match="choose another --port"):
            serve.main(args)
