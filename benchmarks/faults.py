# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Kill tiny runs of the commands hundreds of times, or watch them for hours.

The number of a trial seeds its random draws, and its outcome is a line of
STATE/trials.jsonl. The same command continues with the next number, and
`totals` counts all trials, including those of `fuzzing.py` (damaged files). Of
two workers that train together one is killed, or with --frozen stopped like a
host that hangs; the other worker must end by itself and print the reason.

  python benchmarks/faults.py kills --only=building --count=40
  python benchmarks/faults.py soak --only=serve --minutes=60
  python benchmarks/faults.py totals
"""

import collections
import contextlib
import glob
import json
import os
import pathlib
import random
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import serving_load
import tensorflow as tf
from fingerprints import fingerprint, tensors_of
from harness import ROOT, Flags

TRIALS = "trials.jsonl"
WORDS = "the of and to in is was for on that a b c ; , . (x) 12 no".split()
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
    *(
        f"predict --model {TUNED} made/finetuning_data/sst/dev.tsv"
        f" --output made/{name}.jsonl"
        for name in ("first", "second")
    ),
)
# The commands that are killed; they write into the folder `killed`.
VICTIMS = {
    "pretraining": f"{TRAIN} --data-dir killed",
    "workers": f"""{TRAIN} --data-dir killed --num_train_steps=60
      --distribution_strategy=multi_worker --save_checkpoints_steps=5
      --eval_every_n_steps=30 --log_every_n_steps=1 --keep_best=none""",
    "finetuning": f"{TUNE} --data-dir killed",
    "building": f"{BUILD} --corpus-dir made/large --output-dir killed/out",
    "to_tf1": f"convert_checkpoint {RUN} killed/out/",
    "to_native": "convert_checkpoint made/tf1 killed/out/"
    " --output_format=native",
    "to_hugging_face": f"convert_checkpoint {RUN} killed/out {TO_HF}",
    "export": f"export_model --model {TUNED} --output_dir killed/out",
    "predict": f"predict --model {TUNED} made/rows.tsv"
    " --output killed/out/rows.jsonl --overwrite",
    "embed": f"embed --model {RUN} made/rows.tsv --columns text=sentence"
    " --output killed/out/rows.npz --pooling words --overwrite",
    "ensemble": "ensemble made/first.jsonl made/second.jsonl --task sst"
    " --data_dir made --vocab_file made/vocab.txt --resamples 20000"
    " --json killed/out/e.json --output killed/out/e.jsonl --weights fitted"
    " --overwrite",
    "study": "study killed/study.json",
    "study_child": "study killed/study.json",
    "replicas": f"{TRAIN} --data-dir killed --num_train_steps=60"
    " --distribution_strategy=mirrored",
    "finetuning_workers": f"{TUNE} --data-dir killed --num_trials=1"
    " --distribution_strategy=multi_worker",
}
STUDIES = ("study", "study_child")
TRAININGS = ("pretraining", "workers", "replicas", "finetuning")
TRAININGS += ("finetuning_workers",)
ENDLESS = """--num_train_steps=100000000 --save_checkpoints_steps=200
  --eval_every_n_steps=500 --log_every_n_steps=100"""
# The limit of any command, and the limit of a worker whose partners never
# connect, in seconds.
PATIENCE, MEETING = 900, 200


def start(command, log="said", **environment):
    """Start a command in its own process group; its output goes to a file."""
    program, *arguments = command.split()
    is_file, path = program.endswith(".py"), os.path.join(ROOT, program)
    script = [path] if is_file else ["-m", "electra_tf", program]
    if "--distribution_strategy=mirrored" in arguments:
        script = [os.path.abspath(__file__), "two_devices", *script]
    with open(log, "w") as file:
        return subprocess.Popen(
            [sys.executable, *script, *arguments],
            stdout=file,
            stderr=file,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": ROOT} | environment,
        )


def start_all(name):
    """Start a command; return its processes, keyed by their output files."""
    if "workers" not in name:
        return {"said": start(VICTIMS[name])}
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    hosts = [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]
    for open_server in servers:
        open_server.close()
    processes = {}
    for index, log in enumerate(("said", "said_1")):
        task = {"type": "worker", "index": index}
        config = json.dumps({"cluster": {"worker": hosts}, "task": task})
        processes[log] = start(VICTIMS[name], log, TF_CONFIG=config)
    return processes


def read(path):
    return pathlib.Path(path).read_text(errors="replace")


def write(path, content):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    is_text = isinstance(content, str)
    path.write_bytes(content.encode() if is_text else content)


def fresh(target, source=None):
    """Replace a folder by an empty folder, or by a copy of `source`."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target) if source else os.makedirs(target)


def keep(**row):
    with open(TRIALS, "a") as file:
        file.write(json.dumps({"at": round(time.time()), **row}) + "\n")


