# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inspections as tables of rich: one drawing for terminal and HTML page.

Everything that colour says is written out as well.
"""

import unicodedata

import rich.box
import rich.console
from rich.table import Table
from rich.text import Text

from electra_tf.inspection.fill_mask import FilledText
from electra_tf.inspection.token_inspection import (
    DRAWN,
    NONE,
    InspectedToken,
    Proposal,
    TokenInspection,
)

# From real to replaced; each background is light enough for black letters.
_SCALE = ("#afffaf", "#d7ffaf", "#ffffaf", "#ffd787", "#ffaf87", "#ff8787")


def inspection_view(inspection: TokenInspection) -> rich.console.Group:
    """Draws one sentence: a row a token.

    "given" is what the generator gave the original token, "input" what the
    discriminator saw.
    """
    step = inspection.global_step
    how = {
        DRAWN: f"masked: drawn, seed {inspection.seed}",
        NONE: "masked: nothing; looked at as it is",
    }.get(inspection.masking, "masked: as chosen")
    if inspection.masking not in (DRAWN, NONE) and any(
        seen.proposal and seen.proposal.sampled for seen in inspection.tokens
    ):
        how += f", samples of seed {inspection.seed}"
    after = "" if step is None else f", step {step:,}"
    return rich.console.Group(
        Text(f"{inspection.kind} ({printable(inspection.model)}{after})"),
        Text(printable(inspection.text), style="bold"),
        Text(how),
        _token_table(inspection),
        Text(summary(inspection)),
        *(Text(f"- {printable(note)}") for note in inspection.notes),
        Text(),
    )


def filled_view(filled: FilledText) -> rich.console.Group:
    """Draws the candidates of each mask of one text."""
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
    """A probability as people read it, never rounded to certainty."""
    if 0.0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1.0:
        return ">99.9%"
    return f"{100 * share:.1f}%"


def printable(text: str) -> str:
    """Replaces what could move the cursor or recolour the screen."""
    return "".join(
        "\ufffd" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c
        for c in text
    )


def summary(inspection: TokenInspection) -> str:
    """One sentence on how generator and discriminator did."""
    tokens = inspection.tokens
    proposals = [seen.proposal for seen in tokens if seen.proposal]
    parts = []
    if proposals:
        parts.append(f"{len(proposals)} of {len(tokens)} tokens masked")
    ranks = [p.true_rank for p in proposals if p.true_rank is not None]
    if ranks:
        first = ranks.count(1)
        parts.append(f"the original was the likeliest at {first} of them")
    predictions = [s.prediction for s in tokens if s.prediction]
    predictions = [p for p in predictions if p.verdict]
    if any(p.is_replaced is not None for p in predictions):
        parts.append(
            f"{sum(p.is_replaced is True for p in predictions)} replaced:"
            f" found {inspection.count('found')},"
            f" missed {inspection.count('missed')};"
            f" false alarms: {inspection.count('false alarm')}"
        )
    fakes = inspection.count("fake")
    if predictions and (fakes or not proposals):
        parts.append(f"{fakes} called fake without a label to compare with")
    return ("; ".join(parts) or "nothing masked, nothing predicted") + "."


def _table(title: str | None = None) -> Table:
    return Table(
        title=title,
        title_justify="left",
        box=rich.box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )


def _token_table(inspection: TokenInspection) -> Table:
    rows = [_cells(seen) for seen in inspection.tokens]
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    table = _table()
    for name in names:
        right = name in ("#", "replaced?", "log P")
        justify = "right" if right else "left"
        no_wrap = name in ("proposals", "verdict")
        table.add_column(name, justify=justify, no_wrap=no_wrap)
    for row in rows:
        table.add_row(*(row[name] for name in names))
    return table


def _cells(seen: InspectedToken) -> dict[str, Text]:
    proposal, prediction = seen.proposal, seen.prediction
    share = prediction.replaced_probability if prediction else None
    colour = "" if share is None else _colour(share)
    log_p = prediction.log_probability if prediction else None
    return {
        "#": Text(str(seen.position), style="dim"),
        "original": Text(printable(seen.token)),
        "generator saw": Text(proposal.shown if proposal else "", "bold"),
        **_proposal_cells(seen.token, proposal),
        "input": Text(
            printable(seen.input_token) if prediction else "", colour
        ),
        "replaced?": Text("" if share is None else percent(share), colour),
        "log P": Text("" if log_p is None else f"{log_p:.2f}"),
        "verdict": Text(prediction.verdict if prediction else ""),
    }


def _proposal_cells(token: str, proposal: Proposal | None) -> dict[str, Text]:
    """Candidates, a line each; the original's chance; what was drawn."""
    cells = {name: Text() for name in ("proposals", "given", "sampled")}
    if proposal is None:
        return cells
    lines = []
    for candidate in proposal.candidates:
        line = f"{printable(candidate.token)} {percent(candidate.probability)}"
        is_it = candidate.token in (token, proposal.sampled)
        lines.append(Text(line, "bold" if is_it else ""))
    cells["proposals"] = Text("\n").join(lines)
    if proposal.true_probability is not None:
        cells["given"].append(percent(proposal.true_probability))
        if proposal.true_rank is not None:
            cells["given"].append(f"\nrank {proposal.true_rank:,}")
    if proposal.sampled is not None:
        share = percent(proposal.sampled_probability or 0.0)
        cells["sampled"].append(f"{printable(proposal.sampled)}\n{share}")
    return cells


def _colour(share: float) -> str:
    step = min(int(share * len(_SCALE)), len(_SCALE) - 1)
    return f"black on {_SCALE[step]}"
