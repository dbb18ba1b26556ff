# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Devices, workers, threads of the CPU and rows of replicas."""

import types
import unittest.mock

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.training import loop
from electra_tf.training.devices import (
    check_batch_size,
    check_compilation,
    create_strategy,
    describe_devices,
)
from electra_tf.training.replicas import BatchRows, rows_per_machine
from electra_tf.training.threads import set_threads
from electra_tf.training.workers import current_worker


def settings(**hparams):
    return PretrainingConfig.create("m", "none", **hparams)


def test_missing_gpus_and_workers_are_refused(monkeypatch):
    if tf.config.list_logical_devices("GPU"):
        pytest.skip("this machine has a GPU")
    chosen = create_strategy(settings())
    assert isinstance(chosen, tf.distribute.OneDeviceStrategy)
    assert "1 replica; devices: CPU:0" in describe_devices(chosen)
    assert current_worker(chosen) == (0, 1)
    with pytest.raises(UserError, match="require_gpu is true but"):
        create_strategy(settings(require_gpu=True))
    monkeypatch.setenv("TF_CONFIG", "")
    with pytest.raises(UserError, match="Set TF_CONFIG on all"):
        create_strategy(settings(distribution_strategy="multi_worker"))


TWO = '{"cluster": {"worker": ["a:1", "b:1"]}'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('{"cluster": {"worker"', "TF_CONFIG"),
        ("5", "TF_CONFIG"),
        ("[" * 5000, "TF_CONFIG"),
        ("{}", "cluster is None; expected an object"),
        ('{"cluster": []}', r"cluster is \[\]"),
        ('{"cluster": {"worker": "a:1"}}', "cluster.worker is 'a:1'"),
        ('{"cluster": {"worker": null}}', "cluster.worker is None"),
        ('{"cluster": {"worker": [1]}}', "cluster.worker is 1"),
        ('{"cluster": {"worker": ["a"]}}', "'a'; expected an address"),
        ('{"cluster": {"worker": ["a:99999"]}}', "'a:99999'"),
        ('{"cluster": {"worker": ["a:1", "a:1"]}}', "every address once"),
        (TWO + "}", "task is None"),
        (TWO + ', "task": []}', r"task is \[\]"),
        (TWO + ', "task": {"type": 5, "index": 0}}', "task.type is 5"),
        (TWO + ', "task": {"type": "chief", "index": 0}}', "'chief'; .*worker"),
        (TWO + ', "task": {"type": "worker"}}', "task.index is None"),
        (TWO + ', "task": {"type": "worker", "index": 2}}', "from 0 to 1"),
        (TWO + ', "task": {"type": "worker", "index": -1}}', "is -1"),
        (TWO + ', "task": {"type": "worker", "index": 0.5}}', "is 0.5"),
    ],
)
def test_a_tf_config_that_starts_no_worker_is_refused(
    monkeypatch, value, message
):
    monkeypatch.setenv("TF_CONFIG", value)
    with pytest.raises(UserError, match=message):
        create_strategy(settings(distribution_strategy="multi_worker"))


def test_the_chief_is_the_first_worker_unless_the_cluster_names_a_chief():
    distribute = tf.distribute

    def number(kind, index, **jobs):
        made = unittest.mock.Mock(spec=distribute.MultiWorkerMirroredStrategy)
        resolver = distribute.cluster_resolver.SimpleClusterResolver
        task = {"task_type": kind, "task_id": index}
        made.cluster_resolver = resolver(tf.train.ClusterSpec(jobs), **task)
        index_of_worker, workers = current_worker(made)
        assert workers == sum(map(len, jobs.values()))
        return index_of_worker

    two = ["a:1", "b:1"]
    assert [number("worker", n, worker=two) for n in (0, 1)] == [0, 1]
    assert number("chief", 0, chief=["c:1"], worker=two) == 0
    assert number("worker", 0, chief=["c:1"], worker=two) == 1


WHOLE = BatchRows(tf.constant([3, 4]), None, 8)
ODD = BatchRows(tf.constant([3, 4]), tf.range(1, 8, 2), 8)


