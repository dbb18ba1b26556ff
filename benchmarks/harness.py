# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: arms, turns, ratios, the machine, the report.

An arm is one contestant: a worker process in its own interpreter, which
prepares itself once and then answers when it is asked. Arms take turns
(A B C A B C), so that what disturbs the machine disturbs all of them, and
ratios are of turns that followed each other. Peers' environments import this
file, so it needs the standard library only.
"""

import argparse
import contextlib
import dataclasses
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.append(ROOT)  # The product, where it is not installed.
SHARED = os.environ.get(
    "ELECTRA_TF_REFERENCE", os.path.join(os.path.dirname(ROOT), "shared")
)
DATA, GOLDEN = (os.path.join(SHARED, name) for name in ("data", "golden"))
CORPUS = os.path.join(DATA, "pretrain_corpus")
VOCAB = os.path.join(DATA, "vocab", "vocab.txt")
STARTED = time.perf_counter()
CORES = len(os.sched_getaffinity(0))  # that this process may run on
SPEC_VARIABLE = "ELECTRA_TF_BENCHMARK_ARM"
# As this program was given it: importing electra_tf sets variables for
# TensorFlow, which the peers must not inherit.
_ENVIRONMENT = dict(os.environ)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def _names(text):
    return text.split(",")


def parser(description, repeats):
    """A command line with the flags that every benchmark has."""
    made = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--arms", type=_names, default=[], help="by commas; default: all")
    add("--python", default="", help="that has transformers; '': no such arm")
    original = "folder with electra/, a copy of the original that runs, and"
    add("--original", default="", help=f"{original} env/bin/python for it")
    more = "another checkout of this project, a further arm; repeatable"
    add("--before", action="append", default=[], metavar="DIR", help=more)
    more = 'further arms, JSON: {"NAME": {"arm": KIND (default ours),'
    more += ' "hparams": {...}, "environment": {...}, fields of its spec}}'
    add("--variants", type=json.loads, default={}, help=more)
    add("--threads", type=int, default=CORES)
    add("--repeats", type=int, default=repeats, help="turns of each arm")
    add("--json", default="", metavar="FILE", help="everything measured")
    return made


def checkouts(args):
    """Folder of this checkout ("ours") and of those of --before, by name."""
    several = len(args.before) > 1
    found = {"ours": ROOT}
    for path in map(os.path.abspath, args.before):
        if not os.path.isdir(os.path.join(path, "electra_tf")):
            sys.exit(f"error: --before {path}: there is no electra_tf in it")
        name = f"before, {os.path.basename(path)}" if several else "before"
        found[name] = path
    return found


def plan(args, kinds, **shared):
    """(kind, spec) of each arm by name; a kind KIND has a file arm_KIND.py.

    `shared` is in every spec, beside `root`, `threads` and `hparams`.
    """
    shared = {
        "threads": args.threads,
        "root": ROOT,
        "original": os.path.abspath(args.original),
        "hparams": {},
        **shared,
    }
    lacking = {"transformers": args.python, "original": args.original}
    there = [kind for kind in kinds if lacking.get(kind, True)]
    for name in args.arms:
        if name not in there:
            sys.exit(f"error: no arm {name!r}; there are {', '.join(there)}")
    found = {}
    for kind in args.arms or there:
        if kind == "ours":
            for name, path in checkouts(args).items():
                found[name] = (kind, {**shared, "root": path})
        else:
            found[kind] = (kind, shared)
    for name, own in args.variants.items():
        kind = own.get("arm", "ours")
        hparams = {**shared["hparams"], **own.get("hparams", {})}
        found[f"{kind}, {name}"] = (kind, {**shared, **own, "hparams": hparams})
    return found


class ArmError(RuntimeError):
    """A worker failed or ended; the message holds what it last said."""


class Worker:
    """An arm in its own process; ArmError if it cannot prepare itself."""

    def __init__(self, name, python, script, spec, environment=None):
        self.name = name
        self._said = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [python, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env={
                "TF_CPP_MIN_LOG_LEVEL": "2",
                **_ENVIRONMENT,
                **(environment or {}),
                SPEC_VARIABLE: json.dumps(dict(spec)),
            },
        )
        self._answer()

    def ask(self, method, **arguments):
        """Calls a method of the arm; ArmError if it raised or ended."""
        request = {"method": method, "arguments": arguments}
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # _answer says what happened.
        return self._answer()

    def close(self):
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._said.close()

    def _answer(self):
        line = self._process.stdout.readline()
        if line:
            answer = json.loads(line)
        else:
            code = self._process.wait()
            self._said.seek(0)
            words = self._said.read().decode(errors="replace")[-2000:]
            answer = {"error": f"ended with code {code}. {words}"}
        if "error" in answer:
            raise ArmError(f"{self.name}: {answer['error']}")
        return answer["value"]


class Arms(dict):
    """Starts workers; those that fail are in `failed`, with the reason."""

    def __init__(self, args, planned):
        super().__init__()
        self.failed = {}
        pythons = {
            "transformers": args.python,
            "original": os.path.join(args.original, "env", "bin", "python"),
        }
        for name, (kind, spec) in planned.items():
            threads = {}
            if kind != "ours":  # It would take them for the user's choice.
                threads["OMP_NUM_THREADS"] = str(args.threads)
            try:
                self[name] = Worker(
                    name,
                    pythons.get(kind, sys.executable),
                    os.path.join(HERE, f"arm_{kind}.py"),
                    spec,
                    {**threads, **spec.get("environment", {})},
                )
            except (ArmError, OSError) as error:
                self.failed[name] = str(error)

    def ask_all(self, method, **arguments):
        """What each arm answers; one that fails leaves."""
        found = {}
        for name in list(self):
            try:
                found[name] = self[name].ask(method, **arguments)
            except ArmError as error:
                self.failed[name] = str(error)
                self.pop(name).close()
        return found

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for worker in self.values():
            worker.close()


def serve(*classes):
    """In an arm's script: makes the class named by the spec's `task`, answers.

    Public methods of what is made take keyword arguments and return what JSON
    can hold; `memory` and `forget_peak` are answered here.
    """
    # What libraries print must not get between the answers.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(answer):
        channel.write(json.dumps(answer) + "\n")
        channel.flush()

    try:
        spec = json.loads(os.environ[SPEC_VARIABLE])
        arm = {kind.__name__: kind for kind in classes}[spec["task"]](spec)
    except Exception:
        reply({"error": traceback.format_exc()[-2000:]})
        return
    reply({"value": None})
    own = {"memory": process_memory, "forget_peak": forget_peak}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            method = own.get(request["method"])
            method = method or getattr(arm, request["method"])
            reply({"value": method(**request["arguments"])})
        except Exception:
            reply({"error": traceback.format_exc()[-2000:]})


def process_memory():
    """Resident memory of this process in megabytes: `now` and `peak`."""
    with open("/proc/self/status", encoding="ascii") as file:
        found = dict(line.split(":", 1) for line in file)
    words = {"now": "VmRSS", "peak": "VmHWM"}
    return {n: int(found[w].split()[0]) / 1024 for n, w in words.items()}


def forget_peak():
    """Lets the peak of `process_memory` begin anew at what is used now."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def module_command(root, name):
    """How a checkout's command is started, with `root` as working folder."""
    if os.path.exists(os.path.join(root, "electra_tf", "__main__.py")):
        return [sys.executable, "-m", "electra_tf", name]
    return [sys.executable, "-m", f"electra_tf.commands.{name}"]  # 4a16307


