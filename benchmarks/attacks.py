# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Attack commands with lost outputs, damaged files, odd folders, long lines.

Trials are in the folder of `faults.py`, whose `totals` also counts these
trials.

  python benchmarks/attacks.py outputs
  python benchmarks/attacks.py best
  python benchmarks/attacks.py folders
  python benchmarks/attacks.py cached
  python benchmarks/attacks.py lines
  python benchmarks/attacks.py determinism
"""

import contextlib
import glob
import io
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import faults
from faults import TUNED, VICTIMS, begin, fresh, keep, read, start, write
from harness import ROOT

LONG = 10**8  # steps; more than any run makes here
ENDLESS = f"--save_checkpoints_steps={LONG} --log_every_n_steps=5"
COMMANDS = {
    "pretraining": f"{VICTIMS['pretraining']} {ENDLESS} --keep_best=none"
    f" --num_train_steps={LONG}",
    "finetuning": f"{VICTIMS['finetuning']} {ENDLESS} --num_train_epochs=1e6",
    "building": VICTIMS["building"],
    "study": VICTIMS["study"],
}
LOST = ("tee", "standard output", "standard error", "both closed", "full")
ODD_SECONDS = 10  # maximum time of `ask` for an odd folder


def lose(lost):
    """Return Popen's arguments for a lost output, and the file to close."""
    if lost == "full":
        full = os.open("/dev/full", os.O_WRONLY)
        return {"stdout": full, "stderr": full}, full
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    log = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    closed = {"standard error": (2,), "both closed": (1, 2)}.get(lost, ())
    streams = {"stdout": writer, "stderr": writer}
    if lost == "standard output":
        streams["stderr"] = log
    return streams | {"preexec_fn": lambda: [*map(os.close, closed)]}, reader


def logged(least=3):
    """Return the path and last step of a log with at least `least` rows."""
    paths = glob.glob("killed/**/train_log.jsonl", recursive=True)
    tuned = [path for path in paths if "/finetuning_models/" in path]
    for path in tuned or paths:
        if not tuned and os.path.exists("killed/models/tiny/best"):
            # This log belongs to the model that fine-tuning starts from.
            continue
        rows = read(path).splitlines()
        if len(rows) >= least:
            return path, json.loads(rows[-1])["step"]
    return None


def built():
    return glob.glob("killed/out/*tfrecord*") + glob.glob("killed/out/.*")


def output_trial(name, lost, number):
    """Run a command, close its output, send a signal; record the outcome."""
    begin(name)
    if name == "study":
        study = json.loads(faults.study_file()) | {"budget": {"steps": LONG}}
        study["pretrain"] |= {"save_checkpoints_steps": LONG}
        write("killed/study.json", json.dumps(study))
    streams, reader = lose(lost)
    program, *arguments = COMMANDS[name].split()
    script = [os.path.join(ROOT, program)]
    if not program.endswith(".py"):
        script = ["-m", "electra_tf", program]
    process = subprocess.Popen(
        [sys.executable, *script, *arguments],
        env=os.environ | {"PYTHONPATH": ROOT},
        start_new_session=True,
        **streams,
    )
    for stream in {streams["stdout"], streams["stderr"]} - {reader}:
        os.close(stream)
    at_work = built if name == "building" else logged
    while process.poll() is None and not at_work():
        time.sleep(0.02)
    os.close(reader)
    ended = process.poll()
    # A terminal sends SIGINT to the whole process group.
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    status, wrong = faults.wait(process, 300), []
    # A shell also reports 128 + the signal for a process that a signal ended.
    if ended is not None or status not in (128 + number, -number):
        wrong.append(f"status {status}, ended by itself: {ended}")
    if name == "building":
        if start(COMMANDS[name]).wait():
            wrong.append("second try")
        whole = faults.undisturbed(name)["end"]
        now = faults.fingerprint("killed")
        if any(now.get(path) != value for path, value in whole.items()):
            wrong.append("different")
    else:
        path, step = logged()
        named = read(f"{os.path.dirname(path)}/checkpoint")
        saved = int(re.search(r"model\.ckpt-(\d+)", named)[1])
        index = f"{os.path.dirname(path)}/model.ckpt-{saved}.index"
        is_saved = saved >= step and os.path.exists(index)
        if not is_saved:
            wrong.append("not saved")
    row = {"kind": "outputs", "case": name, "outcome": ", ".join(wrong)}
    row["outcome"] = row["outcome"] or "well"
    keep(**row, how=f"{lost}, {signal.Signals(number).name}")


def outputs(args):
    """Run each of 4 commands with 5 kinds of lost output and 2 signals."""
    for name in args.only or COMMANDS:
        if name == "building":
            faults.undisturbed(name)
        for lost in LOST:
            for number in (signal.SIGINT, signal.SIGTERM):
                output_trial(name, lost, number)


