# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's session: the blocks of a page, executed in order in a folder."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from tests.conftest import ROOT
from tests.documents.blocks import blocks_of, difference

HERE = pathlib.Path(__file__).parent
# A clone's files, which commands of the documents name.
CLONE = (
    "build_openwebtext_pretraining_dataset.py",
    "build_pretraining_dataset.py",
    "run_finetuning.py",
    "run_pretraining.py",
    "examples",
    "studies",
)
# The line of a failed command goes to the file that is the first argument.
TRAP = 'trap \'echo "$LINENO $BASH_COMMAND" > "$0"\' ERR\n'


@dataclasses.dataclass
class Page:
    """The additions that a test makes to a document."""

    prepare: Callable  # (folder, fixture): writes data that readers have
    flags: dict = dataclasses.field(default_factory=dict)  # program -> flags
    replaced: dict = dataclasses.field(default_factory=dict)  # text -> text
    skipped: dict = dataclasses.field(default_factory=dict)  # text -> reason
    names: str = ""  # Python that precedes each block
    is_heavy: bool = False


class Programs:
    """The server of `preloaded.py` and a folder with the programs' names."""

    def __init__(self, folder):
        self._socket = folder / "socket"
        self.bin = folder / "bin"
        self.bin.mkdir()
        source = (HERE / "launcher.py").read_text()
        # -IS: the launcher needs only the standard library, and starts fast.
        start = f"#!{sys.executable} -IS\n"
        for name in ("python", "python3", "electra-tf"):
            (self.bin / name).write_text(start + source)
            (self.bin / name).chmod(0o755)
        self._server = subprocess.Popen(
            [sys.executable, HERE / "preloaded.py", self._socket],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            start_new_session=True,
        )
        while not self._socket.exists():
            assert self._server.poll() is None
            time.sleep(0.05)

    def environment(self, flags):
        return {
            **os.environ,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "COLUMNS": "80",
            "ELECTRA_TF_DOCUMENT_SOCKET": str(self._socket),
            "ELECTRA_TF_DOCUMENT_FLAGS": json.dumps(flags),
        }

    def stop(self):
        os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()


class Session:
    """An executor of the blocks of a document in a folder."""

    def __init__(self, document, page, folder, programs, fixture):
        self._document = document
        self._page = page
        self._folder = folder
        self._environment = programs.environment(page.flags)
        self._groups = []  # ids of the servers' process groups
        for name in CLONE:
            (folder / name).symlink_to(ROOT / name)
        page.prepare(folder, fixture)

    def run(self):
        """Execute every block; return the failures."""
        try:
            return self._failures()
        finally:
            # Servers that the page leaves running.
            for group in self._groups:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGTERM)

    def _failures(self):
        failures = []
        for block in blocks_of(self._document):
            location = f"{self._document}:{block.line}"
            if block.file:
                path = self._folder / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text)
                continue
            if any(text in block.text for text in self._page.skipped):
                continue
            failure, printed = self.execute(block)
            if not failure and block.output is not None:
                failure = difference(block.output, printed)
            if failure:
                failures.append(f"{location}: {failure}\n{printed}")
        return failures

    def execute(self, block):
        """Return a block's failure, or "", and its output."""
        trace = self._folder / "block.txt"
        trace.unlink(missing_ok=True)
        log = self._folder / "output.txt"
        if block.language == "python":
            script = self._folder / "block.py"
            script.write_text(self._page.names + self._substituted(block.text))
            command = ["python3", str(script)]
        else:
            command = ["bash", "-Eeuo", "pipefail", "-c"]
            command += [TRAP + self._substituted(block.text), str(trace)]
        begin = time.time()
        with open(log, "w") as output:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._groups.append(process.pid)
            process.wait()
        printed = log.read_text(errors="replace")
        if "ELECTRA_TF_SHOW" in os.environ:
            print(f"== {block.line}: {time.time() - begin:.1f} s")
            print(block.text, printed, sep="--\n")
        if not process.returncode:
            return "", printed
        failure = f"status {process.returncode}"
        if trace.exists():
            number, _, text = trace.read_text().partition(" ")
            line = block.line + int(number) - 2
            failure += f" of line {line}: {text.strip()}"
        return failure, printed

    def _substituted(self, text):
        for pattern, replacement in self._page.replaced.items():
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        return text
