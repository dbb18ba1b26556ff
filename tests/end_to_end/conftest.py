# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small records on disk, and the settings of runs over them."""

import numpy as np
import pytest
import tensorflow as tf

LENGTH = 16


def write_records(path, examples, seed):
    rng = np.random.default_rng(seed)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(examples):
            length = int(rng.integers(8, LENGTH + 1))
            ids = np.zeros(LENGTH, int)
            ids[:length] = rng.integers(104, 200, length)
            ids[0], ids[length - 1] = 101, 102
            mask = (np.arange(LENGTH) < length).astype(int)
            features = {
                "input_ids": ids,
                "input_mask": mask,
                "segment_ids": mask * (np.arange(LENGTH) > length // 2),
            }
            example = tf.train.Example()
            for name, values in features.items():
                example.features.feature[name].int64_list.value.extend(values)
            writer.write(example.SerializeToString())


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """A data directory with 3 shards for training and one held out."""
    root = tmp_path_factory.mktemp("data")
    records = root / "pretrain_tfrecords"
    records.mkdir()
    for shard in range(3):
        name = f"pretrain_data.tfrecord-{shard}-of-3"
        write_records(records / name, 17, shard)
    write_records(records / "eval_data.tfrecord-0-of-1", 10, 99)
    return root


@pytest.fixture
def settings(tmp_path, tiny_vocab):
    """hparams of a tiny run whose model directory is under `tmp_path`."""

    def make(name="run", **hparams):
        return {
            "vocab_file": tiny_vocab,
            "vocab_size": 200,
            "embedding_size": 8,
            "max_seq_length": LENGTH,
            "train_batch_size": 4,
            "eval_batch_size": 4,
            "num_train_steps": 20,
            "num_warmup_steps": 4,
            "num_eval_steps": 10,
            "save_checkpoints_steps": 10,
            "log_every_n_steps": 1,
            "shuffle_buffer_size": 20,
            "model_hparam_overrides": {
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "intermediate_size": 32,
                "max_position_embeddings": 32,
            },
            "model_dir": str(tmp_path / name),
            "results_txt": str(tmp_path / name / "results" / "r.txt"),
            "results_pkl": str(tmp_path / name / "results" / "r.pkl"),
            "results_json": str(tmp_path / name / "results" / "r.json"),
            **hparams,
        }

    return make
