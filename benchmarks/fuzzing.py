# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Open damaged files; pass random input to readers, flags and a server.

Trials are seeded and counted as in `faults.py`. A damaged file must be refused
or change no result; no trial may end with a traceback, hang, or write outside
the folder.

  python benchmarks/fuzzing.py damage --count=80
  python benchmarks/fuzzing.py fuzz --minutes=30
  python benchmarks/faults.py totals --show="different|traceback|hang"
"""

import bz2
import collections
import contextlib
import functools
import glob
import gzip
import importlib
import io
import json
import lzma
import multiprocessing
import os
import pathlib
import random
import re
import resource
import runpy
import socket
import sys
import tarfile
import tempfile
import time
import traceback

import faults
import fuzzing_extras
import numpy as np
import serving_load
from faults import PRETRAINING, RUN, fresh, keep, kept, read, write
from fingerprints import TIMES, digest

from configure import flags, hparams_json
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.pretraining import PretrainingConfig
from electra_tf.__main__ import COMMANDS
from electra_tf.checkpoints.formats import open_weights
from electra_tf.data import (
    corpora,
    example_count,
    input_pipeline,
    record_checks,
)
from electra_tf.extras.serving.served_model import open_model
from electra_tf.finetuning.registry import get_tasks
from electra_tf.pretraining import runner
from electra_tf.pretraining.loading import load_pretrained
from electra_tf.text.opening import open_tokenizer
from electra_tf.text.vocabulary import check_vocab
from electra_tf.training import loop

SPAWN = multiprocessing.get_context("spawn")
HANG_SECONDS = 240
# memory limit of a process that reads damaged files, in bytes
MEMORY = 14 << 30
PART = f"{RUN}/export/discriminator"

# Damaged files: each must be refused, or change no result.


def again(folder):
    settings = {**json.loads(PRETRAINING), "num_train_steps": 40}
    for kind in ("txt", "pkl", "json"):
        settings[f"results_{kind}"] = f"{folder}/r.{kind}"
    settings["model_dir"] = folder
    runner.run(PretrainingConfig.create("tiny", "made", **settings))
    logs = "".join(map(read, sorted(glob.glob(f"{folder}/*.jsonl"))))
    times = r'(, "one_class_evaluations": \d+)|' + TIMES
    return opened(folder), re.sub(times, "", logs)


def opened(folder):
    weights = open_weights(folder)
    return [weights.hparams, digest(*(value.tobytes() for _, value in weights))]


def loaded(folder):
    model = load_pretrained(folder)
    weights = [v for v in model.model.variables if "generator" not in v.name]
    weights = digest(*(variable.numpy().tobytes() for variable in weights))
    return model.tokenizer.encode("the king was in 12."), weights


def tokenized(folder):
    check_vocab(f"{folder}/vocab.txt")
    tokenizer = open_tokenizer(f"{folder}/vocab.txt")
    return tokenizer.encode("the king of the north was in 12 cities.")


def read_records(folder):
    """Return every example of training and evaluation, after the checks."""
    settings = json.loads(PRETRAINING)
    settings["pretrain_tfrecords"] = f"{folder}/pretrain_data.tfrecord*"
    settings["eval_tfrecords"] = f"{folder}/eval_data.tfrecord*"
    config = PretrainingConfig.create("tiny", "made", **settings)
    for training in (True, False):
        print("WARNING", record_checks.check_records(config, training))
    parts = [example_count.count_training_examples(config).examples]
    once = input_pipeline.each_example_once(config, 64)
    evaluated = input_pipeline.build_dataset(config, 64, training=False)
    for iterator in (iter(once), iter(evaluated)):
        while batch := loop.next_batch(iterator, "training"):
            parts += [digest(x.numpy().tobytes()) for x in batch.values()]
    return parts


def served(folder):
    model = open_model(folder)
    texts = np.array(["the king", "in the north (12)", ""], object)
    outputs = model.signatures["serve_text"]({"text": texts})
    return model.labels, repr([model.config, outputs])


def settings_of(folder):
    hparams = hparams_json.read_hparams(f"{folder}/hparams.json")
    hparams = PretrainingConfig.explicit_hparams(hparams)
    return PretrainingConfig.create("tiny", "made", **hparams).to_json()


def task_of(folder):
    names = {"task_config": f"{folder}/task.json", "task_names": ["own"]}
    names |= {"vocab_file": "made/vocab.txt", "vocab_size": 200}
    names |= {"max_seq_length": 16, "max_query_length": 4}
    config = FinetuningConfig.create("tiny", folder, **names)
    (task,) = get_tasks(config)
    rows = [task.featurize(e, True) for e in task.get_examples("train")]
    print("WARNING", task.row_report.as_dict())
    return repr(rows)


TENSORS = r".*(\.safetensors|digests\.json)"
DAMAGED = {  # name -> folder, pattern of files, reader, trials out of 80
    "native": (RUN, r"model\.ckpt[^/]*|checkpoint", again, 80),
    "tf1": ("made/tf1", r"model\.ckpt.*(index|\d)|checkpoint", opened, 80),
    "safetensors": ("made/one", TENSORS, opened, 80),
    "two folders": ("made/two", TENSORS, opened, 80),
    "records": ("made/pretrain_tfrecords", ".*", read_records, 80),
    "bare records": ("made/bare", ".*", read_records, 80),
    "config of a run": (RUN, r"config\.json", again, 16),
    "sizes": (PART, r"electra_config\.json", loaded, 16),
    "config of Hugging Face": ("made/one", r"config\.json", opened, 16),
    "hparams": ("made/settings", r"hparams\.json", settings_of, 16),
    "task": ("made/settings", r"task\.json", task_of, 16),
    "vocabulary": (PART, r"vocab\.txt", loaded, 40),
    "bare vocabulary": ("made/settings", r"vocab\.txt", tokenized, 40),
    "logs": (RUN, r"\w+\.jsonl|best/best\.json", again, 80),
    "SavedModel": ("made/exported/1", ".*", served, 80),
}
DAMAGED |= fuzzing_extras.DAMAGED_EXTRAS
WAYS = "flip flips cut zeros swap garbage empty gone".split()


def damaged(path, draw):
    """Damage a file in a random way; return the kind of damage."""
    content = bytearray(pathlib.Path(path).read_bytes())
    way, size = draw.choice(WAYS), len(content)
    at = draw.randrange(max(size, 1))
    for _ in range({"flip": 1, "flips": 8}.get(way, 0)):
        content[draw.randrange(size)] ^= 1 << draw.randrange(8)
    if way == "zeros":
        content[at : at + 64] = bytes(len(content[at : at + 64]))
    elif way == "swap":
        content = content[at:] + content[:at]
    elif way == "garbage":
        content[at : at + 20] = b'\xffno sense {["\n' + draw.randbytes(6)
    elif way in ("cut", "empty"):
        content = content[: at if way == "cut" else 0]
    write(path, bytes(content))
    if way == "gone":
        os.remove(path)
    return way


def attempt(work, *arguments):
    """Call a function; return outcome, result (or error) and warnings."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            outcome, result = "read", work(*arguments)
        except (UserError, SystemExit) as error:
            outcome, result = "refused", str(error)
        except BaseException:
            outcome, result = "traceback", traceback.format_exc()[-1500:]
    lines = output.getvalue().splitlines()
    return outcome, result, [line for line in lines if "WARNING" in line]


