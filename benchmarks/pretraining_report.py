# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables and plots of pretraining_step.py."""

import os
import re
import statistics
from typing import Any

import comparing

KINDS_SHOWN = 24
_NAMED = re.compile(r"\s*[\w.]*(Error|code -?\d+)\b.*\S")


def write_step(directory: str, title: str, result: dict[str, Any]) -> None:
    """Shows one measurement; writes JSON, Markdown and PNG where asked.

    Args:
      directory: where to; "" for only printing.
      title: what was measured.
      result: of `pretraining_step.measure`, and `arguments`.
    """
    text = "\n".join(
        [
            f"Pre-training step: {title}\n",
            _arms_table(result),
            _about(result),
            _rates_table(result),
            *(_profile_table(*found) for found in result["profile"].items()),
        ]
    )
    place = os.path.join(directory, f"pretraining_step_{_slug(result)}")
    comparing.write_report(directory, os.path.basename(place), result, text)
    if not directory:
        return
    comparing.draw_bars(
        f"{place}.png",
        f"Pre-training step: {title}",
        "seconds per step (bar: median; dots: turns)",
        result["seconds"],
    )
    comparing.draw_bars(
        f"{place}_memory.png",
        f"Peak resident memory: {title}",
        "MB above what the imports take",
        {name: [above_imports(found)] for name, found in _memory(result)},
    )


def write_scaling(directory: str, title: str, result: dict[str, Any]) -> None:
    """Shows the sweeps, with an exponent for each arm; writes files.

    Args:
      directory: where to; "" for only printing.
      title: what stays the same along the axes.
      result: holds `scaling`: points by axis, each of
        `pretraining_step.measure` or with `error`, and `value`.
    """
    place = os.path.join(directory, f"pretraining_scaling_{_slug(result)}")
    text = [f"Pre-training step, scaled from {title}\n"]
    measures = {
        "seconds per step": (_median_seconds, "time"),
        "peak MB above the imports": (_peak, "memory"),
    }
    result["exponents"] = {}
    for axis, points in result["scaling"].items():
        whole = [point for point in points if "error" not in point]
        for unit, (value_of, what) in measures.items():
            series = scaled_series(whole, value_of)
            if not series:
                continue
            exponents = {n: _exponent(*found) for n, found in series.items()}
            result["exponents"][f"{what} over {axis}"] = exponents
            text.append(_scaling_table(axis, unit, series, exponents))
            if directory:
                labels = {
                    f"{name} ({exponent})": series[name]
                    for name, exponent in exponents.items()
                }
                comparing.draw_lines(
                    f"{place}_{axis}_{what}.png",
                    f"From {title}\n(fitted exponents over {axis})",
                    axis,
                    unit,
                    labels,
                )
        text += [
            f"{axis} {point['value']}: {name} does not run: {_reason(error)}\n"
            for point in points
            for name, error in _failures(point).items()
        ]
    comparing.write_report(
        directory, os.path.basename(place), result, "\n".join(text)
    )


def scaled_series(points, value_of):
    """(xs, ys) by arm of `value_of(point, arm)`."""
    series: dict[str, tuple[list[float], list[float]]] = {}
    for point in points:
        for name in point["seconds"]:
            xs, ys = series.setdefault(name, ([], []))
            xs.append(point["value"])
            ys.append(value_of(point, name))
    return series


def matrix_peak(result: dict[str, Any]) -> float | None:
    """The best rate of any library at any shape, operations per second."""
    rates = result["matrix_rates"].values()
    return max((max(found.values()) for found in rates), default=None)


def above_imports(memory: dict[str, float]) -> float:
    """Peak of the whole run in MB, less what the imports take."""
    return max(memory["start"], memory["steps"]) - memory["imported"]


