# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a server: counts and durations, in Prometheus's text format."""

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import (
    CONTENT_TYPE_PLAIN_0_0_4,
    generate_latest,
)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Monitor:
    """The metrics of one server.

    Routes have a fixed set of names, so that no client can add a time series.
    """

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        shared = {"registry": self._registry, "namespace": "electra_tf"}
        self._requests = Counter(
            "requests", "Answered requests.", ["route", "status"], **shared
        )
        self._errors = Counter(
            "errors",
            "Requests answered with status 400 or above.",
            ["route", "status"],
            **shared,
        )
        self._seconds = Histogram(
            "request_seconds",
            "Seconds from a request's headers to its answer.",
            ["route"],
            buckets=_SECONDS,
            **shared,
        )
        self._batch_rows = Histogram(
            "batch_rows",
            "Number of rows in each computed batch.",
            buckets=_SIZES,
            **shared,
        )
        self._batch_requests = Histogram(
            "batch_requests",
            "Number of requests in each computed batch.",
            buckets=_SIZES,
            **shared,
        )

    def add_request(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request, and record its duration."""
        self._requests.labels(route, status).inc()
        if status >= 400:
            self._errors.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def add_batch(self, requests: int, rows: int) -> None:
        """Record the numbers of requests and rows of a computed batch."""
        self._batch_requests.observe(requests)
        self._batch_rows.observe(rows)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format, version 0.0.4."""
        return generate_latest(self._registry)