def damage_worker(name, count):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    source, pattern, load, _ = DAMAGED[name]
    fresh("damaged/x", source)
    whole = attempt(load, "damaged/x")
    assert whole[0] == "read", whole
    for number in range(len(kept(case=name)), count):
        fresh("damaged/x", source)
        draw = random.Random(f"{name} {number}")
        paths = sorted(glob.glob("damaged/x/**/*", recursive=True))
        paths = [p for p in paths if re.fullmatch(pattern, p[10:])]
        path = draw.choice([p for p in paths if os.path.isfile(p)])
        way = damaged(path, draw)
        outcome, result, warnings = attempt(load, "damaged/x")
        detail = result if outcome != "read" else ""
        if outcome == "read":
            outcome = "same" if result == whole[1] else "different"
            if outcome == "different" and warnings != whole[2]:
                outcome, detail = "told", warnings[-1]
        row = {"kind": "corrupt", "case": name, "number": number, "how": way}
        keep(**row, file=path[10:], outcome=outcome, detail=detail[-600:])


def supervised(work, kind, case, most):
    """Run a function in processes; record each process that dies or hangs."""
    code = None
    while code != 0:
        process = SPAWN.Process(target=work, args=(case, most))
        process.start()
        size, until = -1, time.monotonic() + HANG_SECONDS
        while process.is_alive() and time.monotonic() < until:
            process.join(1)
            if size != (now := os.path.getsize(faults.TRIALS)):
                size, until = now, time.monotonic() + HANG_SECONDS
        if code := process.exitcode or process.is_alive():
            outcome = "hang" if process.is_alive() else "crash"
            process.kill()
            keep(kind=kind, case=case, outcome=outcome, detail=f"exit {code}")
        process.join()


def damage(args):
    fuzzing_extras.make_extras()
    for name in args.only or DAMAGED:
        share = round(args.count * DAMAGED[name][-1] / 80)
        most = len(kept(case=name)) + share
        supervised(damage_worker, "corrupt", name, most)


# Random input for readers, flags and a server.

