# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time a server on this machine under valid and malformed requests.

Each turn starts `serve` on a free port of 127.0.0.1 (also for each --before),
sends 5,000 requests from 16 clients and then 200 malformed ones, and ends the
server. Nothing is sent to other hosts; a turn ends after nine minutes.

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

import numpy as np

HOST = "127.0.0.1"
WORDS = (
    "the of and to in is was for on that film actor story never again fine"
    " ducks river king north city quite very long short answer question"
).split()
COLUMNS = ("answered", "errors", "per_second", "p50_ms", "p90_ms", "p99_ms")


def main():
    import harness

    parser = harness.parser(__doc__, repeats=1)
    add = parser.add_argument
    add("--folder", required=True, help="an exported model to serve")
    add("--requests", type=int, default=5000, help="requests of each turn")
    add("--clients", type=int, default=16)
    add("--malformed", type=int, default=200)
    args = parser.parse_args()
    ports, counts = {}, (args.requests, args.clients, args.malformed)
    with contextlib.ExitStack() as stack:
        for name, root in harness.checkouts(args).items():
            command = harness.module_command(root, "serve")
            command += [os.path.abspath(args.folder), "--port=0"]
            server = serving(command, cwd=root)
            _, ports[name] = stack.enter_context(server)

        def turn(port):
            return run(port, *counts)

        turns = harness.take_turns(ports, turn, args.repeats, warm_up=0)
    times = {n: [run["load"]["seconds"] for run in turns[n]] for n in turns}
    faster, rows = harness.faster(times), []
    for name, runs in turns.items():
        for turn in runs:
            row = {"server": name} | {n: turn["load"][n] for n in COLUMNS}
            row["malformed: 4xx"] = turn["malformed"]["answered_4xx"]
            row["ours is faster"] = harness.shown(faster, name)
            rows.append({**row, "well": "yes" if turn["ok"] else "NO"})
    title = f"{args.requests} requests, {args.clients} clients"
    harness.report(args, title, {"turns": turns, "faster": faster}, rows)
    return int(any(row["well"] == "NO" for row in rows))


@contextlib.contextmanager
def serving(command, **settings):
    settings |= {"stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **settings)
    try:
        for line in process.stdout:
            if line.startswith("Predict:"):
                yield process, int(line.split("/v1/")[0].rpartition(":")[2])
                return
        raise SystemExit("error: the server did not start. Read its output")
    finally:
        process.terminate()
        process.wait(60)


def run(port, requests, clients, malformed, seconds=540):
    deadline = time.monotonic() + seconds
    about = get(port, "/page.json")
    measurements = load(port, about, requests, clients, deadline)
    broken = malformed_load(port, about, malformed, deadline)
    good = measurements["answered"] == requests
    good = good and broken["answered_4xx"] == malformed
    good = good and get(port, "/healthz")["status"] == "ok"
    return {"load": measurements, "malformed": broken, "ok": good}


def load(port, about, requests, clients, deadline):
    numbers, times, errors = itertools.count(), [], Counter()

    def client(seed):
        draw, connection = random.Random(seed), connect(port)
        while next(numbers) < requests and time.monotonic() < deadline:
            body, rows = request_for(about, draw)
            started = time.perf_counter()
            try:
                status, reply = post(connection, about["name"], body)
                if status == 200 and len(reply["predictions"]) == rows:
                    times.append(time.perf_counter() - started)
                else:
                    errors[f"{status}: {reply.get('error')}"[:200]] += 1
            except Exception as error:
                errors[f"{type(error).__name__}: {error}"[:200]] += 1
                connection.close()
        connection.close()

    started = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))
    wall = time.perf_counter() - started
    shares = 1000 * np.quantile(times or [0.0], (0.5, 0.9, 0.99, 1))
    names = ("p50_ms", "p90_ms", "p99_ms", "max_ms")
    summary = {"answered": len(times), "errors": errors.total()}
    summary |= {"what": dict(errors.most_common(5)), "seconds": round(wall, 2)}
    summary["per_second"] = round(len(times) / wall, 1)
    return summary | dict(zip(names, shares.round(2).tolist(), strict=True))


def request_for(about, draw):
    rows = draw.choice((1, 1, 1, 2, 4))

    def text():
        return " ".join(draw.choices(WORDS, k=draw.randint(1, 40)))

    instances = [
        {name: text() for name in about["inputs"]} for _ in range(rows)
    ]
    body = {"signature_name": "serve_text", "instances": instances}
    return json.dumps(body).encode(), rows


def connect(port):
    return http.client.HTTPConnection(HOST, port, timeout=60)


def post(connection, name, body):
    headers = {"Content-Type": "application/json"}
    connection.request("POST", f"/v1/models/{name}:predict", body, headers)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def get(port, path):
    address = f"http://{HOST}:{port}{path}"
    with urllib.request.urlopen(address, timeout=60) as response:
        return json.load(response)


def malformed_bodies(about):
    """Return malformed bodies, each with a different mistake."""
    name, *others = about["inputs"]
    row = dict.fromkeys(about["inputs"], "a")
    # A text of the wrong type, and a text with invalid base64.
    wrong = (7, None, True, ["a"], {"a": 1}, {"b64": "*"})
    rows = [[row | {name: value}] for value in wrong]
    # A missing field, no row, no list, an unknown field, and too many rows.
    rows += [[dict.fromkeys(others, "a")], [], "a"]
    rows += [[row | {"other": 1}], [row] * 5000]
    text = {"signature_name": "serve_text"}
    values = [text | {"instances": instances} for instances in rows]
    right = text | {"instances": [row]}
    values += [text, right | {"other": 1}, right | {"inputs": row}]
    values += [right | {"signature_name": wrong} for wrong in ("none", 7)]
    # Invalid ids: a text, a fraction, an integer that is too large, a ragged
    # list, and a scalar.
    for ids in (["a"], [1.5], [2**40], [1, [2]], 1):
        values.append({"instances": [{"input_ids": ids}]})
    bodies = [json.dumps(value).encode() for value in values]
    for number in (b"NaN", b"Infinity", b"1e999"):
        bodies.append(b'{"instances": [{"input_ids": [%s]}]}' % number)
    start = b'{"signature_name": "serve_text", "instances": ['
    bodies += [start + b'"\xff\xfe"]}', start + b'"a', b"{'instances': []}"]
    bodies += [b"x" * (50 * 2**20), b"[" * 200_000, b"1" * 10_000]
    return [*bodies, b"", b"[]", b"\x00" * 1000]


def malformed_load(port, about, count, deadline):
    statuses, others = Counter(), []
    bodies = itertools.cycle(malformed_bodies(about))
    for body in itertools.islice(bodies, count):
        if time.monotonic() > deadline:
            break
        with contextlib.closing(connect(port)) as connection:
            try:
                status, reply = post(connection, about["name"], body)
                if not isinstance(reply["error"], str):
                    others.append(f"{body[:80]}: {status}")
                statuses[str(status)] += 1
            except Exception as error:
                others.append(f"{body[:80]}: {type(error).__name__}: {error}")
    # This client announces a body and disconnects.
    with socket.create_connection((HOST, port), 10) as raw:
        raw.sendall(b"POST /v1/models/x:predict HTTP/1.1\r\n")
        raw.sendall(b"Host: localhost\r\nContent-Type: application/json\r\n")
        raw.sendall(b"Content-Length: 100\r\n\r\n{")
    answered = sum(n for status, n in statuses.items() if status[0] == "4")
    return {
        "answered_4xx": answered,
        "statuses": dict(statuses),
        "others": others[:10],
    }


if __name__ == "__main__":
    sys.exit(main())
