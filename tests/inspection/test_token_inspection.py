# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inspection of tokens: masks, samples and verdicts, as a table and a page."""

import dataclasses
import html
import io
import json
import pathlib

import numpy as np
import pytest
import rich.console
import tensorflow as tf

from electra_tf.inspection.tables import inspection_view, percent, printable
from electra_tf.inspection.token_inspection import (
    LEFT_OUT,
    Prediction,
    TokenInspector,
)
from electra_tf.pretraining import scoring
from electra_tf.pretraining.loading import load_pretrained
from electra_tf.pretraining.losses import electric_correction
from electra_tf.pretraining.unigram import TOKEN_COUNTS
from tests.conftest import refused
from tests.pretraining.conftest import features_of

SENTENCE = "the cat is on the mat, and that was it."


def input_features(pretrained, seen):
    tokens = (view.input_token for view in seen.tokens)
    return features_of([pretrained.tokenizer.convert_tokens_to_ids(tokens)])


def check_predictions(pretrained, seen):
    features = input_features(pretrained, seen)
    logits = scoring.discriminator_energies(pretrained.model, features)
    probabilities = tf.sigmoid(logits)[0].numpy()
    for view, probability in zip(seen.tokens, probabilities, strict=True):
        got = view.prediction.replaced_probability
        assert got == pytest.approx(probability, abs=1e-5)
        assert view.prediction.is_replaced == (view.input_token != view.token)


def test_chosen_words_are_masked_sampled_and_classified(pretrained):
    model = pretrained("electra")
    seen = TokenInspector(model, top_k=200).inspect(SENTENCE, ("the", "it"))
    masked = [view for view in seen.tokens if view.proposal]
    assert [view.token for view in masked] == ["the", "the", "i", "##t"]
    assert seen.masking == "chosen"
    proposals = [view.proposal for view in masked]
    assert {proposal.shown for proposal in proposals} == {"[MASK]"}
    sampled = [proposal.sampled for proposal in proposals]
    assert sampled == [view.input_token for view in masked]
    others = [view for view in seen.tokens if view.proposal is None]
    assert all(view.input_token == view.token for view in others)
    check_predictions(model, seen)


@pytest.mark.parametrize("index", range(4))
def test_a_proposal_ranks_all_tokens_by_probability(pretrained, index):
    inspector = TokenInspector(pretrained("electra"), top_k=200)
    seen = inspector.inspect(SENTENCE, ("the", "it"))
    view = [view for view in seen.tokens if view.proposal][index]
    proposal = view.proposal
    by_token = {c.token: c.probability for c in proposal.candidates}
    probabilities = [*by_token.values()]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1.0, abs=1e-5)
    assert proposal.true_probability == by_token[view.token]
    sampled = pytest.approx(by_token[proposal.sampled], abs=1e-6)
    assert proposal.sampled_probability == sampled
    at_rank = proposal.candidates[proposal.true_rank - 1]
    assert at_rank.probability == by_token[view.token]


def test_drawn_positions_are_a_function_of_the_seed(pretrained):
    model = pretrained("electra")

    def inspect(seed, **options):
        return TokenInspector(model, seed=seed).inspect(SENTENCE, **options)

    inspections = [inspect(seed) for seed in range(4)]
    assert inspect(2) == inspections[2]
    assert inspect(2, number=1).tokens != inspections[2].tokens
    assert {inspection.masking for inspection in inspections} == {"drawn"}
    drawn_views = [
        [view for view in inspection.tokens if view.proposal]
        for inspection in inspections
    ]
    assert not any(view.special for views in drawn_views for view in views)
    positions = {tuple(v.position for v in views) for views in drawn_views}
    assert len(positions) > 1
    for inspection in inspections:
        check_predictions(model, inspection)


def test_a_mask_in_the_text_is_sampled_and_has_no_label(pretrained):
    seen = TokenInspector(pretrained("electra")).inspect("the [MASK] was it")
    (view,) = [view for view in seen.tokens if view.proposal]
    assert view.token == "[MASK]" and view.input_token == view.proposal.sampled
    assert view.proposal.true_probability is None
    assert view.proposal.true_rank is None
    assert view.prediction.is_replaced is None
    assert view.prediction.verdict in ("real", "fake")


