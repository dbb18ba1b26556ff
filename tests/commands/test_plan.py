# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command that prints the resources of a run."""

import json
import os

import pytest

from electra_tf.commands import plan, plan_numbers
from electra_tf.data.manifest import MANIFEST_FORMAT, MANIFEST_NAME


@pytest.fixture
def arguments(tiny_config):
    """Return the command line of a tiny run."""
    hparams = tiny_config(num_train_steps=100).as_dict()
    return [f"--hparams={json.dumps(hparams)}"]


@pytest.fixture
def screen(arguments, capsys):
    """Return a function that runs the command, and returns its output."""

    def run(*more):
        plan.main(plan.parse_flags(["plan", *arguments, *more]))
        return capsys.readouterr().out

    return run


@pytest.fixture
def facts(screen):
    """Return a function like `screen`, with single spaces in the output."""
    return lambda *more: " ".join(screen(*more).split())


@pytest.mark.parametrize(
    "text",
    [
        "tiny: ELECTRA, model_size small, small generator",
        "100 steps of 4 examples of 16 wordpieces",
        "Wordpieces a step 64; 6.400e+03 in all steps",
        "no records at",
        "pass --measure B to time some steps",
        "RoBERTa",
        "> this run",
        "warning: training would stop: No record file matches",
    ],
)
def test_the_screen_names_the_resources_of_the_run(facts, text):
    assert text in facts()


def test_the_screen_has_eighty_columns(screen):
    numbers, _ = screen().split("warning: training would stop: ")
    assert max(map(len, numbers.splitlines())) <= 80


@pytest.mark.parametrize(
    ("flag", "warning"),
    [
        (
            "--num_warmup_steps=100",
            "num_warmup_steps 100 is not below num_train_steps 100",
        ),
        (
            "--train_batch_size=16777216",
            "GiB of memory are needed at train_batch_size 16777216",
        ),
        ("--num_train_steps=0", "> this run"),
    ],
)
def test_the_screen_warns_of_odd_settings(facts, flag, warning):
    assert warning in facts(flag)


def test_json_contains_the_numbers_of_records(screen, data_dir):
    records = f"--pretrain_tfrecords={data_dir}/pretrain_tfrecords/pre*"
    numbers = json.loads(screen("--json", records))
    expected = {"examples": 51, "exact": True, "files": 3}
    assert numbers["records"] == expected
    assert numbers["epochs"] == pytest.approx(400 / 51)
    assert numbers["obstacles"] == [] == numbers["warnings"]


def test_json_contains_the_numbers_of_the_screen(screen):
    numbers = json.loads(screen("--json"))
    assert numbers["tokens"] == 6400 and numbers["examples_per_step"] == 4
    parameters = numbers["parameters"]
    kinds = ("generator", "discriminator", "shared")
    assert parameters["total"] == sum(parameters[kind] for kind in kinds)
    assert numbers["flops"] == 100 * numbers["flops_per_step"]["total"]
    assert numbers["epochs"] is None


@pytest.fixture
def obstructed(tmp_path, screen):
    """Return the JSON of a run with an obstacle of each kind."""
    folder = tmp_path / "records"
    folder.mkdir()
    (folder / "pretrain_data.tfrecord-0").write_bytes(b"cut")
    shard = {"name": "pretrain_data.tfrecord-0", "bytes": 4, "records": 1}
    manifest = {
        "format": MANIFEST_FORMAT,
        "complete": False,
        "num_jobs": 2,
        "jobs": {"0": {"shards": [shard], "held_out_shards": []}},
        "settings": {
            "max_seq_length": 64,
            "do_lower_case": True,
            "strip_accents": True,
        },
        "vocabulary": {"hash": "another", "size": 300},
    }
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest))
    run = tmp_path / "models" / "tiny"
    run.mkdir(parents=True)
    (run / "checkpoint").touch()
    (run / "config.json").write_text('{"embedding_size": 9}')
    return json.loads(
        screen(
            "--json",
            f"--pretrain_tfrecords={folder}/*.tfrecord*",
            f"--model_dir={run}",
            "--vocab_size=100",
            "--init_checkpoint=nowhere",
            "--eval_every_n_steps=10",
            "--eval_tfrecords=absent",
        )
    )


