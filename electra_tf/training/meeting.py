# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Meeting of workers before TensorFlow connects them.

TensorFlow waits an hour for a missing worker, in C++ code that runs no signal
handlers, and cannot name the worker. The first worker therefore listens on its
address until all other workers have connected. Then the address is free for
TensorFlow. A worker that ends meanwhile closes its connection.
"""

import contextlib
import json
import selectors
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, cast

from configure.errors import TRY_AGAIN, UserError
from electra_tf.training.cluster import Cluster

# Seconds that the first worker waits for all other workers, and each other
# worker for the first worker.
WAIT_SECONDS = 120.0
_REPORT_SECONDS = 10.0  # seconds between reports of missing workers
_RETRY_SECONDS = 0.5  # seconds between attempts to reach the first worker
# Seconds of silence after which the first worker counts as lost.
_SILENCE_SECONDS = 60.0
_LINE_BYTES = 1 << 16


class WorkersMissingError(UserError):
    """Error about workers that ended or did not connect in time."""

    exit_status = TRY_AGAIN


def meet(cluster: Cluster, seconds: float = WAIT_SECONDS) -> None:
    """Wait until all workers of a cluster have connected.

    Raises:
      WorkersMissingError: some workers did not connect within `seconds`, or
        ended; the message contains their names and addresses.
      UserError: the first worker's address is in use, or a different process
        has the same index.
    """
    if len(cluster.workers) == 1:
        return
    if cluster.index:
        _join(cluster, seconds)
        return
    with contextlib.closing(_Meeting(cluster, seconds)) as meeting:
        meeting.hold()


def _missing(cluster: Cluster, indices: Iterable[int], seconds: float) -> str:
    return (
        f"{_names(cluster, indices)} did not connect within {seconds:g}"
        " seconds. Start all workers of TF_CONFIG with the same command, and"
        " check that the other hosts can reach the address of worker 0."
    )


def _ended(cluster: Cluster, index: int) -> str:
    return (
        f"{cluster.name(index)} ended before all workers had connected, and the"
        " other workers cannot continue. Read the output of"
        f" {cluster.name(index)}, and start all workers again with the same"
        " command."
    )


def _names(cluster: Cluster, indices: Iterable[int]) -> str:
    return ", ".join(map(cluster.name, indices))


class _Meeting:
    """The first worker's task in a meeting: to wait for all other workers."""

    def __init__(self, cluster: Cluster, seconds: float) -> None:
        self._cluster, self._seconds = cluster, seconds
        self._deadline = time.monotonic() + seconds
        self._present: dict[int, socket.socket] = {}  # by index of the worker
        # Incomplete line that each connection has sent so far.
        self._received: dict[socket.socket, bytes] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = _listen(cluster)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def close(self) -> None:
        for connection in (self._listener, *self._received):
            connection.close()
        self._selector.close()

    def hold(self) -> None:
        """Wait until all workers have connected, and notify them."""
        report_at = time.monotonic()
        while missing := self._missing():
            now = time.monotonic()
            if now >= self._deadline:
                self._fail(_missing(self._cluster, missing, self._seconds))
            if now >= report_at:
                report_at = now + _REPORT_SECONDS
                names = _names(self._cluster, missing)
                remaining = self._deadline - now
                text = (
                    f"Waiting for {names}; this run ends if they do not connect"
                    f" within {remaining:.0f} seconds"
                )
                print(text, flush=True)
                self._send(waiting=text)
            until = min(report_at, self._deadline)
            for key, _ in self._selector.select(max(until - now, 0)):
                self._serve(cast(socket.socket, key.fileobj))
        self._send(complete=True)

    def _missing(self) -> list[int]:
        others = range(1, len(self._cluster.workers))
        return [index for index in others if index not in self._present]

    def _fail(self, message: str) -> NoReturn:
        self._send(error=message)
        raise WorkersMissingError(message)

    def _send(self, **message: object) -> None:
        for connection in self._present.values():
            _send(connection, message)

    def _serve(self, connection: socket.socket) -> None:
        if connection is self._listener:
            with contextlib.suppress(OSError):
                connection, _ = self._listener.accept()
                connection.setblocking(False)
                self._received[connection] = b""
                self._selector.register(connection, selectors.EVENT_READ)
            return
        try:
            received = connection.recv(_LINE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        line = self._received[connection] + received
        if not received or len(line) > _LINE_BYTES:
            self._drop(connection)
        elif line.endswith(b"\n") and connection not in self._present.values():
            self._admit(connection, line)
        else:
            self._received[connection] = line

    def _admit(self, connection: socket.socket, line: bytes) -> None:
        """Register a worker; drop a connection that is not a worker's."""
        index = _index_of(line, self._cluster)
        if index is None:
            self._drop(connection)
        elif index in self._present:
            message = (
                "a different process has already connected as"
                f" {self._cluster.name(index)}. Set TF_CONFIG on each worker"
                " with the worker's index."
            )
            _send(connection, {"error": message, "try_again": False})
            self._drop(connection)
        else:
            self._present[index] = connection
            names = _names(self._cluster, self._missing())
            _send(connection, {"waiting": names and f"Waiting for {names}"})

    def _drop(self, connection: socket.socket) -> None:
        for index, present in self._present.items():
            if present is connection:
                self._fail(_ended(self._cluster, index))
        self._selector.unregister(connection)
        del self._received[connection]
        connection.close()


def _listen(cluster: Cluster) -> socket.socket:
    _, port = cluster.host_and_port(0)
    try:
        if socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True
            )
        return socket.create_server(("", port))
    except OSError as error:
        raise UserError(
            f"TF_CONFIG: {cluster.name(0)} cannot listen on its port"
            f" ({error.strerror}). Stop the program that uses the port, or"
            " change the address on all workers."
        ) from error


