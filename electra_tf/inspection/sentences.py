# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Texts -> token ids -> padded batches; long texts -> overlapping windows."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from configure.errors import UserError
from electra_tf.pretraining.loading import PretrainedModel
from electra_tf.text.tokenization import MASK, FullTokenizer


def encode_with_masks(tokenizer: FullTokenizer, text: str) -> list[int]:
    """Splits text in which "[MASK]" stands for a token to be found.

    The tokenizer itself knows no special tokens: like the original's it splits
    "[MASK]" at its brackets, so that text cannot smuggle them in.
    """
    mask_id = tokenizer.vocab[MASK]
    ids: list[int] = []
    for number, part in enumerate(text.split(MASK)):
        ids += ([mask_id] if number else []) + tokenizer.encode(part)
    return ids


@dataclasses.dataclass(frozen=True)
class Window:
    """A stretch of a text's tokens, and which of them it answers for."""

    begin: int  # index in the text of its first token
    end: int  # after its last token
    first: int  # of the first token that it answers for
    last: int  # after the last one


def windows(count: int, room: int) -> list[Window]:
    """Divides a text of more tokens than fit beside [CLS] and [SEP]."""
    if count <= room:
        return [Window(0, count, 0, count)] if count else []
    stride = max(1, room // 2)
    begins = [*range(0, count - room, stride), count - room]
    found = []
    first = 0
    for begin, following in zip(begins, [*begins[1:], None], strict=True):
        end = begin + room
        last = count if following is None else (following + end + 1) // 2
        found.append(Window(begin, end, first, last))
        first = last
    return found


def room_for_tokens(pretrained: PretrainedModel) -> int:
    """How many tokens of a text the model takes at once."""
    return pretrained.max_length - 2  # [CLS] before, [SEP] after


def check_length(
    pretrained: PretrainedModel, ids: Sequence[int], text: str
) -> None:
    """Raises a UserError where a text does not fit the position table."""
    if len(ids) > room_for_tokens(pretrained):
        raise UserError(
            f"{shortened(text)!r} has {len(ids)} tokens, and the model takes"
            f" {room_for_tokens(pretrained)} at once; give a part of it."
        )


def shortened(text: str, length: int = 60) -> str:
    """The beginning of a long text, for messages."""
    return text if len(text) <= length else text[: length - 3] + "..."


def framed(pretrained: PretrainedModel, ids: Sequence[int]) -> list[int]:
    """Puts [CLS] before a text's ids and [SEP] after."""
    special = pretrained.model.special
    return [special.cls_id, *ids, special.sep_id]


def padded(rows: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Pads rows of ids to one segment: int32 [B, L], L the longest row's."""
    ids = np.zeros([len(rows), max(map(len, rows))], np.int32)
    mask = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
    return {
        "input_ids": ids,
        "input_mask": mask,
        "segment_ids": np.zeros_like(ids),
    }
