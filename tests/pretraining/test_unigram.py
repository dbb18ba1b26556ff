# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The unigram generator draws by the records' counts, which are kept."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from electra_tf import files
from electra_tf.data.example_writer import ExampleEncoder, frame_record
from electra_tf.pretraining.build import build_model
from electra_tf.pretraining.unigram import TOKEN_COUNTS, read_counts

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


def test_a_damaged_record_is_an_error_when_tokens_are_counted(
    records, tiny_config
):
    (path,) = records([([120] * 3, [130] * 6)]).iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match="a record for counting cannot be read"):
        build_model(tiny_config(**UNIGRAM))


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
    assert np.isfinite([outputs["mlm_loss"], outputs["total_loss"]]).all()


def test_temperature_and_what_is_barred_change_shares(records, tiny_config):
    records([([120] * 4, [130] * 4), ([130] * 4, [140])])
    hot = build_model(tiny_config(temperature=2.0, **UNIGRAM))
    shares = np.sqrt([4, 8, 1]) / np.sqrt([4, 8, 1]).sum()
    found, _ = draws(hot)
    assert np.abs(found[[120, 130, 140]] / MASKED - shares).max() < 0.03
    never = build_model(tiny_config(disallow_correct=True, **UNIGRAM))
    assert set(np.flatnonzero(draws(never)[0])) == {130, 140}


def test_a_run_keeps_the_counts_that_it_began_with(records, tiny_config):
    records([([120], [130])])
    config = tiny_config(**UNIGRAM)

    def found(config=config):
        counts = build_model(config).token_counts
        return {i: int(n) for i, n in enumerate(counts) if n}

    assert found() == {120: 1, 130: 1}
    own = pathlib.Path(config.model_dir, TOKEN_COUNTS)
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps({"counts": [0] * 198 + [7, 5]}))
    assert found() == {198: 7, 199: 5}
    again = tiny_config(overwrite=True, **UNIGRAM)
    assert found(again) == {120: 1, 130: 1}


def test_counts_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / TOKEN_COUNTS
    path.write_text('{"counts": [1, 2]}')
    assert read_counts(str(path), 2).tolist() == [1, 2]
    with pytest.raises(UserError, match="the `counts` of 3 tokens; restore"):
        read_counts(str(path), 3)
    files.write_digests(str(tmp_path))
    path.write_text('{"counts": [1, 3]}')
    with pytest.raises(UserError, match="another file, or damaged"):
        read_counts(str(path), 2)


def test_without_counts_nothing_is_trained(records, tiny_config):
    with pytest.raises(UserError, match="No record file matches"):
        build_model(tiny_config(**UNIGRAM))
    records([([120] * 4, [120])])
    with pytest.raises(UserError, match="fewer than two .* another generator"):
        build_model(tiny_config(**UNIGRAM))
    with pytest.raises(UserError, match="'unigram' needs electra_objective"):
        tiny_config(objective="mlm", **UNIGRAM)
