# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arms, turns, ratios and reports of all benchmarks.

An arm is one contestant: arm_KIND.py in its own process and interpreter, which
prepares once and then handles requests. Arms take turns (A B C A B C), so that
disturbances of the machine affect all of them, and ratios compare consecutive
turns. Peers import this file, so it needs only the standard library.
"""

import argparse
import contextlib
import dataclasses
import functools
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
sys.path.append(ROOT)  # The product may not be installed.
SHARED = os.path.join(os.path.dirname(ROOT), "shared")
SHARED = os.environ.get("ELECTRA_TF_REFERENCE", SHARED)
DATA, GOLDEN = (os.path.join(SHARED, name) for name in ("data", "golden"))
CORPUS = os.path.join(DATA, "pretrain_corpus")
VOCAB = os.path.join(DATA, "vocab", "vocab.txt")
STARTED = time.perf_counter()
COMPILED = " compiled"
CORES = len(os.sched_getaffinity(0))  # cores available to this process
# The environment is copied before electra_tf is imported, because electra_tf
# sets variables for TensorFlow that the peers must not inherit.
_ENVIRONMENT = dict(os.environ)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


Flags = functools.partial(  # The help keeps the line breaks of the docstring.
    argparse.ArgumentParser,
    formatter_class=argparse.RawDescriptionHelpFormatter,
)


def parser(description, repeats):
    """Return a parser with the flags of every benchmark."""
    made = Flags(description=description)
    add = made.add_argument
    by_commas = {"type": lambda text: text.split(",")}
    more = "names of arms, separated by commas; default: all arms"
    add("--arms", default=[], help=more, **by_commas)
    more = "interpreter that has transformers; default: no arm of transformers"
    add("--python", default="", help=more)
    more = "folder with electra/, a working copy of the original, and with"
    add("--original", default="", help=f"{more} its interpreter env/bin/python")
    more = "another checkout of this project, as a further arm; repeatable"
    add("--before", action="append", default=[], metavar="DIR", help=more)
    more = 'further arms as JSON: {"NAME": {"arm": KIND (default: ours),'
    more += ' "hparams": {...}, "environment": {...}, fields of its spec}}'
    add("--variants", type=json.loads, default={}, help=more)
    add("--threads", type=int, default=CORES)
    add(
        "--repeats",
        type=int,
        default=repeats,
        help="number of turns of each arm",
    )
    add("--json", default="", metavar="FILE", help="file for all measurements")
    return made


def checkouts(args):
    """Return the folders of this checkout ("ours") and of --before, by name."""
    several = len(args.before) > 1
    folders = {"ours": ROOT}
    for path in map(os.path.abspath, args.before):
        if not os.path.isdir(os.path.join(path, "electra_tf")):
            sys.exit(
                f"error: --before {path}: no electra_tf in this folder. Pass a"
                " checkout of this project"
            )
        name = f"before, {os.path.basename(path)}" if several else "before"
        folders[name] = path
    return folders


def plan(args, kinds, **shared):
    """Return (kind, spec) of each arm by name; `shared` is in every spec.

    A kind that ends with COMPILED is the kind before it under torch.compile.
    """
    variant = {"threads": args.threads, "root": ROOT, "hparams": {}}
    shared = variant | {"original": os.path.abspath(args.original)} | shared
    lacking = {"transformers": args.python, "original": args.original}
    available = [
        kind for kind in kinds if lacking.get(kind.removesuffix(COMPILED), True)
    ]
    for name in args.arms:
        if name not in available:
            sys.exit(
                f"error: no arm {name!r}; expected one of"
                f" {', '.join(available)}. Pass some of these as --arms"
            )
    arms = {}
    for kind in args.arms or available:
        if kind == "ours":
            for name, path in checkouts(args).items():
                arms[name] = (kind, {**shared, "root": path})
        elif kind.endswith(COMPILED):
            plain = kind.removesuffix(COMPILED)
            arms[kind] = (plain, {**shared, "compile": True})
        else:
            arms[kind] = (kind, shared)
    for name, variant in args.variants.items():
        kind = variant.get("arm", "ours")
        hparams = {**shared["hparams"], **variant.get("hparams", {})}
        arms[f"{kind}, {name}"] = (
            kind,
            {**shared, **variant, "hparams": hparams},
        )
    return arms


class ArmError(RuntimeError):
    """An error for an arm that failed or ended, with the arm's last output."""


