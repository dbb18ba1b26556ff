# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Meetings of workers: missing, ended and repeated workers."""

import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from configure.errors import TRY_AGAIN, UserError
from electra_tf.training import meeting
from electra_tf.training.cluster import Cluster, read_cluster


@pytest.fixture
def workers():
    """Return the addresses of three workers, on which no process listens."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return [f"127.0.0.1:{port}" for port in ports]


@pytest.fixture
def pool():
    with ThreadPoolExecutor() as made:
        yield made


def connected(workers):
    """Return a connection to the first worker, which may not listen yet."""
    host, port = workers[0].split(":")
    for _ in range(200):
        try:
            return socket.create_connection((host, int(port)), timeout=20)
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the first worker does not listen")


def hello(workers, index):
    connection = connected(workers)
    line = json.dumps({"electra_tf_worker": index, "of": len(workers)})
    connection.sendall(line.encode() + b"\n")
    return connection


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_workers_meet_in_any_order(workers, pool, order):
    met = []
    for index in order:
        met.append(pool.submit(meeting.meet, Cluster(workers, index), 30))
        time.sleep(0.2)
    for future in met:
        future.result(timeout=30)
    # After the meeting the address must be free for TensorFlow.
    port = int(workers[0].split(":")[1])
    socket.create_server(("127.0.0.1", port)).close()


def test_a_single_worker_waits_for_nobody():
    meeting.meet(Cluster(["nowhere.invalid:1"], 0), 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("started", "missing"), [([0], [1, 2]), ([0, 2], [1]), ([1], [0])]
)
def test_missing_workers_are_named_with_their_addresses(
    workers, pool, capsys, started, missing
):
    waiting = [
        pool.submit(meeting.meet, Cluster(workers, index), 1.5)
        for index in started
    ]
    errors = [future.exception(timeout=30) for future in waiting]
    assert {type(error) for error in errors} == {meeting.WorkersMissingError}
    assert {error.exit_status for error in errors} == {TRY_AGAIN}
    named = [
        [i for i in range(3) if f"worker {i} ({workers[i]})" in str(error)]
        for error in errors
    ]
    assert named == [missing] * len(started)
    remedy = "within 1.5 seconds. Start all workers"
    assert all(remedy in str(error) for error in errors)
    assert (
        f"worker {missing[0]} ({workers[missing[0]]}" in capsys.readouterr().out
    )


def test_a_worker_that_ends_before_the_meeting_ends_all_workers(workers, pool):
    workers.append("127.0.0.1:1")  # never comes
    first = pool.submit(meeting.meet, Cluster(workers, 0), 60)
    survivor, victim = hello(workers, 1), hello(workers, 2)
    assert survivor.recv(1000) and victim.recv(1000)
    victim.close()
    name = f"worker 2 ({workers[2]}) ended before all workers had connected"
    with pytest.raises(meeting.WorkersMissingError, match=re.escape(name)):
        first.result(timeout=10)
    assert name in survivor.makefile().read()


def test_a_first_worker_that_ends_before_the_meeting_ends_all_workers(
    workers, pool
):
    with socket.create_server(("127.0.0.1", int(workers[0][10:]))) as server:
        future = pool.submit(meeting.meet, Cluster(workers, 1), 60)
        connection, _ = server.accept()
        connection.sendall(b'{"waiting": "Waiting for worker 2"}\n')
        connection.recv(1000)
        connection.close()
    with pytest.raises(meeting.WorkersMissingError, match="worker 0 .* ended"):
        future.result(timeout=10)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"[" * 5000 + b"\n",
        b"x" * (meeting._LINE_BYTES + 1),
        b'{"electra_tf_worker": 0, "of": 3}\n',
        b'{"electra_tf_worker": 1, "of": 2}\n',
        b'{"electra_tf_worker": 3, "of": 3}\n',
        b'{"electra_tf_worker": "1", "of": 3}\n',
        b'{"electra_tf_worker": 1}\n',
        b"5\n",
    ],
)
def test_clients_that_are_no_workers_are_ignored(workers, pool, sent):
    first = pool.submit(meeting.meet, Cluster(workers, 0), 30)
    stranger = connected(workers)
    stranger.sendall(sent)
    if not sent:
        stranger.close()
    others = [
        pool.submit(meeting.meet, Cluster(workers, index), 30)
        for index in (1, 2)
    ]
    for future in (first, *others):
        future.result(timeout=30)
    stranger.close()


def test_a_second_process_with_the_same_index_is_refused(workers, pool):
    first = pool.submit(meeting.meet, Cluster(workers, 0), 30)
    connection = hello(workers, 1)
    connection.recv(1000)
    name = rf"has already connected as worker 1 \({workers[1]}\)"
    with pytest.raises(UserError, match=name):
        meeting.meet(Cluster(workers, 1), 30)
    meeting.meet(Cluster(workers, 2), 30)
    first.result(timeout=30)
    connection.close()


def test_an_address_in_use_is_named(workers):
    with socket.create_server(("127.0.0.1", 0)) as server:
        workers[0] = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(UserError, match=f"{workers[0]}.* cannot listen on"):
            meeting.meet(Cluster(workers, 0), 5)


@pytest.mark.slow
def test_a_server_with_a_different_protocol_is_no_first_worker(workers):
    def answer(server):
        connection, _ = server.accept()
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.close()

    with socket.create_server(("127.0.0.1", int(workers[0][10:]))) as server:
        threading.Thread(target=answer, args=(server,)).start()
        with pytest.raises(
            meeting.WorkersMissingError, match="did not connect"
        ):
            meeting.meet(Cluster(workers, 1), 1.5)


@pytest.mark.parametrize(
    ("cluster", "task", "expected"),
    [
        ({"worker": ["a:1", "b:2"]}, ("worker", 1), (["a:1", "b:2"], 1)),
        (
            {"worker": ["a:1", "b:2"], "chief": ["c:3"]},
            ("worker", 1),
            (["c:3", "a:1", "b:2"], 2),
        ),
        (
            {"worker": ["a:1"], "chief": ["c:3"]},
            ("chief", 0),
            (["c:3", "a:1"], 0),
        ),
        (
            {"worker": {"1": "b:2", "0": "a:1"}, "ps": ["p:4"]},
            ("worker", 1),
            (["a:1", "b:2"], 1),
        ),
    ],
)
def test_a_cluster_lists_its_training_workers_chief_first(
    cluster, task, expected
):
    kind, index = task
    value = {"cluster": cluster, "task": {"type": kind, "index": index}}
    assert read_cluster(json.dumps(value)) == Cluster(*expected)


@pytest.mark.parametrize(
    ("address", "expected"),
    [("[::1]:2222", ("::1", 2222)), ("host.example:1", ("host.example", 1))],
)
def test_an_address_is_a_host_and_a_port(address, expected):
    assert Cluster([address], 0).host_and_port(0) == expected
