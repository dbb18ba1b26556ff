# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
import io
import pathlib
import pickle
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints.formats import open_weights
from electra_tf.pretraining import collapse, masking, runner
from electra_tf.training.checkpointing import read_config
from electra_tf.training.console import Console
from electra_tf.training.logs import read_rows
from electra_tf.training.result_files import write_results
from tests.conftest import read_json, refused
from tests.pretraining.conftest import SIZES

pytestmark = pytest.mark.slow  # Whole runs.


@pytest.fixture
def start(data_dir, tiny_config, tmp_path):
    """Return a function that runs with changed settings: (result, output)."""

    def run(**hparams):
        settings = {
            "num_train_steps": 4,
            "model_hparam_overrides": SIZES | {"num_hidden_layers": 1},
            "model_dir": str(tmp_path / "model"),
            "results_txt": str(tmp_path / "model/results/r.txt"),
            "results_pkl": str(tmp_path / "model/results/r.pkl"),
            "results_json": str(tmp_path / "model/results/r.json"),
        }
        config = tiny_config(data_dir=data_dir, **settings | hparams)
        output = io.StringIO()
        return runner.run(config, Console(output)), output.getvalue()

    return run


@pytest.fixture(scope="module")
def finished_model(tmp_path_factory):
    """Return the folder of a run, which the first `finished` writes."""
    return tmp_path_factory.mktemp("finished") / "model"


@pytest.fixture
def finished(start, finished_model, tmp_path):
    """Copy a finished run of four steps to `tmp_path/model`."""
    if not finished_model.exists():
        start(model_dir=str(finished_model))
    shutil.copytree(finished_model, tmp_path / "model")


def test_the_start_page_shows_settings_and_warnings(start):
    result, output = start(num_warmup_steps=9)
    assert "num_warmup_steps:" in output
    assert "adam_bias_correction:" not in output
    assert "have defaults; to list them, pass --print_config" in output
    assert len(output[: output.index("Running training")].splitlines()) < 40
    assert "OneDeviceStrategy, 1 replica" in output
    assert "4 steps of 4 examples = 16 examples" in output
    assert "WARNING: num_warmup_steps 9" in output
    assert result["global_step"] == 4 and result["train_learning_rate"] == 0.0
    assert np.isfinite(result["train_loss"])


def test_a_finished_run_takes_more_steps_and_other_data(start, finished):
    _, output = start()
    assert "no steps remain" in output and "--overwrite" in output
    result, output = start(num_train_steps=6)
    assert result["global_step"] == 6
    assert "model.ckpt-4 (step 4)" in output
    assert "num_train_steps: 4 -> 6" in output
    assert "from the start" not in output
    result, output = start(train_batch_size=2, num_train_steps=7)
    assert result["global_step"] == 7
    assert "train_batch_size: 4 -> 2" in output
    assert "the records from the start again" in output


def test_other_files_of_a_pattern_are_reported(
    start, data_dir, tmp_path, monkeypatch
):
    folder = shutil.copytree(data_dir / "pretrain_tfrecords", tmp_path / "own")
    data_hparams = {"pretrain_tfrecords": f"{folder}/pretrain_data.tfrecord*"}
    start(**data_hparams)
    first, *_ = sorted(folder.glob("pretrain_data.tfrecord*"))
    shutil.copy(first, folder / "pretrain_data.tfrecord-more")
    result, output = start(**data_hparams, num_train_steps=6)
    assert result["global_step"] == 6
    assert "files of pretrain_tfrecords: " in output
    # A start that is killed before it saves does not change this result.
    first.rename(folder / "gone")
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(runner.PretrainingRun, "announce", lambda self: 1 / 0)
        start(**data_hparams, num_train_steps=7)
    _, output = start(**data_hparams, num_train_steps=7)
    assert "the records from the start again" in output
    assert "from the start" not in start(**data_hparams, num_train_steps=8)[1]
    # A truncated checkpoint is still reported.
    data = tmp_path / "model/model.ckpt-8.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    refused("truncated", start, **data_hparams, num_train_steps=9)


def test_an_initial_checkpoint_of_a_continued_run_is_warned_of(start, tmp_path):
    start(model_dir=str(tmp_path / "other"))
    start()
    initial = str(tmp_path / "other")
    _, output = start(init_checkpoint=initial, num_train_steps=5)
    assert (
        f"WARNING: init_checkpoint {initial} is not read, because the run"
        " continues from its own step 4."
    ) in output


