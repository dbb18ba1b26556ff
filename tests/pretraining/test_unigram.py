# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The unigram generator draws by the records' counts, which are kept."""

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf.data.example_writer import ExampleEncoder, frame_record
from electra_tf.data.token_counts import (
    TOKEN_COUNTS,
    read_token_counts,
    write_token_counts,
)
from electra_tf.pretraining.build import build_model

UNIGRAM = {"generator": "unigram"}
MASKED = 5000


@pytest.fixture
def records(tmp_path):
    """Records of length 16 whose tokens are known; returns their folder."""
    folder = tmp_path / "pretrain_tfrecords"
    folder.mkdir()

    def write(segments):
        encoder = ExampleEncoder(16, cls_id=101, sep_id=102, vocab_size=200)
        framed = [frame_record(encoder.encode(*pair)) for pair in segments]
        path = folder / "pretrain_data.tfrecord-0-of-1"
        path.write_bytes(b"".join(framed))
        return folder

    return write


def draws(model, step=0):
    """Samples for many masked positions whose true token is 120."""
    ids = np.full([MASKED // 10, 16], 120, np.int32)
    positions = np.tile(np.arange(1, 11, dtype=np.int32), [len(ids), 1])
    masked = {
        "input_ids": ids,
        "masked_lm_positions": positions,
        "masked_lm_ids": np.take_along_axis(ids, positions, 1),
        "masked_lm_weights": np.ones(positions.shape, np.float32),
    }
    features = {
        "input_ids": tf.constant(ids),
        "input_mask": tf.ones_like(ids),
        "segment_ids": tf.zeros_like(ids),
    }
    outputs = model.compute(features, masked, seed=tf.constant([0, step]))
    return np.bincount(outputs["sampled_tokids"].numpy().ravel()), outputs


def test_replacements_are_drawn_by_the_counts(records, tiny_config):
    # [UNK] (100) is a token of the text, but none to put there.
    records([([120] * 3 + [100], [130] * 6), ([140, 120], [130] * 2)])
    model = build_model(tiny_config(**UNIGRAM))
    counts = {i: int(n) for i, n in enumerate(model.token_counts) if n}
    assert counts == {100: 1, 120: 4, 130: 8, 140: 1}
    found, outputs = draws(model)
    assert set(np.flatnonzero(found)) == {120, 130, 140}
    shares = np.array([4, 8, 1]) / 13
    error = found[[120, 130, 140]] / MASKED - shares
    assert np.abs(error).max() < 4 * np.sqrt(0.25 / MASKED)
    again, _ = draws(model)
    np.testing.assert_array_equal(found, again)
    assert (draws(model, step=1)[0] != found).any()
    assert np.isfinite(outputs["mlm_loss"]) and np.isfinite(
        outputs["total_loss"]
    )


def test_temperature_and_disallowed_tokens_change_the_shares(
    records, tiny_config
):
    records([([120] * 4, [130] * 4), ([130] * 4, [140])])
    hot = build_model(tiny_config(temperature=2.0, **UNIGRAM))
    shares = np.sqrt([4, 8, 1]) / np.sqrt([4, 8, 1]).sum()
    found, _ = draws(hot)
    assert np.abs(found[[120, 130, 140]] / MASKED - shares).max() < 0.03
    never = build_model(tiny_config(disallow_correct=True, **UNIGRAM))
    assert set(np.flatnonzero(draws(never)[0])) == {130, 140}


def test_the_runs_own_counts_come_before_the_builders(
    records, tiny_config, tiny_vocab
):
    folder = records([([120], [130])])
    config = tiny_config(**UNIGRAM)

    def found(config=config):
        counts = build_model(config).token_counts
        return {i: int(n) for i, n in enumerate(counts) if n}

    assert found() == {120: 1, 130: 1}
    counts = np.zeros(200, int)
    counts[[150, 160]] = 7
    write_token_counts(str(folder / TOKEN_COUNTS), counts, tiny_vocab)
    assert found() == {150: 7, 160: 7}
    counts[160] = 5
    own = f"{config.model_dir}/{TOKEN_COUNTS}"
    write_token_counts(own, counts, tiny_vocab)
    assert found() == {150: 7, 160: 5}
    assert found(tiny_config(overwrite=True, **UNIGRAM)) == {150: 7, 160: 7}


@pytest.mark.parametrize(
    "change, message",
    [
        (("[1, ", "[2, "), "is damaged, sha256 .* remove the file"),
        (('"format": 1', '"format": 9'), "no token counts of format 1"),
        (('"vocabulary": "', '"vocabulary": "x'), "another vocabulary than"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    tmp_path, tiny_vocab, change, message
):
    path = tmp_path / TOKEN_COUNTS
    write_token_counts(str(path), [1, 2], tiny_vocab)
    assert read_token_counts(str(path), tiny_vocab) == [1, 2]
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(UserError, match=message):
        read_token_counts(str(path), tiny_vocab)


def test_without_counts_nothing_is_trained(records, tiny_config):
    with pytest.raises(UserError, match="No record file matches"):
        build_model(tiny_config(**UNIGRAM))
    records([([120] * 4, [120])])
    with pytest.raises(UserError, match="fewer than two .* another generator"):
        build_model(tiny_config(**UNIGRAM))
    with pytest.raises(UserError, match="'unigram' needs electra_objective"):
        tiny_config(objective="mlm", **UNIGRAM)
