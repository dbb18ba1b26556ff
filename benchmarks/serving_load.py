# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Load on a server of this machine: many requests, and many broken ones.

Starts `serve` on a free port of 127.0.0.1 (one for each --before, too), sends
5,000 requests from 16 clients and then 200 malformed ones, and ends the server.
With --port it asks a server that is running already. Nothing is ever sent
elsewhere; a turn ends by itself after --seconds at the latest.

  python benchmarks/serving_load.py --folder=exported/reviews --before=../before
"""

import concurrent.futures
import contextlib
import http.client
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter

HOST = "127.0.0.1"
WORDS = (
    "the of and to in is was for on that film actor story never again fine"
    " ducks river king north city quite very long short answer question"
).split()
COLUMNS = ("answered", "errors", "per_second", "p50_ms", "p90_ms", "p99_ms")


def main():
    """Loads the servers and shows."""
    import harness

    parser = harness.parser(__doc__, repeats=1)
    add = parser.add_argument
    add("--folder", help="an exported model to serve")
    add("--port", type=int, help="of a server that is running")
    add("--requests", type=int, default=5000, help="of each turn")
    add("--clients", type=int, default=16)
    add("--malformed", type=int, default=200)
    add("--seconds", type=float, default=540)
    args = parser.parse_args()
    if bool(args.folder) == bool(args.port):
        parser.error("give --folder or --port")
    with contextlib.ExitStack() as stack:
        ports = {"ours": args.port}
        if args.folder:
            folder = os.path.abspath(args.folder)
            for name, root in harness.checkouts(args).items():
                command = harness.module_command(root, "serve")
                command += [folder, "--port=0"]
                server = serving(command, cwd=root)
                _, ports[name] = stack.enter_context(server)
        names = ("requests", "clients", "malformed", "seconds")
        options = {name: getattr(args, name) for name in names}
        turns = harness.take_turns(
            ports, lambda port: run(port, **options), args.repeats, warm_up=0
        )
    seconds = {
        name: [run["load"]["seconds"] for run in runs]
        for name, runs in turns.items()
    }
    faster = harness.faster(seconds)
    rows = [
        {
            "server": name,
            **{column: one["load"][column] for column in COLUMNS},
            "malformed: 4xx": one["malformed"]["answered_4xx"],
            "ours is faster": harness.shown(faster, name),
            "well": "yes" if one["ok"] else "NO",
        }
        for name, runs in turns.items()
        for one in runs
    ]
    title = f"{args.requests} requests, {args.clients} clients"
    result = {"turns": turns, "faster": faster}
    harness.report(args, title, result, rows)
    return 0 if all(one["ok"] for runs in turns.values() for one in runs) else 1


@contextlib.contextmanager
def serving(command, **settings):
    """The process and port of a server that is started, and ended again."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, **settings
    )
    try:
        for line in process.stdout:
            if line.startswith("Predict:"):
                yield process, int(line.split("/v1/")[0].rpartition(":")[2])
                return
        raise SystemExit("the server did not start")
    finally:
        process.terminate()
        process.wait(60)


def run(port, requests, clients, malformed, seconds):
    """Both loads, one after the other, and what came of them."""
    deadline = time.monotonic() + seconds
    about = get(port, "/page.json")
    found = load(port, about, requests, clients, deadline)
    broken = malformed_load(port, about, malformed, deadline)
    good = found["errors"] == 0 and found["answered"] == requests
    good = good and broken["answered_4xx"] == malformed
    return {
        "model": about["name"],
        "load": found,
        "malformed": broken,
        "ok": good and get(port, "/healthz")["status"] == "ok",
    }


def load(port, about, requests, clients, deadline):
    """Latencies and errors of many requests from several clients."""
    numbers, times, errors = itertools.count(), [], Counter()

    def client(seed):
        draw = random.Random(seed)
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
        while next(numbers) < requests and time.monotonic() < deadline:
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
            times.append(time.perf_counter() - started)
            if problem:
                errors[problem[:200]] += 1
        connection.close()

    started = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))
    wall = time.perf_counter() - started
    ordered = sorted(times) or [0.0]
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {
        "answered": len(times),
        "errors": sum(errors.values()),
        "what": dict(errors.most_common(5)),
        "seconds": round(wall, 2),
        "per_second": round(len(times) / wall, 1),
        **{
            f"{n}_ms": round(1000 * ordered[round(s * (len(ordered) - 1))], 2)
            for n, s in shares.items()
        },
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
    address = f"http://{HOST}:{port}{path}"
    with urllib.request.urlopen(address, timeout=60) as response:
        return json.load(response)


def malformed_bodies(about):
    """Bodies that are wrong, each in its own way."""
    name = about["inputs"][0]
    row = dict.fromkeys(about["inputs"], "a")
    text = {"signature_name": "serve_text"}
    # A text of the wrong type, or that is not what it says.
    wrong = [7, None, True, ["a"], {"a": 1}, {"b64": "*"}]
    rows = [[{**row, name: value}] for value in wrong]
    # Missing field, none, no list, unknown field, too many.
    rows += [[{key: "a" for key in about["inputs"][1:]}], [], "a"]
    rows += [[{**row, "other": 1}], [row] * 5000]
    values = [{**text, "instances": found} for found in rows]
    values += [
        text,
        {**text, "instances": [row], "other": 1},
        {**text, "instances": [row], "inputs": row},
        {"signature_name": "none", "instances": [row]},
        {"signature_name": 7, "instances": [row]},
    ]
    # Ids of text, of floats, too large, ragged, of no rank.
    for ids in (["a"], [1.5], [2**40], [1, [2]], 1):
        values.append({"instances": [{"input_ids": ids}]})
    start = b'{"signature_name": "serve_text", "instances": ['
    return [
        *(json.dumps(value).encode() for value in values),
        b"x" * (50 * 2**20),
        start + b'"\xff\xfe"]}',
        *(
            b'{"instances": [{"input_ids": [%s]}]}' % number
            for number in (b"NaN", b"Infinity", b"1e999")
        ),
        b"",
        b"{'instances': []}",
        start + b'"a',
        b"[" * 200_000,
        b"[]",
        b"1" * 10_000,
        b"\x00" * 1000,
    ]


def malformed_load(port, about, count, deadline):
    """Statuses of that many malformed requests, each on its connection."""
    bodies = malformed_bodies(about)
    statuses, others = Counter(), []
    for body in itertools.islice(itertools.cycle(bodies), count):
        if time.monotonic() > deadline:
            break
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
        try:
            status, said = post(connection, about["name"], body)
            if not (400 <= status < 500 and isinstance(said["error"], str)):
                others.append(f"{body[:80]}: {status}")
            statuses[status] += 1
        except (OSError, http.client.HTTPException, ValueError) as error:
            others.append(f"{body[:80]}: {type(error).__name__}: {error}")
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
