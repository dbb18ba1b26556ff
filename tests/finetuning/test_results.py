# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Results are written whole and never lost; models state their settings."""

import dataclasses
import io
import json
import math
import os
import pathlib
import pickle
import re
import shutil
import types

import numpy as np
import pytest

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.files.atomic import write_atomically
from electra_tf.finetuning.early_stopping import patience_is_over
from electra_tf.finetuning.initial_checkpoint import open_initial_checkpoint
from electra_tf.finetuning.predictions import write_test_outputs
from electra_tf.finetuning.results import ResultsFiles
from electra_tf.finetuning.trial_records import TrialRecord
from electra_tf.training.console import Console
from tests.conftest import refused


def _record(trial, value, collapsed):
    return TrialRecord(
        trial=trial,
        seed=trial,
        model_dir="m",
        global_step=3,
        results={"sts": {"pearson": value, "loss": 0.25}},
        details={"sts": {"extra": 1.0}},
        other_splits={},
        collapsed={"sts": "every prediction is 0.5"} if collapsed else {},
    )


@pytest.fixture
def two_trials(finetuning_config):
    """Return a config, records of an undefined and a defined metric, files."""
    config = finetuning_config("sts")
    results = ResultsFiles(config, Console(io.StringIO()), [])
    records = [_record(1, math.nan, True), _record(2, 50.0, False)]
    results.metrics["sts"] = "pearson"
    results.write(records)
    return config, records, results


@pytest.mark.usefixtures("with_pictures")
def test_undefined_metrics_survive_reading_back(two_trials):
    _, records, results = two_trials
    actual = results.earlier_trials()
    assert math.isnan(actual[0].results["sts"]["pearson"])
    assert actual[1] == records[1]


def test_statistics_leave_out_undefined_metrics(two_trials):
    config, _, _ = two_trials
    written = json.loads(open(config.results_json).read())
    assert written["collapsed_trials"] == [1] and written["best_trial"] == 2
    assert written["statistics"]["sts"]["extra"]["mean"] == 1.0
    assert written["metrics"] == {"sts": "pearson"}
    pickled = pickle.loads(open(config.results_pkl, "rb").read())
    assert list(pickled[1]["sts"]) == ["pearson", "loss"]


def test_results_of_another_threshold_are_refused(two_trials):
    config, _, _ = two_trials
    other = dataclasses.replace(config, qa_na_threshold=1.0)
    with pytest.raises(UserError, match="qa_na_threshold: .* -> 1.0"):
        ResultsFiles(other, Console(io.StringIO()), []).earlier_trials()


def test_results_are_put_aside_under_different_names(two_trials):
    config, records, _ = two_trials
    evaluation = dataclasses.replace(config, do_train=False)
    earlier, exist = [], []
    for _ in range(2):
        again = ResultsFiles(evaluation, Console(io.StringIO()), [])
        earlier += again.earlier_trials()
        exist.append(os.path.exists(config.results_json))
        again.write(records[1:])
    assert earlier == [] and exist == [True, True]
    aside = [config.results_json + end for end in (".before", ".before2")]
    counts = [len(json.loads(open(path).read())["trials"]) for path in aside]
    assert counts == [2, 1]


def test_a_file_without_results_is_refused(two_trials):
    config, _, results = two_trials
    with open(config.results_json, "w") as file:
        file.write("[]")
    refused("not a results file", results.earlier_trials)


def _changed(content, path, value):
    """Return a copy of nested JSON with a value at a path, or without it."""
    if not path:
        return value
    first, *rest = path
    copy = content.copy()
    if not rest and value is ABSENT:
        del copy[first]
        return copy
    old = copy[first] if rest else None
    copy[first] = _changed(old, rest, value)
    return copy