def kept(**values):
    """Return the trials whose fields have these values."""
    rows = map(json.loads, read(TRIALS).splitlines())
    return [r for r in rows if all(r.get(k) == v for k, v in values.items())]


def make_material():
    if os.path.exists("made/whole"):
        return
    draw = random.Random("material")

    def text():
        return " ".join(draw.choices(WORDS, k=draw.randint(4, 14)))

    def maybe_text():
        line = text()
        return line if draw.random() < 0.9 else ""

    for name in "abcdef":
        lines = [maybe_text() + "\n" for _ in range(400)]
        write(f"made/corpus/{name}.txt", "".join(lines))
        write(f"made/large/{name}.txt", "".join(lines * 40))
    for name, count in (("train", 60), ("dev", 20), ("test", 9)):
        rows = [f"{text()}\t{draw.randint(0, 1)}\n" for _ in range(count)]
        table = "".join(["sentence\tlabel\n", *rows])
        write(f"made/finetuning_data/sst/{name}.tsv", table)
    rows = [f"{text()}\n" for _ in range(3000)]
    write("made/rows.tsv", "".join(["sentence\n", *rows]))
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


def study_file(folder="killed", output="killed/out"):
    """Return a study file, as JSON: one pre-training and one fine-tuning."""
    pretrain, finetune = json.loads(PRETRAINING), json.loads(FINETUNING)
    del pretrain["num_train_steps"], finetune["task_names"]
    records = f"{folder}/pretrain_tfrecords"
    pretrain["pretrain_tfrecords"] = f"{records}/pretrain_data.tfrecord*"
    pretrain["eval_tfrecords"] = f"{records}/eval_data.tfrecord*"
    pretrain["vocab_file"] = finetune["vocab_file"] = f"{folder}/vocab.txt"
    study = {"data_dir": folder, "output_dir": output}
    study |= {"pretrain": pretrain, "budget": {"steps": 60}, "seeds": [1]}
    study |= {"finetune": finetune | {"num_trials": 1}, "tasks": {"sst": {}}}
    return json.dumps(study | {"arms": {"electra": {}}, "against": "electra"})


def child_of(process):
    """Return the id of a process's first child; None without a child."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        children = read(f"/proc/{process.pid}/task/{process.pid}/children")
        return int(children.split()[0]) if children.split() else None


# Kills: after a kill, the same command must end with the same files.


def begin(name):
    """Make the folder in which a command is killed."""
    fresh("killed")
    if name in ("predict", "embed", "ensemble"):
        os.mkdir("killed/out")
    if name in ("pretraining", "workers", "replicas", *STUDIES):
        fresh("killed/pretrain_tfrecords", "made/pretrain_tfrecords")
        shutil.copy("made/vocab.txt", "killed")
    if name in STUDIES:
        write("killed/study.json", study_file())
        fresh("killed/finetuning_data", "made/finetuning_data")
    if name in ("finetuning", "finetuning_workers"):
        fresh("killed/finetuning_data", "made/finetuning_data")
        fresh("killed/models/tiny", RUN)
        for made in ("finetuning_models", "results"):
            shutil.rmtree(f"killed/models/tiny/{made}", ignore_errors=True)


def undisturbed(name):
    """Return the seconds and the result of a command without kills."""
    path = f"undisturbed_{name}.json"
    ends = []
    while not os.path.exists(path):
        begin(name)
        began, processes = time.time(), start_all(name)
        wait_for(at_work, processes["said"], name, began)
        facts = {"ready": time.time() - began}
        if any(process.wait() for process in processes.values()):
            sys.exit(read("said"))
        facts["all"] = time.time() - began
        ends.append(fingerprint("killed"))
        if len(ends) == 2:
            facts["end"] = dict(ends[0].items() & ends[1].items())
            facts["unlike"] = sorted(ends[0].keys() - facts["end"])
            write(path, json.dumps(facts, indent=1))
    return json.loads(read(path))


def wait_for(condition, process, *arguments):
    while process.poll() is None and not condition(*arguments):
        time.sleep(0.001)


def at_work(name, began):
    if name in TRAININGS:
        return re.search(r"(?m)^\d+/\d+ = ", read("said"))
    paths = glob.glob("killed/out/*") + glob.glob("killed/out/.*")
    with contextlib.suppress(FileNotFoundError):
        return any(os.stat(path).st_mtime >= began for path in paths)


def unfinished():
    """Return incomplete files, and checkpoints that no state file lists."""
    paths = []
    for folder, _, names in os.walk("killed"):
        state = os.path.join(folder, "checkpoint")
        known = read(state) if os.path.exists(state) else ""
        for name in names:
            prefix = re.match(r"(model\.ckpt.*)\.(index|data-.*)", name)
            if prefix and f'"{prefix[1]}"' not in known:
                paths.append(f"{folder}/{name}")
        paths += [name for name in names if re.search(TEMPORARY, name)]
        if re.search(TEMPORARY, folder):
            paths.append(folder)
    return paths


def newest():
    """Return the latest checkpoints by folder, and errors of reading them."""
    named, wrong = {}, []
    for path in glob.glob("killed/**/checkpoint", recursive=True):
        folder = os.path.dirname(path)
        named[folder] = tf.train.latest_checkpoint(folder)
        try:
            tensors_of(named[folder])
        except Exception as error:
            wrong.append(f"{path}: {error!r}")
    return named, wrong


def wait(process, seconds):
    """Return a process's exit status; kill the process after `seconds`."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(seconds)
    process.kill()
    return process.wait()