class Worker:
    """A process that runs one arm; a failed preparation raises an ArmError."""

    def __init__(self, name, python, script, spec, environment=None):
        self.name = name
        self._said = tempfile.TemporaryFile()
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "2"}
        self._process = subprocess.Popen(
            [python, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env=quiet | _ENVIRONMENT | (environment or {}),
        )
        self.ask("start", **spec)

    def ask(self, method, **arguments):
        request = json.dumps([method, arguments])
        with contextlib.suppress(
            BrokenPipeError
        ):  # The missing answer is handled below, with the worker's output.
            print(request, file=self._process.stdin, flush=True)
        if line := self._process.stdout.readline():
            answer = json.loads(line)
        else:
            code = self._process.wait()
            self._said.seek(0)
            errors = self._said.read().decode(errors="replace")[-2000:]
            answer = {"error": f"ended with code {code}. {errors}"}
        if "error" in answer:
            raise ArmError(f"{self.name}: {answer['error']}")
        return answer["value"]

    def close(self):
        self._process.communicate()


class Arms(dict):
    """Workers by name; `failed` maps the names of failed arms to errors."""

    def __init__(self, args, planned):
        super().__init__()
        self.failed = {}
        original = os.path.join(args.original, "env/bin/python")
        pythons = {"transformers": args.python, "original": original}
        for name, (kind, spec) in planned.items():
            environment = dict(spec.get("environment", {}))
            if (
                kind != "ours"
            ):  # This project would treat OMP_NUM_THREADS as the user's choice.
                environment.setdefault("OMP_NUM_THREADS", str(args.threads))
            python = pythons.get(kind, sys.executable)
            script = os.path.join(HERE, f"arm_{kind}.py")
            try:
                self[name] = Worker(name, python, script, spec, environment)
            except (ArmError, OSError) as error:
                self.failed[name] = str(error)

    def ask_all(self, method, **arguments):
        answers = {}
        for name in list(self):
            try:
                answers[name] = self[name].ask(method, **arguments)
            except ArmError as error:
                self.failed[name] = str(error)
                self.pop(name).close()
        return answers

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for worker in self.values():
            worker.close()


def serve():
    """Create the arm whose class the spec's `task` names; handle requests.

    The public methods of the class take keyword arguments and return JSON
    values.
    """
    # Output of libraries must not mix with the answers.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    arm, builtin = None, {"memory": process_memory, "forget_peak": forget_peak}
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            if name == "start":
                make = getattr(sys.modules["__main__"], arguments["task"])
                arm, value = make(arguments), None
            else:
                value = (builtin.get(name) or getattr(arm, name))(**arguments)
            answer = json.dumps({"value": value})
        except Exception:
            answer = json.dumps({"error": traceback.format_exc()[-2000:]})
        print(answer, file=channel, flush=True)


def process_memory():
    """Return the current and peak memory of this process in megabytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    now, peak = (int(fields[n].split()[0]) / 1024 for n in ("VmRSS", "VmHWM"))
    return {"now": now, "peak": peak}


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def module_command(root, name):
    if os.path.exists(os.path.join(root, "electra_tf", "__main__.py")):
        return [sys.executable, "-m", "electra_tf", name]
    # Checkouts at 4a16307 have no `electra_tf/__main__.py`.
    return [sys.executable, "-m", f"electra_tf.commands.{name}"]


class Program:
    """A running program; `stages` maps names to patterns of output lines."""

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
        """Return seconds until each stage and the end, CPU time and peak MB."""
        measured, lines = {}, []
        for line in self._process.stdout:
            now = time.perf_counter() - self._started
            lines.append(line)
            for name, pattern in self._stages.items():
                if name not in measured and pattern.match(line):
                    measured[name] = now
        self._process.stdout.close()
        # wait4 reports this program and the workers that it waited for, but no
        # programs that were measured before.
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        measured["end"] = time.perf_counter() - self._started
        if self._process.returncode:
            self._errors.seek(0)
            output = "".join(lines)[-1000:] + self._errors.read()[-2000:]
            raise RuntimeError(f"{self._process.args}: {output}")
        measured["processor"] = used.ru_utime + used.ru_stime
        measured["peak"] = used.ru_maxrss / 1024
        return measured


def take_turns(arms, run, repeats, warm_up=1):
    """Return the values of `run(arm)` at each turn after the warm-up."""
    values_by_arm = {name: [] for name in arms}
    for turn in range(warm_up + repeats):
        for name, arm in arms.items():
            value = run(arm)
            if turn >= warm_up:
                values_by_arm[name].append(value)
    return values_by_arm


@dataclasses.dataclass(frozen=True)
class Spread:
    """The median, the lowest and the highest of several values."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values):
        return cls(statistics.median(values), min(values), max(values))

    def shown(self, digits=2, unit=""):
        low, high = (f"{value:.{digits}f}" for value in (self.low, self.high))
        return f"{self.median:.{digits}f}{unit} ({low} to {high})"


def ratios(above, below):
    return Spread.of([a / b for a, b in zip(above, below, strict=True)])


def faster(seconds, base="ours"):
    """Return the speed of `base` relative to each other arm."""
    others = [name for name in seconds if name != base and base in seconds]
    return {name: ratios(seconds[name], seconds[base]) for name in others}


def shown(spreads, name):
    """Return a ratio as text, `1.83x (1.79 to 1.90)`; "" if it is missing."""
    return spreads[name].shown(2, "x") if name in spreads else ""


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        pairs = [line.partition(":") for line in file]
    facts = {key.strip(): value.strip() for key, _, value in pairs}
    flags = facts.get("flags", "").split()
    wide = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "processor": facts.get("model name", platform.machine()),
        "instructions": [name for name in wide if name in flags],
        "cores": CORES,
        "memory_gigabytes": round(memory, 1),
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
    }


