# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command that says what a run will take."""

import json
import os

import pytest

from electra_tf.commands import plan
from electra_tf.data.manifest import MANIFEST_FORMAT, MANIFEST_NAME


@pytest.fixture
def arguments(tiny_config):
    """The command line of a tiny run."""
    hparams = tiny_config(num_train_steps=100).as_dict()
    return [f"--hparams={json.dumps(hparams)}"]


@pytest.fixture
def screen(arguments, capsys):
    """Runs the command here; returns what it prints."""

    def run(*more):
        plan.main(plan.parse_flags(["plan", *arguments, *more]))
        return capsys.readouterr().out

    return run


def test_the_screen_says_what_the_run_takes_and_warns(screen):
    text = screen()
    assert text.startswith("tiny: ELECTRA, model_size small, small generator")
    assert "100 steps of 4 examples of 16 wordpieces" in text
    assert "Wordpieces a step   64; 6.400e+03 in all" in text
    assert "no records at" in text and "--measure B times some steps" in text
    assert "RoBERTa" in text and "> this run" in text
    numbers, warning = text.split("warning: training would stop: ")
    assert warning.startswith("No record file matches")
    assert max(map(len, numbers.splitlines())) <= 200
    assert len(text.splitlines()) < 45
    text = screen("--num_warmup_steps=100")
    assert "num_warmup_steps 100 is not below num_train_steps 100" in text
    text = screen("--train_batch_size=16777216")
    assert "GiB of memory are needed at train_batch_size 16777216" in text
    assert "> this run" in screen("--num_train_steps=0")


def test_json_holds_the_same_numbers_and_those_of_records(screen, data_dir):
    records = f"--pretrain_tfrecords={data_dir}/pretrain_tfrecords/pre*"
    found = json.loads(screen("--json", records))
    assert found["records"] == {"examples": 51, "exact": True, "files": 3}
    assert found["epochs"] == pytest.approx(400 / 51)
    assert found["obstacles"] == [] == found["warnings"]
    found = json.loads(screen("--json"))
    assert found["tokens"] == 6400 and found["examples_per_step"] == 4
    parameters = found["parameters"]
    kinds = ("generator", "discriminator", "shared")
    assert parameters["total"] == sum(parameters[kind] for kind in kinds)
    assert found["flops"] == 100 * found["flops_per_step"]["total"]
    assert found["epochs"] is None


def test_every_obstacle_is_named_at_once(tmp_path, arguments, screen):
    folder = tmp_path / "records"
    folder.mkdir()
    (folder / "pretrain_data.tfrecord-0").write_bytes(b"cut")
    shard = {"name": "pretrain_data.tfrecord-0", "bytes": 4, "records": 1}
    settings = {"do_lower_case": True, "strip_accents": True}
    manifest = {"format": MANIFEST_FORMAT, "complete": False, "num_jobs": 2}
    manifest["jobs"] = {"0": {"shards": [shard], "held_out_shards": []}}
    manifest["settings"] = {"max_seq_length": 64, **settings}
    manifest["vocabulary"] = {"hash": "another", "size": 300}
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest))
    run = tmp_path / "models" / "tiny"
    run.mkdir(parents=True)
    (run / "checkpoint").touch()
    (run / "config.json").write_text('{"embedding_size": 9}')
    flags = f"--pretrain_tfrecords={folder}/*.tfrecord* --model_dir={run}"
    flags += " --vocab_size=100 --init_checkpoint=nowhere"
    flags += " --eval_every_n_steps=10 --eval_tfrecords=absent"
    found = json.loads(screen("--json", *flags.split()))
    expected = [
        "are not complete (1 of 2",
        "records are length 64, max_seq_length is 16",
        "were built with another vocabulary (300 tokens)",
        "has not the 4 bytes that",
        "No record file matches eval_tfrecords = 'absent'",
        "holds 200 tokens but the model has 100",
        "init_checkpoint nowhere: no such folder or checkpoint",
        "embedding_size: 9 -> 8",
    ]
    for obstacle, text in zip(found["obstacles"], expected, strict=True):
        assert text in obstacle
    warned = [f"training would stop: {text}" for text in found["obstacles"]]
    assert set(warned) <= set(found["warnings"])


def test_blocks_too_large_to_keep_are_computed_again(screen, monkeypatch):
    again = "computed again, in about 1.4 times the time"
    flags = ("--train_batch_size=65536", "--max_seq_length=32")
    monkeypatch.setattr(plan, "machine_memory", lambda: 1 << 50)
    assert again not in screen(*flags)
    kept = json.loads(screen("--json", *flags))
    need = kept["memory_bytes"]["total"]
    assert kept["memory_bytes_recomputed"] is None
    monkeypatch.setattr(plan, "machine_memory", lambda: need)
    assert again in screen(*flags)
    found = json.loads(screen("--json", *flags))
    assert found["memory_bytes"] == kept["memory_bytes"]
    assert found["memory_bytes_recomputed"]["total"] < need
    assert not any("GiB of memory" in text for text in found["warnings"])
    assert again not in screen(*flags, "--no-recompute-grad")
    assert again in screen(*flags, "--recompute_grad=none")
    monkeypatch.setattr(plan, "machine_memory", lambda: need // 100)
    assert "; an accelerator needs" in screen(*flags)


def test_checkpoints_that_are_kept_are_counted(screen):
    flags = ("--save_checkpoints_steps=10", "--keep_every_n_steps=50")
    text = screen("--json", *flags, "--keep_checkpoint_max=3")
    found = json.loads(text)["checkpoints"]
    # One before the first step, and the best, written beside the one before.
    assert (found["saves"], found["kept"]) == (11, 5)
    assert found["needed"] == 6 * found["checkpoint"]
    text = screen("--json", "--keep_best=loss", "--eval_every_n_steps=50")
    found = json.loads(text)["checkpoints"]
    assert found["needed"] == (found["kept"] + 2) * found["checkpoint"]


def test_measured_steps_give_the_time_to_finish(tmp_path, screen):
    found = json.loads(screen("--json", "--measure=2", "--measured_steps=3"))
    assert found["measured"]["batch_size"] == 2
    assert len(found["measured"]["seconds"]) == 3
    assert found["measured"]["peak_bytes"] > 100 << 20
    assert found["seconds_per_step"] >= 2 * min(found["measured"]["seconds"])
    assert found["seconds_to_finish"] == 100 * found["seconds_per_step"]
    assert not os.listdir(tmp_path)


def test_counting_and_building_need_no_tensorflow(arguments, run_python):
    code = (
        "import sys, electra_tf.data.build; from electra_tf.commands import"
        " plan; plan.main(plan.parse_flags(sys.argv));"
        " assert 'tensorflow' not in sys.modules"
    )
    run_python("-c", code, *arguments)
