# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests that come at about the same time are computed together.

One thread computes. While it does, requests gather; what fits together, up to
a number of rows, is the next batch. When nothing is being computed a request
waits a moment for company. (TensorFlow's own batching function is slower here;
docs/design.md has the figures.)
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
    """How requests are put together."""

    # Rows computed at once, unless a single request has more.
    max_batch: int = 32
    max_wait: float = 0.002  # seconds that a request waits for others
    max_rows: int = 1024  # rows of one request
    max_waiting: int = 4096  # rows that may wait; more are turned away


@dataclasses.dataclass
class Counts:
    """What the model answered or refused."""

    requests: int = 0
    rows: int = 0
    batches: int = 0


@dataclasses.dataclass(eq=False)
class _Waiting:
    request: PredictRequest
    since: float
    answer: asyncio.Future


class Batcher:
    """Computes requests in batches."""

    def __init__(
        self,
        limits: Limits,
        observe: Callable[[int, int], None] = lambda requests, rows: None,
    ) -> None:
        """`observe` is called with the requests and rows of each batch."""
        self.counts = Counts()
        self._limits, self._observe = limits, observe
        self._waiting: list[_Waiting] = []  # the oldest first
        self._news = asyncio.Event()
        self._thread = concurrent.futures.ThreadPoolExecutor(
            1, thread_name_prefix="compute"
        )
        self._task: asyncio.Task | None = None

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
                waiting.answer.set_exception(_stopping())
        self._waiting.clear()
        self._thread.shutdown(wait=True)

    @property
    def is_working(self) -> bool:
        return self._task is not None and not self._task.done()

    async def ask(self, request: PredictRequest) -> Outputs:
        """Computes a request, together with others where they fit.

        Raises:
          RequestError: too many rows, too busy, or the model refuses it.
        """
        limits = self._limits
        waiting = sum(one.request.rows for one in self._waiting)
        if request.rows > limits.max_rows:
            raise RequestError(
                f"The request has {request.rows} rows; at most"
                f" {limits.max_rows} are taken at once.",
                413,
            )
        # One alone is taken, however large.
        if waiting and waiting + request.rows > limits.max_waiting:
            raise RequestError("Too many requests are waiting.", 503)
        if not self.is_working:
            raise _stopping()
        loop = asyncio.get_running_loop()
        one = _Waiting(request, loop.time(), loop.create_future())
        self._waiting.append(one)
        self._news.set()
        return await one.answer

    async def _work(self) -> None:
        loop, limits = asyncio.get_running_loop(), self._limits
        while True:
            # Without those who asked and have gone.
            self._waiting = [w for w in self._waiting if not w.answer.done()]
            if not self._waiting:
                await self._wait_for_news(None)
                continue
            batch, is_full = self._next_batch()
            left = batch[0].since + limits.max_wait - loop.time()
            if left > 0 and not is_full:
                await self._wait_for_news(left)
                continue
            self._waiting = [w for w in self._waiting if w not in batch]
            requests = [one.request for one in batch]
            results = await loop.run_in_executor(
                self._thread, compute, requests
            )
            rows = sum(request.rows for request in requests)
            self.counts.batches += 1
            self.counts.requests += len(requests)
            self.counts.rows += rows
            self._observe(len(requests), rows)
            for one, result in zip(batch, results, strict=True):
                if one.answer.done():
                    continue
                if isinstance(result, Exception):
                    one.answer.set_exception(result)
                else:
                    one.answer.set_result(result)

    def _next_batch(self) -> tuple[list[_Waiting], bool]:
        """The oldest request and those that fit to it; whether no more can."""
        first, *others = self._waiting
        key, rows = first.request.key, first.request.rows
        if key is None:
            return [first], True
        batch, most = [first], self._limits.max_batch
        alike = [one for one in others if one.request.key == key]
        for one in alike:
            if rows + one.request.rows <= most:
                batch.append(one)
                rows += one.request.rows
        return batch, rows >= most or len(batch) <= len(alike)

    async def _wait_for_news(self, seconds: float | None) -> None:
        self._news.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)


def _stopping() -> RequestError:
    return RequestError("The server is stopping.", 503)


def compute(requests: Sequence[PredictRequest]) -> list[Outputs | Exception]:
    """Outputs, or what went wrong, for each request of one key."""
    if len(requests) == 1:
        return [_compute_one(requests[0])]
    names, signature = requests[0].arrays, requests[0].signature
    arrays = {n: np.concatenate([r.arrays[n] for r in requests]) for n in names}
    ends = np.cumsum([request.rows for request in requests])
    try:
        outputs = signature(arrays)
        if all(a.ndim and len(a) == ends[-1] for a in outputs.values()):
            parts = [np.split(a, ends[:-1]) for a in outputs.values()]
            rows = zip(*parts, strict=True)
            return [dict(zip(outputs, row, strict=True)) for row in rows]
    except Exception:
        pass  # One of them is to blame; the others must not suffer.
    return [*map(_compute_one, requests)]


def _compute_one(request: PredictRequest) -> Outputs | Exception:
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
    # assertion failed: [what our code says] [Condition x <= y ...
    said = re.findall(r"assertion failed: \[(.*?)\]", error.message)
    if not said:
        lines = [n.split("[[")[0].strip() for n in error.message.splitlines()]
        said = [line for line in lines if line and not line.endswith("error:")]
    return (said or ["invalid input"])[-1][:300]