def _index_of(line: bytes, cluster: Cluster) -> int | None:
    """Return the index in a worker's first line; None for other lines."""
    try:
        message = json.loads(line)
        index, count = message["electra_tf_worker"], message["of"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_other = isinstance(index, int) and 0 < index < len(cluster.workers)
    return index if is_other and count == len(cluster.workers) else None


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send a message; ignore errors, because reads reveal lost connections."""
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps(message).encode() + b"\n")


def _join(cluster: Cluster, seconds: float) -> None:
    """Connect to the first worker, and wait for all other workers."""
    deadline = time.monotonic() + seconds
    report_at = time.monotonic()
    while True:
        now = time.monotonic()
        if now >= deadline:
            raise WorkersMissingError(_missing(cluster, [0], seconds))
        if now >= report_at:
            report_at = now + _REPORT_SECONDS
            print(
                f"Waiting for {cluster.name(0)}; this process ends if it does"
                f" not connect within {deadline - now:.0f} seconds",
                flush=True,
            )
        with contextlib.suppress(OSError), _connect(cluster) as connection:
            connection.settimeout(deadline - now)
            if _wait_for_all(connection, cluster):
                return
        time.sleep(_RETRY_SECONDS)


def _connect(cluster: Cluster) -> socket.socket:
    address = cluster.host_and_port(0)
    connection = socket.create_connection(address, timeout=_REPORT_SECONDS)
    if connection.getsockname() == connection.getpeername():
        # If no process listens on the port, the system may choose this port as
        # the local port, too, which connects the socket to itself.
        connection.close()
        raise ConnectionRefusedError
    return connection


def _wait_for_all(connection: socket.socket, cluster: Cluster) -> bool:
    """Wait for all workers; return False if the first worker sends nothing."""
    hello = {"electra_tf_worker": cluster.index, "of": len(cluster.workers)}
    _send(connection, hello)
    message = None
    for message in _messages(connection):
        connection.settimeout(_SILENCE_SECONDS)
        if message.get("complete"):
            return True
        if error := message.get("error"):
            is_temporary = message.get("try_again", True)
            raise (WorkersMissingError if is_temporary else UserError)(error)
        if text := message.get("waiting"):
            print(text, flush=True)
    if message is not None:
        raise WorkersMissingError(_ended(cluster, 0))
    return False


def _messages(connection: socket.socket) -> Iterator[dict[str, Any]]:
    """Yield the first worker's messages until its connection ends."""
    with contextlib.suppress(OSError), connection.makefile("rb") as file:
        while line := file.readline(_LINE_BYTES):
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                return
            if not isinstance(message, dict):
                return
            yield message
