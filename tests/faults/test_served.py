# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Damaged models, and clients that stop in the middle of a request."""

import json
import logging
import shutil
import socket
import time

import pytest

from configure.errors import UserError
from electra_tf import files
from electra_tf.checkpoints.formats import open_weights
from electra_tf.serving import application
from electra_tf.serving.served_model import open_model
from tests.serving.conftest import Running, toy_folder  # noqa: F401


def test_a_flipped_bit_of_a_saved_model_is_an_error(toy_folder, tmp_path):
    folder = tmp_path / "toy"
    shutil.copytree(f"{toy_folder}/10", folder)
    files.write_digests(str(folder))
    path = folder / "saved_model.pb"
    whole = path.read_bytes()
    for place in (5, len(whole) // 2, len(whole) - 1):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << 3
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"saved_model\.pb: another file"):
            open_model(str(folder))
    path.write_bytes(whole)
    assert open_model(str(folder)).kind == "classification"


@pytest.mark.parametrize("name", ["", ".", "..", "../x", 7])
def test_an_index_of_shards_names_files_of_its_folder(tmp_path, name):
    index = {"weight_map": {"electra.x": name}}
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index))
    (tmp_path / "config.json").write_text('{"model_type": "electra"}')
    with pytest.raises(UserError, match=r"weight_map: electra\.x: .* not the"):
        open_weights(str(tmp_path))


@pytest.fixture
def server(toy_folder, monkeypatch):
    monkeypatch.setattr(application, "HEADER_SECONDS", 0.5)
    running = Running(open_model(toy_folder))
    yield running
    running.stop()


def _connect(server):
    return socket.create_connection(("127.0.0.1", server.port), 20)


def test_unfinished_headers_time_out(server):
    started = time.monotonic()
    for begun in (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: "):
        with _connect(server) as client:
            client.sendall(begun)
            assert client.recv(100) == b""
    with _connect(server) as client:  # and after an answer
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /he")
        assert client.recv(10_000).startswith(b"HTTP/1.1 200")
        assert client.recv(100) == b""
    assert time.monotonic() - started < 15
    assert server.ask("GET", "/healthz")[0] == 200


def test_an_aborted_upload_is_one_line_of_log(server, caplog):
    caplog.set_level(logging.INFO)
    place = "/v1/models/toy:predict"
    head = f"POST {place} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    client = _connect(server)
    client.sendall(head.encode() + b'{"instances": [')
    time.sleep(0.2)
    client.close()
    until = time.monotonic() + 10
    while not caplog.records and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.2)
    (record,) = caplog.records
    assert record.getMessage() == f"POST {place}: the client left"
    assert not record.exc_info


def test_what_is_no_http_is_one_line_of_log(server, caplog):
    head = b"POST / HTTP/1.1\r\nHost: x\r\n"
    both = b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
    for raw in (head + b"Content-Length: x\r\n\r\n", head + both):
        with _connect(server) as client:
            client.sendall(raw)
            assert client.recv(100).startswith(b"HTTP/1.0 400")
        (record,) = caplog.records
        assert record.getMessage().startswith("Error handling request")
        assert "Content-Length" in record.getMessage()
        assert not record.exc_info
        caplog.clear()