def test_counts_of_earlier_data_are_reported(start, data_dir, tmp_path):
    folder = shutil.copytree(data_dir / "pretrain_tfrecords", tmp_path / "own")
    settings = {
        "pretrain_tfrecords": f"{folder}/pretrain_data.tfrecord*",
        "unigram_steps": 2,
    }
    start(**settings)
    _, output = start(**settings, train_batch_size=2, num_train_steps=5)
    assert "the records from the start again" in output
    assert "the earlier data" not in output
    first, *_ = sorted(folder.glob("pretrain_data.tfrecord*"))
    shutil.copy(first, folder / "pretrain_data.tfrecord-more")
    _, output = start(**settings, train_batch_size=2, num_train_steps=6)
    assert (
        "token_counts.json has the token counts of the earlier data" in output
    )


def test_counts_of_records_are_reported_if_text_follows(start, tmp_path):
    start(unigram_steps=2)
    text = tmp_path / "text.txt"
    text.write_text("the of and\nin to\n\n" * 100)
    settings = {"unigram_steps": 2, "pretrain_text": str(text)}
    _, output = start(**settings, num_train_steps=5)
    report = "token_counts.json has the token counts of the earlier data"
    assert report in output
    _, output = start(**settings, num_train_steps=6)
    assert report not in output


def test_counts_of_earlier_data_are_reported_if_they_are_not_used(
    start, tmp_path
):
    start(unigram_steps=2)
    text = tmp_path / "text.txt"
    text.write_text("the of and\nin to\n\n" * 100)
    settings = {"pretrain_text": str(text)}
    _, output = start(**settings, num_train_steps=5)
    assert "by which a later start with unigram_steps would draw" in output


def test_counts_of_the_current_data_are_not_reported(start, tmp_path, capsys):
    start()
    text = tmp_path / "text.txt"
    text.write_text("the of and\nin to\n\n" * 100)
    settings = {"pretrain_text": str(text), "unigram_steps": 2}
    _, output = start(**settings, num_train_steps=5)
    assert "Counting the tokens" in capsys.readouterr().out
    assert "the earlier data" not in output


def test_changed_model_hparams_are_named(start, finished, tmp_path):
    with pytest.raises(UserError, match="embedding_size: 8 -> 4"):
        start(embedding_size=4, num_train_steps=6)
    (tmp_path / "model" / "config.json").unlink()
    shapes = r"word_embeddings: .*\[200, 8\](.|\n)*embedding_size"
    refused(shapes, start, embedding_size=4, num_train_steps=6)


def test_different_held_out_data_have_their_own_best_checkpoint(
    start, tmp_path
):
    hparams = {"keep_best": "loss", "eval_every_n_steps": 2}
    start(**hparams, num_eval_steps=2)
    _, output = start(
        **hparams, num_eval_steps=3, num_train_steps=6, learning_rate=1.0
    )
    assert "The best checkpoint is chosen again" in output
    assert read_json(tmp_path / "model/best/best.json")["step"] == 6


@pytest.mark.parametrize(
    ("metric", "names"),
    [
        ("masked_lm_loss", {"mask_prob"}),
        ("disc_auc", {"mask_prob", "temperature"}),
        ("loss", {"mask_prob", "temperature", "disc_weight"}),
    ],
)
def test_a_metric_depends_on_these_settings(tiny_config, metric, names):
    run = object.__new__(runner.PretrainingRun)
    run.config = tiny_config(mask_prob=0.2, disc_weight=3.0, temperature=0.5)
    settings = run.settings_of_metric(metric)
    values = {"mask_prob": 0.2, "disc_weight": 3.0, "temperature": 0.5}
    assert values.items() & settings.items() == {(n, values[n]) for n in names}


def test_another_weight_of_a_loss_has_a_best_of_its_own(start, tmp_path):
    hparams = {"keep_best": "loss", "eval_every_n_steps": 4}
    start(**hparams)
    _, output = start(**hparams, disc_weight=500.0, num_train_steps=5)
    assert "with other settings of the metric" in output
    best = read_json(tmp_path / "model/best/best.json")
    assert best["step"] == 5 and best["settings"]["disc_weight"] == 500.0


@pytest.mark.parametrize(
    ("changes", "steps"),
    [
        ({}, [4]),
        ({"learning_rate": 1e-4}, [4]),
        ({"disc_weight": 500.0}, []),
        ({"num_eval_steps": 3}, []),
        ({"mask_prob": 0.3}, []),
    ],
)
def test_only_an_evaluation_with_equal_settings_can_be_the_best(
    start, tmp_path, changes, steps
):
    """The run continues with keep_best after its evaluation at step 4."""
    start(eval_every_n_steps=4)
    hparams = {"keep_best": "loss", "eval_every_n_steps": 4}
    _, output = start(**hparams, **changes)
    best = sorted((tmp_path / "model").glob("best/best.json"))
    assert [read_json(path)["step"] for path in best] == steps
    message = "the evaluation at step 4 is not compared with later ones"
    assert (message in output) == (not steps)