class Program:
    """A program that runs from its start; what it took.

    `stages` are patterns by name: `finish` tells when a line matched first.
    """

    def __init__(self, command, root, environment=None, stages=None):
        self._stages = stages or {}
        self._errors = tempfile.TemporaryFile("w+")
        self._started = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            cwd=root,
            env={**os.environ, "PYTHONPATH": root, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def finish(self):
        """Seconds to each stage and to the `end`, `processor`, `peak` MB.

        Raises RuntimeError with what the program said if it failed.
        """
        found, said = {}, []
        for line in self._process.stdout:
            now = time.perf_counter() - self._started
            said.append(line)
            for name, pattern in self._stages.items():
                if name not in found and pattern.match(line):
                    found[name] = now
        self._process.stdout.close()
        # wait4 tells of this program and the workers it waited for, and of no
        # program measured before it.
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        found["end"] = time.perf_counter() - self._started
        if self._process.returncode:
            self._errors.seek(0)
            words = "".join(said)[-1000:] + self._errors.read()[-2000:]
            raise RuntimeError(f"{self._process.args}: {words}")
        found["processor"] = used.ru_utime + used.ru_stime
        found["peak"] = used.ru_maxrss / 1024
        return found


def take_turns(arms, run, repeats, warm_up=1):
    """What `run(arm)` gave at each turn after the warm-up, by name."""
    found = {name: [] for name in arms}
    for turn in range(warm_up + repeats):
        for name, arm in arms.items():
            value = run(arm)
            if turn >= warm_up:
                found[name].append(value)
    return found


@dataclasses.dataclass(frozen=True)
class Spread:
    """A median, and the lowest and highest value."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values):
        """The spread of some values, at least one."""
        return cls(statistics.median(values), min(values), max(values))

    def shown(self, digits=2, unit=""):
        """Such as `1.83x (1.79 to 1.90)`."""
        low, high = (f"{value:.{digits}f}" for value in (self.low, self.high))
        return f"{self.median:.{digits}f}{unit} ({low} to {high})"


def ratios(above, below):
    """The spread of the ratios of turns that followed each other."""
    return Spread.of([a / b for a, b in zip(above, below, strict=True)])


def faster(seconds, base="ours"):
    """How many times as fast `base` is as each other arm."""
    return {
        name: ratios(found, seconds[base])
        for name, found in seconds.items()
        if name != base and base in seconds
    }


def shown(spreads, name):
    """A ratio of `faster`; nothing where there is none."""
    return spreads[name].shown(2, "x") if name in spreads else ""


def machine():
    """Processor, cores, memory, load: what a number depends on (Linux)."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        pairs = [line.partition(":") for line in file]
    facts = {key.strip(): value.strip() for key, _, value in pairs}
    flags = facts.get("flags", "").split()
    wide = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": facts.get("model name", platform.machine()),
        "instructions": [name for name in wide if name in flags],
        "cores": CORES,
        "memory_gigabytes": round(pages * page / 2**30, 1),
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
    }