def versions(*packages):
    installed = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


def table(rows):
    lines = [rows[0], *(row.values() for row in rows)]
    lines = [list(map(str, line)) for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    lines = [" | ".join(map(str.ljust, line, widths)) for line in lines]
    return "".join(f"| {line} |\n" for line in lines)


def report(args, title, result, *tables, failed=None):
    about = machine()
    print(f"{title}: medians of {args.repeats} turns (lowest to highest)\n")
    for part in tables:
        print(part if isinstance(part, str) else table(part))
    for name, facts in result.get("about", {}).items():
        details = [" ".join(pair) for pair in facts["versions"].items()]
        if "parameters" in facts:
            details.append(f"{facts['parameters']:,} parameters")
        print(f"{name}: {', '.join(details)}")
    for name, error in (failed or {}).items():
        print(f"{name} does not run: {error.strip().splitlines()[-1]}")
    print(
        f"{about['processor']} ({', '.join(about['instructions'])})", end=", "
    )
    print(f"{about['cores']} cores, {about['memory_gigabytes']} GB", end=", ")
    print(f"load {about['load_average'][0]:.1f}, Python {about['python']}")
    if args.json:
        whole = {"title": title, "command": sys.argv, "arguments": vars(args)}
        whole |= {"machine": about, "failed": failed or {}, **result}
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(whole, file, indent=1, default=dataclasses.asdict)
