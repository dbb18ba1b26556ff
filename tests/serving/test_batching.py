# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests are computed together, and each gets its own answer."""

import asyncio
import json
import threading

import numpy as np
import pytest

from electra_tf.serving import batching
from electra_tf.serving.batching import Batcher, Limits
from electra_tf.serving.protocol import (
    PredictRequest,
    RequestError,
    make_request,
    parse_request,
)


def _asked(model, *texts, signature="echo"):
    body = {"signature_name": signature, "instances": list(texts)}
    return parse_request(json.dumps(body).encode(), model)


def _ids(model, *numbers):
    array = np.array([numbers], np.int32)
    signature = model.signatures["serving_default"]
    return make_request(signature, {"input_ids": array})


def _run(limits, use):
    async def main():
        batcher = Batcher(limits)
        batcher.start()
        try:
            return await use(batcher), batcher.counts
        finally:
            await batcher.stop()

    return asyncio.run(main())


def test_requests_at_once_make_few_batches(toy_model):
    async def use(batcher):
        asked = [_asked(toy_model, f"a{i}", f"b{i}") for i in range(20)]
        return await asyncio.gather(*map(batcher.ask, asked))

    found, counts = _run(Limits(max_batch=8, max_wait=0.05), use)
    for i, outputs in enumerate(found):
        assert outputs["echo"].tolist() == [f"a{i}".encode(), f"b{i}".encode()]
    assert (counts.requests, counts.rows, counts.batches) == (20, 40, 5)


def test_only_what_fits_is_put_together(toy_model):
    async def use(batcher):
        asked = [
            _asked(toy_model, "a"),
            _asked(toy_model, 2, signature="half"),
            _asked(toy_model, "b"),
            _ids(toy_model, 1, 2),
            _ids(toy_model, 1),
            _ids(toy_model, 3, 4),
        ]
        return await asyncio.gather(*map(batcher.ask, asked))

    found, counts = _run(Limits(max_wait=0.05), use)
    assert found[0]["echo"].tolist() == [b"a"]
    assert found[1]["half"].tolist() == [1.0]
    assert found[2]["echo"].tolist() == [b"b"]
    assert [f["sum"].tolist() for f in found[3:]] == [[3], [1], [7]]
    assert counts.batches == 4


def test_a_batch_that_fails_is_tried_one_by_one():
    tried = []

    class Fussy:
        name = "fussy"

        def __call__(self, arrays):
            tried.append(len(arrays["x"]))
            if len(arrays["x"]) > 1 or arrays["x"][0] == 7:
                raise ValueError("no")
            return {"y": arrays["x"]}

    fussy = Fussy()
    asked = [
        PredictRequest(fussy, {"x": np.array([x])}, 1, ("fussy",), True)
        for x in (1, 7, 2)
    ]
    found = batching.compute(asked)
    assert tried == [3, 1, 1, 1]
    assert found[0]["y"] == [1] and found[2]["y"] == [2]
    assert isinstance(found[1], ValueError)


def test_the_busy_server_gathers_and_turns_away(toy_model, monkeypatch):
    started, release = threading.Event(), threading.Event()
    compute = batching.compute
    sizes = []

    def slow(requests):
        sizes.append(len(requests))
        started.set()
        assert release.wait(30)
        return compute(requests)

    monkeypatch.setattr(batching, "compute", slow)

    async def use(batcher):
        first = asyncio.ensure_future(batcher.ask(_asked(toy_model, "a")))
        await asyncio.to_thread(started.wait, 30)
        others = [
            asyncio.ensure_future(batcher.ask(_asked(toy_model, str(i))))
            for i in range(5)
        ]
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as refused:
            await batcher.ask(_asked(toy_model, "one too many"))
        assert refused.value.status == 503
        others[1].cancel()  # a client that goes
        release.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    limits = Limits(max_batch=16, max_wait=0.0, max_waiting=5)
    found, _ = _run(limits, use)
    assert sizes == [1, 4]
    assert isinstance(found[2], asyncio.CancelledError)
    kept = [f["echo"].tolist() for i, f in enumerate(found) if i != 2]
    assert kept == [[b"a"], [b"0"], [b"2"], [b"3"], [b"4"]]


def test_nothing_is_taken_after_the_end(toy_model):
    async def main():
        batcher = Batcher(Limits())
        batcher.start()
        await batcher.stop()
        with pytest.raises(RequestError, match="stopping"):
            await batcher.ask(_asked(toy_model, "a"))

    asyncio.run(main())
