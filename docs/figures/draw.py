# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of README: `PYTHONPATH=. python docs/figures/draw.py`.

overview_light.svg, overview_dark.svg  the networks and their tokens
inspect_tokens.svg                     the screen of the command
easy_start.svg                         objectives at equal FLOPs
easy_start_curve.svg                   two objectives over FLOPs
"""

import collections
import dataclasses
import json
import pathlib
import statistics

import matplotlib
import matplotlib.pyplot as plt
import rich.console

FOLDER = pathlib.Path(__file__).resolve().parent
STUDIES = [
    FOLDER.parent.parent / "studies" / f"{name}.jsonl"
    for name in ("easy_start", "easy_start_curve")
]
METRICS = {"chunk": "f1", "qqp": "accuracy", "cola": "mcc"}

# Colors: text, boxes, replaced tokens, arrows.
THEMES = {
    "light": ("#1f2328", "#eef2f7", "#cf222e", "#57606a"),
    "dark": ("#e6edf3", "#21262d", "#ff7b72", "#8b949e"),
}
ORIGINAL = ["the", "chef", "cooked", "the", "meal"]
MASKED = ["[MASK]", "chef", "[MASK]", "the", "meal"]
CORRUPTED = ["the", "chef", "ate", "the", "meal"]
LABELS = ["original", "original", "replaced", "original", "original"]


def _draw_tokens(axes, x, tokens, theme, marked):
    text, _, accent, _ = theme
    for row, token in enumerate(tokens):
        color = accent if row in marked else text
        axes.text(x, -row, token, color=color, ha="center", va="center")


def _draw_network(axes, x, name, note, theme):
    text, box, _, edge = theme
    patch = matplotlib.patches.FancyBboxPatch(
        (x - 0.95, -4.2),
        1.9,
        4.4,
        boxstyle="round,pad=0.1",
        facecolor=box,
        edgecolor=edge,
    )
    axes.add_patch(patch)
    axes.text(
        x,
        -1.7,
        name,
        color=text,
        ha="center",
        va="center",
        weight="bold",
        size=9,
    )
    axes.text(x, -2.5, note, color=text, ha="center", va="center", size=8)


def _draw_arrows(axes, start, end, theme):
    for row in range(len(ORIGINAL)):
        axes.annotate(
            "",
            xy=(end, -row),
            xytext=(start, -row),
            arrowprops={"arrowstyle": "->", "color": theme[3]},
        )


def draw_overview(name):
    """Write the picture of generator, replaced tokens and discriminator."""
    theme = THEMES[name]
    figure, axes = plt.subplots(figsize=(9, 2.8))
    figure.patch.set_alpha(0)
    axes.set_axis_off()
    axes.set_xlim(-1.1, 13.2)
    axes.set_ylim(-4.6, 1.3)
    titles = ["text", "masked", "corrupted", "per token"]
    columns = [0.0, 2.2, 7.0, 12.2]
    rows = [ORIGINAL, MASKED, CORRUPTED, LABELS]
    marks = [(), (0, 2), (2,), (2,)]
    for x, title, tokens, marked in zip(
        columns, titles, rows, marks, strict=True
    ):
        axes.text(x, 0.95, title, color=theme[3], ha="center", size=9)
        _draw_tokens(axes, x, tokens, theme, marked)
    _draw_arrows(axes, 0.6, 1.5, theme)
    _draw_network(axes, 4.6, "generator", "small\nmasked LM", theme)
    _draw_arrows(axes, 2.9, 3.5, theme)
    _draw_arrows(axes, 5.7, 6.4, theme)
    _draw_network(axes, 9.5, "discriminator", "the encoder\nyou keep", theme)
    _draw_arrows(axes, 7.6, 8.4, theme)
    _draw_arrows(axes, 10.6, 11.4, theme)
    path = FOLDER / f"overview_{name}.svg"
    figure.savefig(
        path, transparent=True, bbox_inches="tight", metadata={"Date": None}
    )
    plt.close(figure)


def draw_screen():
    """Write the table of `inspect_tokens` as the terminal shows it."""
    from electra_tf.inspection.tables import inspection_view
    from electra_tf.inspection.token_inspection import TokenInspector
    from electra_tf.pretraining.loading import load_pretrained

    inspector = TokenInspector(load_pretrained("reference"), top_k=3, seed=0)
    inspection = inspector.inspect(
        "The president of the United States lives in the White House.",
        words=["states", "house"],
    )
    # The path of the model depends on the machine.
    inspection = dataclasses.replace(inspection, model="reference")
    console = rich.console.Console(record=True, width=96)
    console.print(inspection_view(inspection))
    console.save_svg(str(FOLDER / "inspect_tokens.svg"), title="inspect_tokens")


def read_scores(study):
    """Yield the arm, FLOPs, seed, task and trials' scores of each fine-tuning.

    Args:
      study: the path of a study's results.
    """
    lines = study.read_text(encoding="utf-8").splitlines()
    for record in map(json.loads, lines):
        arm, _, budget = record["arm"].partition(",flops=")
        if record["kind"] == "finetune":
            task = record["task"]
            scores = record["results"][METRICS[task]]
            yield arm, float(budget or 1.4e14), record["seed"], task, scores


def draw_easy_start():
    """Write the scores of objectives at equal FLOPs."""
    arms = {
        "mlm": "masked words",
        "electra": "replaced tokens,\nas published",
        "start": "easy start",
        "start_correction_5": "easy start and\ncorrection",
    }
    titles = {
        "chunk": "CoNLL-2000 chunking, F1",
        "qqp": "QQP, accuracy",
        "cola": "CoLA, MCC",
    }
    points = collections.defaultdict(list)
    for study in STUDIES:
        for arm, flops, _, task, scores in read_scores(study):
            if flops == 1.4e14:
                points[task, arm] += scores
    figure, panels = plt.subplots(1, 3, figsize=(11, 2.9), sharey=True)
    for axes, task in zip(panels, titles, strict=True):
        for row, arm in enumerate(arms):
            values = points[task, arm]
            axes.plot(values, [row] * len(values), "o", color="#0969da")
            if values:
                mean = statistics.mean(values)
                axes.plot([mean], [row], "|", color="#1f2328", markersize=18)
        axes.set_title(titles[task], fontsize=10)
        axes.set_yticks(range(len(arms)), arms.values())
        axes.set_ylim(len(arms) - 0.5, -0.5)
        axes.grid(axis="x", alpha=0.4)
    figure.tight_layout()
    figure.savefig(FOLDER / "easy_start.svg", metadata={"Date": None})
    plt.close(figure)


def draw_easy_start_curve():
    """Write the scores of masked words and of the easy start over FLOPs.

    Seeds 1 to 3, on which the easy start was chosen, are left out.
    """
    arms = {
        "mlm": ("masked words", "#9a6700"),
        "start_correction_5": ("easy start and correction", "#0969da"),
    }
    tasks = collections.defaultdict(dict)
    for arm, flops, seed, task, scores in read_scores(STUDIES[1]):
        tasks[arm, flops, seed][task] = statistics.mean(scores)
    panels_of_tasks = {
        "Mean of chunking, QQP and CoLA": tuple(METRICS),
        "CoNLL-2000 chunking, F1": ("chunk",),
        "QQP, accuracy": ("qqp",),
        "CoLA, MCC": ("cola",),
    }
    figure, panels = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
    for axes, (title, names) in zip(
        panels, panels_of_tasks.items(), strict=True
    ):
        for arm, (label, color) in arms.items():
            seeds = collections.defaultdict(list)
            for (name, flops, _), scores in sorted(tasks.items()):
                if name == arm and METRICS.keys() == scores.keys():
                    score = statistics.mean(scores[task] for task in names)
                    seeds[flops].append(score)
                    axes.plot([flops], [score], "o", color=color, alpha=0.35)
            means = list(map(statistics.mean, seeds.values()))
            axes.plot(list(seeds), means, "_-", color=color, label=label)
        axes.set_xscale("log")
        axes.set_xticks(list(seeds), [f"{flops:.1e}" for flops in seeds])
        axes.minorticks_off()
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("FLOPs of pre-training")
        axes.grid(alpha=0.4)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    figure.savefig(FOLDER / "easy_start_curve.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    matplotlib.use("Agg")
    # The same picture gives the same bytes.
    plt.rcParams["svg.hashsalt"] = "electra_tf"
    for theme_name in THEMES:
        draw_overview(theme_name)
    draw_easy_start()
    draw_easy_start_curve()
    draw_screen()
