# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Electric's scores equal the original's, and rank a known language."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from configure.pretraining import PretrainingConfig
from electra_tf.pretraining import scoring
from electra_tf.pretraining.model import PretrainingModel
from tests.conftest import restore
from tests.pretraining.conftest import INPUTS, Recording, features_of, make_loop

CLS, SEP, MASK = 101, 102, 103


def log_probs(logits, ids):
    """Return the log probabilities of token ids, float64 [B, L]."""
    values = log_softmax(np.asarray(logits, np.float64), -1)
    return np.take_along_axis(values, ids[..., None].astype(int), -1)[..., 0]


@pytest.mark.parametrize("name", ["electric", "electric_untied_embeddings"])
def test_scores_are_logits_without_offset(name, recorded_config, golden_dir):
    recorded = Recording(golden_dir, f"forward_v200_{name}")
    model = PretrainingModel(recorded_config(recorded.info["hparams"]))
    restore(model, recorded.checkpoint)
    arrays, p = recorded.arrays, recorded.info["hparams"]["mask_prob"]
    fake_ids = arrays["fake_input_ids"]
    # By hand: log q and the prior off the recorded logits.
    offset = log_probs(arrays["cloze_logits"], fake_ids) + np.log(p / (1 - p))
    energies = arrays["disc_logits"].astype(np.float64) - offset
    features = {name: tf.constant(arrays[name]) for name in INPUTS}
    features["input_ids"] = tf.constant(fake_ids)
    scores = scoring.electric_scores(model, features)
    cloze = scoring.cloze_scores(model, features)
    log_q = log_probs(model.compute(features)["cloze_logits"], fake_ids)
    is_special = np.isin(fake_ids, [CLS, SEP, MASK])
    scored = (arrays["input_mask"] > 0) & ~is_special
    np.testing.assert_array_equal(np.asarray(scores["scored"]) != 0, scored)
    expected = -(energies * scored).sum(-1)
    np.testing.assert_allclose(scores["score"], expected, rtol=2e-5)
    expected = (log_q * scored).sum(-1)
    np.testing.assert_allclose(cloze["score"], expected, rtol=2e-5)


WORDS, LENGTH, TOPICS, STEPS = 12, 10, 3, 400
FIRST_ID = 110  # in the vocabulary


class TopicLanguage:
    """Sentences whose words are drawn from the topic's distribution."""

    def __init__(self):
        word_shares = np.random.default_rng(0).dirichlet(
            [0.3] * WORDS, size=TOPICS
        )
        self.words = 0.95 * word_shares + 0.05 / WORDS

    def sample(self, count, rng):
        topics = rng.integers(TOPICS, size=count)
        reached = np.cumsum(self.words[topics], 1)[:, None, :]
        below = reached < rng.random([count, LENGTH, 1])
        return np.minimum(below.sum(-1), WORDS - 1)

    def log_probabilities(self, sentences):
        """Return the exact log P(word | all other words)."""
        logs = np.log(self.words)[:, sentences]
        of_others = logs.sum(-1, keepdims=True) - logs
        topics = np.exp(of_others - of_others.max(0))
        topics /= topics.sum(0)
        return np.log((topics * np.exp(logs)).sum(0))


def framed(sentences):
    edge = np.ones([len(sentences), 1], int)
    ids = [CLS * edge, sentences + FIRST_ID, SEP * edge]
    return features_of(np.concatenate(ids, 1))


@pytest.fixture(scope="module")
def scored_language(tiny_pretraining, tmp_path_factory):
    """Train Electric on the language; return true and computed scores."""
    settings = dict(
        tiny_pretraining,
        embedding_size=32,
        max_seq_length=LENGTH + 2,
        electric_objective=True,
        # 2 of 10 positions are sampled, as p = 0.2 requires.
        mask_prob=0.2,
        max_predictions_per_seq=2,
        mask_without_replacement=True,
        generator_hidden_size=0.5,
        num_train_steps=STEPS,
        num_warmup_steps=50,
        learning_rate=1e-3,
        weight_decay_rate=0.0,
        model_hparam_overrides={
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 16,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "initializer_range": 0.05,
        },
    )
    folder = str(tmp_path_factory.mktemp("electric"))
    config = PretrainingConfig.create("tiny", folder, **settings)
    language, rng = TopicLanguage(), np.random.default_rng(1)
    data = (framed(language.sample(64, rng)) for _ in range(STEPS))
    model, _, loop = make_loop(config, STEPS, data)
    loop.train(STEPS)
    unseen = language.sample(300, np.random.default_rng(2))
    truth = language.log_probabilities(unseen)
    return truth, {
        "electric": scoring.electric_scores(model, framed(unseen)),
        "cloze": scoring.cloze_scores(model, framed(unseen)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("method", ["electric", "cloze"])
def test_token_scores_become_the_log_probabilities(scored_language, method):
    truth, scores = scored_language
    log_p = scores[method]["token_scores"].numpy()[:, 1:-1]
    assert np.corrcoef(log_p.ravel(), truth.ravel())[0, 1] > 0.9
    assert abs((log_p - truth).mean()) < 0.15
    assert np.abs(log_p - truth).mean() < 0.35


@pytest.mark.slow
def test_electric_scores_order_sentences_by_their_probability(scored_language):
    truth, scores = scored_language
    by_truth, by_score = truth.sum(-1), scores["electric"]["score"].numpy()
    assert np.corrcoef(by_truth, by_score)[0, 1] > 0.9
