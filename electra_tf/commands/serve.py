# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Serves an exported model over HTTP, on this machine.

By TensorFlow Serving's REST protocol for predictions, with a page at / where a
person types text and sees the answer, and Prometheus's metrics at /metrics.
Takes the newest version in DIR. Listens on this machine only, unless --host
says otherwise: there is no password and no encryption. A request must name an
address that the server listens on, or one of --allowed_hosts, and its body must
be application/json. Requests that come together are computed together. Ctrl-C
or SIGTERM ends it once the requests that are in have been answered.
"""

import argparse
import importlib
import math
from collections.abc import Sequence
from typing import Any

from configure import flags
from configure.errors import missing_extra

_LIMITS = (
    ("max_batch", 32, "N", "rows computed at once"),
    ("max_wait_ms", 2.0, "N", "milliseconds a request waits for others"),
    ("max_rows", 1024, "N", "rows of one request; more are refused"),
    ("max_body_mb", 4.0, "N", "size of a request; larger ones are refused"),
)


def parse_flags(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = flags.FlagParser("serve", __doc__)
    parser.add_argument(
        "folder",
        metavar="DIR",
        help="what export_model wrote: DIR/<version>/saved_model.pb",
    )
    flags.add_flags(
        parser,
        "what is served, and where",
        ("name", None, "NAME", "of the model; default: DIR's"),
        ("version", int, "N", "default: the highest there is"),
        ("host", "127.0.0.1", "ADDRESS", "this machine only by default"),
        ("port", 8501, "N", "0: any free one"),
        (
            "allowed_hosts",
            "",
            "NAMES",
            "further host names, separated by commas, that requests may be for",
        ),
    )
    flags.add_flags(parser, "limits", *_LIMITS)
    args = parser.parse_args(list(argv[1:]))
    for name, *_ in _LIMITS:
        value = getattr(args, name)
        too_few = value == 0 and name != "max_wait_ms"
        if not 0 <= value < math.inf or too_few:
            parser.error(f"--{name} is {value}; expected more than 0")
    if not 0 <= args.port < 65536:
        parser.error(f"--port is {args.port}; expected 0 to 65535")
    return args


def main(args: argparse.Namespace) -> int:
    """Serves until it is told to stop."""
    require_server("serve")
    from electra_tf.extras.serving.batching import Limits
    from electra_tf.extras.serving.hosts import HostCheck
    from electra_tf.extras.serving.served_model import open_model

    allowed = list(filter(None, args.allowed_hosts.split(",")))
    HostCheck(allowed)  # before the model is loaded
    model = open_model(args.folder, args.name, args.version)
    kind = f" ({model.kind})" if model.kind else ""
    print(f"Model {model.name}, version {model.version}{kind}", flush=True)
    print(f"Signatures: {', '.join(model.signatures)}", flush=True)
    model.warm_up()
    limits = Limits(args.max_batch, args.max_wait_ms / 1000, args.max_rows)
    largest = int(args.max_body_mb * 2**20)
    settings = (limits, largest, allowed)
    return serve_model(args.host, args.port, model, *settings)


def require_server(command: str) -> None:
    """Raise a UserError unless the packages of the extra are installed."""
    for package in ("aiohttp", "prometheus_client"):
        try:
            importlib.import_module(package)
        except ImportError as error:
            what = f"{command} needs {package}, which"
            raise missing_extra(what, "serve", error) from None


def serve_model(host: str, port: int, model: Any, *settings: Any) -> int:
    """Serve a loaded model; `settings` are the others of `ModelServer`."""
    import asyncio

    from electra_tf.extras.serving.application import ModelServer, serve

    def ready(address: str) -> None:
        print(f"Page:    {address}/")
        print(
            f"Predict: POST {address}/v1/models/{model.name}:predict",
            flush=True,
        )

    asyncio.run(serve(ModelServer(model, *settings), host, port, ready))
    print("Stopped.", flush=True)
    return 0
