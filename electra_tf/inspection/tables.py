# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of inspections, for the terminal and for an HTML page.

Everything that colours show is also written out.
"""

import unicodedata

import rich.box
import rich.console
from rich.table import Table
from rich.text import Text

from electra_tf.inspection.fill_mask import FilledText
from electra_tf.inspection.token_inspection import (
    InspectedToken,
    TokenInspection,
)

_COLUMNS = (
    "#",
    "original",
    "generator saw",
    "proposals",
    "given",
    "sampled",
    "input",
    "replaced?",
    "log P",
    "verdict",
)
# Background colours from "surely real" to "surely replaced", all light enough
# for black letters.
_SCALE = ("#afffaf", "#d7ffaf", "#ffffaf", "#ffd787", "#ffaf87", "#ff8787")


def inspection_view(inspection: TokenInspection) -> rich.console.Group:
    """Return the table of one sentence, with a row per token.

    The column "given" contains the original token's probability and rank, the
    column "input" the discriminator's input.
    """
    step = inspection.global_step
    after = "" if step is None else f", step {step:,}"
    rows, table = [_cells(seen) for seen in inspection.tokens], _table()
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    for name in names:
        justify = "right" if name in ("#", "replaced?", "log P") else "left"
        no_wrap = name in ("proposals", "verdict")
        table.add_column(name, justify=justify, no_wrap=no_wrap)
    for row in rows:
        table.add_row(*(row[name] for name in names))
    return rich.console.Group(
        Text(f"{inspection.kind} ({printable(inspection.model)}{after})"),
        Text(printable(inspection.text), style="bold"),
        Text(f"masked: {inspection.masking}, seed {inspection.seed}"),
        table,
        Text(summary(inspection)),
        *(Text(f"- {printable(note)}") for note in inspection.notes),
        Text(),
    )


def filled_view(filled: FilledText) -> rich.console.Group:
    """Return the tables of one text, one table for each mask."""
    parts: list[Text | Table] = [Text(printable(filled.text), style="bold")]
    for mask in filled.masks:
        table = _table(f"[MASK] at token {mask.position}")
        for name, justify in (("probability", "right"), ("token", "left")):
            table.add_column(name, justify=justify)
        table.add_column("")
        for candidate in mask.candidates:
            table.add_row(
                f"{candidate.probability:.4f}",
                Text(printable(candidate.token)),
                "#" * round(30 * candidate.probability),
            )
        parts.append(table)
    likeliest = f"likeliest: {printable(filled.best())}\n"
    return rich.console.Group(*parts, Text(likeliest))


def percent(share: float) -> str:
    """Format a probability in percent, without rounding it to 0% or 100%."""
    if 0.0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1.0:
        return ">99.9%"
    return f"{100 * share:.1f}%"


def printable(text: str) -> str:
    """Return a text without characters that control the terminal."""
    return "".join(
        "\ufffd" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c
        for c in text
    )


def summary(inspection: TokenInspection) -> str:
    """Summarize the results of generator and discriminator in a sentence."""
    tokens = inspection.tokens
    proposals = [seen.proposal for seen in tokens if seen.proposal]
    parts = []
    if proposals:
        first = sum(p.true_rank == 1 for p in proposals)
        parts.append(
            f"{len(proposals)} of {len(tokens)} tokens were masked; the"
            f" original token is the likeliest at {first} of them"
        )
    verdicts = [seen.prediction.verdict for seen in tokens if seen.prediction]
    for name in ("found", "missed", "false alarm", "fake"):
        if count := verdicts.count(name):
            parts.append(f"{name}: {count}")
    return (
        "; ".join(parts) or "no token was masked or judged to be replaced"
    ) + "."


def _table(title: str | None = None) -> Table:
    return Table(
        title=title,
        title_justify="left",
        box=rich.box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )


def _cells(seen: InspectedToken) -> dict[str, Text]:
    cells = {name: Text() for name in _COLUMNS}
    cells["#"] = Text(str(seen.position), style="dim")
    cells["original"].append(printable(seen.token))
    if proposal := seen.proposal:
        cells["generator saw"].append(proposal.shown, "bold")
        marked = (seen.token, proposal.sampled)
        cells["proposals"] = Text("\n").join(
            Text(
                f"{printable(c.token)} {percent(c.probability)}",
                "bold" if c.token in marked else "",
            )
            for c in proposal.candidates
        )
        if proposal.true_probability is not None:
            cells["given"].append(percent(proposal.true_probability))
        if proposal.true_rank is not None:
            cells["given"].append(f"\nrank {proposal.true_rank:,}")
        if proposal.sampled is not None:
            share = percent(proposal.sampled_probability or 0.0)
            cells["sampled"].append(f"{printable(proposal.sampled)}\n{share}")
    if prediction := seen.prediction:
        share = prediction.replaced_probability
        log_p = prediction.log_probability
        colour = ""
        if share is not None:
            step = min(int(share * len(_SCALE)), len(_SCALE) - 1)
            colour = f"black on {_SCALE[step]}"
            cells["replaced?"] = Text(percent(share), colour)
        cells["input"] = Text(printable(seen.input_token), colour)
        cells["log P"].append("" if log_p is None else f"{log_p:.2f}")
        cells["verdict"].append(prediction.verdict)
    return cells
