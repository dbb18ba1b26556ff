# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stand for `python`, `python3` and `electra-tf` in commands of documents.

This project's programs and scripts run in `preloaded.py`; all else is left to
Python itself. ELECTRA_TF_DOCUMENT_FLAGS (JSON: program or command -> flags)
adds flags that make a run small.
"""

import array
import json
import os
import signal
import socket
import sys


def exit_status(python, arguments, is_module):
    """Run a program in the server and return its exit status."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["ELECTRA_TF_DOCUMENT_SOCKET"])
    request = {
        "python": python,
        "arguments": arguments,
        "is_module": is_module,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
    }
    descriptors = array.array("i", [0, 1, 2])
    connection.sendmsg(
        [json.dumps(request).encode() + b"\n"],
        [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)],
    )
    answers = connection.makefile()
    child = int(answers.readline())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(child, number))
    return int(answers.readline())


def main():
    name, *arguments = sys.argv
    # Programs find this file as `sys.executable`.
    python = os.path.join(os.path.dirname(os.path.abspath(name)), "python3")
    if os.path.basename(name) == "electra-tf":
        arguments = ["-m", "electra_tf", *arguments]
    is_module = arguments[:2] == ["-m", "electra_tf"]
    if is_module:
        arguments = arguments[1:]
    elif not (arguments and arguments[0].endswith(".py")):
        os.execv(sys.executable, [sys.executable, *arguments])
    program = os.path.basename(arguments[is_module])
    flags = json.loads(os.environ.get("ELECTRA_TF_DOCUMENT_FLAGS", "{}"))
    arguments += flags.get(program, [])
    status = exit_status(python, arguments, is_module)
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
