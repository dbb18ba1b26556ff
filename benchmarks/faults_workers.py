# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workers that are killed, and all started again, to the same end.

A tiny model, the real command, two processes. What a chain of kills does is
drawn by its number; every kill and every end is a line of STATE/trials.jsonl.
The same command again goes on with the next chain; `totals` adds up.
`--frozen` stops a process instead, as a host that hangs does.

  python benchmarks/faults_workers.py kills --count=10
"""

import collections
import glob
import json
import os
import random
import re
import signal
import socket
import subprocess
import time

import faults
import tensorflow as tf
from faults import TIMES, TRAIN, digest, fresh, keep, kept, read, tensors_of

COMMAND = f"""{TRAIN} --data-dir made --distribution_strategy=multi_worker
  --num_train_steps=60 --save_checkpoints_steps=5 --eval_every_n_steps=30
  --num_eval_steps=4 --log_every_n_steps=1 --keep_best=none --model_dir="""
PATIENCE = 300  # seconds, for what should take much less
MEETING = 45  # seconds; where one died before all met the others wait for it


def start():
    """Two workers of the folder `run`; each speaks to `said_N`."""
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    hosts = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    workers = []
    for index in range(2):
        task = {"type": "worker", "index": index}
        cluster = json.dumps({"cluster": {"worker": hosts}, "task": task})
        command = COMMAND + os.path.abspath("run")
        said = f"said_{index}"
        workers.append(faults.start(command, said, TF_CONFIG=cluster))
    return workers


def wait(workers, seconds=PATIENCE):
    """Their exit statuses; what still runs after a while is killed: None."""
    deadline, statuses = time.time() + seconds, []
    for worker in workers:
        try:
            statuses.append(worker.wait(max(0, deadline - time.time())))
        except subprocess.TimeoutExpired:
            statuses.append(None)
    for worker in workers:
        worker.kill()
    return statuses


def end():
    """What must be the same: the last weights and slots, the logs' rows."""
    logs = [re.sub(TIMES, "", read(path)) for path in glob.glob("run/*.jsonl")]
    digests = [digest(log.encode()) for log in sorted(logs)]
    return [tensors_of("run/model.ckpt-60"), *digests]


def chain(most, frozen):
    """Kills one worker or the other so often, then lets them end."""
    number = len(kept(kind="end"))
    draw = random.Random(f"workers {number}")
    fresh("run")
    newest = None
    for _ in range(draw.randint(1, min(3, most))):
        victim, moment = draw.randint(0, 1), draw.choice(("start", "step"))
        done = len(logged())
        at = draw.randint(min(done + 1, 58), 58)
        workers, began = start(), time.time()
        pause = draw.uniform(0, 25)
        while all(worker.poll() is None for worker in workers):
            if moment == "start" and time.time() - began > pause:
                break
            if moment == "step" and len(logged()) >= at:
                break
            time.sleep(0.001)
        stop = signal.SIGSTOP if frozen else signal.SIGKILL
        os.kill(workers[victim].pid, stop)
        killed = time.time()
        met = "Training: 60 steps" in read(f"said_{1 - victim}")
        statuses = wait([workers[1 - victim]], PATIENCE if met else MEETING)
        seconds = round(time.time() - killed, 1)
        workers[victim].kill()
        workers[victim].wait()
        said = read(f"said_{1 - victim}")
        keep(
            kind="kill",
            chain=number,
            victim=victim,
            moment=moment,
            frozen=frozen,
            met=met,
            status=statuses[0],
            seconds=seconds,
            told="error: another worker ended" in said,
            said=said[-1500:] * (statuses != [75]),
            **went_on(newest),
        )
        newest = tf.train.latest_checkpoint("run")
    statuses = wait(start())
    row = {"statuses": statuses, **went_on(newest)}
    found = end() if statuses == [0, 0] else []
    keep(kind="end", chain=number, **row, end=found)


def logged():
    """The rows of training, one a step."""
    there = os.path.exists("run/train_log.jsonl")
    return read("run/train_log.jsonl").splitlines() if there else []


def went_on(newest):
    """Whether both began at the checkpoint that was the newest."""
    found = [re.search(r"from (\S+) \(step", read(f"said_{n}")) for n in (0, 1)]
    names = [os.path.basename(one[1]) for one in found if one]
    wanted = os.path.basename(newest or "none")
    return {"lost": any(name != wanted for name in names)}


def kills(args):
    if not kept(kind="undisturbed"):
        fresh("run")
        assert wait(start()) == [0, 0], read("said_0")
        keep(kind="undisturbed", end=end())
    wanted = len(kept(kind="kill")) + args.count
    while left := wanted - len(kept(kind="kill")):
        chain(left, args.frozen)


def totals(args):
    whole = kept(kind="undisturbed")[0]["end"]
    rows, ends = kept(kind="kill"), kept(kind="end")
    met = [row["seconds"] for row in rows if row.get("met", True)]
    found = {
        "kills": len(rows),
        "chains": len(ends),
        "of worker 0": len(kept(kind="kill", victim=0)),
        "at start": len(kept(kind="kill", moment="start")),
        "lost": sum(row["lost"] for row in rows + ends),
        "different": sum(row["end"] != whole for row in ends),
        "second tries": sum(row["statuses"] != [0, 0] for row in ends),
        "the other's status": collections.Counter(
            str(row["status"]) for row in rows
        ),
        "told": sum(row["told"] for row in rows),
        "before all met": len(kept(kind="kill", met=False)),
        "frozen": len(kept(kind="kill", frozen=True)),
        "longest, s": max(met, default=None),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    frozen = {"action": "store_true", "help": "stopped, not killed"}
    faults.run(__doc__, (kills, totals), count=10, frozen=frozen)
