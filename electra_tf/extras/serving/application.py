# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The routes of the server: predictions, model facts, health, metrics, page.

Source: TensorFlow Serving's RESTful API. All errors are `{"error": "..."}`.

Differs: requests for another host (see `hosts`) and bodies that are not
`application/json` are refused, so that no page of another origin can send
requests: a browser sends such a body across origins only if a preflight request
is allowed, which this server never does.
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
    format_answer,
    parse_request,
)
from electra_tf.extras.serving.served_model import ServedModel

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MAX_BODY_BYTES = 4 * 2**20
_BODY_TYPE = "application/json"
# BODY_SECONDS is the maximum time from the headers of a request to the end of
# its body. HEADER_SECONDS is the maximum time from the connection, or from the
# previous response, to the headers.
BODY_SECONDS = HEADER_SECONDS = 30.0
_PAGE_FILES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
# The page loads nothing from other hosts, and no other page may embed it.
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self';"
        " connect-src 'self'; img-src data:; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
SHUTDOWN_SECONDS = 30.0  # seconds that running requests have to finish
# Seconds within which the server begins to read from accepted connections.
_SETTLING_SECONDS = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Tests serve outside the main thread, where setting a signal handler raises one
# of these errors.
_NO_SIGNALS = (RuntimeError, ValueError)
# The errors of a body whose encoding (gzip or chunks) is invalid.
_BAD_PAYLOAD = (
    http_exceptions.BadHttpMessage,
    ClientPayloadError,
    web.RequestPayloadError,
)
_logger = logging.getLogger(__name__)


def _in_one_line(record: logging.LogRecord) -> bool:
    """Shorten the log record of a malformed request to one line.

    A traceback is not needed, because the client has caused the error.
    """
    error = record.exc_info and record.exc_info[1]
    if isinstance(error, http_exceptions.HttpProcessingError):
        message = " ".join(error.message.split())
        record.msg, record.args = f"{record.getMessage()}: {message[:200]}", ()
        record.exc_info = None
    return True


_protocol_logger = logging.getLogger(f"{__name__}.protocol")
_protocol_logger.addFilter(_in_one_line)


