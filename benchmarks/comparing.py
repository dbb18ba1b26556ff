# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the comparisons share: turns, spread, machine, report.

The arms take turns (A B C A B C), so that what disturbs the machine disturbs
all of them, and the ratios are those of runs that followed each other:

  with Arms() as arms:
      arms["ours"] = Worker("ours", python, script, spec)
      arms["theirs"] = Worker("theirs", their_python, script, spec)
      found = take_turns(arms, lambda arm: arm.ask("run"), repeats=7)
  faster = ratios(found["theirs"], found["ours"])  # of seconds
  write_report(args.output, "name", {"seconds": found, ...}, text)
"""

import dataclasses
import importlib.metadata
import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def take_turns(
    arms: Mapping[str, Any],
    run: Callable[[Any], Any],
    repeats: int,
    warm_up: int = 1,
) -> dict[str, list[Any]]:
    """Lets the arms run A B C A B C.

    Args:
      arms: by name; not only workers.
      run: what an arm does at its turn; what it returns is kept.
      repeats: turns of each arm that are kept.
      warm_up: turns of each arm before, not kept.

    Returns:
      A list of `repeats` values for each name.
    """
    found: dict[str, list[Any]] = {name: [] for name in arms}
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
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of some values, at least one."""
        return cls(statistics.median(values), min(values), max(values))

    def shown(self, digits: int = 2, unit: str = "") -> str:
        """Such as `1.83x (1.79 to 1.90)`."""
        low, high = (f"{value:.{digits}f}" for value in (self.low, self.high))
        return f"{self.median:.{digits}f}{unit} ({low} to {high})"


def ratios(above: Sequence[float], below: Sequence[float]) -> Spread:
    """The spread of the ratios of runs that followed each other.

    Of seconds, `ratios(theirs, ours)` says how many times faster we are.
    """
    return Spread.of([a / b for a, b in zip(above, below, strict=True)])


def fit_power(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Fits y = factor * x^exponent by least squares of the logarithms.

    Returns:
      (exponent, factor).

    Raises:
      ValueError: if there are not two different x, or a value is not positive.
    """
    if len(set(xs)) < 2 or min(*xs, *ys) <= 0:
        raise ValueError("wants two different x, all values positive")
    points = [(math.log(x), math.log(y)) for x, y in zip(xs, ys, strict=True)]
    slope, intercept = statistics.linear_regression(*zip(*points, strict=True))
    return slope, math.exp(intercept)


def machine() -> dict[str, Any]:
    """Processor, cores, memory, load: what a number depends on."""
    model, flags = platform.processor() or platform.machine(), ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    model = value.strip()
                elif key.strip() == "flags":
                    flags = f" {value.strip()} "
    except OSError:
        pass  # Not Linux: the bare name must do.
    wide = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": model,
        "instructions": [name for name in wide if f" {name} " in flags],
        "cores": usable_cores(),
        "memory_gigabytes": round(pages * page / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
    }


def usable_cores() -> int:
    """Number of cores this process may run on."""
    return len(os.sched_getaffinity(0))


def versions(*packages: str) -> dict[str, str]:
    """Installed versions in this interpreter, of those installed."""
    found = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def short(value: float) -> str:
    """Three digits, or all those before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def write_report(
    directory: str, name: str, result: Mapping[str, Any], text: str
) -> None:
    """Prints the text; writes <name>.json and <name>.md where asked.

    Args:
      directory: made if need be; "" for only printing.
      name: of the files.
      result: everything measured. `machine` and `command` are added, and
        spreads become dicts.
      text: Markdown for people.
    """
    about = machine()
    print(text)
    if not directory:
        return
    os.makedirs(directory, exist_ok=True)
    place = os.path.join(directory, name)
    whole = {"command": sys.argv, "machine": about, **result}
    with open(f"{place}.json", "w", encoding="utf-8") as file:
        json.dump(whole, file, indent=1, default=dataclasses.asdict)
    wide = ", ".join(about["instructions"]) or "none of those looked for"
    with open(f"{place}.md", "w", encoding="utf-8") as file:
        file.write(
            f"{text}\n{about['processor']}, {about['cores']} cores used"
            f" ({wide}), {about['memory_gigabytes']} GB, {about['system']},"
            f" Python {about['python']}.\n"
        )


def draw_bars(
    path: str, title: str, unit: str, values: Mapping[str, Sequence[float]]
) -> None:
    """Writes a PNG: a bar for each arm's median, dots for its runs."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(7, 0.6 * len(values) + 1.4))
    for row, runs in enumerate(values.values()):
        median = statistics.median(runs)
        axes.barh(row, median, color=f"C{row % 10}", alpha=0.6)
        axes.plot(runs, [row] * len(runs), "k.", markersize=4)
        axes.annotate(
            f" {short(median)}", (max(median, *runs, 0), row), va="center"
        )
    axes.set_yticks(range(len(values)), list(values))
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel(unit)
    _save(pyplot, figure, axes, title, path)


def draw_lines(
    path: str,
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    logarithmic: bool = True,
) -> None:
    """Writes a PNG: a line through (xs, ys) for each name."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for name, (xs, ys) in series.items():
        axes.plot(xs, ys, "o-", label=name)
    if logarithmic:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        ticks = sorted({x for xs, _ in series.values() for x in xs})
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
        # Ranges within a power of ten have labels at minor ticks only.
        axes.yaxis.set_major_formatter(lambda value, _: short(value))
        axes.yaxis.set_minor_formatter(_minor_label(axes))
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    _save(pyplot, figure, axes, title, path)


def _minor_label(axes):
    def label(value, _):
        low, high = axes.get_ylim()
        return short(value) if high < 10 * low else ""

    return label


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def _save(pyplot, figure, axes, title, path):
    axes.set_title(title, fontsize=10)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
