# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of README: `PYTHONPATH=. python docs/figures/draw.py`.

overview_light.svg, overview_dark.svg  the networks and their tokens
inspect_tokens.svg                     the screen of the command
easy_start.svg                         objectives at equal FLOPs
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
    figure.savefig(path, transparent=True, bbox_inches="tight")
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


def read_scores():
    """Return the scores of each task and arm of the study, all seeds."""
    scores = collections.defaultdict(lambda: collections.defaultdict(list))
    metrics = {"chunk": "f1", "qqp": "accuracy", "cola": "mcc"}
    lines = [
        line
        for study in STUDIES
        for line in study.read_text(encoding="utf-8").splitlines()
    ]
    for record in map(json.loads, lines):
        arm, _, budget = record["arm"].partition(",")
        if record["kind"] == "finetune" and budget in ("", "flops=1.4e+14"):
            values = record["results"][metrics[record["task"]]]
            scores[record["task"]][arm] += values
    return scores


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
    figure, panels = plt.subplots(1, 3, figsize=(11, 2.9), sharey=True)
    for axes, (task, by_arm) in zip(panels, read_scores().items(), strict=True):
        for row, arm in enumerate(arms):
            values = by_arm.get(arm, [])
            axes.plot(values, [row] * len(values), "o", color="#0969da")
            if values:
                mean = statistics.mean(values)
                axes.plot([mean], [row], "|", color="#1f2328", markersize=18)
        axes.set_title(titles[task], fontsize=10)
        axes.set_yticks(range(len(arms)), arms.values())
        axes.set_ylim(len(arms) - 0.5, -0.5)
        axes.grid(axis="x", alpha=0.4)
    figure.tight_layout()
    figure.savefig(FOLDER / "easy_start.svg")
    plt.close(figure)


if __name__ == "__main__":
    matplotlib.use("Agg")
    # The same picture gives the same bytes.
    plt.rcParams["svg.hashsalt"] = "electra_tf"
    for theme_name in THEMES:
        draw_overview(theme_name)
    draw_easy_start()
    draw_screen()
