# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fill-mask gives the generator's own probabilities."""

import numpy as np
import pytest

from configure.errors import UserError
from electra_tf.inspection.fill_mask import (
    FilledText,
    MaskFiller,
    encode,
)

TEXTS = ["the [MASK] is on that [MASK].", "[MASK]", "a b c [MASK]ing d e f g"]


@pytest.mark.parametrize(
    "kind", ["electra", "electra/generator", "mlm", "two_tower", "tied"]
)
def test_probabilities_are_those_of_the_softmax(
    pretrained, generator_log_probs, kind
):
    model = pretrained(kind)
    filler = MaskFiller(model, top_k=4, batch_size=2)
    for text, filled in zip(TEXTS, filler(TEXTS), strict=True):
        assert filled.text == text
        assert len(filled.masks) == text.count("[MASK]")
        directly = generator_log_probs(model, encode(model, text))
        for mask in filled.masks:
            assert filled.tokens[mask.position - 1] == "[MASK]"
            direct = np.exp(directly[mask.position])
            best = np.argsort(-direct, kind="stable")[:4]
            got = [c.probability for c in mask.candidates]
            np.testing.assert_allclose(got, direct[best], atol=1e-6)
            for candidate in mask.candidates:
                assert model.tokenizer.vocab[candidate.token] == (
                    candidate.token_id
                )


def test_the_likeliest_text_is_joined():
    tokens = ("un", "##like", "##ly", "it", "is")
    assert FilledText("", tokens, ()).best() == "unlikely it is"


def test_a_mask_in_a_text_is_one_token(pretrained):
    model = pretrained("mlm")
    vocab, special = model.tokenizer.vocab, model.model.special
    ids = encode(model, "the [MASK][MASK]was")
    assert ids == [
        *(special.cls_id, vocab["the"], special.mask_id, special.mask_id),
        *(vocab["was"], special.sep_id),
    ]


def test_top_k_is_no_more_than_the_vocabulary(pretrained):
    filled = next(MaskFiller(pretrained("mlm"), top_k=10_000)(["[MASK]"]))
    assert len(filled.masks[0].candidates) == 200
    total = sum(c.probability for c in filled.masks[0].candidates)
    assert total == pytest.approx(1.0, abs=1e-5)


def test_what_cannot_be_filled_is_named(pretrained):
    filler = MaskFiller(pretrained("electra"))
    with pytest.raises(UserError, match=r"No \[MASK\] in 'the cat'"):
        next(filler(["the cat"]))
    with pytest.raises(
        UserError, match="has 41 tokens, and the model takes 30"
    ):
        next(filler(["[MASK]" + " the" * 40]))
    with pytest.raises(UserError, match="has no generator; fill-mask needs"):
        MaskFiller(pretrained("electra/discriminator"))
    with pytest.raises(UserError, match="top_k is 0"):
        MaskFiller(pretrained("electra"), top_k=0)