def test_other_training_data_do_not_change_an_evaluation(
    start, data_dir, tmp_path
):
    hparams = {"keep_best": "loss", "eval_every_n_steps": 4}
    records = data_dir / "pretrain_tfrecords"
    hparams["eval_tfrecords"] = f"{records}/eval_data.tfrecord*"
    start(**hparams)
    folder = shutil.copytree(records, tmp_path / "own")
    other = f"{folder}/pretrain_data.tfrecord*"
    _, output = start(**hparams, pretrain_tfrecords=other, num_train_steps=5)
    assert "is not compared" not in output


def test_the_best_model_of_an_abandoned_run_is_replaced(start, tmp_path):
    hparams = {"keep_best": "loss", "eval_every_n_steps": 2}
    start(**hparams)
    for path in (tmp_path / "model").glob("*ckpt-*"):
        path.unlink()
    (tmp_path / "model" / "checkpoint").unlink()
    _, output = start(**hparams, seed=3, num_train_steps=2, learning_rate=0.0)
    assert "before this run started at step 0" in output
    assert read_json(tmp_path / "model/best/best.json")["step"] == 2


def test_overwrite_deletes_this_model_only(start, finished, tmp_path):
    # Wrong data or sizes are refused before anything is deleted.
    with pytest.raises(UserError, match="none"):
        start(overwrite=True, pretrain_tfrecords=str(tmp_path / "none*"))
    with pytest.raises(UserError, match="num_attention_heads"):
        start(overwrite=True, model_hparam_overrides={"hidden_size": 200})
    # The initial checkpoint must not be deleted.
    hparams = {"init_checkpoint": str(tmp_path / "model"), "overwrite": True}
    refused("--overwrite would delete init_checkpoint", start, **hparams)
    assert (tmp_path / "model" / "checkpoint").exists()
    (tmp_path / "neighbour").mkdir()
    results = tmp_path / "model/results/sst_results.txt"  # of fine-tuning
    results.parent.mkdir(exist_ok=True)
    results.write_text("")
    refused("contains .*results/sst_results", start, overwrite=True)
    results.unlink()
    # Files that the original leaves are deleted, too.
    left = ("events.out.tfevents.1.host", "graph.pbtxt", "eval/events")
    paths = [tmp_path / "model" / name for name in left]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    result, output = start(overwrite=True, embedding_size=4)
    assert not any(path.exists() for path in paths)
    assert result["global_step"] == 4
    assert f"deleted {tmp_path / 'model'}" in output
    assert (tmp_path / "neighbour").exists()
    assert read_config(str(tmp_path / "model"))["embedding_size"] == 4


@pytest.mark.parametrize("how", ["init_checkpoint", "model_dir"])
def test_a_different_vocabulary_is_refused_before_training(
    how, start, finished, tmp_path, tiny_vocab
):
    other = tmp_path / "other.txt"
    text = pathlib.Path(tiny_vocab).read_text()
    other.write_text(text.replace("\nthe\n", "\nThe\n"))
    hparams = {"model_dir": str(tmp_path / "new"), how: str(tmp_path / "model")}
    with pytest.raises(UserError, match=r"other.txt:\d+: found 'The'.*'the'"):
        start(vocab_file=str(other), **hparams)
    assert not (tmp_path / "new").exists()


def test_a_vocab_size_that_contradicts_the_vocabulary_is_refused(
    data_dir, tiny_vocab, tmp_path
):
    hparams = {"vocab_file": tiny_vocab, "model_dir": str(tmp_path / "model")}
    config = PretrainingConfig.create("tiny", str(data_dir), **hparams)
    refused(r"200 tokens.*30522 \(default\)", runner.run, config)
    assert not (tmp_path / "model").exists()


def test_checkpoints_that_are_not_read_are_named(start, finished, tmp_path):
    (tmp_path / "model" / "checkpoint").unlink()
    _, output = start(num_train_steps=1)
    assert "model.ckpt-4.index" in output and "starts at step 0" in output


