# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Run Python programs as forks of a process that has imported TensorFlow.

Importing TensorFlow takes seconds, and the documents have a hundred commands.
`python preloaded.py SOCKET` is the server; `launcher.py` is its client, which
sends a program's arguments, folder, environment and open files. Each program
is a process of its own, as from a shell.
"""

import array
import json
import os
import pathlib
import runpy
import signal
import socket
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = 3  # standard input, output and error
PRELOADED = ("tensorflow", "tensorflow_text", "tf_keras", "rich.table")
# Commands reset these signals, which the server may have inherited.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)


def receive(connection):
    """Return a client's request and the file descriptors that it sent."""
    size = array.array("i").itemsize
    data, ancillary, _, _ = connection.recvmsg(
        1 << 20, socket.CMSG_LEN(FILES * size)
    )
    files = array.array("i")
    for _, _, content in ancillary:
        files.frombytes(content)
    while not data.endswith(b"\n"):
        data += connection.recv(1 << 20)
    return json.loads(data), list(files)


def execute(request, files):
    """Run a program in this process and return its exit status."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    # Programs that this one starts get only the flags that it gives them.
    os.environ.pop("ELECTRA_TF_DOCUMENT_FLAGS", None)
    sys.executable = request["python"]
    sys.argv = request["arguments"]
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if request["is_module"]:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def monitor(connection):
    """Run a client's program in a child and send its id and exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, files = receive(connection)
    child = os.fork()
    if child == 0:
        connection.close()
        status = execute(request, files)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)
    connection.sendall(f"{child}\n".encode())
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(f"{status}\n".encode())


def main():
    sys.path.insert(0, str(ROOT))
    __import__("electra_tf")
    for module in PRELOADED:
        __import__(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.socket(socket.AF_UNIX)
    server.bind(sys.argv[1])
    server.listen()
    while True:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            monitor(connection)
            os._exit(0)
        connection.close()


if __name__ == "__main__":
    main()
