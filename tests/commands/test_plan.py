# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command that says what a run will take."""

import json
import os
import subprocess
import sys

import pytest

from electra_tf.commands import plan
from electra_tf.data.records import ExampleEncoder, frame_record

TINY = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}


@pytest.fixture
def arguments(tmp_path, tiny_vocab):
    """The command line of a tiny run."""
    hparams = {
        "vocab_file": tiny_vocab,
        "vocab_size": 200,
        "max_seq_length": 16,
        "train_batch_size": 4,
        "num_train_steps": 100,
        "num_warmup_steps": 10,
        "model_hparam_overrides": TINY,
    }
    return [
        f"--data-dir={tmp_path}",
        "--model-name=tiny",
        f"--hparams={json.dumps(hparams)}",
    ]


@pytest.fixture
def screen(arguments, capsys):
    """Runs the command here; returns what it prints."""

    def run(*more):
        argv = ["plan", *arguments, *more]
        plan.main(plan.parse_flags(argv))
        return capsys.readouterr().out

    return run


def write_records(directory):
    """Records of 16 tokens, without a manifest."""
    directory.mkdir()
    encoder = ExampleEncoder(16, cls_id=2, sep_id=3, vocab_size=200)
    payloads = [encoder.encode([*range(10, 20)], [])] * 50
    path = directory / "pretrain_data.tfrecord-0-of-1"
    path.write_bytes(b"".join(map(frame_record, payloads)))


def test_the_screen_says_what_the_run_takes(screen):
    text = screen()
    assert text.startswith("tiny: ELECTRA, model_size small, small generator")
    assert "100 steps of 4 examples of 16 wordpieces" in text
    assert "Wordpieces a step     64; 6.400e+03 in all" in text
    assert "no records at" in text
    assert "--measure times some steps" in text
    for name in ("ELECTRA-Small", "BERT-Large", "RoBERTa", "> this run"):
        assert name in text
    assert max(map(len, text.splitlines())) <= 200
    assert len(text.splitlines()) < 45


def test_json_holds_the_same_numbers(screen):
    found = json.loads(screen("--json", "--flops_per_second=1e6"))
    assert found["tokens"] == 6400
    assert found["examples_per_step"] == 4
    parameters = found["parameters"]
    assert parameters["total"] == (
        parameters["generator"]
        + parameters["discriminator"]
        + parameters["shared"]
    )
    assert found["flops"] == 100 * found["flops_per_step"]["total"]
    assert found["seconds_to_finish"] == pytest.approx(found["flops"] / 1e6)
    assert found["epochs"] is None
    assert found["records_problem"].startswith("No record file matches")
    assert found["warnings"] == []


def test_records_without_a_manifest_are_counted(tmp_path, screen):
    write_records(tmp_path / "pretrain_tfrecords")
    found = json.loads(screen("--json"))
    assert found["records"] == {"examples": 50, "exact": True, "files": 1}
    assert found["epochs"] == 8.0  # 100 steps of 4, of 50
    assert found["records_problem"] is None
    text = screen("--max_seq_length=32")
    assert "warning: training would stop:" in text
    text = screen("--num_train_steps=1300")
    assert "warning: each example is seen 104 times" in text


def test_settings_that_cannot_be_meant_are_warned_of(screen):
    text = screen("--num_warmup_steps=100")
    assert "num_warmup_steps 100 is not below num_train_steps 100" in text
    text = screen("--train_batch_size=67108864")
    assert "GiB of memory are needed at train_batch_size 67108864" in text
    assert "--gradient_accumulation_steps=" in text


def test_blocks_are_computed_again_where_keeping_them_takes_too_much(
    screen, monkeypatch
):
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
    assert again not in screen(*flags, "--recompute_grad=false")
    assert again not in screen(*flags, "--no-recompute-grad")
    assert again in screen(*flags, "--recompute_grad=none")
    monkeypatch.setattr(plan, "machine_memory", lambda: need // 100)
    assert "; an accelerator needs" in screen(*flags)


def test_checkpoints_that_are_kept_are_counted(screen):
    found = json.loads(
        screen(
            "--json",
            "--save_checkpoints_steps=10",
            "--keep_every_n_steps=50",
            "--keep_checkpoint_max=3",
        )
    )
    assert found["checkpoints"]["saves"] == 10
    assert found["checkpoints"]["kept"] == 5


def test_measured_steps_give_the_time_to_finish(tmp_path, screen):
    write_records(tmp_path / "pretrain_tfrecords")
    before = sorted(os.listdir(tmp_path))
    found = json.loads(screen("--json", "--measure=2"))
    measured = found["measured"]
    assert measured["batch_size"] == 4 and len(measured["seconds"]) == 2
    assert measured["real_batches"] and not measured["made_up_vocabulary"]
    assert measured["matmul_flops_per_second"] > 0
    assert found["seconds_to_finish"] == pytest.approx(
        100 * found["seconds_per_step"]
    )
    assert sorted(os.listdir(tmp_path)) == before


def test_without_records_and_vocabulary_batches_are_random(tmp_path, screen):
    text = screen(
        "--measure=1",
        "--measure_batch_size=2",
        f"--vocab_file={tmp_path / 'none.txt'}",
    )
    assert "1 steps of 2 examples, random (made-up vocabulary)" in text
    assert "scaled to 4 examples" in text
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "status", "message"),
    [
        ("--mask_probe=0.2", 2, "Nearest: --mask_prob"),
        ("--measure=0", 2, "must be above 0"),
        ("--flops_per_second=fast", 2, "invalid float value"),
        ("--measure_batch_size=4", 2, "needs --measure"),
        ("--train_batch_size=0", 2, "train_batch_size"),
        ("--model_size=huge", 2, "must be one of small, base, large"),
    ],
)
def test_mistakes_are_one_line(arguments, wrong, status, message):
    command = [sys.executable, "-m", "electra_tf", "plan", *arguments]
    done = subprocess.run([*command, wrong], capture_output=True, text=True)
    assert done.returncode == status
    assert message in done.stderr
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr


def test_counting_needs_no_tensorflow(arguments):
    code = (
        "import sys; from electra_tf.commands import plan;"
        " plan.main(plan.parse_flags(sys.argv));"
        " assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
