# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts the server, and stops it without losing an answer."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable

from aiohttp import web

from configure.errors import UserError
from electra_tf.serving.application import ModelServer

# What is being computed when the server stops may take this long.
SHUTDOWN_SECONDS = 30.0
# Long enough for connections that were just taken to begin reading.
_SETTLING_SECONDS = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# What a loop raises on Windows and outside the main thread: no signals then.
_NO_SIGNALS = (NotImplementedError, RuntimeError, ValueError)


async def serve(
    server: ModelServer,
    host: str,
    port: int,
    ready: Callable[[str], None],
    stop: asyncio.Event | None = None,
) -> None:
    """Serves until SIGINT or SIGTERM, or until told to stop.

    On a signal no new connection is taken, requests that are in are answered,
    and the function returns.
    """
    stop = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        with contextlib.suppress(*_NO_SIGNALS):
            loop.add_signal_handler(number, stop.set)
    runner = web.AppRunner(
        server.application,
        access_log=None,
        shutdown_timeout=SHUTDOWN_SECONDS,
        handle_signals=False,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except (OSError, OverflowError) as error:
            raise UserError(
                f"cannot listen at {host}, port {port}: {error}; choose"
                " another --port, or 0 for any free one"
            ) from error
        ready(_address(runner))
        await stop.wait()
        server.is_stopping = True
        # aiohttp reads no request of a connection that begins once it cleans
        # up, and would wait SHUTDOWN_SECONDS for that connection's end.
        await site.stop()
        await asyncio.sleep(_SETTLING_SECONDS)
    finally:
        await runner.cleanup()
        for number in _SIGNALS:
            with contextlib.suppress(*_NO_SIGNALS):
                loop.remove_signal_handler(number)


def _address(runner: web.AppRunner) -> str:
    host, port = runner.addresses[0][:2]
    with contextlib.suppress(OSError):
        socket.inet_pton(socket.AF_INET6, host)
        host = f"[{host}]"
    return f"http://{host}:{port}"