ABSENT = object()
FIELDS = [field.name for field in dataclasses.fields(TrialRecord)]
STS = {"pearson": None, "loss": 0.25}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["format"], 2, "format is '2'; expected 1"),
        (["format"], ABSENT, "format is missing"),
        (["config"], ABSENT, "config is missing; expected an object"),
        (["config"], [], "config is"),
        (["config", "data_dir"], 5, "config is .* with the text data_dir"),
        (["data"], [], "data is"),
        (["trials"], ABSENT, "trials is missing; expected a list of"),
        (["trials"], {}, "trials is"),
        (["trials", 0], [], "trials is"),
        (["trials", 1, "trial"], 1, r"trials are \[1, 1\]; expected each"),
        (["trials", 1, "trial"], 0, r"trials\[1\]: trial is '0'"),
        (["trials", 1, "trial"], True, "trial is 'True'"),
        (["trials", 1, "more"], 1, "the fields more; expected only trial, "),
        (["trials", 1, "results"], [], r"trials\[1\]: results is '\[\]'"),
        (["trials", 1, "results", "sts"], [], "results is"),
        (["trials", 1, "results", "sts", "pearson"], "5", "results is"),
        (["trials", 1, "results", "sts", "pearson"], ABSENT, "the metrics"),
        (["trials", 1, "results"], {"cola": STS}, "the metrics {'cola'"),
        (["trials", 0, "results"], {}, "expected the metrics at least one"),
        (["trials", 1, "details", "sts"], ABSENT, r"the tasks \[\]"),
        (["trials", 1, "collapsed"], {"sts": 5}, "collapsed is"),
    ]
    + [
        (["trials", 1, name], ABSENT, f"{name} is missing")
        for name in FIELDS
        if name != "baselines"
    ]
    + [(["trials", 1, name], None, f"{name} is") for name in FIELDS],
)
def test_a_damaged_results_file_is_refused(two_trials, path, value, message):
    config, _, results = two_trials
    file = pathlib.Path(config.results_json)
    written = json.loads(file.read_text())
    file.write_text(json.dumps(_changed(written, path, value)))
    remedy = "Move the file away, or pass --overwrite"
    refused(
        rf"^{re.escape(str(file))}: .*{message}.*{remedy}",
        results.earlier_trials,
    )


@pytest.mark.parametrize("text", ["", "{", "5", '{"a": 1, "a": 2}'])
def test_an_error_of_the_json_is_not_quoted(two_trials, text):
    config, _, results = two_trials
    pathlib.Path(config.results_json).write_text(text)
    with pytest.raises(UserError) as error:
        results.earlier_trials()
    assert str(error.value).startswith(f"{config.results_json}: ")
    assert "UserError" not in str(error.value)
    assert str(error.value).count(config.results_json) == 1


def test_results_of_earlier_versions_have_no_baselines(two_trials):
    config, records, results = two_trials
    file = pathlib.Path(config.results_json)
    written = json.loads(file.read_text())
    for name in (["trials", 1, "baselines"], ["data"]):
        written = _changed(written, name, ABSENT)
    file.write_text(json.dumps(written))
    assert results.earlier_trials()[1] == records[1]


@pytest.mark.usefixtures("with_pictures")
def test_trials_of_other_data_or_description_are_refused(describe):
    files = {"train.tsv": "text\tstars\na\t1\n", "dev.tsv": ""}
    columns = {"text_a": "text", "label": "stars"}

    def results(**description):
        regression = {"type": "regression", "columns": columns}
        task = describe(regression | description, files)
        return ResultsFiles(task.config, Console(io.StringIO()), [task])

    results().write([_record(1, 50.0, False)])
    assert len(results().earlier_trials()) == 1
    other = results(metric="mse", hparams={}).earlier_trials
    refused("metric of mine: None -> 'mse'", other)
    files["train.tsv"] += "b\t2\n"
    refused("data of mine, train: ", results().earlier_trials)


@pytest.mark.usefixtures("with_pictures")
def test_results_name_how_answers_were_compared(describe):
    files = {"train.json": "", "dev.json": ""}

    def results(match):
        description = {"type": "question_answering", "match": match}
        task = describe(description, files, max_query_length=8, beam_size=4)
        return task.config, ResultsFiles(
            task.config, Console(io.StringIO()), [task]
        )

    config, first = results("words")
    first.write([_record(1, 50.0, False)])
    lines = pathlib.Path(config.results_txt).read_text().splitlines()
    assert lines[0].startswith("sts: pearson: 50.00")
    assert lines[1].startswith("mine: match words: ")
    path = pathlib.Path(config.results_json)
    written = json.loads(path.read_text())
    assert written["measures"]["mine"].startswith("match words")
    assert len(results("words")[1].earlier_trials()) == 1
    refused(
        "measure of mine: 'match w", results("characters")[1].earlier_trials
    )
    # Earlier versions compared answers as in English.
    del written["data"]["measure of mine"]
    path.write_text(json.dumps(written))
    refused("an earlier version's", results("words")[1].earlier_trials)


