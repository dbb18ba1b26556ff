# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Kills by the hundred, and hours of work, of tiny runs of the real commands.

What a trial does is drawn by its number, and what came of it is a line of
STATE/trials.jsonl: the same command again goes on with the next number, and
`totals` adds up all that was ever done, by `fuzzing.py` (damaged files) too.

  python benchmarks/faults.py kills --only=building --count=40
  python benchmarks/faults.py soak --only=serve --minutes=60
  python benchmarks/faults.py totals
"""

import argparse
import collections
import contextlib
import glob
import hashlib
import json
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import serving_load
import tensorflow as tf
from harness import ROOT

TRIALS = "trials.jsonl"
WORDS = "the of and to in is was for on that a b c ; , . (x) 12 no".split()
TIMES = r'"(\w*seconds\w*|\w+_per_second|time|\w+_time)": [^,}\n]+'
TEMPORARY = r"_temp$|\.tmp$|\.part|^\.tmp"
SIZES = """{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
  "intermediate_size": 32, "max_position_embeddings": 32}"""
PRETRAINING = f"""{{"vocab_size": 200, "embedding_size": 8, "num_eval_steps": 2,
  "eval_batch_size": 4, "max_seq_length": 16, "train_batch_size": 4,
  "generator_hidden_size": 1.0, "model_hparam_overrides": {SIZES},
  "num_train_steps": 300, "save_checkpoints_steps": 10, "keep_best": "loss",
  "eval_every_n_steps": 50, "log_every_n_steps": 5, "num_warmup_steps": 10}}"""
FINETUNING = """{"task_names": ["sst"], "num_trials": 2, "num_train_epochs": 6,
  "max_seq_length": 16, "train_batch_size": 4, "save_checkpoints_steps": 5,
  "log_every_n_steps": 5, "eval_every_n_steps": 30}"""
RUN = "made/models/tiny"
TUNED = "made/models/tiny/finetuning_models/sst_model_1"
TRAIN = "run_pretraining.py --model-name tiny --hparams pretraining.json"
TUNE = "run_finetuning.py --model-name tiny --hparams finetuning.json"
BUILD = """build_pretraining_dataset.py --vocab-file made/vocab.txt
  --max-seq-length=16 --num-shards=6 --num-processes=2
  --held-out-fraction=0.05"""
TO_HF = "--output_format=huggingface --strip_optimizer"
MATERIAL = (
    f"{BUILD} --corpus-dir made/corpus --output-dir made/pretrain_tfrecords",
    f"{TRAIN} --data-dir made --num_train_steps=40 --keep_checkpoint_max=2",
    f"{TUNE} --data-dir made --num_trials=1",
    f"convert_checkpoint {RUN} made/tf1/",
    f"convert_checkpoint {RUN} made/two {TO_HF}",
    f"convert_checkpoint {RUN} made/one {TO_HF} --part=discriminator",
    f"export_model --model {TUNED} --output_dir made/exported",
)
VICTIMS = {  # Commands that are killed; they write into the folder `killed`.
    "pretraining": f"{TRAIN} --data-dir killed",
    "finetuning": f"{TUNE} --data-dir killed",
    "building": f"{BUILD} --corpus-dir made/large --output-dir killed/out",
    "to_tf1": f"convert_checkpoint {RUN} killed/out/",
    "to_native": "convert_checkpoint made/tf1 killed/out/"
    " --output_format=native",
    "to_hugging_face": f"convert_checkpoint {RUN} killed/out {TO_HF}",
    "export": f"export_model --model {TUNED} --output_dir killed/out",
}


def start(command, said="said", **environment):
    """Starts a command, alone in its process group; it speaks to a file."""
    program, *words = command.split()
    script = ["-m", "electra_tf", program]
    if program.endswith(".py"):
        script = [os.path.join(ROOT, program)]
    with open(said, "w") as file:
        return subprocess.Popen(
            [sys.executable, *script, *words],
            stdout=file,
            stderr=file,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": ROOT, **environment},
        )


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


def write(path, content):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def fresh(target, source=None):
    """A folder of that name, empty or a copy; what was there is gone."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target) if source else os.makedirs(target)


def keep(**row):
    with open(TRIALS, "a") as file:
        file.write(json.dumps({"at": round(time.time()), **row}) + "\n")


