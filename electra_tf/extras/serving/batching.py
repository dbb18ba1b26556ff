# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batching of requests that arrive at about the same time.

One thread computes. Requests that arrive meanwhile wait; those that fit
together, up to a number of rows, form the next batch. If the thread is idle, a
request waits a moment for others. (TensorFlow's own batching function is
slower; docs/design.md has the figures.)
"""

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import re
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.extras.serving.protocol import PredictRequest, RequestError

Outputs = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of batches and requests."""

    # maximum number of rows of a batch; a single request may have more rows
    max_batch: int = 32
    max_wait: float = 0.002  # seconds that a request waits for further requests
    max_rows: int = 1024  # maximum number of rows of one request
    # maximum number of waiting rows, where a request without rows counts as one
    # row; requests that would exceed it are refused
    max_waiting: int = 4096


@dataclasses.dataclass
class Counts:
    """Counts of computed requests, rows and batches, failures included."""

    requests: int = 0
    rows: int = 0
    batches: int = 0


@dataclasses.dataclass(eq=False)
class _Waiting:
    """A request that waits for its answer."""

    request: PredictRequest
    since: float  # time of arrival on the event loop's clock, in seconds
    answer: asyncio.Future


class Batcher:
    """A batcher, which groups waiting requests and computes each group."""

    def __init__(
        self,
        limits: Limits,
        observe: Callable[[int, int], None] = lambda requests, rows: None,
    ) -> None:
        """Prepare the thread that computes the batches.

        Args:
          limits: the limits of batches and requests.
          observe: called with the counts of requests and rows of each batch.
        """
        self.counts = Counts()
        self._limits, self._observe = limits, observe
        self._waiting: list[_Waiting] = []  # the oldest request first
        self._arrival = asyncio.Event()
        self._thread = concurrent.futures.ThreadPoolExecutor(
            1, thread_name_prefix="compute"
        )
        self._task: asyncio.Task | None = None

    def start(self) -> None:
        """Start the task that computes batches, in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Stop the computation; answer waiting requests with an error."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for waiting in self._waiting:
            if not waiting.answer.done():
                waiting.answer.set_exception(_stopping())
        self._waiting.clear()
        self._thread.shutdown(wait=True)

    @property
    def is_working(self) -> bool:
        return self._task is not None and not self._task.done()

    async def ask(self, request: PredictRequest) -> Outputs:
        """Return the outputs of a request, which may be computed in a batch.

        Raises:
          RequestError: the request has too many rows, too many requests wait,
            or the model refuses the inputs.
        """
        limits = self._limits
        waiting_rows = sum(_queue_rows(w.request) for w in self._waiting)
        if request.rows > limits.max_rows:
            raise RequestError(
                f"The request has {request.rows} rows; the limit is"
                f" {limits.max_rows}. Send fewer rows at once.",
                413,
            )
        # A request above the limit of waiting rows is accepted if the queue is
        # empty; otherwise it would wait forever.
        rows = waiting_rows + _queue_rows(request)
        if waiting_rows and rows > limits.max_waiting:
            raise RequestError(
                "Too many requests are waiting. Try again later.", 503
            )
        if not self.is_working:
            raise _stopping()
        loop = asyncio.get_running_loop()
        entry = _Waiting(request, loop.time(), loop.create_future())
        self._waiting.append(entry)
        self._arrival.set()
        return await entry.answer

    async def _work(self) -> None:
        """Compute batches until the task is cancelled."""
        loop, limits = asyncio.get_running_loop(), self._limits
        while True:
            # A request whose client has left is dropped; its future is already
            # done.
            self._waiting = [w for w in self._waiting if not w.answer.done()]
            if not self._waiting:
                await self._wait_for_arrival(None)
                continue
            batch, is_full = self._next_batch()
            remaining = batch[0].since + limits.max_wait - loop.time()
            if remaining > 0 and not is_full:
                await self._wait_for_arrival(remaining)
                continue
            self._waiting = [w for w in self._waiting if w not in batch]
            requests = [entry.request for entry in batch]
            results = await loop.run_in_executor(
                self._thread, compute, requests
            )
            rows = sum(request.rows for request in requests)
            self.counts.batches += 1
            self.counts.requests += len(requests)
            self.counts.rows += rows
            self._observe(len(requests), rows)
            for entry, result in zip(batch, results, strict=True):
                if entry.answer.done():
                    continue
                if isinstance(result, Exception):
                    entry.answer.set_exception(result)
                else:
                    entry.answer.set_result(result)

    def _next_batch(self) -> tuple[list[_Waiting], bool]:
        """Return the next batch of waiting requests, and whether it is full."""
        first, *others = self._waiting
        key, rows = first.request.key, first.request.rows
        if key is None:
            return [first], True
        batch, max_rows = [first], self._limits.max_batch
        compatible = [entry for entry in others if entry.request.key == key]
        for entry in compatible:
            if rows + entry.request.rows <= max_rows:
                batch.append(entry)
                rows += entry.request.rows
        return batch, rows >= max_rows or len(batch) <= len(compatible)

    async def _wait_for_arrival(self, seconds: float | None) -> None:
        """Wait for a request, but no longer than `seconds` (None: no limit)."""
        self._arrival.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._arrival.wait(), seconds)


def _queue_rows(request: PredictRequest) -> int:
    """Return the number of rows that a request counts for in the queue.

    A request without rows takes memory too, so it counts as one row.
    """
    return max(1, request.rows)


def _stopping() -> RequestError:
    return RequestError("The server is stopping. Try again later.", 503)


def compute(requests: Sequence[PredictRequest]) -> list[Outputs | Exception]:
    """Compute requests with equal keys; return the outputs or error of each."""
    if len(requests) == 1:
        return [_compute_one(requests[0])]
    signature, arrays = requests[0].signature, {}
    for name in requests[0].arrays:
        rows = [request.arrays[name] for request in requests]
        arrays[name] = np.concatenate(rows)
    ends = np.cumsum([request.rows for request in requests])
    try:
        outputs = signature(arrays)
        if all(a.ndim and len(a) == ends[-1] for a in outputs.values()):
            parts = [np.split(a, ends[:-1]) for a in outputs.values()]
            by_request = zip(*parts, strict=True)
            return [dict(zip(outputs, p, strict=True)) for p in by_request]
    except Exception:
        # A single request may have caused the error, so each request is
        # computed alone.
        pass
    return [*map(_compute_one, requests)]


def _compute_one(request: PredictRequest) -> Outputs | Exception:
    try:
        return request.signature(request.arrays)
    except (
        tf.errors.InvalidArgumentError,
        tf.errors.OutOfRangeError,
        tf.errors.FailedPreconditionError,
    ) as error:
        return RequestError(
            f"The model refuses the inputs: {_short_message(error)}"
        )
    except Exception as error:
        return error


def _short_message(error: tf.errors.OpError) -> str:
    """Return the operation's error message without its graph location."""
    # The text of an error has the form "assertion failed: [message] [Condition
    # x <= y ...".
    messages = re.findall(r"assertion failed: \[(.*?)\]", error.message)
    if not messages:
        for line in error.message.splitlines():
            text = line.split("[[")[0].strip()
            if text and not text.endswith("error:"):
                messages.append(text)
    return (messages or ["invalid input"])[-1][:300]