NASTY = "0 -1 1e400 nan inf [] {} null 1e10 ../.. x 1,2 -- - % mean".split(" ")
NASTY += ["", "\0", "\n", "é\ud800", "9" * 5000, "a" * 5000, "{" * 500, '{"a":']
PAIR = {"columns": {"text_a": 0, "label": 1}}
TASKS = [PAIR | {"type": kind} for kind in ("multilabel", "regression")]
TASKS += [PAIR, {"columns": {"text_a": "sentence", "label": "label"}}]
TASKS += [{"type": "tagging", "columns": {"word": 0, "tag": 1}}]
TASKS += [{"type": "question_answering", "version": "squad2"}]
SQUAD = """{"data": [{"paragraphs": [{"context": "the king of it", "qas": [{
  "id": "1", "question": "who", "answers": [{"text": "king",
  "answer_start": 4}]}]}]}]}"""
ROWS = '{"sentence": "the king", "label": 1}\n{"text": "of it", "label": 0}\n'


def outside(event, arguments):
    """Record writes outside the working directory, as an audit hook."""
    if event == "open" and not (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR):
        return
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.symlink"):
        for path in arguments[: 1 if event == "open" else 2]:
            if isinstance(path, str | bytes):
                path = os.path.realpath(os.fsdecode(path))
                if not path.startswith((os.getcwd(), "/dev/", "/proc/")):
                    keep(kind="fuzz", case="writes", outcome=path)


def nonsense(draw, content):
    """Return a text with random mistakes, or random bytes."""
    if draw.random() < 0.1:
        return draw.randbytes(draw.randint(0, 300))
    content = bytearray(content)
    for _ in range(draw.randint(0, 6)):
        at = draw.randint(0, len(content))
        some = draw.choice(NASTY).encode("utf-8", "surrogatepass")
        some = draw.choice((some, b"\t", b"\n", b'"', draw.randbytes(3)))
        content[at : at + draw.choice((0, 1, 20))] = some
    return bytes(content)


@functools.cache
def whole_files():
    text = read("made/corpus/a.txt")[:2000].encode()
    table = read("made/finetuning_data/sst/dev.tsv")
    contents = {
        "a.txt": text,
        "a.json": SQUAD.encode(),
        "a.jsonl": ROWS.encode(),
    }
    contents |= {"a.tsv": table.encode(), "hparams.json": PRETRAINING.encode()}
    contents["a.csv"] = table.replace("\t", ",").encode()
    contents["a.conll"] = b"the O\nking B-PER\n\nof O\n" * 3
    contents["vocab.txt"] = read("made/vocab.txt").encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add("made/finetuning_data/sst/dev.tsv")
        archive.add("made/settings/task.json")
    contents["a.tar"] = packed.getvalue()
    contents["a.tar.gz"] = gzip.compress(contents["a.tar"])
    contents |= {"a.txt.gz": gzip.compress(text), "a.xz": lzma.compress(text)}
    return contents | {"a.bz2": bz2.compress(text)}


def readers(draw):
    whole = whole_files()
    fresh("fuzzed")
    name = draw.choice(sorted(whole))
    write(f"fuzzed/{name}", nonsense(draw, whole[name]))
    if reader := {"vocab.txt": tokenized, "hparams.json": settings_of}.get(
        name
    ):
        return reader("fuzzed")
    if draw.random() < 0.4 or re.search("tar|z|txt", name):
        corpus, shuffle = corpora.Corpus("fuzzed"), draw.choice((None, draw))
        for source in corpora.list_sources(corpus).sources:
            report = corpora.ReadingReport()
            list(corpora.read_documents(source, corpus, report, shuffle))
        return None
    task = {"name": "own", "files": {"train": name, "dev": name}}
    task = json.dumps(task | draw.choice(TASKS)).encode()
    task = nonsense(draw, task) if draw.random() < 0.3 else task
    write("fuzzed/task.json", task)
    return task_of("fuzzed")


def tasks_with_mistakes(draw, mistaken):
    """Read a task with a wrong description of a correct file."""
    name, task = draw.choice(("a.tsv", "a.csv", "a.jsonl")), draw.choice(TASKS)
    write(f"fuzzed/{name}", whole_files()[name])
    task = {"name": "own", "files": {"train": name, "dev": name}} | task
    task |= draw.choice(({}, {"labels": ["0", "1"]}, {"metric": "f1"}))
    write("fuzzed/task.json", mistaken(json.dumps(task), nonsense))
    return task_of("fuzzed")


def descriptions(draw):
    return fuzzing_extras.descriptions(draw, nonsense, tasks_with_mistakes)