def versions(*packages):
    """Installed versions in this interpreter, of those installed."""
    found = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def table(rows):
    """A Markdown table with aligned columns; each row by column."""
    cells = [row.values() for row in rows]
    lines = [list(map(str, line)) for line in (rows[0], *cells)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return "".join(
        f"| {' | '.join(map(str.ljust, line, widths))} |\n" for line in lines
    )


def report(args, title, result, *tables, failed=None):
    """Prints tables (rows, or text); writes all there is to --json."""
    about = machine()
    print(f"{title}: medians of {args.repeats} turns (lowest to highest)\n")
    for part in tables:
        print(part if isinstance(part, str) else table(part))
    for name, facts in result.get("about", {}).items():
        told = [" ".join(pair) for pair in facts["versions"].items()]
        if "parameters" in facts:
            told.append(f"{facts['parameters']:,} parameters")
        print(f"{name}: {', '.join(told)}")
    for name, error in (failed or {}).items():
        print(f"{name} does not run: {error.strip().splitlines()[-1]}")
    print(
        f"{about['processor']} ({', '.join(about['instructions'])}),"
        f" {about['cores']} cores, {about['memory_gigabytes']} GB, load"
        f" {about['load_average'][0]:.1f}, Python {about['python']}"
    )
    if args.json:
        whole = {
            "title": title,
            "command": sys.argv,
            "arguments": vars(args),
            "machine": about,
            "failed": failed or {},
            **result,
        }
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(whole, file, indent=1, default=dataclasses.asdict)