def test_a_text_without_masks_is_inspected_as_it_is(pretrained):
    seen = TokenInspector(pretrained("electra")).inspect(SENTENCE, nothing=True)
    assert seen.masking == "none"
    assert not any(view.proposal for view in seen.tokens)
    assert all(view.input_token == view.token for view in seen.tokens)
    part = pretrained("electra/discriminator")
    alone = TokenInspector(part).inspect(SENTENCE)
    assert alone.masking == "none"
    verdicts = {view.prediction.verdict for view in seen.tokens}
    assert verdicts <= {"real", "fake"}
    whole_shares, shares = (
        [view.prediction.replaced_probability for view in inspection.tokens]
        for inspection in (seen, alone)
    )
    assert shares == pytest.approx(whole_shares, abs=1e-6)
    assert any("has no generator" in note for note in alone.notes)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mlm", "masked LM"),
        ("electra/generator", "ELECTRA's generator alone"),
        ("replace", "Replace MLM's generator alone"),
    ],
)
def test_a_model_without_discriminator_proposes_tokens(pretrained, name, kind):
    seen = TokenInspector(pretrained(name)).inspect(SENTENCE, ("cat",))
    assert seen.kind == kind
    assert all(view.prediction is None for view in seen.tokens)
    proposals = [view.proposal for view in seen.tokens if view.proposal]
    assert len(proposals) == 3
    assert all(p.candidates and p.sampled is None for p in proposals)
    assert any("no discriminator" in note for note in seen.notes)


def test_uniform_and_copying_models_are_named(pretrained):
    seen = TokenInspector(pretrained("uniform")).inspect(SENTENCE, ("cat",))
    proposals = [view.proposal for view in seen.tokens if view.proposal]
    assert all(p.candidates == () for p in proposals)
    assert all(p.sampled_probability == 1 / 200 for p in proposals)
    assert any("uniform generator" in note for note in seen.notes)
    check_predictions(pretrained("uniform"), seen)
    seen = TokenInspector(pretrained("all_tokens")).inspect(SENTENCE, ("cat",))
    assert seen.kind == "All-Tokens MLM, small generator"
    assert any("does not copy" in note for note in seen.notes)
    check_predictions(pretrained("all_tokens"), seen)


def test_a_unigram_generator_samples_by_its_counts(pretrained, folders):
    model = pretrained("unigram")
    assert TokenInspector(model).inspect(SENTENCE).masking == "none"
    path = pathlib.Path(folders("unigram"), TOKEN_COUNTS)
    path.write_text(json.dumps({"counts": [0] * 198 + [3, 1]}))
    model = load_pretrained(folders("unigram"))
    path.unlink()
    seen = TokenInspector(model).inspect(SENTENCE, ("cat",))
    assert seen.kind == "ELECTRA, unigram generator"
    proposals = [view.proposal for view in seen.tokens if view.proposal]
    assert len(proposals) == 3
    shares = {round(proposal.sampled_probability, 6) for proposal in proposals}
    assert shares <= {0.25, 0.75}


def test_electric_gives_log_probabilities_and_its_own_labels(pretrained):
    model = pretrained("electric")
    seen = TokenInspector(model).inspect(SENTENCE, ("that", "cat"))
    assert {v.proposal.shown for v in seen.tokens if v.proposal} == {LEFT_OUT}
    features = input_features(model, seen)
    energies = scoring.discriminator_energies(model.model, features)[0]
    tokens = (view.token for view in seen.tokens)
    original = tf.constant([model.tokenizer.convert_tokens_to_ids(tokens)])
    cloze = model.model.compute({**features, "input_ids": original})
    shown, share = features["input_ids"], model.config.mask_prob
    offset = electric_correction(cloze["cloze_logits"], shown, share)
    logits = energies + offset[0]
    predictions = [view.prediction for view in seen.tokens]
    # Every sampled token counts as replaced.
    sampled = [view.proposal is not None for view in seen.tokens]
    assert [prediction.is_replaced for prediction in predictions] == sampled
    special = [view.special for view in seen.tokens]
    without = [prediction.log_probability is None for prediction in predictions]
    assert without == special
    words = np.flatnonzero(np.logical_not(special))
    actual = [predictions[word].log_probability for word in words]
    np.testing.assert_allclose(actual, -energies.numpy()[words], atol=1e-4)
    actual = [predictions[word].replaced_probability for word in words]
    expected = tf.sigmoid(logits).numpy()[words]
    np.testing.assert_allclose(actual, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("probability", "is_replaced", "verdict"),
    [
        (0.9, True, "found"),
        (0.1, True, "missed"),
        (0.9, False, "false alarm"),
        (0.1, False, "real"),
        (0.9, None, "fake"),
        (None, True, ""),
    ],
)
def test_a_verdict_compares_the_probability_with_the_label(
    probability, is_replaced, verdict
):
    assert Prediction(probability, is_replaced).verdict == verdict


