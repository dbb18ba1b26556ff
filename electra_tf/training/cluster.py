# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cluster of workers, read from the environment variable TF_CONFIG."""

import dataclasses
import itertools
import re
from typing import Any, NoReturn

from configure.errors import UserError
from configure.json_text import parse_json

_EXAMPLE = (
    '{"cluster": {"worker": ["host1:2222", "host2:2222"]},'
    ' "task": {"type": "worker", "index": 0}}'
)
_TRAINING_JOBS = ("chief", "worker")


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Workers that train together, and the index of this process."""

    workers: list[str]  # HOST:PORT of each worker, the chief first
    index: int  # index of this process in `workers`

    def name(self, index: int) -> str:
        return f"worker {index} ({self.workers[index]})"

    def host_and_port(self, index: int) -> tuple[str, int]:
        host, _, port = self.workers[index].rpartition(":")
        return host.removeprefix("[").removesuffix("]"), int(port)


def read_cluster(text: str) -> Cluster:
    """Return the cluster that TF_CONFIG describes.

    TF_CONFIG is checked, because TensorFlow exits with a traceback at a value
    of a wrong type, and waits for a worker that is listed twice.

    Raises:
      UserError: TF_CONFIG is invalid.
    """
    try:
        value: Any = parse_json(text, "TF_CONFIG")
    except UserError as error:
        raise UserError(
            f"{error} Set TF_CONFIG as in this example: {_EXAMPLE}"
        ) from None
    jobs = value.get("cluster")
    if not (isinstance(jobs, dict) and jobs):
        expected = "an object that maps job names to lists of addresses"
        _refuse("cluster", jobs, expected)
    by_job = {job: _addresses(job, entry) for job, entry in jobs.items()}
    addresses = list(itertools.chain(*by_job.values()))
    for address in addresses:
        if addresses.count(address) > 1:
            _refuse("a repeated address", address, "every address once")
    task = value.get("task")
    if not isinstance(task, dict):
        _refuse("task", task, "an object with the keys type and index")
    kind, index = task.get("type"), task.get("index")
    if kind not in _TRAINING_JOBS or kind not in jobs:
        names = " or ".join(name for name in _TRAINING_JOBS if name in jobs)
        _refuse("task.type", kind, names or "a job named chief or worker")
    count = len(jobs[kind])
    if not re.fullmatch(r"\d{1,9}", str(index)) or int(str(index)) >= count:
        _refuse("task.index", index, f"an integer from 0 to {count - 1}")
    chiefs, workers = (by_job.get(job, []) for job in _TRAINING_JOBS)
    before = len(chiefs) if kind == "worker" else 0
    return Cluster([*chiefs, *workers], before + int(str(index)))


def _addresses(job: str, entry: object) -> list[str]:
    """Return a job's addresses; `entry` is a list, or an object by index."""
    field = f"cluster.{job}"
    addresses = entry
    if isinstance(entry, dict):
        indices = [str(index) for index in range(len(entry))]
        if sorted(entry) != sorted(indices):
            _refuse(field, entry, "one address for each index, from 0 on")
        addresses = [entry[index] for index in indices]
    if not (isinstance(addresses, list) and addresses):
        _refuse(field, entry, "a list of addresses")
    for address in addresses:
        port = str(address).rpartition(":")[2]
        is_text = isinstance(address, str) and ":" in address
        if not (is_text and port.isdecimal() and int(port) < 2**16):
            _refuse(field, address, "an address HOST:PORT")
    return addresses


def _refuse(field: str, value: object, expected: str) -> NoReturn:
    raise UserError(
        f"TF_CONFIG: {field} is {value!r}; expected {expected}. Set TF_CONFIG"
        " on each worker, with the worker's index, as in this example:"
        f" {_EXAMPLE}"
    )