def damage_best(folder, number):
    """Damage a folder `best` in one of 20 ways; return the kind of damage."""
    draw = random.Random(number)
    best = pathlib.Path(folder, "best")
    index = next(best.glob("model.ckpt-*.index"))
    data = next(best.glob("model.ckpt-*.data-*"))
    state = best / "checkpoint"
    paths = {"index": index, "data": data, "checkpoint": state}
    if number < 3:
        name = list(paths)[number]
        paths[name].unlink()
        return f"without {name}"
    if number == 3:
        text = state.read_text()
        step = index.stem.split("-")[1]
        state.write_text(text.replace(step, str(int(step) + 1)))
        return "another step named"
    if number == 4:
        for path in (index, data, state):
            path.unlink()
        return "without weights"
    name = list(paths)[number % 3]
    way = ("cut", "flips", "zeros", "empty", "garbage")[(number // 3 - 1) % 5]
    content = bytearray(paths[name].read_bytes())
    at = draw.randrange(len(content))
    if way == "cut":
        content = content[:at]
    elif way == "flips":
        for _ in range(8):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    elif way == "zeros":
        content[at : at + 64] = bytes(len(content[at : at + 64]))
    elif way == "empty":
        content = b""
    else:
        content[at : at + 20] = b"\xffno sense" + draw.randbytes(6)
    paths[name].write_bytes(content)
    return f"{name} {way}"


def best(args):
    """Check that `predict` refuses 20 damaged folders, or answers as before."""
    from fuzzing import attempt

    from electra_tf.prediction.predictor import Predictor

    def answers(folder):
        predictor = Predictor.from_pretrained(folder)
        return repr([predictor(text) for text in ("the king", "of it")])

    begin("finetuning")
    command = f"{VICTIMS['finetuning']} --num_trials=1 --keep_best=loss"
    # At this learning rate, the best checkpoint is not the last checkpoint.
    command += " --learning_rate=0.05"
    if start(f"{command} --eval_every_n_steps=20").wait():
        sys.exit(read("said"))
    fresh("best/whole", f"killed/{TUNED.removeprefix('made/')}")
    step = json.loads(read("best/whole/best/best.json"))["step"]
    newest = pathlib.Path("best/whole/checkpoint").read_text()
    assert f'model_checkpoint_path: "model.ckpt-{step}"' not in newest
    whole = answers("best/whole")
    for number in range(20):
        fresh("best/damaged", "best/whole")
        how = damage_best("best/damaged", number)
        outcome, answer, _ = attempt(answers, "best/damaged")
        if outcome == "read":
            outcome = "same" if answer == whole else "silent"
        detail = answer[-300:] if outcome != "same" else ""
        keep(
            kind="best", case="predict", how=how, outcome=outcome, detail=detail
        )


def odd_folders():
    """Make 12 odd folders below `odd`; their names are the numbers from 0."""
    fresh("odd")
    for number in range(12):
        write(f"odd/{number}/a.txt", "The king of the north is here.\n")
    os.symlink(".", "odd/0/one")
    os.symlink(".", "odd/0/two")
    os.mkfifo("odd/1/fifo.txt")
    os.symlink("/dev/zero", "odd/2/zero.txt")
    os.symlink("/proc/self", "odd/3/process")
    os.symlink("nowhere", "odd/4/broken.txt")
    os.symlink("loop.txt", "odd/5/loop.txt")
    os.symlink("..", "odd/6/up")
    write("odd/7/.hidden/b.txt", "The queen of the south.\n")
    write("odd/7/.hidden.txt", "The queen of the south.\n")
    os.makedirs("odd/8/" + "/".join("d" * 200))
    os.symlink("/dev/stdin", "odd/9/stdin.txt")
    os.symlink("/dev/urandom", "odd/9/random.txt")
    for name in ("x", "y"):
        os.makedirs(f"odd/10/{name}")
        os.symlink("../x", f"odd/10/{name}/to_x")
        os.symlink("../y", f"odd/10/{name}/to_y")
    write("odd/11/b.jsonl", b"\x00" * 5000)
    write("odd/11/c.json", "[" * 100_000)
    write("odd/11/d.txt.gz", b"\x1f\x8b no gzip")
    write("odd/11/e.txt", b"\xff\xfe")


def folders(args):
    """Check in one process that `ask` indexes or refuses 12 odd folders."""
    from fuzzing import attempt

    from electra_tf.extras.ask.index import open_index

    def stop(number, frame):
        raise TimeoutError

    odd_folders()
    signal.signal(signal.SIGALRM, stop)
    for number in range(12):
        folder = f"odd/{number}"
        began = time.monotonic()
        signal.alarm(6 * ODD_SECONDS)
        messages = []
        outcome, result, _ = attempt(
            open_index, folder, f"{folder}.index", "english", messages.append
        )
        signal.alarm(0)
        seconds = round(time.monotonic() - began, 1)
        outcome = "slow" if seconds > ODD_SECONDS else outcome
        row = {"kind": "folders", "case": "ask", "how": str(number)}
        detail = str(result)[-300:] if outcome != "read" else messages
        keep(**row, outcome=outcome, seconds=seconds, detail=detail)


def cached(args):
    """Flip a bit of cached records 20 times; check that no result changes."""
    from configure.finetuning import FinetuningConfig
    from electra_tf.finetuning import runner
    from electra_tf.training.console import Console

    def tune():
        for name in ("finetuning_models", "results"):
            fresh(f"killed/models/tiny/{name}")
        hparams = json.loads(faults.FINETUNING)
        hparams |= {"num_trials": 1, "num_train_epochs": 0.2}
        hparams |= {"init_checkpoint": faults.RUN}
        config = FinetuningConfig.create("tiny", "killed", **hparams)
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            result = runner.run(config, Console(stream))
        return result["trials"][0]["results"], stream.getvalue()

    begin("finetuning")
    shutil.copy("made/vocab.txt", "killed")
    whole, _ = tune()
    records = "killed/models/tiny/finetuning_tfrecords"
    fresh("cached", records)
    paths = sorted(glob.glob("cached/**/*.tfrecord", recursive=True))
    for number in range(20):
        draw = random.Random(number)
        fresh(records, "cached")
        path = draw.choice(paths).replace("cached", records, 1)
        content = bytearray(pathlib.Path(path).read_bytes())
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        pathlib.Path(path).write_bytes(content)
        outcome, detail, _ = attempt_quietly(tune)
        if outcome == "read":
            results, printed = detail
            is_named = os.path.basename(path) in printed
            outcome = "remade" if is_named else "not read"
            if results != whole:
                outcome += ", other results"
            detail = ""
        row = {"kind": "cached", "case": "records", "outcome": outcome}
        keep(**row, how=os.path.basename(path), detail=str(detail)[-400:])


def attempt_quietly(work):
    from fuzzing import attempt

    return attempt(work)


def cpu_seconds(session):
    """Return the CPU seconds of a session's living processes."""
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = read(path).rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def lines(args):
    """Measure CPU seconds of building records from lines of 8 MB and 64 MB."""
    words = "the king of the north was in 12 cities and "
    for megabytes in (8, 64):
        text = (words * (megabytes * 10**6 // len(words) + 1)).encode()
        fresh("long")
        write("long/corpus/a.txt", text[: megabytes * 10**6] + b"\n")
        command = (
            "build_pretraining_dataset.py --vocab-file made/vocab.txt"
            " --max-seq-length=128 --num-shards=1 --num-processes=1"
            " --corpus-dir long/corpus --output-dir long/out"
            " --split_long_lines --max_line_mb=100"
        )
        process, seconds = start(command), 0.0
        while process.poll() is None:
            seconds = max(seconds, cpu_seconds(process.pid))
            time.sleep(0.2)
        if process.returncode:
            sys.exit(read("said"))
        seconds = round(seconds, 1)
        row = {"kind": "lines", "case": f"{megabytes} MB", "outcome": "well"}
        keep(**row, seconds=seconds)
        print(megabytes, seconds, flush=True)


STEPS = 24


def determinism(args):
    """Compare weights of continued runs, and of runs with 1, 2 or 4 threads."""
    from configure.pretraining import PretrainingConfig
    from electra_tf.checkpoints import tf1
    from electra_tf.pretraining import runner

    ends = {}
    for threads in (1, 2, 4):
        begin("pretraining")
        command = f"{VICTIMS['pretraining']} --threads={threads}"
        if start(f"{command} --num_train_steps={STEPS}").wait():
            sys.exit(read("said"))
        prefix = f"killed/models/tiny/model.ckpt-{STEPS}"
        ends[threads] = faults.tensors_of(prefix)
        outcome = "equal" if ends[threads] == ends[1] else "different"
        row = {"kind": "determinism", "case": "threads", "how": str(threads)}
        keep(**row, outcome=outcome)

    def train(name, source=None, step=None):
        fresh(f"steps/{name}")
        if source:
            names = ("config.json", "vocab.txt", "train_log.jsonl")
            names += ("eval_log.jsonl", "digests.json", "electra_config.json")
            for path in pathlib.Path("steps", source).glob("*"):
                if f"-{step}." in path.name or path.name in names:
                    shutil.copy(path, f"steps/{name}")
            folder = f"steps/{name}"
            tf1.record_latest(folder, [f"{folder}/model.ckpt-{step}"])
        hparams = json.loads(faults.PRETRAINING)
        hparams |= {"num_train_steps": STEPS, "save_checkpoints_steps": 1}
        hparams |= {"keep_checkpoint_max": 0, "keep_best": "none"}
        hparams |= {"model_dir": f"steps/{name}", "threads": 1}
        runner.run(PretrainingConfig.create("tiny", "made", **hparams))
        return faults.tensors_of(f"steps/{name}/model.ckpt-{STEPS}")

    whole = train("whole")
    starts = [("whole", step) for step in (1, 2, 9, 10, 11, 23)]
    for source, step in [*starts, ("from_11", 13), ("from_13", 14)]:
        equal = train(f"from_{step}", source, step) == whole
        row = {"kind": "determinism", "case": "continued"}
        outcome = "equal" if equal else "different"
        keep(**row, how=f"{source} at {step}", outcome=outcome)


if __name__ == "__main__":
    # A shell that starts this program in the background makes it ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faults.run(
        __doc__, (outputs, best, folders, cached, lines, determinism), count=1
    )
