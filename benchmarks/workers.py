# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arms of a comparison, each a process in its own interpreter.

A peer has its own environment, so an arm is a worker: it prepares itself
once, stays alive and idle, and is asked in turn. Both sides import this file,
so it needs only the standard library. In the program that compares:

  worker = Worker("ours", python, script, spec)
  seconds = worker.ask("run", steps=5)

In the script of the worker (the spec is a dict of plain values):

  if __name__ == "__main__":
      serve(MyArm)  # MyArm(spec) prepares; its public methods answer `ask`
"""

import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

SPEC_VARIABLE = "ELECTRA_TF_BENCHMARK_ARM"
# As this program was given it: importing electra_tf sets variables for
# TensorFlow, which the peers must not inherit.
_ENVIRONMENT = dict(os.environ)


class ArmError(RuntimeError):
    """A worker failed or ended; the message holds what it last said."""


class Worker:
    """An arm in its own process.

    Args:
      name: of the arm, for messages.
      python: the interpreter that has what the arm needs.
      script: file that ends in `serve(...)`.
      spec: plain values the arm is made from.
      environment: variables to add, such as OMP_NUM_THREADS.
      arguments: of the script, after its name.

    Raises:
      ArmError: if it cannot prepare itself.
    """

    def __init__(
        self,
        name: str,
        python: str,
        script: str,
        spec: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._said = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [python, script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env={
                "TF_CPP_MIN_LOG_LEVEL": "2",
                **_ENVIRONMENT,
                **(environment or {}),
                SPEC_VARIABLE: json.dumps(dict(spec)),
            },
        )
        self.prepared = self._answer()

    def ask(self, method: str, **arguments: Any) -> Any:
        """Calls a method of the arm and waits for what it returns.

        Raises:
          ArmError: if the method raised or the process ended.
        """
        request = {"method": method, "arguments": arguments}
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # _answer says what happened.
        return self._answer()

    def close(self) -> None:
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._said.close()

    def _answer(self) -> Any:
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": self._last_words()}
        if "error" in answer:
            raise ArmError(f"{self.name}: {answer['error']}")
        return answer["value"]

    def _last_words(self) -> str:
        code = self._process.wait()
        self._said.seek(0)
        words = self._said.read().decode(errors="replace")[-2000:]
        return f"ended with code {code}. {words}"


class Arms(dict):
    """Workers by name; closed together."""

    def __enter__(self) -> "Arms":
        return self

    def __exit__(self, *exception: Any) -> None:
        for worker in self.values():
            worker.close()


def is_worker() -> bool:
    """Tells whether this program was started by a `Worker`."""
    return SPEC_VARIABLE in os.environ


def serve(make: Callable[[dict[str, Any]], Any]) -> None:
    """Prepares an arm and answers until the asking program goes.

    Args:
      make: from the spec to an object, whose public methods take keyword
        arguments and return what JSON can hold. `memory` and `forget_peak`
        are answered here.
    """
    # What libraries print must not get between the answers.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(answer: Mapping[str, Any]) -> None:
        channel.write(json.dumps(answer) + "\n")
        channel.flush()

    try:
        arm = make(json.loads(os.environ[SPEC_VARIABLE]))
    except Exception:
        reply({"error": traceback.format_exc()[-2000:]})
        return
    reply({"value": process_memory()})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["method"] == "memory":
                value = process_memory()
            elif request["method"] == "forget_peak":
                value = forget_peak()
            else:
                value = getattr(arm, request["method"])(**request["arguments"])
            reply({"value": value})
        except Exception:
            reply({"error": traceback.format_exc()[-2000:]})


def process_memory() -> dict[str, float]:
    """Resident memory of this process in megabytes: `now` and `peak`."""
    names = {"VmRSS:": "now", "VmHWM:": "peak"}
    found = {}
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words and words[0] in names:
                found[names[words[0]]] = int(words[1]) / 1024
    return found


def forget_peak() -> None:
    """Lets the peak of `process_memory` begin anew at what is used now."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