def kept(**wanted):
    rows = map(json.loads, read(TRIALS).splitlines())
    return [r for r in rows if all(r.get(k) == v for k, v in wanted.items())]


def make_material():
    """What the commands make of some lines of text, once."""
    if os.path.exists("made/whole"):
        return
    draw = random.Random("material")

    def text():
        return " ".join(draw.choices(WORDS, k=draw.randint(4, 14)))

    for name in "abcdef":
        lines = [text() * (draw.random() < 0.9) for _ in range(400)]
        write(f"made/corpus/{name}.txt", "\n".join([*lines, ""]))
        write(f"made/large/{name}.txt", "\n".join([*lines, ""] * 40))
    for name, count in (("train", 60), ("dev", 20), ("test", 9)):
        rows = [f"{text()}\t{draw.randint(0, 1)}" for _ in range(count)]
        rows = "\n".join(["sentence\tlabel", *rows, ""])
        write(f"made/finetuning_data/sst/{name}.tsv", rows)
    shutil.copy(f"{ROOT}/tests/fixtures/vocab_200.txt", "made/vocab.txt")
    write("pretraining.json", PRETRAINING)
    write("finetuning.json", FINETUNING)
    for command in MATERIAL:
        if start(command).wait():
            sys.exit(f"{command}\n{read('said')}")
    fresh("made/bare", "made/pretrain_tfrecords")
    os.remove("made/bare/manifest.json")
    fresh("made/settings", "made/finetuning_data/sst")
    write("made/settings/hparams.json", PRETRAINING)
    shutil.copy("made/vocab.txt", "made/settings")
    task = {"name": "own", "columns": {"text_a": 0, "label": 1}}
    task["files"] = {"train": "train.tsv", "dev": "dev.tsv"}
    write("made/settings/task.json", json.dumps(task))
    write("made/whole", "yes")


def enter(state):
    """Goes into the folder that is kept; all paths are from there."""
    os.makedirs(state, exist_ok=True)
    os.chdir(state)
    open(TRIALS, "a").close()
    make_material()


