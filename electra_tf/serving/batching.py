# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests that come at about the same time are computed together.

One thread computes. While it does, requests gather; what fits together, up to
a number of rows, is the next batch. When nothing is being computed a request
waits a moment for company.
"""

import asyncio
import collections
import concurrent.futures
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.serving.requests import PredictRequest, RequestError

Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Limits:
    """How requests are put together.

    Attributes:
      max_batch: rows computed at once, unless a single request has more.
      max_wait: seconds that a request waits for others.
      max_rows: rows of one request.
      max_waiting: rows that may wait; more are turned away.
    """

    max_batch: int = 32
    max_wait: float = 0.002
    max_rows: int = 1024
    max_waiting: int = 4096


@dataclasses.dataclass
class _Waiting:
    request: PredictRequest
    key: tuple
    since: float
    answer: asyncio.Future

    @property
    def rows(self) -> int:
        return self.request.rows or 1


@dataclasses.dataclass
class Counts:
    """What has been done so far.

    Attributes:
      requests: answered or refused by the model.
      rows: in them.
      batches: computed.
    """

    requests: int = 0
    rows: int = 0
    batches: int = 0


class Batcher:
    """Computes requests in batches."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._news = asyncio.Event()
        self._thread = concurrent.futures.ThreadPoolExecutor(
            1, thread_name_prefix="compute"
        )
        self._task: asyncio.Task | None = None
        self.counts = Counts()

    def start(self) -> None:
        """Begins to compute; called in the loop that will ask."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Ends it; what is still waiting gets an error."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for waiting in self._waiting:
            if not waiting.answer.done():
                waiting.answer.set_exception(
                    RequestError("The server is stopping.", 503)
                )
        self._waiting.clear()
        self._thread.shutdown(wait=True)

    @property
    def is_working(self) -> bool:
        """Whether requests are being taken."""
        return self._task is not None and not self._task.done()

    async def ask(self, request: PredictRequest) -> dict[str, np.ndarray]:
        """Computes a request, together with others where they fit.

        Raises:
          RequestError: too many rows, too busy, or the model refuses it.
        """
        rows = request.rows or 1
        if rows > self._limits.max_rows:
            raise RequestError(
                f"The request has {rows} rows; at most"
                f" {self._limits.max_rows} are taken at once.",
                413,
            )
        if self._waiting_rows() + rows > self._limits.max_waiting:
            raise RequestError("Too many requests are waiting.", 503)
        if not self.is_working:
            raise RequestError("The server is stopping.", 503)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(
            request, _key(request), loop.time(), loop.create_future()
        )
        self._waiting.append(waiting)
        self._news.set()
        return await waiting.answer

    def _waiting_rows(self) -> int:
        return sum(waiting.rows for waiting in self._waiting)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._waiting:
                self._news.clear()
                await self._news.wait()
            await self._gather()
            batch = self._take()
            if not batch:  # Those who asked have gone.
                continue
            results = await loop.run_in_executor(
                self._thread, _compute, [one.request for one in batch]
            )
            self.counts.batches += 1
            for one, result in zip(batch, results, strict=True):
                self.counts.requests += 1
                self.counts.rows += one.rows
                if one.answer.done():
                    continue
                if isinstance(result, Exception):
                    one.answer.set_exception(result)
                else:
                    one.answer.set_result(result)

    async def _gather(self) -> None:
        """Lets the oldest request wait for company."""
        first = self._waiting[0]
        loop = asyncio.get_running_loop()
        while True:
            alike = [w for w in self._waiting if w.key == first.key]
            left = first.since + self._limits.max_wait - loop.time()
            full = sum(w.rows for w in alike) >= self._limits.max_batch
            if full or left <= 0 or first.request.rows is None:
                return
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), left)
            except asyncio.TimeoutError:
                return

    def _take(self) -> list[_Waiting]:
        """The oldest request and those that fit to it, in order."""
        while self._waiting and self._waiting[0].answer.done():
            self._waiting.popleft()
        if not self._waiting:
            return []
        first = self._waiting.popleft()
        batch, rows, others = [first], first.rows, []
        while self._waiting:
            one = self._waiting.popleft()
            if one.answer.done():
                continue
            fits = one.key == first.key and first.request.rows is not None
            if fits and rows + one.rows <= self._limits.max_batch:
                batch.append(one)
                rows += one.rows
            else:
                others.append(one)
        self._waiting.extend(others)
        return batch


def _key(request: PredictRequest) -> tuple:
    """What requests must have in common to be computed together."""
    shapes = tuple(
        (name, array.shape[1:])
        for name, array in sorted(request.arrays.items())
    )
    return request.signature.name, shapes


def _compute(
    requests: Sequence[PredictRequest],
) -> list[dict[str, np.ndarray] | Exception]:
    """Outputs, or what went wrong, for each request."""
    if len(requests) == 1:
        return [_compute_one(requests[0])]
    arrays = {
        name: np.concatenate([request.arrays[name] for request in requests])
        for name in requests[0].arrays
    }
    try:
        outputs = requests[0].signature(arrays)
    except Exception:
        # One of them is to blame; the others must not suffer.
        return [_compute_one(request) for request in requests]
    rows = [request.rows or 0 for request in requests]
    if any(not a.ndim or len(a) != sum(rows) for a in outputs.values()):
        return [_compute_one(request) for request in requests]
    ends = np.cumsum(rows)
    return [
        {name: a[end - count : end] for name, a in outputs.items()}
        for end, count in zip(ends, rows, strict=True)
    ]


def _compute_one(
    request: PredictRequest,
) -> dict[str, np.ndarray] | Exception:
    try:
        return request.signature(request.arrays)
    except (
        tf.errors.InvalidArgumentError,
        tf.errors.OutOfRangeError,
        tf.errors.FailedPreconditionError,
    ) as error:
        return RequestError(f"The model refuses it: {_first_line(error)}")
    except Exception as error:
        return error


def _first_line(error: tf.errors.OpError) -> str:
    """What the graph says, without where in the graph."""
    lines = [line.strip() for line in error.message.splitlines()]
    own = [line for line in lines if "assertion failed: [" in line]
    if own:
        # assertion failed: [what our code says] [Condition x <= y ...
        return own[-1].split("assertion failed: [")[1].split("]")[0][:300]
    said = [line.split("[[")[0].strip() for line in lines]
    said = [line for line in said if line and not line.endswith("error:")]
    return (said[-1] if said else "invalid input")[:300]
