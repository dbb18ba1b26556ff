# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Load on a server of this machine: many requests, and many broken ones.

    python benchmarks/serving_load.py --folder exported/reviews

starts `serve` on a free port of 127.0.0.1, sends 5,000 requests from 16
clients and then 200 malformed ones, prints what came of it, and ends the
server. With --port it asks a server that is running already. Nothing is ever
sent elsewhere; the run ends by itself after --seconds at the latest.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
WORDS = (
    "the of and to in is was for on that film actor story never again fine"
    " ducks river king north city quite very long short answer question"
).split()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", help="an exported model to serve")
    parser.add_argument("--port", type=int, help="of a server that is running")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--malformed", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--output", help="a JSON file for the numbers")
    args = parser.parse_args()
    if bool(args.folder) == bool(args.port):
        parser.error("give --folder or --port")
    with serving(args) as port:
        result = run(
            port, args.requests, args.clients, args.malformed, args.seconds
        )
    print(json.dumps(result, indent=1))
    if args.output:
        text = json.dumps(result, indent=1) + "\n"
        pathlib.Path(args.output).write_text(text)
    return 0 if result["ok"] else 1


@contextlib.contextmanager
def serving(args):
    """The port of the server; one that was started here is ended again."""
    if args.port:
        yield args.port
        return
    command = [sys.executable, "-m", "electra_tf", "serve", args.folder]
    process = subprocess.Popen(
        [*command, "--port=0"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        port = None
        for line in process.stdout:
            print(line, end="")
            if line.startswith("Predict:"):
                port = int(line.split("/v1/")[0].rpartition(":")[2])
                break
        if port is None:
            raise SystemExit("the server did not start")
        yield port
    finally:
        process.terminate()
        process.wait(60)


def run(port, requests, clients, malformed, seconds):
    """Both loads, one after the other, and what came of them."""
    deadline = time.monotonic() + seconds
    about = get(port, "/page.json")
    found = load(port, about, requests, clients, deadline)
    broken = malformed_load(port, about, malformed, deadline)
    health = get(port, "/healthz")
    result = {
        "model": about["name"],
        "kind": about["kind"],
        "load": found,
        "malformed": broken,
        "health_after": health,
    }
    result["ok"] = (
        found["errors"] == 0
        and found["answered"] == requests
        and broken["answered_4xx"] == malformed
        and health["status"] == "ok"
    )
    return result


def load(port, about, requests, clients, deadline):
    """Latencies and errors of many requests from several clients."""
    numbers = iter(range(requests))
    lock = threading.Lock()
    times, errors = [], Counter()

    def client(seed):
        draw = random.Random(seed)
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
        while time.monotonic() < deadline:
            with lock:
                if next(numbers, None) is None:
                    break
            body, rows = request_for(about, draw)
            started = time.perf_counter()
            try:
                status, said = post(connection, about["name"], body)
                problem = None
                if status != 200:
                    problem = f"{status}: {said.get('error')}"
                elif len(said["predictions"]) != rows:
                    problem = "another number of rows"
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
                connection.close()
            with lock:
                times.append(time.perf_counter() - started)
                if problem:
                    errors[problem[:200]] += 1
        connection.close()

    threads = [
        threading.Thread(target=client, args=(seed,)) for seed in range(clients)
    ]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - started
    times.sort()

    def percentile(share):
        place = min(len(times) - 1, int(share * len(times)))
        return round(1000 * times[place], 2) if times else None

    return {
        "requests": requests,
        "clients": clients,
        "answered": len(times),
        "errors": sum(errors.values()),
        "what": dict(errors.most_common(5)),
        "seconds": round(wall, 2),
        "per_second": round(len(times) / wall, 1),
        "p50_ms": percentile(0.5),
        "p90_ms": percentile(0.9),
        "p99_ms": percentile(0.99),
        "max_ms": percentile(1.0),
    }


def request_for(about, draw):
    """A body with one to four rows of made-up text."""
    rows = draw.choice((1, 1, 1, 2, 4))

    def text():
        return " ".join(draw.choices(WORDS, k=draw.randint(1, 40)))

    instances = [
        {name: text() for name in about["inputs"]} for _ in range(rows)
    ]
    body = {"signature_name": "serve_text", "instances": instances}
    return json.dumps(body).encode(), rows


def post(connection, name, body, headers=None):
    path = f"/v1/models/{name}:predict"
    connection.request("POST", path, body, headers or {})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def get(port, path):
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def malformed_bodies(about):
    """Bodies that are wrong, each in its own way: (what, bytes)."""
    name = about["inputs"][0]
    row = dict.fromkeys(about["inputs"], "a")
    text = {"signature_name": "serve_text"}

    def given(value):
        return {**text, "instances": [{**row, name: value}]}

    lacking = {key: "a" for key in about["inputs"][1:]}
    values = {
        "wrong type": given(7),
        "null": given(None),
        "boolean": given(True),
        "list": given(["a"]),
        "object": given({"a": 1}),
        "bad base64": given({"b64": "*"}),
        "missing field": {**text, "instances": [lacking]},
        "no instances": text,
        "empty instances": {**text, "instances": []},
        "instances of text": {**text, "instances": "a"},
        "unknown field": {**text, "instances": [{**row, "other": 1}]},
        "unknown key": {**text, "instances": [row], "other": 1},
        "unknown signature": {"signature_name": "none", "instances": [row]},
        "signature of no text": {"signature_name": 7, "instances": [row]},
        "both formats": {**text, "instances": [row], "inputs": row},
        "ids of text": {"instances": [{"input_ids": ["a"]}]},
        "ids of floats": {"instances": [{"input_ids": [1.5]}]},
        "ids too large": {"instances": [{"input_ids": [2**40]}]},
        "ids ragged": {"instances": [{"input_ids": [1, [2]]}]},
        "ids of no rank": {"instances": [{"input_ids": 1}]},
        "too many rows": {**text, "instances": [row] * 5000},
    }
    found = [(what, json.dumps(v).encode()) for what, v in values.items()]
    start = b'{"signature_name": "serve_text", "instances": ['
    return [
        *found,
        ("50 MB", b"x" * (50 * 2**20)),
        ("bad UTF-8", start + b'"\xff\xfe"]}'),
        ("NaN", b'{"instances": [{"input_ids": [NaN]}]}'),
        ("infinity", b'{"instances": [{"input_ids": [Infinity]}]}'),
        ("1e999", b'{"instances": [{"input_ids": [1e999]}]}'),
        ("nothing", b""),
        ("bad JSON", b"{'instances': []}"),
        ("cut JSON", start + b'"a'),
        ("deep JSON", b"[" * 200_000),
        ("a list", b"[]"),
        ("a number", b"1" * 10_000),
        ("zeros", b"\x00" * 1000),
    ]


def malformed_load(port, about, count, deadline):
    """Statuses of that many malformed requests, each on its connection."""
    bodies = malformed_bodies(about)
    statuses, others = Counter(), []
    for i in range(count):
        if time.monotonic() > deadline:
            break
        what, body = bodies[i % len(bodies)]
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
        try:
            status, said = post(connection, about["name"], body)
            if not (400 <= status < 500 and isinstance(said["error"], str)):
                others.append(f"{what}: {status}")
            statuses[status] += 1
        except (OSError, http.client.HTTPException, ValueError) as error:
            others.append(f"{what}: {type(error).__name__}: {error}")
        finally:
            connection.close()
    # A client that promises a body and goes.
    with socket.create_connection((HOST, port), 10) as raw:
        raw.sendall(b"POST /v1/models/x:predict HTTP/1.1\r\n")
        raw.sendall(b"Host: x\r\nContent-Length: 100\r\n\r\n{")
    return {
        "requests": count,
        "kinds": len(bodies),
        "answered_4xx": sum(n for s, n in statuses.items() if 400 <= s < 500),
        "statuses": {str(s): n for s, n in sorted(statuses.items())},
        "others": others[:10],
    }


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.exit(main())
