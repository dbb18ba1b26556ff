# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workers that are killed, and all started again, to the same end.

A tiny model, the real command, two processes. What a chain of kills does is
drawn by its number; every kill and every end is a line of STATE/trials.jsonl.
The same command again goes on with the next chain; `--count=0` adds up.
`--frozen` stops a process instead, as a host that hangs does.

  python benchmarks/faults_workers.py --count=10
"""

import argparse
import collections
import glob
import hashlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time

import tensorflow as tf
from faults import TIMES, TRIALS, fresh, keep, kept, read, write
from harness import ROOT

HPARAMS = {
    "vocab_size": 200,
    "embedding_size": 8,
    "max_seq_length": 16,
    "train_batch_size": 4,
    "eval_batch_size": 4,
    "num_eval_steps": 4,
    "generator_hidden_size": 1.0,
    "model_hparam_overrides": {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
    },
    "num_train_steps": 60,
    "num_warmup_steps": 10,
    "save_checkpoints_steps": 5,
    "eval_every_n_steps": 30,
    "log_every_n_steps": 1,
}
PATIENCE = 300  # seconds, for what should take much less
MEETING = 45  # seconds; where one died before all met the others wait for it


def make_records():
    if os.path.exists("records/manifest.json"):
        return
    draw = random.Random("records")
    words = "the of and to in is was for on that".split()
    lines = (
        " ".join(draw.choices(words, k=9)) * draw.randint(0, 1)
        for _ in range(600)
    )
    write("text/a.txt", "\n".join([*lines, ""]))
    command = [
        sys.executable,
        os.path.join(ROOT, "build_pretraining_dataset.py"),
        *("--corpus-dir=text", "--output-dir=records", "--max-seq-length=16"),
        f"--vocab-file={ROOT}/tests/fixtures/vocab_200.txt",
        *("--num-shards=4", "--num-processes=1"),
    ]
    subprocess.run(command, check=True)


def start():
    """Two workers of the folder `run`; each speaks to `said_N`."""
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    hosts = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    here, workers = os.getcwd(), []
    paths = {
        "model_dir": f"{here}/run",
        "vocab_file": f"{ROOT}/tests/fixtures/vocab_200.txt",
        "pretrain_tfrecords": f"{here}/records/pretrain_data.tfrecord*",
    }
    for index in range(2):
        task = {"type": "worker", "index": index}
        cluster = {"cluster": {"worker": hosts}, "task": task}
        with open(f"said_{index}", "w") as said:
            worker = subprocess.Popen(
                [
                    sys.executable,
                    os.path.join(ROOT, "run_pretraining.py"),
                    *("--data-dir", here, "--model-name", "m"),
                    *("--hparams", json.dumps({**HPARAMS, **paths})),
                    "--distribution_strategy=multi_worker",
                ],
                stdout=said,
                stderr=said,
                env={**os.environ, "TF_CONFIG": json.dumps(cluster)},
            )
        workers.append(worker)
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
    reader, digest = tf.train.load_checkpoint("run/model.ckpt-60"), []
    for name in sorted(reader.get_variable_to_shape_map()):
        if name.endswith("VARIABLE_VALUE") and "save_counter" not in name:
            digest.append(reader.get_tensor(name).tobytes())
    logs = [re.sub(TIMES, "", read(path)) for path in glob.glob("run/*.jsonl")]
    parts = [b"".join(digest), *(log.encode() for log in sorted(logs))]
    return [hashlib.sha256(part).hexdigest() for part in parts]


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--state", default="faults_workers")
    parser.add_argument("--frozen", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.state, exist_ok=True)
    os.chdir(args.state)
    open(TRIALS, "a").close()
    make_records()
    if args.count and not kept(kind="undisturbed"):
        fresh("run")
        assert wait(start()) == [0, 0], read("said_0")
        keep(kind="undisturbed", end=end())
    wanted = len(kept(kind="kill")) + args.count
    while left := wanted - len(kept(kind="kill")):
        chain(left, args.frozen)
    whole = kept(kind="undisturbed")[0]["end"]
    kills, ends = kept(kind="kill"), kept(kind="end")
    totals = {
        "kills": len(kills),
        "chains": len(ends),
        "of worker 0": len(kept(kind="kill", victim=0)),
        "at start": len(kept(kind="kill", moment="start")),
        "lost": sum(row["lost"] for row in kills + ends),
        "different": sum(row["end"] != whole for row in ends),
        "second tries": sum(row["statuses"] != [0, 0] for row in ends),
        "the other's status": collections.Counter(
            str(row["status"]) for row in kills
        ),
        "told": sum(row["told"] for row in kills),
        "before all met": len(kept(kind="kill", met=False)),
        "frozen": len(kept(kind="kill", frozen=True)),
        "longest, s": max(
            row["seconds"] for row in kills if row.get("met", True)
        ),
    }
    print(json.dumps(totals, indent=1))
    with open("workers.json", "w") as file:
        json.dump(totals, file, indent=1)


if __name__ == "__main__":
    main()