OBSTACLES = [
    "is incomplete (1 of 2",
    "length of records is 64, but max_seq_length is 16",
    "were built with a different vocabulary (300 tokens)",
    "the size differs from the 4 bytes",
    "No record file matches eval_tfrecords = 'absent'",
    "contains 200 tokens, but the model has 100",
    "init_checkpoint nowhere: no such folder or checkpoint",
    "embedding_size: 9 -> 8",
]


@pytest.mark.parametrize(("number", "text"), enumerate(OBSTACLES))
def test_every_obstacle_is_named_at_once(obstructed, number, text):
    assert text in obstructed["obstacles"][number]


def test_every_obstacle_is_among_the_warnings(obstructed):
    obstacles = obstructed["obstacles"]
    warnings = {f"training would stop: {text}" for text in obstacles}
    assert len(obstacles) == len(OBSTACLES)
    assert warnings <= set(obstructed["warnings"])


LARGE = ("--train_batch_size=65536", "--max_seq_length=32")
CHECKPOINTED = "with activation checkpointing, which training without"


@pytest.fixture
def machine(monkeypatch):
    """Return a function that sets the machine's memory, in bytes."""

    def set_bytes(count):
        monkeypatch.setattr(plan_numbers, "machine_memory", lambda: count)

    return set_bytes


@pytest.fixture
def needed(machine, screen):
    """Return the JSON of a large run with enough memory."""
    machine(1 << 50)
    return json.loads(screen("--json", *LARGE))


def test_blocks_that_fit_are_kept(needed, facts):
    assert needed["memory_bytes_recomputed"] is None
    assert CHECKPOINTED not in facts(*LARGE)


def test_blocks_too_large_to_keep_are_computed_again(needed, machine, screen):
    size = needed["memory_bytes"]["total"]
    machine(size)
    numbers = json.loads(screen("--json", *LARGE))
    assert numbers["memory_bytes"] == needed["memory_bytes"]
    assert numbers["memory_bytes_recomputed"]["total"] < size
    assert not any("GiB of memory" in text for text in numbers["warnings"])


@pytest.mark.parametrize(
    ("flag", "is_checkpointed"),
    [
        ("--recompute_grad=none", True),
        ("--no-recompute-grad", False),
    ],
)
def test_recompute_grad_decides(needed, machine, facts, flag, is_checkpointed):
    machine(needed["memory_bytes"]["total"])
    assert (CHECKPOINTED in facts(*LARGE, flag)) == is_checkpointed


def test_too_little_memory_names_what_an_accelerator_needs(
    needed, machine, facts
):
    machine(needed["memory_bytes"]["total"] // 100)
    assert "; an accelerator needs" in facts(*LARGE)


def test_stored_checkpoints_are_counted(screen):
    flags = ("--save_checkpoints_steps=10", "--keep_every_n_steps=50")
    text = screen("--json", *flags, "--keep_checkpoint_max=3")
    numbers = json.loads(text)["checkpoints"]
    # A run also saves before its first step. A best checkpoint is written
    # before the previous best checkpoint is deleted.
    assert (numbers["saves"], numbers["kept"]) == (11, 5)
    assert numbers["needed"] == 6 * numbers["checkpoint"]
    text = screen("--json", "--keep_best=loss", "--eval_every_n_steps=50")
    numbers = json.loads(text)["checkpoints"]
    assert numbers["needed"] == (numbers["kept"] + 2) * numbers["checkpoint"]


def test_measured_steps_give_the_time_to_finish(tmp_path, screen):
    numbers = json.loads(screen("--json", "--measure=2", "--measured_steps=3"))
    assert numbers["measured"]["batch_size"] == 2
    assert len(numbers["measured"]["seconds"]) == 3
    assert numbers["measured"]["peak_bytes"] > 100 << 20
    assert numbers["seconds_per_step"] >= 2 * min(
        numbers["measured"]["seconds"]
    )
    assert numbers["seconds_to_finish"] == 100 * numbers["seconds_per_step"]
    assert not os.listdir(tmp_path)


def test_counting_and_building_need_no_tensorflow(arguments, run_python):
    code = (
        "import sys, electra_tf.data.build; from electra_tf.commands import"
        " plan; plan.main(plan.parse_flags(sys.argv));"
        " assert 'tensorflow' not in sys.modules"
    )
    run_python("-c", code, *arguments)