class ModelServer:
    """The routes of a server for one model."""

    def __init__(
        self,
        model: ServedModel,
        limits: Limits | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
        allowed_hosts: Iterable[str] = (),
    ) -> None:
        """Set up the routes.

        Args:
          model: the model.
          limits: the limits of requests and batches.
          max_body_bytes: the maximum size of an unpacked body.
          allowed_hosts: see `HostCheck`.
        """
        self.model = model
        self.hosts = HostCheck(allowed_hosts)
        # Whether the server is stopping, as the routes for status and health
        # report.
        self.is_stopping = False
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
        model_path = "/v1/models/{name}"
        # This route matches every method, so that a GET gets status 405. The
        # {name} of the status route would match `<name>:predict`, too, so the
        # status route is registered later.
        for path in (model_path, model_path + "/versions/{version:[0-9]+}"):
            router.add_route("*", path + ":predict", self.predict)
        router.add_get(model_path, self.status)
        router.add_get(model_path + "/metadata", self.metadata)
        router.add_get("/healthz", self.health)
        router.add_get("/metrics", self.metrics)
        router.add_get("/page.json", self.about)
        for path in _PAGE_FILES:
            router.add_get(path, self.page)

    async def predict(self, request: web.Request) -> web.Response:
        """Answer `POST /v1/models/<name>[/versions/<n>]:predict`."""
        if request.method != "POST":
            raise web.HTTPMethodNotAllowed(request.method, ["POST"])
        self._check_name(request)
        _check_type(request)
        parsed = parse_request(await self._body(request), self.model)
        outputs = await self._batcher.ask(parsed)
        return _json(format_answer(outputs, parsed.row_format))

    async def status(self, request: web.Request) -> web.Response:
        """Answer `GET /v1/models/<name>` with the state of the model."""
        self._check_name(request)
        status = {
            "version": str(self.model.version),
            "state": "UNLOADING" if self.is_stopping else "AVAILABLE",
            "status": {"error_code": "OK", "error_message": ""},
        }
        return _json({"model_version_status": [status]})

    async def metadata(self, request: web.Request) -> web.Response:
        """Answer `GET /v1/models/<name>/metadata` with the signatures."""
        self._check_name(request)
        name, version = self.model.name, str(self.model.version)
        spec = {"name": name, "signature_name": "", "version": version}
        metadata = {"signature_def": {"signature_def": self.model.metadata}}
        return _json({"model_spec": spec, "metadata": metadata})

    async def health(self, request: web.Request) -> web.Response:
        """Answer `GET /healthz` with 200 while predictions are accepted."""
        is_healthy = self._batcher.is_working and not self.is_stopping
        health = {
            "status": "ok" if is_healthy else "stopping",
            "model": self.model.name,
            "version": self.model.version,
            **dataclasses.asdict(self._batcher.counts),
        }
        return _json(health, 200 if is_healthy else 503)

    async def metrics(self, request: web.Request) -> web.Response:
        """Answer `GET /metrics` with metrics for Prometheus."""
        return web.Response(
            body=self._monitor.text(),
            headers={"Content-Type": self._monitor.content_type},
        )

    async def about(self, request: web.Request) -> web.Response:
        """Answer `GET /page.json` with the model's facts for the web page."""
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
        """Answer `GET /` and the two files of the page."""
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
        """Count a request and measure its time, whether or not it succeeds."""
        started = time.monotonic()
        response = await handler(request)
        route = request.match_info.handler.__name__
        if request.match_info.http_exception:  # unknown path or method
            route = "other"
        seconds = time.monotonic() - started
        self._monitor.add_request(route, response.status, seconds)
        return response

    @web.middleware
    async def _check_host(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Refuse a request for another host."""
        headers = request.headers.getall("Host", [])
        # An HTTP/1.0 request without a Host header is accepted, because no
        # browser sends HTTP/1.0.
        if headers or request.version >= HttpVersion11:
            transport = request.transport
            local = transport and transport.get_extra_info("sockname")
            self.hosts.check(headers, local[0] if local else None)
        return await handler(request)

    def _check_name(self, request: web.Request) -> None:
        """Refuse a request for another model or version."""
        name = request.match_info["name"]
        version = request.match_info.get("version")
        served_version = str(self.model.version)
        if name != self.model.name or version not in (None, served_version):
            if version:
                name += f", version {version}"
            raise RequestError(
                f"No model {name}; expected {self.model.name}, version"
                f" {served_version}. Correct the path.",
                404,
            )

    async def _body(self, request: web.Request) -> bytes:
        """Read the body of a request, within the limits of size and time."""
        length = request.content_length
        if length is not None and length > self._max_body_bytes:
            raise RequestError(
                f"The body has {length} bytes; the limit is"
                f" {self._max_body_bytes}. Send fewer rows.",
                413,
            )
        try:
            return await asyncio.wait_for(request.read(), BODY_SECONDS)
        except asyncio.TimeoutError:
            raise RequestError(
                "The body did not arrive within"
                f" {BODY_SECONDS:g} seconds. Send the request again.",
                408,
            ) from None


def _check_type(request: web.Request) -> None:
    """Refuse a body that is not declared as JSON in UTF-8."""
    kind = request.content_type.lower()
    shown = request.headers.get("Content-Type", "none")[:100]
    charset = (request.charset or "utf-8").lower()
    if kind != _BODY_TYPE or charset not in ("utf-8", "utf8", "us-ascii"):
        raise RequestError(
            f"The body's Content-Type is {shown!r}; expected {_BODY_TYPE}. Send"
            f" the header Content-Type: {_BODY_TYPE} (curl: -H"
            f" 'Content-Type: {_BODY_TYPE}').",
            415,
        )


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Handler
) -> web.StreamResponse:
    """Turn any error into the answer `{"error": ...}`."""
    try:
        return await handler(request)
    except RequestError as error:
        return _json({"error": error.message}, error.status)
    except web.HTTPRequestEntityTooLarge:
        return _json({"error": "The body is too large. Send fewer rows."}, 413)
    except web.HTTPException as error:
        text = f"{error.reason}: {request.method} {request.path}"
        if allowed := error.headers.get("Allow"):
            text += f"; expected {allowed}"
        headers = {k: v for k, v in error.headers.items() if k == "Allow"}
        return _json({"error": text}, error.status, headers)
    except ConnectionError:
        _logger.warning(
            "%s %s: the client closed the connection",
            request.method,
            request.path,
        )
        return _json({"error": "The client closed the connection."}, 400)
    except _BAD_PAYLOAD as error:
        text = f"The encoding of the body is invalid: {error}."
        return _json({"error": f"{text} Correct the encoding."}, 400)
    except Exception:
        _logger.exception("%s %s failed", request.method, request.path)
        return _json({"error": "Internal error; see the server's log."}, 500)


def _json(
    value: object, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """Return a response whose body is a value as JSON."""
    # A name in a request may contain halves of surrogate pairs, which UTF-8
    # cannot represent.
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
    """Serve until SIGINT, SIGTERM or `stop`; then answer received requests.

    Args:
      server: the routes of the server.
      host: the address to listen on.
      port: the port to listen on; 0: any free port.
      ready: called with the server's address once it listens.
      stop: an event that stops the server when it is set.

    Raises:
      UserError: the server cannot listen on the address.
    """
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
                f"cannot listen on {host}, port {port}: {error}. Pass a"
                " different --port, or --port=0 for any free port."
            ) from error
        server.hosts.listen(host, (address[0] for address in runner.addresses))
        host, port = runner.addresses[0][:2]
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        await stop.wait()
        server.is_stopping = True
        # While aiohttp cleans up, it does not read requests of new connections,
        # but waits SHUTDOWN_SECONDS for these connections to end. The pause
        # gives the server time to read such requests.
        await site.stop()
        await asyncio.sleep(_SETTLING_SECONDS)
    finally:
        await runner.cleanup()
        for number in _SIGNALS:
            with contextlib.suppress(*_NO_SIGNALS):
                loop.remove_signal_handler(number)
