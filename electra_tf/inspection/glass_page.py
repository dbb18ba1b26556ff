# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The looking glass as one HTML page: no scripts, nothing to download."""

import html
from collections.abc import Iterable, Iterator

from electra_tf.inspection.glass import DRAWN, NONE, Glass, Proposal, TokenView
from electra_tf.inspection.glass_style import STYLE
from electra_tf.inspection.glass_terminal import percent, summary
from electra_tf.inspection.terminal import printable

_LEGEND = (
    "Each box is a token as the discriminator saw it; above it, where it was"
    " sampled, the original. The colour is the discriminator's probability"
    " that the token was replaced, written below it. Point at a box, or"
    " move to it with the Tab key, for the generator's proposals."
)


def page(glasses: Iterable[Glass]) -> Iterator[str]:
    """Writes a page, sentence by sentence."""
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        "<title>Looking glass</title>\n"
        f"<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
        "<h1>Looking glass</h1>\n"
        f'<p class="legend">{_LEGEND}</p>\n{_scale()}'
    )
    for glass in glasses:
        yield _section(glass)
    yield "</main>\n</body>\n</html>\n"


def _scale() -> str:
    steps = "".join(
        f'<span style="{_colour(share)}">{round(100 * share)}%</span>'
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    return f'<p class="scale">original {steps} replaced</p>\n'


def _section(glass: Glass) -> str:
    step = "" if glass.global_step is None else f", step {glass.global_step:,}"
    how = {
        DRAWN: f"positions drawn, seed {glass.seed}",
        NONE: "nothing masked; judged as it is",
    }.get(glass.masking, f"positions chosen, samples of seed {glass.seed}")
    notes = "".join(f"<li>{_escape(note)}</li>" for note in glass.notes)
    return (
        "<section>\n"
        f"<h2>{_escape(glass.text)}</h2>\n"
        f'<p class="model">{_escape(glass.kind)} · {_escape(glass.model)}'
        f"{step} · {how}</p>\n"
        '<ol class="tokens">\n'
        f"{''.join(map(_box, glass.tokens))}</ol>\n"
        f"<p>{_escape(summary(glass))}</p>\n"
        + (f'<ul class="notes">{notes}</ul>\n' if notes else "")
        + _table(glass)
        + "</section>\n"
    )


def _box(view: TokenView) -> str:
    judgement, proposal = view.judgement, view.proposal
    share = judgement.replaced_probability if judgement else None
    classes = ["token"]
    classes += ["special"] if view.special else []
    classes += ["masked"] if proposal else []
    above = view.token if proposal else ""
    # Without a discriminator the box shows what the generator saw.
    inside = view.judged
    if judgement is None and proposal is not None:
        inside = proposal.shown
    below = _below(view)
    style = "" if share is None else f' style="{_colour(share)}"'
    verdict = (judgement.verdict if judgement else "").replace(" ", "-")
    return (
        f'<li class="{" ".join(classes)}" tabindex="0">'
        f'<span class="above">{_escape(above)}</span>'
        f'<span class="word {verdict}"{style}>{_escape(inside)}</span>'
        f'<span class="below">{below}</span>'
        f"{_popup(view)}</li>\n"
    )


def _below(view: TokenView) -> str:
    judgement = view.judgement
    if judgement is None:
        return ""
    lines = []
    if judgement.replaced_probability is not None:
        lines.append(percent(judgement.replaced_probability))
    if judgement.log_probability is not None:
        lines.append(f"log P {judgement.log_probability:.1f}")
    if judgement.verdict not in ("", "real"):
        lines.append(judgement.verdict)
    return "<br>".join(map(_escape, lines))


def _popup(view: TokenView) -> str:
    if view.proposal is None:
        return ""
    return (
        '<span class="popup" role="tooltip">'
        f"<b>position {view.position}</b>"
        f"{_original(view, view.proposal)}{_bars(view)}</span>"
    )


def _original(view: TokenView, proposal: Proposal) -> str:
    if proposal.true_probability is None:
        return "<br>the text says [MASK]"
    rank = ""
    if proposal.true_rank is not None:
        rank = f", rank {proposal.true_rank:,}"
    seen = " (left in sight)" if proposal.shown == view.token else ""
    text = f"{view.token}{seen}: {percent(proposal.true_probability)}{rank}"
    return f"<br>original {_escape(text)}"


def _bars(view: TokenView) -> str:
    proposal = view.proposal
    rows = []
    for candidate in proposal.candidates:
        marks = []
        if candidate.token == view.token:
            marks.append("original")
        if candidate.token == proposal.sampled:
            marks.append("sampled")
        rows.append(
            '<span class="row">'
            f'<span class="name">{_escape(candidate.token)}</span>'
            '<span class="track"><span class="bar" style="width:'
            f'{100 * candidate.probability:.1f}%"></span></span>'
            f"<span>{_escape(percent(candidate.probability))}"
            f" {' '.join(marks)}</span></span>"
        )
    sampled = proposal.sampled
    if sampled is not None:
        given = percent(proposal.sampled_probability or 0.0)
        rows.append(f"<span>sampled: {_escape(sampled)} ({given})</span>")
    return "".join(rows)


def _table(glass: Glass) -> str:
    """The same in plain rows, for print, copying and screen readers."""
    head = (
        "position",
        "original",
        "generator saw",
        "proposals",
        "judged",
        "replaced?",
        "verdict",
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td>{_escape(cell)}</td>" for cell in _cells(view))
        + "</tr>\n"
        for view in glass.tokens
    )
    heads = "".join(f"<th>{name}</th>" for name in head)
    return (
        "<details><summary>As a table</summary><div class='wide'><table>"
        f"<tr>{heads}</tr>\n{rows}</table></div></details>\n"
    )


def _cells(view: TokenView) -> list[str]:
    proposal, judgement = view.proposal, view.judgement
    proposals = ""
    if proposal is not None:
        proposals = ", ".join(
            f"{c.token} {percent(c.probability)}" for c in proposal.candidates
        )
    share = judgement.replaced_probability if judgement else None
    return [
        str(view.position),
        view.token,
        proposal.shown if proposal else "",
        proposals,
        view.judged if judgement else "",
        "" if share is None else percent(share),
        judgement.verdict if judgement else "",
    ]


def _colour(share: float) -> str:
    """Background from green over yellow to red, for black letters."""
    hue = round(130 * (1.0 - share))
    return f"background:hsl({hue} 75% 78%)"


def _escape(text: str) -> str:
    return html.escape(printable(text))
