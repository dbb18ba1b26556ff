# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Windows over long texts, masks in texts, padding."""

import pytest

from electra_tf.inspection.sentences import encode_with_masks, padded, windows
from electra_tf.text.tokenization import FullTokenizer


@pytest.mark.parametrize("room", [1, 2, 3, 7, 30])
def test_every_token_is_answered_for_once_by_a_window_that_shows_it(room):
    for count in range(120):
        answered = []
        for window in windows(count, room):
            assert window.end - window.begin <= room
            assert 0 <= window.begin <= window.first < window.last
            assert window.last <= window.end <= count
            answered += range(window.first, window.last)
        assert answered == list(range(count))


def test_tokens_of_a_long_text_have_context_on_both_sides():
    for window in windows(100, 20)[1:-1]:
        assert window.first - window.begin >= 4
        assert window.end - window.last >= 4


def test_a_mask_in_a_text_is_one_token(tiny_vocab):
    tokenizer = FullTokenizer(tiny_vocab)
    mask = tokenizer.vocab["[MASK]"]
    the, was = tokenizer.vocab["the"], tokenizer.vocab["was"]
    assert encode_with_masks(tokenizer, "the [MASK] was") == [the, mask, was]
    assert encode_with_masks(tokenizer, "[MASK][MASK]the") == [mask, mask, the]
    assert encode_with_masks(tokenizer, "") == []


def test_padding_is_masked_out():
    batch = padded([[5, 6, 7], [8]])
    assert batch["input_ids"].tolist() == [[5, 6, 7], [8, 0, 0]]
    assert batch["input_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["segment_ids"].tolist() == [[0, 0, 0], [0, 0, 0]]