def test_one_class_in_several_rows_is_reported(start, tmp_path, monkeypatch):
    monkeypatch.setattr(collapse, "predicts_one_class", lambda result: True)
    _, output = start(num_train_steps=4, eval_every_n_steps=1)
    rows = read_rows(str(tmp_path / "model" / "eval_log.jsonl"))
    counted = [(row["step"], row["one_class_evaluations"]) for row in rows]
    assert counted == [(1, 1), (2, 2), (3, 3), (4, 4)]
    warning = "WARNING: the discriminator predicted the majority class"
    assert output.count(warning) == 2
    assert output.index("step 2:") < output.index(warning)
    assert (tmp_path / "model" / "results" / "r.json").exists()


def test_random_labels_are_reported(start, monkeypatch):
    corrupt = masking.corrupt_inputs

    def with_labels(*arguments, **settings):
        corrupted = corrupt(*arguments, **settings)
        drawn = tf.random.uniform(tf.shape(corrupted.is_fake_tokens)) < 0.2
        return corrupted._replace(is_fake_tokens=tf.cast(drawn, tf.int32))

    monkeypatch.setattr(masking, "corrupt_inputs", with_labels)
    _, output = start(
        num_train_steps=130,
        log_every_n_steps=10,
        learning_rate=5e-3,
        generator_hidden_size=1.0,
        collapse_window=60,
    )
    warned = re.findall(r"WARNING: over the last (\d+) steps the disc", output)
    assert {"66", "60"} <= set(warned)  # The first window ends with a row.
    assert "The generator has 1 of the discriminator's width" in output
    assert "Lower generator_hidden_size" in output


def test_evaluations_are_equal_in_all_files(start, finished, tmp_path):
    first, _ = start(do_train=False, do_eval=True)
    second, output = start(do_train=False, do_eval=True)
    assert first == second
    assert "Replaced the earlier results" in output
    results = tmp_path / "model" / "results"
    assert pickle.loads((results / "r.pkl").read_bytes()) == first
    lines = [f"{name} = {first[name]}\n" for name in sorted(first)]
    assert (results / "r.txt").read_text() == "".join(lines)
    record = read_json(results / "r.json")
    assert record["time"].endswith("+00:00")
    assert record["metrics"] == first and record["step"] == 4
    assert record["config"]["num_train_steps"] == 4
    assert len(list(results.iterdir())) == 3
    (tmp_path / "file").write_text("")
    blocked = str(tmp_path / "file" / "r.txt")
    with pytest.raises(UserError, match="written.*checkpoints are complete"):
        start(do_train=False, do_eval=True, results_txt=blocked)


def test_an_evaluation_alone_uses_the_settings_of_the_run(
    start, data_dir, tmp_path
):
    mask = {"mask_prob": 0.4, "max_seq_length": 16, "num_eval_steps": 3}
    text = tmp_path / "text.txt"
    text.write_text("the of and in\n" * 90)
    start(**mask, eval_text=str(text))
    records = mask["eval_tfrecords"] = f"{data_dir}/pretrain_tfrecords/eval*"
    expected, _ = start(do_train=False, do_eval=True, **mask)
    hparams = {"model_dir": str(tmp_path / "model"), "do_eval": True}
    hparams |= {"do_train": False, "eval_tfrecords": records}
    config = PretrainingConfig.create("other", str(data_dir), **hparams)
    assert runner.run(config, Console(io.StringIO())) == expected


@pytest.fixture
def held_out(data_dir):
    return data_dir / "pretrain_tfrecords" / "eval_data.tfrecord-0-of-1"


@pytest.fixture
def damaged(held_out, tmp_path, monkeypatch):
    """Return a record file with a wrong checksum, which no check reads."""
    monkeypatch.setattr(runner, "check_records", lambda *_, **__: None)
    content = bytearray(held_out.read_bytes())
    content[-30] ^= 1  # Inside the last record.
    path = tmp_path / "damaged"
    path.write_bytes(content)
    return path


RANK = "disc_auc_frequency_rank"
LEFT_OUT = rf"WARNING: the baseline {RANK} is left out, because .*counted: "


@pytest.mark.usefixtures("finished", "damaged")
@pytest.mark.parametrize(
    ("training", "reason"),
    [
        ("damaged", "a record for counting cannot be read: the file is corr"),
        ("no_file", "No record file matches pretrain_tfrecords"),
    ],
)
def test_an_evaluation_without_readable_training_records_lacks_a_baseline(
    start, held_out, tmp_path, training, reason
):
    evaluation = {"do_train": False, "do_eval": True}
    evaluation["eval_tfrecords"] = str(held_out)
    expected, output = start(**evaluation)
    assert RANK in expected and "WARNING" not in output
    records = str(tmp_path / training)
    result, output = start(**evaluation, pretrain_tfrecords=records)
    assert result == {n: v for n, v in expected.items() if n != RANK}
    assert re.search(LEFT_OUT + reason, output)