def kill(name, most, args):
    """Kill a command several times, then let it end; write a row per start."""
    whole = undisturbed(name)
    number = len(kept(kind="ends", case=name))
    draw = random.Random(f"{name} {number} {args.saving}")
    kills, before, done = draw.randint(1, min(most, 5)), {}, []
    begin(name)
    while True:
        moments = ["saving"] if args.saving else ["start"] + ["work"] * 4
        moment = draw.choice(moments)
        began, others = time.time(), start_all(name)
        victim = draw.choice(sorted(others))
        process = others.pop(victim)
        if kills and moment == "start":
            time.sleep(draw.uniform(0, whole["ready"]))
        elif kills:
            wait_for(at_work, process, name, began)
            left = (whole["all"] - whole["ready"]) * 0.8
            time.sleep(draw.uniform(0, left / kills))
        if kills and moment == "saving":
            wait_for(unfinished, process)
            time.sleep(draw.choice((0, 0, 0, 0.001, 0.003)))
        struck = time.time()
        killed = kills and strike(name, process, args)
        met = all(re.search(r"Training: \d+ steps", read(f)) for f in others)
        patience = PATIENCE if met or not killed else MEETING
        statuses = [wait(other, patience) for other in others.values()]
        seconds = round(time.time() - struck, 1)
        wrong = judge_workers(others, statuses, met) if killed else []
        if killed and name != "study_child":
            process.kill()
        statuses.append(wait(process, PATIENCE))
        output = "".join(map(read, (victim, *others)))
        wrong += lost_checkpoints(output, before)
        row = {"kind": "kills" if killed else "ends", "case": name}
        row |= {"chain": number, "moment": moment}
        row["trial"] = re.findall(r"trial (\d)/", output)[-1:]
        if not killed:
            break
        kills -= 1
        before, half_written = newest()
        # After a finished conversion a failure is accepted, because the same
        # command does not repeat the conversion.
        done = done or glob.glob("killed/out*/*conversion.json")
        if half_written:
            wrong.append("half-written")
        if others:
            row["seconds"] = seconds
        detail = half_written or (output[-1500:] if wrong else "")
        how = describe_kill(victim, others, met, args)
        keep(**row, how=how, outcome=", ".join(wrong) or "well", detail=detail)
    check_end(row, wrong, whole, output if any(statuses) and not done else "")


def strike(name, process, args):
    """Kill or stop a running process; return whether it was running."""
    if process.poll() is not None:
        return False
    if name == "study_child":
        wait_for(child_of, process, process)
        is_running = process.poll() is None
        with contextlib.suppress(ProcessLookupError, TypeError):
            os.kill(child_of(process), signal.SIGKILL)
        return is_running
    stop = signal.SIGSTOP if args.frozen else signal.SIGKILL
    (os.kill if args.parent_only else os.killpg)(process.pid, stop)
    return True


def judge_workers(logs, statuses, met):
    """Return the errors of a killed worker's partners."""
    wrong = []
    for log, status in zip(logs, statuses, strict=True):
        output = read(log)
        is_reported = "error: another worker has ended" in output
        # Status 0 means that the worker had already trained to the end.
        if met and status != (75 if is_reported else 0):
            wrong.append(f"status {status}, reported: {is_reported}")
        is_named = re.search(r"error: worker \d.* \(.*:\d+\)", output)
        if not met and not (status == 75 and (is_reported or is_named)):
            wrong.append(f"status {status} before all met")
    return wrong


def lost_checkpoints(output, before):
    """Return "lost" for each start that ignored the latest checkpoint."""
    wrong = []
    for path in re.findall(r"Continuing from (\S+) \(step", output):
        folder, name = os.path.split(path)
        if os.path.basename(before.get(folder) or name) != name:
            wrong.append("lost")
    return wrong