@functools.cache
def parser_of(command):
    """Return a command's parser, required arguments, and names of flags."""
    if isinstance(command, str):
        module = importlib.import_module(f"electra_tf.commands.{command}")
        required, parse = ("x",), module.parse_flags
    else:
        required = ("x", "--data-dir", "made", "--model-name=tiny")
        parse = functools.partial(flags.parse_config, command)
    output = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(output):
        parse(["x", "--help"])
    return parse, required, re.findall(r"(?m)^ +(--\w+)", output.getvalue())


def command_lines(draw):
    command = draw.choice((*COMMANDS, PretrainingConfig, FinetuningConfig))
    parse, arguments, known = parser_of(command)
    arguments = [*arguments]
    for _ in range(draw.randint(0, 5)):
        flag = draw.choice((*known, draw.choice(NASTY)))
        value = draw.choice((*NASTY, str(draw.random())))
        arguments += draw.choice(([flag, value], [f"{flag}={value}"], [flag]))
    return parse(arguments)


def request(draw, bodies):
    """Return the bytes of a request: valid, nearly valid, or random."""
    body = draw.choice(bodies)[:3000]
    body = nonsense(draw, body) if draw.random() < 0.6 else body
    paths = ["/v1/models/exported:predict"] * 4 + ["/", "/" * 9000, "/../x"]
    paths += ["/v1/models/exported/metadata", "/%2e%2e/x", "/v1/models/x"]
    method = draw.choice(("POST",) * 5 + ("GET", "PUT", "BREW", "", "OPTIONS"))
    size = draw.choice((len(body),) * 6 + (0, -1, 10**12, "x", len(body) - 1))
    host = draw.choice(("localhost",) * 8 + ("x", "[::1", ""))
    kind = draw.choice(("application/json",) * 8 + ("text/plain", "\x80/;"))
    head = f"{method} {draw.choice(paths)} HTTP/1.1\r\nHost: {host}\r\n"
    head += f"Content-Type: {kind}\r\n"
    head += draw.choice(("", "", "", "Transfer-Encoding: chunked\r\n", "X\r\n"))
    raw = f"{head}Content-Length: {size}\r\n\r\n".encode() + body
    return nonsense(draw, raw) if draw.random() < 0.2 else raw


def requests(port, bodies, draw):
    """Send one request to a server; return the status."""
    with socket.create_connection(("127.0.0.1", port), 90) as client:
        client.settimeout(2)
        try:
            client.sendall(request(draw, bodies))
            reply = client.recv(100).split()
            return reply[1].decode() if reply else "closed"
        except TimeoutError:
            return "waits for more"
        except ConnectionError:
            return "closed"


def fuzz_worker(case, minutes):
    """Draw inputs until the time is over; write rows every ten seconds."""
    # Temporary files must be inside the folder, because writes outside the
    # folder are recorded as faults.
    os.makedirs("temporary", exist_ok=True)
    tempfile.tempdir = os.path.abspath("temporary")
    with contextlib.ExitStack() as stack:
        work = {"readers": readers, "command lines": command_lines}
        work = (work | {"descriptions": descriptions}).get(case)
        if not work:
            script = [__file__, "serve", "made/exported", "--port=0"]
            _, port = stack.enter_context(faults.server(script))
            about = serving_load.get(port, "/page.json")
            bodies = serving_load.malformed_bodies(about)
            for draw in map(random.Random, range(10)):
                bodies.append(serving_load.request_for(about, draw)[0])
            work = functools.partial(requests, port, bodies)
        sys.addaudithook(outside)
        rows = kept(kind="fuzz", case=case)
        number = sum(row.get("count", 1) for row in rows)
        end = time.monotonic() + 60 * minutes
        finding = {"kind": "finding", "case": case}
        while time.monotonic() < end:
            began, outcomes = time.monotonic(), collections.Counter()
            while time.monotonic() < began + 10:
                number += 1
                draw = random.Random(f"{case} {number}")
                outcome, value, _ = attempt(work, draw)
                if case == "server" and outcome == "read":
                    outcome = value
                outcomes[outcome] += 1
                if outcome == "traceback" or outcome.startswith("5"):
                    row = {"number": number, "outcome": outcome}
                    keep(**finding, **row, detail=value)
            for outcome, count in outcomes.items():
                keep(kind="fuzz", case=case, outcome=outcome, count=count)
        if case == "server":
            serving_load.get(port, "/healthz")
            if "Traceback" in (log := read("said")):
                keep(**finding, outcome="traceback", detail=log[-3000:])


CASES = ("readers", "command lines", "descriptions", "server")


def fuzz(args):
    fuzzing_extras.make_extras()
    for case in (cases := args.only or CASES):
        supervised(fuzz_worker, "finding", case, args.minutes / len(cases))


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        sys.addaudithook(outside)
        runpy.run_module("electra_tf", run_name="__main__")
    else:
        faults.run(__doc__, (damage, fuzz), count=80)