@pytest.mark.usefixtures("finished")
def test_an_evaluation_may_have_a_length_that_training_records_lack(
    start, tmp_path
):
    text = tmp_path / "text.txt"
    text.write_text("the of and in\n" * 90)
    evaluation = {"do_train": False, "do_eval": True, "max_seq_length": 8}
    result, output = start(**evaluation, eval_text=str(text))
    assert result["examples"] > 0 and RANK not in result
    assert re.search(LEFT_OUT + ".* differs from max_seq_length", output)


def test_a_masked_lm_warns_of_no_baseline_that_it_never_has(
    start, held_out, tmp_path
):
    masked_lm = {"electra_objective": False}
    start(**masked_lm, num_train_steps=2)
    result, output = start(
        **masked_lm,
        do_train=False,
        do_eval=True,
        eval_tfrecords=str(held_out),
        pretrain_tfrecords=str(tmp_path / "no_file"),
    )
    assert result["masked_lm_loss"] > 0
    assert "left out" not in output


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize("training", ["whole", "damaged_too", "no_file"])
def test_an_evaluation_alone_names_the_damaged_file_that_it_reads(
    start, held_out, damaged, tmp_path, training
):
    shutil.copy(held_out, tmp_path / "whole")
    shutil.copy(damaged, tmp_path / "damaged_too")
    refused(
        rf"record for evaluation .* {damaged}: record 9 .*corrupt payload",
        start,
        do_train=False,
        do_eval=True,
        num_eval_steps=3,  # all ten examples
        eval_tfrecords=str(damaged),
        pretrain_tfrecords=str(tmp_path / training),
    )


def test_original_checkpoints_can_be_evaluated(golden_dir, tmp_path):
    recorded = golden_dir / "eval_tiny"
    config = PretrainingConfig.create(
        "ckpt_pretrain_tiny",
        str(recorded),
        model_dir=str(golden_dir / "ckpt_pretrain_tiny"),
        vocab_file=str(golden_dir / "vocab.txt"),
        embedding_size=16,
        generator_hidden_size=0.5,
        model_hparam_overrides={
            "hidden_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
        },
        eval_batch_size=16,
        num_eval_steps=25,
        shuffle_buffer_size=4000,  # samples all records
        do_train=False,
        do_eval=True,
        results_txt=str(tmp_path / "r.txt"),
        results_pkl=str(tmp_path / "r.pkl"),
        results_json=str(tmp_path / "r.json"),
    )
    result = runner.run(config, Console(io.StringIO()))
    assert result["global_step"] == 50
    # Three recorded runs of the original have losses of 9.808517 to 9.810513
    # and AUCs of 0.9866 to 0.9876. This run masks different positions and reads
    # fewer batches.
    assert result["masked_lm_loss"] == pytest.approx(9.81, abs=0.02)
    assert result["disc_auc"] == pytest.approx(0.987, abs=0.003)
    assert result["disc_accuracy"] == pytest.approx(0.925, abs=0.015)
    assert pathlib.Path(config.results_txt).exists()
    undefined = {"disc_auc": float("nan")}
    write_results(Console(io.StringIO()), config, 1, undefined)
    assert "NaN" not in pathlib.Path(config.results_json).read_text()


@pytest.mark.heavy
@pytest.mark.usefixtures("with_pictures")
def test_xla_programs_train_and_evaluate_with_all_switches(start):
    """Check that XLA runs end; their draws differ from those without XLA."""
    result, _ = start(
        train_batch_size=2,
        eval_batch_size=2,
        num_train_steps=2,
        jit_compile=True,
        gradient_accumulation_steps=2,
        recompute_grad=True,
        mixed_precision="bf16",
        eval_every_n_steps=2,
        num_eval_steps=1,
    )
    assert result["global_step"] == 2
    assert np.isfinite([result["train_loss"], result["loss"]]).all()


def test_an_initial_checkpoint_provides_the_correction_head(start, tmp_path):
    first = str(tmp_path / "first")
    start(model_dir=first, correction_weight=5.0, mask_prob=0.4)
    _, output = start(
        init_checkpoint=first,
        correction_weight=5.0,
        mask_prob=0.4,
        learning_rate=0.0,
    )
    assert "0 missing" in output
    head = "correction_predictions/dense/kernel"
    opened = [
        open_weights(path, with_training_state=True)
        for path in (first, str(tmp_path / "model"))
    ]
    before, after = (weights.read(head) for weights in opened)
    np.testing.assert_array_equal(before, after)
