# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cluster that the environment variable TF_CONFIG describes."""

import re
from typing import Any, NamedTuple

from configure.errors import UserError
from configure.json_text import parse_json

_EXAMPLE = (
    '{"cluster": {"worker": ["host1:2222", "host2:2222"]},'
    ' "task": {"type": "worker", "index": 0}}'
)
_TRAINING_JOBS = ("chief", "worker")


class Cluster(NamedTuple):
    """The workers that train together, and which of them this process is."""

    workers: list[str]  # addresses HOST:PORT, the chief's first
    index: int  # of this process in `workers`

    def name(self, index: int) -> str:
        return f"worker {index} ({self.workers[index]})"

    def host_and_port(self, index: int) -> tuple[str, int]:
        host, _, port = self.workers[index].rpartition(":")
        return host.removeprefix("[").removesuffix("]"), int(port)


def read_cluster(text: str) -> Cluster:
    """Return what TF_CONFIG describes.

    Raises a UserError unless it can start this worker.

    TensorFlow itself reports a wrong type by a traceback, and waits for a
    worker that is listed twice.
    """
    try:
        value: Any = parse_json(text, "TF_CONFIG")
    except UserError as error:
        raise UserError(f"{error} Set it as {_EXAMPLE}.") from None
    jobs = value.get("cluster")
    if not (isinstance(jobs, dict) and jobs):
        _refuse("cluster", jobs, "an object: job name -> list of addresses")
    of_jobs = {job: _addresses(job, listed) for job, listed in jobs.items()}
    addresses = [address for listed in of_jobs.values() for address in listed]
    for address in addresses:
        if addresses.count(address) > 1:
            _refuse("cluster", address, "every address once")
    task = value.get("task")
    if not isinstance(task, dict):
        _refuse("task", task, "an object with type and index")
    kind, index = task.get("type"), task.get("index")
    if kind not in _TRAINING_JOBS or kind not in jobs:
        names = " or ".join(name for name in _TRAINING_JOBS if name in jobs)
        _refuse("task.type", kind, names or "a job named chief or worker")
    count = len(jobs[kind])
    if not re.fullmatch(r"\d{1,9}", str(index)) or int(index) >= count:
        _refuse("task.index", index, f"an integer from 0 to {count - 1}")
    chiefs, workers = (of_jobs.get(job, []) for job in _TRAINING_JOBS)
    before = len(chiefs) if kind == "worker" else 0
    return Cluster([*chiefs, *workers], before + int(index))


def _addresses(job: str, listed: Any) -> list[str]:
    """Return a job's addresses, of a list or of an object index -> address."""
    field = f"cluster.{job}"
    values = listed
    if isinstance(listed, dict):
        numbers = [str(number) for number in range(len(listed))]
        if sorted(listed) != sorted(numbers):
            _refuse(field, listed, "an address for each index from 0 on")
        values = [listed[number] for number in numbers]
    if not (isinstance(values, list) and values):
        _refuse(field, listed, "a list of addresses")
    for address in values:
        port = str(address).rpartition(":")[2]
        is_text = isinstance(address, str) and ":" in address
        if not (is_text and port.isdecimal() and int(port) < 2**16):
            _refuse(field, address, "an address HOST:PORT")
    return values


def _refuse(field: str, value: Any, expected: str) -> None:
    raise UserError(
        f"TF_CONFIG: {field} is {value!r}; expected {expected}. Set it on every"
        f" worker as {_EXAMPLE}, with the worker's own index."
    )
