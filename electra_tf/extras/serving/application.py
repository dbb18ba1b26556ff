# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The server: predictions, status, metadata, health, metrics, and the page.

Source: TensorFlow Serving's RESTful API. All errors are `{"error": "..."}`.

Differs: requests for another host (see `hosts`) and bodies that are not
`application/json` are refused, so that no page of another origin can ask: a
browser sends such a body across origins only after a question that this server
does not answer with leave.
"""

import asyncio
import contextlib
import dataclasses
import importlib.resources
import json
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Iterable

from aiohttp import ClientPayloadError, HttpVersion11, http_exceptions, web

from configure.errors import UserError
from electra_tf.extras.serving.batching import Batcher, Limits
from electra_tf.extras.serving.hosts import HostCheck
from electra_tf.extras.serving.monitoring import Monitor
from electra_tf.extras.serving.protocol import (
    RequestError,
    answer,
    parse_request,
)
from electra_tf.extras.serving.served_model import ServedModel

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MAX_BODY_BYTES = 4 * 2**20
_BODY_TYPE = "application/json"
# A client that takes longer to send its body is let go, and one whose headers
# are not whole so long after it connected, or after its last answer.
BODY_SECONDS = HEADER_SECONDS = 30.0
_PAGE_FILES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
# The page loads nothing from elsewhere, and nobody may frame it.
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self';"
        " connect-src 'self'; img-src data:; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
# What is being computed when the server stops may take this long.
SHUTDOWN_SECONDS = 30.0
# Long enough for connections that were just taken to begin reading.
_SETTLING_SECONDS = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# What a loop raises on Windows and outside the main thread: no signals then.
_NO_SIGNALS = (NotImplementedError, RuntimeError, ValueError)
# The body's encoding (gzip, chunks) is broken.
_BAD_PAYLOAD = (
    http_exceptions.BadHttpMessage,
    ClientPayloadError,
    web.RequestPayloadError,
)
_logger = logging.getLogger(__name__)


def _in_one_line(record: logging.LogRecord) -> bool:
    """What is no HTTP is the client's mistake: the log needs no traceback."""
    error = record.exc_info and record.exc_info[1]
    if isinstance(error, http_exceptions.HttpProcessingError):
        found = " ".join(error.message.split())
        record.msg, record.args = f"{record.getMessage()}: {found[:200]}", ()
        record.exc_info = None
    return True


_protocol_logger = logging.getLogger(f"{__name__}.protocol")
_protocol_logger.addFilter(_in_one_line)