def test_predictions_of_a_model_to_replace_are_put_aside(make_task):
    task = make_task("cola", overwrite=True)
    path = pathlib.Path(task.config.test_predictions("cola", "test", 1))
    write_atomically(str(path), b"")
    results = ResultsFiles(task.config, Console(io.StringIO()), [task])
    assert results.earlier_trials() == []
    assert [path.name + ".before"] == os.listdir(path.parent)


@pytest.mark.parametrize(
    ("values", "is_over"),
    [
        ([1.0, 2.0, 3.0], False),
        ([2.0, 3.0], False),
        ([3.0, 2.0, 1.0], True),
        ([3.0, 3.0, 3.0], True),  # An equal value is not better.
        ([math.nan, None, 1.0, 0.0], False),  # undefined: worst
        ([None, None, math.nan], True),
        ([], False),
    ],
)
def test_two_evaluations_without_a_better_metric_end_the_training(
    values, is_over
):
    more = {"other": 0.0, "loss": 1.0, "f1": 0.0}  # not the main metric
    rows = [{"step": 1, "accuracy": value, **more} for value in values]
    assert patience_is_over(rows, 2) == is_over
    assert not patience_is_over(rows, 0)
    # Lower losses are better.
    losses = [{"step": 1, "loss": value and -value} for value in values]
    assert patience_is_over(losses, 2, "loss") == is_over


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_an_evaluation_without_metrics_is_no_improvement(damaged):
    rows = [{"step": n, "accuracy": 1.0, "loss": 1.0} for n in range(3)]
    rows[damaged] = {"step": damaged}
    assert patience_is_over(rows, 1)
    assert not patience_is_over(rows, 3)
    assert not patience_is_over([{"step": 1}], 1)


def test_rows_have_what_the_original_wrote_in_order_of_ids(finetuning_config):
    def written(name, *rows):
        stream = io.StringIO()
        evaluator = types.SimpleNamespace(
            predict=lambda task, split, take: [take(row) for row in rows],
            write=write_atomically,
        )
        # The task has a test set, but no diagnostic set.
        task = types.SimpleNamespace(
            name="mine",
            has_split="test".__eq__,
            get_scorer=lambda split: None,
        )
        config = finetuning_config(name)
        for split in ("diagnostic", "test"):
            path = config.test_predictions("mine", split, 3)
            write_test_outputs(evaluator, task, split, path, Console(stream))
        assert path.endswith("mine_test_3_predictions.pkl")
        assert "skipped the diagnostic split" in stream.getvalue()
        return pickle.loads(pathlib.Path(path).read_bytes())

    rows = [{"eid": i, "logits": np.array([i, 1.0])} for i in (4, 0, 2)]
    actual = written("cola", *rows)
    assert list(actual) == [0, 2, 4]
    np.testing.assert_array_equal(actual[2], [2.0, 1.0])
    # As in the original, predictions are not scaled to the task's range.
    row = {"eid": 0, "predictions": np.float32(0.5), "targets": 0.0}
    assert written("sts", row) == {0: 0.5}
    # The masked positions belong to no word.
    row = {
        "eid": 0,
        "logits": np.zeros([4, 3]),
        "predictions": np.array([2, 1, 0, 0]),
        "labels_mask": np.array([1.0, 1.0, 0.0, 0.0]),
    }
    np.testing.assert_array_equal(written("chunk", row)[0], [2, 1])


@pytest.fixture
def pretrained(tmp_path, pretrained_folder, long_sizes):
    """Return the folder of a pre-trained model at its default path."""
    sizes = long_sizes | {"max_position_embeddings": 40}
    source = pretrained_folder(
        max_seq_length=16, do_lower_case=False, model_hparam_overrides=sizes
    )
    return pathlib.Path(shutil.copytree(source, tmp_path / "models" / "small"))