def describe_kill(victim, others, met, args):
    """Describe which processes were killed, and when."""
    how = "parent only" if args.parent_only else "all processes"
    if others:
        how = f"worker {victim[5:] or 0} of two"
    if args.frozen:
        how += ", frozen"
    if not met:
        how += ", before all met"
    if unfinished():
        how += ", while a file was written"
    return how


def check_end(row, wrong, whole, failure):
    """Compare the files of a finished chain with those of a run without kills.

    `failure` is the output of the last start, if it failed.
    """
    litter = unfinished()
    if litter:
        wrong.append("litter")
    now = fingerprint("killed")
    unlike = [path for path, x in whole["end"].items() if now.get(path) != x]
    if unlike:
        wrong.append("different")
    if failure:
        wrong.append("second try")
    detail = [unlike, litter, failure[-2000:]]
    keep(**row, outcome=", ".join(wrong) or "well", detail=detail)


def kills(args):
    for name in args.only or VICTIMS:
        total = len(kept(kind="kills", case=name)) + args.count
        while left := total - len(kept(kind="kills", case=name)):
            kill(name, left, args)
            print(name, kept(kind="ends")[-1], flush=True)


# Soaks: measurements of memory and open files over hours.


@contextlib.contextmanager
def server(script=("-m", "electra_tf", "serve", "made/exported", "--port=0")):
    with open("said", "w") as log:
        settings = {"stderr": log, "env": os.environ | {"PYTHONPATH": ROOT}}
        command = [sys.executable, *script]
        with serving_load.serving(command, **settings) as process_and_port:
            yield process_and_port


def soak(args):
    for case in args.only or ("pretraining", "serve"):
        with contextlib.ExitStack() as stack:
            end = time.monotonic() + 60 * args.minutes
            if case == "serve":
                process, port = stack.enter_context(server())
                about = serving_load.get(port, "/page.json")
                load = (port, about, 10**9, 4, end)
                pool = stack.enter_context(ThreadPoolExecutor())
                stack.callback(pool.submit(serving_load.load, *load).result)
            else:
                begin(case)
                process = start(f"{VICTIMS[case]} {ENDLESS}")
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
    """Describe memory growth and open files in a soak's last two thirds."""
    minutes, rows = rows[-1]["seconds"] / 60, rows[len(rows) // 3 :]
    names = ("seconds", "rss", "files")
    seconds, memory, files = ([row[name] for row in rows] for name in names)
    slope = 100 * np.polyfit(seconds, memory, 1)[0] * 3600 / np.mean(memory)
    files = f"{min(files)} to {max(files)} files"
    return f"{minutes:.0f} minutes, {slope:+.2f}% an hour; {files}"


def totals(args):
    """Print totals of all trials; print the trials that --show selects."""
    groups = collections.defaultdict(list)
    for row in kept():
        groups[row["kind"], row["case"], row.get("session")].append(row)
    for (kind, case, session), rows in groups.items():
        if session:
            print(f"{kind}, {case}: {growth(rows)}")
            continue
        counts = collections.Counter(), collections.Counter()
        for row in rows:
            for name, counter in zip(("outcome", "how"), counts, strict=True):
                counter[row.get(name)] += row.get("count", 1)
            if args.show and re.search(args.show, row["outcome"]):
                print(f"  {row}")
        print(f"{kind}, {case}: {counts[0].total():,}", end=": ")
        print(*map(dict, counts))
        if waits := [row["seconds"] for row in rows if "seconds" in row]:
            print(f"  the other worker ended after at most {max(waits)} s")


def run(description, work, count, **more):
    """Run one kind of work in a persistent folder.

    Args:
      more: the help texts of further boolean flags, by name.
    """
    parser = Flags(description=description)
    work = {f.__name__: f for f in work}
    add = parser.add_argument
    add("work", choices=work)
    add("--state", default="runs/faults", help="folder of all trials")
    add(
        "--only",
        action="append",
        help="a case, instead of all cases; repeatable",
    )
    add("--count", type=int, default=count, help="trials per case")
    add("--minutes", type=float, default=30)
    add("--show", help="totals: pattern of the outcomes to print")
    for name, text in more.items():
        add(f"--{name}", action="store_true", help=text)
    args = parser.parse_args()
    os.makedirs(args.state, exist_ok=True)
    os.chdir(args.state)  # All paths are relative to this folder.
    open(TRIALS, "a").close()
    make_material()
    work[args.work](args)


def two_devices():
    """Run a program of the project where TensorFlow sees two devices."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    device = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [device, device])
    del sys.argv[:2]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    if sys.argv[1:2] == ["two_devices"]:
        two_devices()
        sys.exit()
    switches = {
        "saving": "kill while a file is written",
        "parent_only": "kill the parent, not its child processes",
        "frozen": "stop one of two workers instead of killing it",
    }
    run(__doc__, (kills, soak, totals), count=10, **switches)