class ModelServer:
    """What the routes do, for one model."""

    def __init__(
        self,
        model: ServedModel,
        limits: Limits | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
        allowed_hosts: Iterable[str] = (),
    ) -> None:
        """Set up the routes.

        Args:
          model: what answers.
          limits: of requests and batches.
          max_body_bytes: of a body once it is unpacked.
          allowed_hosts: see `HostCheck`.
        """
        self.model = model
        self.hosts = HostCheck(allowed_hosts)
        self.is_stopping = False  # then nothing new is taken
        self._max_body_bytes = max_body_bytes
        self._limits = limits or Limits()
        self._monitor = Monitor()
        self.application = web.Application(
            client_max_size=max_body_bytes,
            middlewares=[self._measure, _errors_as_json, self._check_host],
        )
        self.application.on_startup.append(self._start)
        self.application.on_cleanup.append(self._stop)
        router = self.application.router
        place = "/v1/models/{name}"
        for start in (place, place + "/versions/{version:[0-9]+}"):
            # All methods, and before the status: its {name} would match, too.
            router.add_route("*", start + ":predict", self.predict)
            router.add_get(start, self.status)
            router.add_get(start + "/metadata", self.metadata)
        router.add_get("/healthz", self.health)
        router.add_get("/metrics", self.metrics)
        router.add_get("/page.json", self.about)
        for path in _PAGE_FILES:
            router.add_get(path, self.page)

    async def predict(self, request: web.Request) -> web.Response:
        """`POST /v1/models/<name>[/versions/<n>]:predict`."""
        if request.method != "POST":
            raise web.HTTPMethodNotAllowed(request.method, ["POST"])
        self._check_name(request)
        _check_type(request)
        asked = parse_request(await self._body(request), self.model)
        outputs = await self._batcher.ask(asked)
        return _json(answer(outputs, asked.row_format))

    async def status(self, request: web.Request) -> web.Response:
        """`GET /v1/models/<name>[/versions/<n>]`."""
        self._check_name(request)
        status = {
            "version": str(self.model.version),
            "state": "UNLOADING" if self.is_stopping else "AVAILABLE",
            "status": {"error_code": "OK", "error_message": ""},
        }
        return _json({"model_version_status": [status]})

    async def metadata(self, request: web.Request) -> web.Response:
        """`GET /v1/models/<name>[/versions/<n>]/metadata`."""
        self._check_name(request)
        name, version = self.model.name, str(self.model.version)
        spec = {"name": name, "signature_name": "", "version": version}
        metadata = {"signature_def": {"signature_def": self.model.metadata}}
        return _json({"model_spec": spec, "metadata": metadata})

    async def health(self, request: web.Request) -> web.Response:
        """`GET /healthz`: 200 while predictions are being answered."""
        well = self._batcher.is_working and not self.is_stopping
        health = {
            "status": "ok" if well else "stopping",
            "model": self.model.name,
            "version": self.model.version,
            **dataclasses.asdict(self._batcher.counts),
        }
        return _json(health, 200 if well else 503)

    async def metrics(self, request: web.Request) -> web.Response:
        """`GET /metrics`: what Prometheus collects."""
        return web.Response(
            body=self._monitor.text(),
            headers={"Content-Type": self._monitor.content_type},
        )

    async def about(self, request: web.Request) -> web.Response:
        """`GET /page.json`: what the page needs to know of the model."""
        model = self.model
        text = model.signatures.get("serve_text")
        config = {
            name: value
            for name, value in model.config.items()
            if isinstance(value, str | int | float) or name == "range"
        }
        return _json(
            {
                "name": model.name,
                "version": model.version,
                "kind": model.kind,
                "labels": model.labels,
                "inputs": list(text.inputs) if text else [],
                "outputs": list(text.outputs) if text else [],
                "config": config,
            }
        )

    async def page(self, request: web.Request) -> web.Response:
        """`GET /`: the page, and its two files."""
        name, kind = _PAGE_FILES[request.path]
        folder = importlib.resources.files("electra_tf.extras.serving") / "page"
        return web.Response(
            text=(folder / name).read_text("utf-8"),
            content_type=kind,
            charset="utf-8",
            headers=_PAGE_HEADERS,
        )

    async def _start(self, application: web.Application) -> None:
        self._batcher = Batcher(self._limits, self._monitor.add_batch)
        self._batcher.start()

    async def _stop(self, application: web.Application) -> None:
        await self._batcher.stop()

    @web.middleware
    async def _measure(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Count a request and its time; errors are answers by now."""
        started = time.monotonic()
        response = await handler(request)
        route = request.match_info.handler.__name__
        if request.match_info.http_exception:  # another path or method
            route = "other"
        seconds = time.monotonic() - started
        self._monitor.add_request(route, response.status, seconds)
        return response

    @web.middleware
    async def _check_host(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        headers = request.headers.getall("Host", [])
        # HTTP/1.0 has no such header; browsers do not speak it.
        if headers or request.version >= HttpVersion11:
            transport = request.transport
            local = transport and transport.get_extra_info("sockname")
            self.hosts.check(headers, local[0] if local else None)
        return await handler(request)

    def _check_name(self, request: web.Request) -> None:
        name = request.match_info["name"]
        version = request.match_info.get("version")
        known = str(self.model.version)
        if name != self.model.name or version not in (None, known):
            wanted = f"{name}, version {version}" if version else name
            raise RequestError(
                f"There is no model {wanted}; there is {self.model.name},"
                f" version {known}.",
                404,
            )

    async def _body(self, request: web.Request) -> bytes:
        length = request.content_length
        if length is not None and length > self._max_body_bytes:
            raise RequestError(
                f"The body has {length} bytes; at most"
                f" {self._max_body_bytes} are taken.",
                413,
            )
        try:
            return await asyncio.wait_for(request.read(), BODY_SECONDS)
        except asyncio.TimeoutError:
            raise RequestError("The body did not come in time.", 408) from None


def _check_type(request: web.Request) -> None:
    """Refuse a body that is not declared as JSON in UTF-8."""
    kind = request.content_type.lower()
    found = request.headers.get("Content-Type", "none")[:100]
    charset = (request.charset or "utf-8").lower()
    if kind != _BODY_TYPE or charset not in ("utf-8", "utf8", "us-ascii"):
        raise RequestError(
            f"The body's Content-Type is {found!r}; expected {_BODY_TYPE}. Send"
            f" the header Content-Type: {_BODY_TYPE} (curl: -H"
            f" 'Content-Type: {_BODY_TYPE}').",
            415,
        )


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Handler
) -> web.StreamResponse:
    """Turns whatever goes wrong into `{"error": ...}`."""
    try:
        return await handler(request)
    except RequestError as error:
        return _json({"error": error.message}, error.status)
    except web.HTTPRequestEntityTooLarge:
        return _json({"error": "The body is too large."}, 413)
    except web.HTTPException as error:
        text = f"{error.reason}: {request.method} {request.path}"
        if allowed := error.headers.get("Allow"):
            text += f"; expected {allowed}"
        headers = {k: v for k, v in error.headers.items() if k == "Allow"}
        return _json({"error": text}, error.status, headers)
    except ConnectionError:
        _logger.warning("%s %s: the client left", request.method, request.path)
        return _json({"error": "The client left."}, 400)
    except _BAD_PAYLOAD as error:
        return _json({"error": f"The body cannot be read: {error}"}, 400)
    except Exception:
        _logger.exception("%s %s failed", request.method, request.path)
        return _json({"error": "Internal error; the log has it."}, 500)


def _json(
    value: object, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    # A client may ask about a name that no encoding has bytes for.
    body = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return web.Response(
        body=body.encode("utf-8", "replace"),
        status=status,
        content_type="application/json",
        headers=headers,
    )


async def serve(
    server: ModelServer,
    host: str,
    port: int,
    ready: Callable[[str], None],
    stop: asyncio.Event | None = None,
) -> None:
    """Serves until SIGINT, SIGTERM or `stop`; what is in is answered then."""
    stop = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        with contextlib.suppress(*_NO_SIGNALS):
            loop.add_signal_handler(number, stop.set)
    runner = web.AppRunner(
        server.application,
        access_log=None,
        logger=_protocol_logger,
        keepalive_timeout=HEADER_SECONDS,
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
        server.hosts.listen(host, (found[0] for found in runner.addresses))
        host, port = runner.addresses[0][:2]
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
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