@pytest.mark.parametrize(
    ("rows", "indices"),
    [
        (WHOLE.micro_batch(0, 2), [0, 1, 2, 3]),
        (WHOLE.micro_batch(1, 2), [4, 5, 6, 7]),
        (ODD, [1, 3, 5, 7]),
        (ODD.micro_batch(1, 2), [5, 7]),
    ],
    ids=["first_half", "second_half", "odd_rows", "half_of_odd_rows"],
)
def test_a_row_has_the_draws_that_it_has_in_the_whole_batch(rows, indices):
    batch = tf.random.stateless_normal([8, 5], [1, 2])

    def draw(logits, seed):
        return tf.random.stateless_categorical(logits, 3, seed)

    drawn = rows.draw(draw, tf.gather(batch, indices))
    expected = WHOLE.draw(draw, batch).numpy()[indices]
    np.testing.assert_array_equal(drawn, expected)


def strategy_of(replicas):
    return types.SimpleNamespace(num_replicas_in_sync=replicas)


@pytest.mark.parametrize(
    ("replicas", "batch_size", "micro_batches", "message"),
    [
        (3, 10, 1, "such as 9 or 12"),
        (2, 12, 4, "accumulation_steps is 3"),
    ],
)
def test_a_batch_that_replicas_cannot_share_is_refused(
    replicas, batch_size, micro_batches, message
):
    strategy = strategy_of(replicas)
    check_batch_size(strategy, 12, 1)
    with pytest.raises(UserError, match=message):
        check_batch_size(strategy, batch_size, micro_batches)


def test_compilation_is_refused_for_several_replicas():
    check_compilation(strategy_of(1))
    with pytest.raises(UserError, match="jit_compile: 2 replicas"):
        check_compilation(strategy_of(2))


# Machine cores, hparams, threads of an operation, cores that share a batch.
CORES = [
    (2, {}, 1, 2),
    (1, {}, 0, 1),
    (8, {}, 0, 1),
    (3, {}, 0, 1),  # 3 cores cannot share 128 rows.
    (2, {"eval_batch_size": 9}, 1, 2),
    (2, {"threads": 1}, 1, 1),
    (2, {"distribution_strategy": "mirrored"}, 0, 1),
]
SETTLED = f"""
import tensorflow as tf
from configure.pretraining import PretrainingConfig
from electra_tf.plan import machine
from electra_tf.training import threads
setting = tf.config.threading
for number, hparams, *expected in {CORES}:
    setting.set_intra_op_parallelism_threads(0)
    machine.machine_cores = lambda: number
    config = PretrainingConfig.create("m", "none", **hparams)
    threads.set_threads(
        config.threads, config.micro_batch_size, config.lets_cores_share
    )
    cores = threads.count_cores(config, tf.distribute.get_strategy())
    actual = [setting.get_intra_op_parallelism_threads(), cores]
    assert actual == expected, (number, hparams, actual)
"""


@pytest.mark.slow
def test_few_cores_share_a_batch_by_rows(run_python, monkeypatch):
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    run_python("-c", SETTLED)


def test_the_threads_of_a_running_tensorflow_are_kept():
    tf.constant(1.0) + 1.0
    set_threads(0, micro_batch_size=128, may_share=True)
    with pytest.raises(
        UserError, match="threads is 3, but TensorFlow is already"
    ):
        set_threads(3, micro_batch_size=128, may_share=False)


def test_evaluation_never_draws_what_training_draws():
    steps = [loop.draws_seed(5, tf.constant(s)) for s in range(50)]
    batches = [loop.draws_seed(5, tf.constant(-1 - b)) for b in range(50)]
    assert len({tuple(seed.numpy()) for seed in [*steps, *batches]}) == 100
    assert steps[3].numpy().tolist() == [5, 3]


def test_machines_share_a_batch_and_devices_of_one_do_not(monkeypatch):
    assert rows_per_machine(7) == 7
    with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
        assert rows_per_machine(7) == 7

    class Workers(tf.distribute.MultiWorkerMirroredStrategy):
        num_replicas_in_sync = 2

        def __init__(self):  # does not wait for workers
            pass

    monkeypatch.setattr(tf.distribute, "get_strategy", Workers)
    assert rows_per_machine(7) == 4