def _create(tmp_path, **hparams):
    settings = {"task_names": ["cola"], "max_seq_length": 16, **hparams}
    return FinetuningConfig.create("small", str(tmp_path), **settings)


def test_hparams_that_are_not_stated_come_from_the_model(pretrained, tmp_path):
    sizes = {"hidden_dropout_prob": 0.0}
    start = open_initial_checkpoint(
        _create(tmp_path, model_hparam_overrides=sizes)
    )
    actual = start.config
    assert actual.embedding_size == 8 and actual.vocab_size == 200
    overrides = actual.model_hparam_overrides
    assert overrides["num_attention_heads"] == 2
    assert overrides["hidden_dropout_prob"] == 0.0
    assert actual.do_lower_case is False
    assert actual.vocab_file == str(pretrained / "vocab.txt")
    assert any("do_lower_case = False" in note for note in start.notes)
    # Defaults of the task remain.
    assert actual.num_train_epochs == 3.0 and actual.task_names == ["cola"]
    start = open_initial_checkpoint(_create(tmp_path, do_lower_case=True))
    assert start.config.do_lower_case is True
    assert any("pre-trained with False" in note for note in start.notes)
    elsewhere = shutil.copytree(pretrained, tmp_path / "elsewhere")
    (pretrained / "vocab.txt").write_text("of another model\n")
    actual = open_initial_checkpoint(
        _create(tmp_path, init_checkpoint=str(elsewhere))
    )
    assert actual.config.vocab_file == str(elsewhere / "vocab.txt")
    assert actual.config.do_lower_case is False


def test_a_vocabulary_with_another_casing_than_its_model_is_refused(
    pretrained, tmp_path
):
    elsewhere = tmp_path / "elsewhere" / "vocab.txt"
    elsewhere.parent.mkdir()
    shutil.copy(pretrained / "vocab.txt", elsewhere)
    casing = elsewhere.with_name("tokenizer_config.json")
    casing.write_text('{"do_lower_case": false}')
    start = open_initial_checkpoint(
        _create(tmp_path, vocab_file=str(elsewhere))
    )
    assert start.config.do_lower_case is False
    casing.write_text('{"do_lower_case": true}')
    with pytest.raises(UserError, match="do_lower_case of .* is false, but"):
        open_initial_checkpoint(_create(tmp_path, vocab_file=str(elsewhere)))


def test_the_casing_of_a_vocabulary_counts_without_one_of_the_model(
    pretrained, tmp_path
):
    for name in ("config.json", "digests.json", "electra_config.json"):
        (pretrained / name).unlink(missing_ok=True)
    casing = pretrained / "tokenizer_config.json"
    casing.write_text('{"do_lower_case": false}')
    config = open_initial_checkpoint(_create(tmp_path)).config
    assert (config.do_lower_case, config.strip_accents) == (False, False)
    with pytest.raises(UserError, match="hparam do_lower_case is true, but"):
        open_initial_checkpoint(_create(tmp_path, do_lower_case=True))


def test_settings_that_do_not_fit_a_model_are_refused(
    pretrained, tmp_path, tiny_vocab
):
    with pytest.raises(UserError, match="max_seq_length"):
        open_initial_checkpoint(_create(tmp_path, max_seq_length=64))
    tokens = pathlib.Path(tiny_vocab).read_text().splitlines()
    other = tmp_path / "other.txt"
    tokens[150], tokens[151] = tokens[151], tokens[150]
    other.write_text("\n".join(tokens))
    with pytest.raises(UserError, match=r"other.txt:151: found .*vocab_file"):
        open_initial_checkpoint(_create(tmp_path, vocab_file=str(other)))
    # Without the model's vocabulary its size is compared.
    for name in ("vocab.txt", "config.json", "digests.json"):
        (pretrained / name).unlink()
    assert open_initial_checkpoint(_create(tmp_path, vocab_file=str(other)))
    other.write_text("\n".join(tokens[:190]))
    with pytest.raises(UserError, match="190 tokens, but vocab_size is 200"):
        open_initial_checkpoint(_create(tmp_path, vocab_file=str(other)))
    sized = {"vocab_file": str(other), "vocab_size": 200}
    assert open_initial_checkpoint(_create(tmp_path, **sized))