def test_only_whole_words_are_masked(pretrained):
    inspector = TokenInspector(pretrained("electra"))
    seen = inspector.inspect("an a, ana a", ("a",))
    masked = [(v.position, v.token) for v in seen.tokens if v.proposal]
    assert masked == [(3, "a"), (8, "a")]


@pytest.mark.parametrize(
    ("name", "text", "chosen", "message"),
    [
        ("electra", SENTENCE, ("dog",), r"'dog' \(d ##o ##g\) is not in"),
        ("electra", "  ", (), "no tokens"),
        ("electra", "the " * 31, (), "31 tokens; .* accepts at most 30"),
        (
            "electra/discriminator",
            SENTENCE,
            ("cat",),
            "masked words need a generator",
        ),
    ],
)
def test_texts_and_words_that_cannot_be_inspected_are_refused(
    pretrained, name, text, chosen, message
):
    inspector = TokenInspector(pretrained(name))
    refused(message, inspector.inspect, text, chosen)


def drawn(seen, width=100):
    settings = {"width": width, "no_color": True, "record": True}
    console = rich.console.Console(file=io.StringIO(), **settings)
    console.print(inspection_view(seen))
    return console


@pytest.mark.parametrize("width", [50, 80])
def test_a_table_fits_the_terminal(pretrained, width):
    inspector = TokenInspector(pretrained("electra"), top_k=2)
    seen = inspector.inspect(SENTENCE, ("the", "it"))
    lines = drawn(seen, width).file.getvalue().splitlines()
    assert max(map(rich.cells.cell_len, lines)) <= width


def test_a_table_writes_out_what_colours_show(pretrained):
    inspector = TokenInspector(pretrained("electra"), top_k=2)
    seen = inspector.inspect(SENTENCE, ("the", "it"))
    text = drawn(seen, 160).file.getvalue()
    assert "\x1b" not in text and "step 7" in text
    expected = []
    for view in seen.tokens:
        row, below = [str(view.position), view.token], []
        if proposal := view.proposal:
            best, other = proposal.candidates
            row += [proposal.shown, best.token, percent(best.probability)]
            row += [percent(proposal.true_probability), proposal.sampled]
            below = [other.token, percent(other.probability), "rank"]
            below.append(str(proposal.true_rank))
            below.append(percent(proposal.sampled_probability))
        row += [
            view.input_token,
            percent(view.prediction.replaced_probability),
            *view.prediction.verdict.split(),
        ]
        expected += [row, below] if below else [row]
    lines = [line.split() for line in text.splitlines()]
    start = lines.index(expected[0])
    assert lines[start : start + len(expected)] == expected


def test_a_view_shows_no_control_character_and_no_markup(pretrained):
    seen = TokenInspector(pretrained("electra")).inspect(SENTENCE, ("the",))
    odd = dataclasses.replace(seen, text="a\x1b[31mb\r\u202ec [red]")
    text = drawn(odd).file.getvalue()
    assert not {"\x1b", "\r", "\u202e"} & set(text) and "[red]" in text
    assert printable("e\u0301\u4e2d\x07") == "e\u0301\u4e2d\ufffd"
    evil = '<script>alert("x")</script>'
    page = drawn(dataclasses.replace(seen, text=evil, model=evil)).export_html()
    assert "<script" not in page and "src=" not in page and "http" not in page
    assert evil in html.unescape(page)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0.0%"), (1e-9, "<0.1%"), (0.5, "50.0%"), (0.99999, ">99.9%")],
)
def test_a_probability_is_never_rounded_to_certainty(share, text):
    assert percent(share) == text
