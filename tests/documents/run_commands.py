# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Run command lines one after the other in one process.

Standard input is a JSON list of argument lists. Each program runs in the
current directory; the first one that fails ends the process with its status.
"""

import json
import pathlib
import runpy
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(arguments):
    """Run one command line and return its exit status."""
    program, *rest = arguments
    if program == "electra_tf":
        sys.argv = [program, *rest]
        path, is_module = "electra_tf", True
    else:
        sys.argv = [str(ROOT / program), *rest]
        path, is_module = sys.argv[0], False
    start = runpy.run_module if is_module else runpy.run_path
    try:
        start(path, run_name="__main__")
    except SystemExit as end:
        return end.code
    return 0


def main():
    sys.path.insert(0, str(ROOT))
    for arguments in json.load(sys.stdin):
        print("RUN", *arguments, flush=True)
        status = run(arguments)
        if status:
            sys.exit(f"status {status} of {arguments}")


if __name__ == "__main__":
    main()