def digest(*parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()


def fingerprint(folder):
    """Tensors of checkpoints, rows of logs, bytes of the rest; no times."""
    found = {}
    for path in sorted(glob.glob(f"{folder}/**/*", recursive=True)):
        if os.path.isdir(path) or re.search(r"\.data-|tfevents|\.lock$", path):
            continue
        with open(path, "rb") as file:
            found[path] = digest(file.read())
        if path.endswith(".pkl"):  # Equal values have several spellings.
            with open(path, "rb") as file:
                found[path] = digest(repr(pickle.load(file)).encode())
        elif path.endswith(".index"):
            found[path] = tensors_of(path.removesuffix(".index"))
        elif path.endswith((".json", ".jsonl")):
            text = re.sub(TIMES, "", read(path))
            # A builder's jobs end in any order.
            found[path] = "".join(sorted(text.splitlines()))
            found[path] = digest(found[path].encode())
    return found


def tensors_of(prefix):
    """A digest of all in a checkpoint that can be read as an array."""
    reader, parts = tf.train.load_checkpoint(prefix), []
    for name in sorted(reader.get_variable_to_shape_map()):
        if not re.search("save_counter|OBJECT_GRAPH", name):
            with contextlib.suppress(tf.errors.InternalError):  # An iterator.
                value = np.asarray(reader.get_tensor(name))
                is_text = value.dtype == object
                content = repr(value).encode() if is_text else value.tobytes()
                parts += [f"{name} {value.dtype}".encode(), content]
    return digest(*parts)


# Kills: the same command again, to the same end.


def begin(name):
    """The folder in which a command is killed, before its first start."""
    fresh("killed")
    if name == "pretraining":
        fresh("killed/pretrain_tfrecords", "made/pretrain_tfrecords")
        shutil.copy("made/vocab.txt", "killed")
    if name == "finetuning":
        fresh("killed/finetuning_data", "made/finetuning_data")
        fresh("killed/models/tiny", RUN)
        for made in ("finetuning_models", "results"):
            shutil.rmtree(f"killed/models/tiny/{made}", ignore_errors=True)


def undisturbed(name):
    """Where an undisturbed command ends, twice, and the seconds it takes."""
    path = f"undisturbed_{name}.json"
    if not os.path.exists(path):
        ends = []
        for _ in range(2):
            begin(name)
            began = time.time()
            process = start(VICTIMS[name])
            wait_for(at_work, process, name, began)
            ready = time.time() - began
            if process.wait():
                sys.exit(read("said"))
            seconds = time.time() - began
            ends.append(fingerprint("killed"))
        same = dict(ends[0].items() & ends[1].items())
        unlike = sorted(ends[0].keys() - same)
        found = {"ready": ready, "all": seconds, "unlike": unlike, "end": same}
        write(path, json.dumps(found, indent=1))
    return json.loads(read(path))


def wait_for(found, process, *arguments):
    while process.poll() is None and not found(*arguments):
        time.sleep(0.001)


def at_work(name, began):
    """Whether a command has trained a step, or written anything, yet."""
    if name in ("pretraining", "finetuning"):
        return re.search(r"(?m)^\d+/\d+ = ", read("said"))
    paths = glob.glob("killed/out/*") + glob.glob("killed/out/.*")
    with contextlib.suppress(FileNotFoundError):
        return any(os.stat(path).st_mtime >= began for path in paths)


def unfinished():
    """Files that are being written, and checkpoints that are not named yet."""
    found = []
    for folder, _, names in os.walk("killed"):
        state = os.path.join(folder, "checkpoint")
        known = read(state) if os.path.exists(state) else ""
        for name in names:
            prefix = re.match(r"(model\.ckpt.*)\.(index|data-.*)", name)
            if prefix and f'"{prefix[1]}"' not in known:
                found.append(f"{folder}/{name}")
        found += [name for name in names if re.search(TEMPORARY, name)]
        found += [folder] * bool(re.search(TEMPORARY, folder))
    return found


def newest():
    """The checkpoints that are named the newest, and what is wrong there."""
    named, wrong = {}, []
    for path in glob.glob("killed/**/checkpoint", recursive=True):
        folder = os.path.dirname(path)
        named[folder] = tf.train.latest_checkpoint(folder)
        try:
            tensors_of(named[folder])
        except Exception as error:
            wrong.append(f"{path}: {error!r}")
    return named, wrong


def kill(name, most, saving, parent_only):
    """One chain: kills a command so often, then lets it end; a row each."""
    whole = undisturbed(name)
    number = len(kept(kind="kills", case=name))
    draw = random.Random(f"{name} {number} {saving}")
    kills, before, done = draw.randint(1, min(most, 5)), {}, []
    begin(name)
    while True:
        moment = "saving" if saving else draw.choice(("start", *["work"] * 4))
        began = time.time()
        process = start(VICTIMS[name])
        if kills and moment == "start":
            time.sleep(draw.uniform(0, whole["ready"]))
        elif kills:
            wait_for(at_work, process, name, began)
            left = (whole["all"] - whole["ready"]) * 0.8
            time.sleep(draw.uniform(0, left / kills))
        if kills and moment == "saving":
            wait_for(unfinished, process)
            time.sleep(draw.choice((0, 0, 0, 0.001, 0.003)))
        killed = kills and process.poll() is None
        if killed and parent_only:
            process.kill()
        elif killed:
            os.killpg(process.pid, signal.SIGKILL)
        status, said, wrong = process.wait(), read("said"), []
        # A start that gets so far goes on from what was the newest.
        if went_on := re.search(r"Continuing from (\S+) \(step", said):
            last = os.path.basename(went_on[1])
            known = before.get(os.path.dirname(went_on[1])) or last
            wrong += ["lost"] * (os.path.basename(known) != last)
        trial = re.findall(r"trial (\d)/", said)[-1:]
        row = {"kind": "kills" if killed else "ends", "case": name}
        row |= {"chain": number, "moment": moment, "trial": trial}
        if not killed:
            break
        kills -= 1
        before, half_written = newest()
        # A conversion that was whole is not made again.
        done = done or glob.glob("killed/out*/*conversion.json")
        wrong += ["half-written"] * bool(half_written)
        how = "parent only" if parent_only else "all processes"
        how += ", while a file was written" * bool(unfinished())
        outcome = ", ".join(wrong) or "well"
        keep(**row, how=how, outcome=outcome, detail=half_written)
    now = fingerprint("killed")
    unlike = [path for path, x in whole["end"].items() if now.get(path) != x]
    wrong += ["different"] * bool(unlike) + ["second try"] * bool(
        status and not done
    )
    detail = [unlike, said[-2000:] * bool(status)]
    keep(**row, outcome=", ".join(wrong) or "well", detail=detail)


def kills(args):
    for name in args.only or VICTIMS:
        wanted = len(kept(kind="kills", case=name)) + args.count
        while left := wanted - len(kept(kind="kills", case=name)):
            kill(name, left, args.saving, args.parent_only)
            print(name, kept(kind="ends")[-1], flush=True)


# Hours of work: memory and open files.


@contextlib.contextmanager
def server(script=("-m", "electra_tf", "serve", "made/exported", "--port=0")):
    """The process and port of a server that is ended again."""
    command, paths = [sys.executable, *script], {"PYTHONPATH": ROOT}
    environment = {**os.environ, **paths}
    with (
        open("said", "w") as said,
        serving_load.serving(command, stderr=said, env=environment) as found,
    ):
        yield found


def soak(args):
    """Samples a process each ten seconds while it works."""
    for case in args.only or ("pretraining", "serve"):
        with contextlib.ExitStack() as stack:
            end = time.monotonic() + 60 * args.minutes
            if case == "serve":
                process, port = stack.enter_context(server())
                about = serving_load.get(port, "/page.json")
                load = (port, about, 10**9, 4, end)
                load = threading.Thread(target=serving_load.load, args=load)
                load.start()
                stack.callback(load.join)
            else:
                begin(case)
                more = (
                    "--num_train_steps=100000000 --save_checkpoints_steps=200"
                )
                more += " --eval_every_n_steps=500 --log_every_n_steps=100"
                process = start(f"{VICTIMS[case]} {more}")
                wait_for(at_work, process, case, 0)
                stack.callback(process.wait, 60)
                stack.callback(process.terminate)
            session = time.time()
            while time.monotonic() < end:
                status = read(f"/proc/{process.pid}/status")
                row = {"rss": int(re.search(r"VmRSS:\s+(\d+)", status)[1])}
                row["files"] = len(os.listdir(f"/proc/{process.pid}/fd"))
                row["seconds"] = time.time() - session
                keep(kind="soak", case=case, session=session, **row)
                time.sleep(10)


def growth(rows):
    """Memory's slope over the last two thirds, in % an hour; open files."""
    rows = rows[len(rows) // 3 :]
    seconds, memory = ([row[n] for row in rows] for n in ("seconds", "rss"))
    slope = np.polyfit(seconds, memory, 1)[0] * 3600 / np.mean(memory)
    files = [row["files"] for row in rows]
    return f"{100 * slope:+.2f}% an hour; {min(files)} to {max(files)} files"


def totals(args):
    """All that was ever found; with --show each that is not well."""
    groups = collections.defaultdict(list)
    for row in kept():
        groups[row["kind"], row["case"], row.get("session")].append(row)
    for (kind, case, session), rows in groups.items():
        if session:
            minutes = rows[-1]["seconds"] / 60
            print(f"{kind}, {case}: {minutes:.0f} minutes, {growth(rows)}")
            continue
        counts = {
            "outcome": collections.Counter(),
            "how": collections.Counter(),
        }
        for row in rows:
            for name, counter in counts.items():
                counter[row.get(name)] += row.get("count", 1)
            if args.show and re.search(args.show, row["outcome"]):
                print(f"  {row}")
        print(f"{kind}, {case}: {counts['outcome'].total():,}", end=": ")
        print(*(dict(counter) for counter in counts.values()))


def run(description, work, count, **more):
    """Does one kind of work by the command line, in the folder that is kept.

    `more` are flags of one program, what argparse is told by their names.
    """
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    work = {f.__name__: f for f in work}
    add = parser.add_argument
    add("work", choices=work)
    add("--state", default="faults", help="folder that is kept")
    add("--only", action="append", help="of these cases; repeatable")
    add("--count", type=int, default=count, help="trials of each case")
    add("--minutes", type=float, default=30)
    for name, told in more.items():
        add(f"--{name}", **told)
    args = parser.parse_args()
    enter(args.state)
    work[args.work](args)


if __name__ == "__main__":
    switch = {"action": "store_true"}
    run(
        __doc__,
        (kills, soak, totals),
        count=10,
        saving={**switch, "help": "kill while a file is written"},
        parent_only={**switch, "help": "not its processes"},
        show={"help": "totals: rows whose outcome is this pattern's"},
    )
