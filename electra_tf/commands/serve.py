# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Serve an exported model over HTTP, on this machine.

Predictions follow TensorFlow Serving's REST protocol. The web page at / answers
typed text; metrics for Prometheus are at /metrics. The latest version in DIR is
served. The server has no password and no encryption, so it listens on this
machine only, unless --host is passed. A request must name an address that the
server listens on, or one of --allowed_hosts, and its body must be
application/json. Requests that arrive together are computed together. Ctrl-C or
SIGTERM stops the server once all received requests are answered.
"""

import argparse
import importlib
import math
from collections.abc import Sequence
from typing import Any

from configure import flags
from configure.errors import missing_extra

_LIMITS = (
    ("max_batch", 32, "N", "maximum number of rows computed together"),
    (
        "max_wait_ms",
        2.0,
        "N",
        "maximum time that a request waits for other requests, in milliseconds",
    ),
    (
        "max_rows",
        1024,
        "N",
        "maximum number of rows in a request; larger requests are refused",
    ),
    (
        "max_body_mb",
        4.0,
        "N",
        "maximum size of a request in megabytes; larger requests are refused",
    ),
)


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags.FlagParser("serve", __doc__)
    parser.add_argument(
        "folder",
        metavar="DIR",
        help="output of export_model: DIR/<version>/saved_model.pb",
    )
    flags.add_flags(
        parser,
        "the model and the address",
        ("name", None, "NAME", "name of the model; default: the name of DIR"),
        ("version", int, "N", "version to serve; default: the highest in DIR"),
        (
            "host",
            "127.0.0.1",
            "ADDRESS",
            "address to listen on; the default serves only this machine",
        ),
        ("port", 8501, "N", "port to listen on; 0: any free port"),
        (
            "allowed_hosts",
            "",
            "NAMES",
            "further host names that requests may use, separated by commas",
        ),
    )
    flags.add_flags(parser, "limits", *_LIMITS)
    args = parser.parse_args(list(argv[1:]))
    for name, *_ in _LIMITS:
        value = getattr(args, name)
        is_too_small = value == 0 and name != "max_wait_ms"
        if not 0 <= value < math.inf or is_too_small:
            parser.error(
                f"--{name} is {value}; expected a finite number above 0 (or 0"
                " for --max_wait_ms). Pass another number"
            )
    if not 0 <= args.port < 65536:
        parser.error(
            f"--port is {args.port}; expected a number from 0 to 65535. Pass"
            " another port"
        )
    return args


def main(args: argparse.Namespace) -> int:
    """Serve until a signal stops the server."""
    require_server("serve")
    from electra_tf.extras.serving.batching import Limits
    from electra_tf.extras.serving.hosts import HostCheck
    from electra_tf.extras.serving.served_model import open_model

    allowed = list(filter(None, args.allowed_hosts.split(",")))
    HostCheck(allowed)  # Bad host names are refused before the model is loaded.
    model = open_model(args.folder, args.name, args.version)
    kind = f" ({model.kind})" if model.kind else ""
    print(f"Model {model.name}, version {model.version}{kind}", flush=True)
    print(f"Signatures: {', '.join(model.signatures)}", flush=True)
    model.warm_up()
    limits = Limits(args.max_batch, args.max_wait_ms / 1000, args.max_rows)
    max_body_bytes = int(args.max_body_mb * 2**20)
    return serve_model(
        args.host, args.port, model, limits, max_body_bytes, allowed
    )


def require_server(command: str) -> None:
    """Raise a UserError unless the packages of `serve` are installed.

    Args:
      command: the command that needs the packages, for the message.
    """
    for package in ("aiohttp", "prometheus_client"):
        try:
            importlib.import_module(package)
        except ImportError as error:
            what = f"{command} needs {package}, which"
            raise missing_extra(what, "serve", error) from None


def serve_model(host: str, port: int, model: Any, *settings: Any) -> int:
    """Serve a loaded model until a signal stops the server.

    Args:
      host: the address to listen on.
      port: the port to listen on; 0: any free port.
      model: a `ServedModel` or an object with its attributes.
      *settings: further arguments of `ModelServer`.

    Returns:
      The exit status.
    """
    import asyncio

    from electra_tf.extras.serving.application import ModelServer, serve

    def ready(address: str) -> None:
        path = f"/v1/models/{model.name}:predict"
        print(f"Page:    {address}/")
        print(f"Predict: POST {address}{path}", flush=True)

    asyncio.run(serve(ModelServer(model, *settings), host, port, ready))
    print("Stopped.", flush=True)
    return 0