def _arms_table(result):
    peak, batch = matrix_peak(result), result["work"]["batch"]
    memory = dict(_memory(result))
    rows = []
    for name, runs in result["seconds"].items():
        spread = comparing.Spread.of(runs)
        rate = result["flops"] / spread.median
        found = memory[name]
        rows.append(
            [
                name,
                spread.shown(3),
                f"{batch / spread.median:.1f}",
                _faster(result["seconds"], name),
                f"{rate / 1e9:.3g}",
                f"{rate / peak:.2f}" if peak else "",
                f"{max(found['start'], found['steps']):.0f}",
                f"{above_imports(found):.0f}",
                f"{found['steps'] - found['imported']:.0f}",
            ]
        )
        result.setdefault("ratios_to_ours", {})[name] = rows[-1][3]
        result.setdefault("share_of_peak", {})[name] = (
            rate / peak if peak else None
        )
    header = "arm|s per step (range)|examples/s|ours is faster|GFLOP/s"
    header += "|share of peak|peak MB|above imports|in the steps"
    return comparing.table(header.split("|"), rows)


def _faster(seconds, name):
    """How often faster `ours` is, from turns that followed each other."""
    if name == "ours" or "ours" not in seconds:
        return ""
    return comparing.ratios(seconds[name], seconds["ours"]).shown(2, "x")


def _about(result):
    lines = [f"A step is {result['flops']:.3g} operations of matrix products."]
    for name, about in result["about"].items():
        found = " ".join(f"{n} {v}" for n, v in about["versions"].items())
        losses = ", ".join(f"{loss:.2f}" for loss in result["losses"][name])
        lines.append(
            f"- {name}: {about['parameters']:,} parameters; losses at the"
            f" first two steps and the last: {losses}; {found}"
        )
    for name, error in result["failed"].items():
        lines.append(f"- {name} does not run: {_reason(error)}")
    return "\n".join(lines) + "\n"


def _reason(error):
    """The last line of a traceback that names an error."""
    named = [line for line in error.splitlines() if _NAMED.match(line)]
    return (named or error.splitlines())[-1].strip()


def _rates_table(result):
    libraries = result["matrix_rates"]
    if not libraries:
        return ""
    names = {"ours": "TensorFlow", "transformers": "PyTorch"}
    shapes = list(
        dict.fromkeys(s for found in libraries.values() for s in found)
    )
    rows = [
        [shape, *(_giga(found.get(shape)) for found in libraries.values())]
        for shape in shapes
    ]
    header = ["matrix product (m x k x n), GFLOP/s"]
    return comparing.table([*header, *(names[arm] for arm in libraries)], rows)


def _giga(rate):
    return f"{rate / 1e9:.3g}" if rate else "too slow"


def _profile_table(arm, kinds):
    total = sum(found["milliseconds"] for found in kinds.values())
    rows = [
        [
            kind,
            f"{found['milliseconds']:.1f}",
            f"{found['milliseconds'] / total:.1%}",
            f"{found['calls']:.0f}",
        ]
        for kind, found in list(kinds.items())[:KINDS_SHOWN]
    ]
    rows.append(["all", f"{total:.1f}", "100%", ""])
    header = [f"{arm}: op", "thread ms per step", "share", "calls"]
    return comparing.table(header, rows)


def _scaling_table(axis, unit, series, exponents):
    values = sorted({x for xs, _ in series.values() for x in xs})
    rows = []
    for value in values:
        cells = [
            comparing.short(ys[xs.index(value)]) if value in xs else ""
            for xs, ys in series.values()
        ]
        rows.append([value, *cells])
    rows.append(["exponent", *exponents.values()])
    header = [f"{axis}: {unit}", *series]
    return comparing.table(header, rows)


def _exponent(xs, ys):
    try:
        return f"{comparing.fit_power(xs, ys)[0]:.2f}"
    except ValueError:
        return "-"


def _failures(point):
    return {"a worker": point["error"]} if "error" in point else point["failed"]


def _median_seconds(point, name):
    return statistics.median(point["seconds"][name])


def _peak(point, name):
    return above_imports(point["memory"][name])


def _memory(result):
    return result["memory"].items()


def _slug(result):
    given = result["arguments"]
    return (
        f"{given['model_size']}_{given['batch']}x{given['length']}"
        f"_{given['precision']}"
    )
