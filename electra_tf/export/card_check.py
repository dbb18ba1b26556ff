# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes model cards, and checks that they still say what is so."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from configure.errors import UserError
from electra_tf.export import card_facts, model_card, run_facts
from electra_tf.export.saved_model import EXTRA, write_text
from electra_tf.export.signatures import ServingModule

# Numbers of one model differ between machines by rounding.
TOLERANCE = 1e-4


def write_card(
    folder: str,
    loaded: run_facts.Loaded,
    module: ServingModule,
) -> dict[str, Any]:
    """Writes MODEL_CARD.md and, in `assets.extra/`, the facts behind it."""
    facts = {
        "measured": card_facts.measured(folder),
        "recorded": run_facts.recorded(loaded, module),
    }
    # As they will be read back: no tuples, no NumPy.
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    path = os.path.join(folder, EXTRA, model_card.FACTS_FILE)
    write_text(path, f"{text}\n")
    facts = json.loads(text)
    card = model_card.render(facts)
    write_text(os.path.join(folder, model_card.FILE_NAME), card)
    return facts


def check_card(folder: str) -> list[str]:
    """Measures an exported version again and compares with its card.

    Returns:
      A line for each statement that is not so; empty where all are.
    """
    path = os.path.join(folder, EXTRA, model_card.FACTS_FILE)
    card = os.path.join(folder, model_card.FILE_NAME)
    for needed in (path, card, os.path.join(folder, "saved_model.pb")):
        if not tf.io.gfile.exists(needed):
            raise UserError(
                f"--check: {needed} is not there; expected"
                " <output_dir>/<version> of an export."
            )
    with tf.io.gfile.GFile(path) as file:
        facts = json.load(file)
    with tf.io.gfile.GFile(card) as file:
        written = file.read()
    try:
        now = json.loads(json.dumps(card_facts.measured(folder)))
    except (OSError, tf.errors.OpError, KeyError, ValueError) as error:
        last = str(error).strip().splitlines()[-1]
        return [f"the model cannot be loaded: {last}"]
    problems = list(_differences(facts["measured"], now, ""))
    expected = model_card.render(facts)
    if written != expected:
        problems += [
            f"{model_card.FILE_NAME}: {text}"
            for text in _other_lines(written, expected)
        ]
    return problems


def _differences(before: Any, now: Any, where: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            place = f"{where}.{key}" if where else key
            if key not in now:
                yield f"{place}: is stated, but is not there"
            elif key not in before:
                yield f"{place}: is there, but is not stated"
            else:
                yield from _differences(before[key], now[key], place)
    elif isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            yield f"{where}: {len(before)} stated, {len(now)} there"
            return
        for i, pair in enumerate(zip(before, now, strict=True)):
            yield from _differences(*pair, f"{where}[{i}]")
    elif not _same(before, now):
        yield f"{where}: stated {before!r}, is {now!r}"


def _same(before: Any, now: Any) -> bool:
    if isinstance(before, float) and isinstance(now, float):
        return math.isclose(before, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return before == now


def _other_lines(written: str, expected: str) -> list[str]:
    """Lines of the card that the facts do not give, and the other way."""
    one, other = written.splitlines(), expected.splitlines()
    extra = [f"says {line!r}" for line in one if line not in other]
    absent = [f"lacks {line!r}" for line in other if line not in one]
    return (extra + absent)[:8] or ["lines are in another order"]
