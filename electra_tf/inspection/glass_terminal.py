# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The looking glass in a terminal: the sentence as columns, one a token.

Everything that colour says is written out as well.
"""

import textwrap
from collections.abc import Iterator, Sequence

from electra_tf.inspection.glass import DRAWN, NONE, Glass, TokenView
from electra_tf.inspection.terminal import (
    Paint,
    display_width,
    filled,
    printable,
)

_GAP = "  "
_ORDER = (
    "",
    "original",
    "generator saw",
    "judged",
    "replaced?",
    "log P",
    "verdict",
)


def draw(glass: Glass, paint: Paint, width: int = 80) -> str:
    """Draws one sentence."""
    lines = [paint.bold(_headline(glass)), *_how(glass), ""]
    names = _rows(glass)
    for block in _blocks(glass, width - max(map(len, names))):
        lines += [*_draw_block(block, names, paint), ""]
    proposals = list(_proposals(glass, paint))
    if proposals:
        lines += [paint.bold("generator's proposals"), *proposals, ""]
    for text in (summary(glass), *(f"- {note}" for note in glass.notes)):
        lines += textwrap.wrap(text, width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def percent(share: float) -> str:
    """A probability as people read it, never rounded to certainty."""
    if 0.0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1.0:
        return ">99.9%"
    return f"{100 * share:.1f}%"


def _headline(glass: Glass) -> str:
    step = "" if glass.global_step is None else f", step {glass.global_step:,}"
    return f"{glass.kind} ({printable(glass.model)}{step})"


def _how(glass: Glass) -> list[str]:
    how = {
        DRAWN: f"masked: drawn, seed {glass.seed}",
        NONE: "masked: nothing; judged as it is",
    }
    sampled = any(v.proposal and v.proposal.sampled for v in glass.tokens)
    chosen = "masked: as chosen"
    if sampled:
        chosen += f", samples of seed {glass.seed}"
    return [printable(glass.text), how.get(glass.masking, chosen)]


# A column: cells by row name, and the share that colours it, or None.
_Column = tuple[dict[str, str], float | None]


def _column(view: TokenView) -> _Column:
    cells = {"": str(view.position), "original": printable(view.token)}
    proposal, judgement = view.proposal, view.judgement
    if proposal is not None:
        cells["generator saw"] = proposal.shown
    share = None
    if judgement is not None:
        cells["judged"] = printable(view.judged)
        share = judgement.replaced_probability
        if share is not None:
            cells["replaced?"] = percent(share)
            cells["verdict"] = judgement.verdict
        if judgement.log_probability is not None:
            cells["log P"] = f"{judgement.log_probability:.2f}"
    return cells, share


def _blocks(glass: Glass, room: int) -> Iterator[list[_Column]]:
    """Divides the columns into blocks that fit the width."""
    block: list[_Column] = []
    used = 0
    for view in glass.tokens:
        column = _column(view)
        needed = _width(column) + len(_GAP)
        if block and used + needed > room:
            yield block
            block, used = [], 0
        block.append(column)
        used += needed
    yield block


def _rows(glass: Glass) -> list[str]:
    there = {name for view in glass.tokens for name in _column(view)[0]}
    return [name for name in _ORDER if name in there]


def _width(column: _Column) -> int:
    return max(map(display_width, column[0].values()))


def _draw_block(
    block: Sequence[_Column], names: Sequence[str], paint: Paint
) -> Iterator[str]:
    label_width = max(map(len, names))
    for name in names:
        if not any(name in cells for cells, _ in block):
            continue
        line = paint.faint(filled(name, label_width))
        for column in block:
            cells, share = column
            text = filled(cells.get(name, ""), _width(column))
            if name == "":
                text = paint.faint(text)
            elif name == "generator saw":
                text = paint.bold(text)
            elif share is not None and name in ("judged", "replaced?"):
                text = paint.share(text, share)
            line += _GAP + text
        yield line


def _proposals(glass: Glass, paint: Paint) -> Iterator[str]:
    for view in glass.tokens:
        proposal = view.proposal
        if proposal is None:
            continue
        parts = []
        for candidate in proposal.candidates:
            text = (
                f"{printable(candidate.token)} {percent(candidate.probability)}"
            )
            is_it = candidate.token in (view.token, proposal.sampled)
            parts.append(paint.bold(text) if is_it else text)
        line = f"{view.position:>4}  {printable(view.token)}"
        if proposal.true_probability is not None:
            line += f" (given {percent(proposal.true_probability)}"
            if proposal.true_rank is not None:
                line += f", rank {proposal.true_rank:,}"
            line += ")"
        if proposal.sampled is not None:
            line += (
                f" -> {printable(proposal.sampled)}"
                f" ({percent(proposal.sampled_probability or 0.0)})"
            )
        yield line
        if parts:
            yield "      " + ", ".join(parts)


def summary(glass: Glass) -> str:
    """One sentence on how generator and discriminator did."""
    masked = [view for view in glass.tokens if view.proposal is not None]
    judged = [
        view
        for view in glass.tokens
        if view.judgement and view.judgement.verdict
    ]
    parts = []
    if masked:
        parts.append(f"{len(masked)} of {len(glass.tokens)} tokens masked")
    known = [v for v in masked if v.proposal.true_rank is not None]
    if known:
        first = sum(view.proposal.true_rank == 1 for view in known)
        parts.append(f"the original was the likeliest at {first} of them")
    replaced = [v for v in judged if v.judgement.is_replaced]
    if any(view.judgement.is_replaced is not None for view in judged):
        found, missed = glass.count("found"), glass.count("missed")
        parts.append(
            f"{len(replaced)} replaced: found {found}, missed {missed};"
            f" false alarms: {glass.count('false alarm')}"
        )
    fakes = glass.count("fake")
    if judged and (fakes or not masked):
        parts.append(f"{fakes} judged fake without a label to compare with")
    return ("; ".join(parts) or "nothing masked, nothing judged") + "."
