# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Studies that are killed, stopped, out of time, or have a broken arm."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from configure.errors import UserError
from electra_tf.extras.study import runner
from electra_tf.extras.study.runner import StudyRunner
from electra_tf.extras.study.study_file import Study
from electra_tf.files.digests import file_sha256
from tests.conftest import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def start():
    """Return a function that starts the command in a new process group."""
    return lambda path, *flags: subprocess.Popen(
        [sys.executable, "-m", "electra_tf", "study", path, *flags],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def finish(start):
    """Return a function that runs the command, and returns its output."""

    def call(path, *flags, status=0):
        process = start(path, *flags)
        printed, _ = process.communicate(timeout=3000)
        assert process.returncode == status, printed[-3000:]
        return printed

    return call


def lines_of(path):
    text = pathlib.Path(path).with_suffix(".jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def kill(start, path, log, kills):
    """Kill a study and its run, every second time during the run's steps."""
    moments = random.Random(0)
    for number in range(kills):
        log.touch()
        begun = log.stat().st_size
        process = start(path)
        while number % 2 and b"SPS" not in log.read_bytes()[begun:]:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(moments.uniform(0.0, 1.0 if number % 2 else 12.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.heavy
@pytest.mark.parametrize(
    "case",
    [(["electra"], [1], 2), (["electra", "mlm"], [1, 2], 20)],
    ids=["2_kills", "20_kills"],
)
def test_a_study_that_is_killed_ends_in_the_same_table(
    content, write_study, start, finish, tmp_path, case
):
    arms, seeds, kills = case
    content["arms"] = {name: {"pretrain": {"objective": name}} for name in arms}
    content |= {"seeds": seeds, "against": "electra", "budget": {"steps": 500}}
    content["pretrain"]["save_checkpoints_steps"] = 20
    tables = []
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        content["output_dir"] = str(tmp_path / name / "out")
        made = tmp_path / name / "made"
        command = ["-c", f"open({str(made)!r}, 'a').write('1')"]
        content["data"] = {str(made): command}
        path = write_study(content, f"{name}/study")
        if name == "killed":
            (tmp_path / name / "out").mkdir()
            kill(start, path, tmp_path / name / "out" / runner.LOG, kills)
        finish(path)
        table = (tmp_path / name / "out" / "study.txt").read_text()
        tables.append(table.splitlines()[1:])  # The first line names the file.
    assert tables[0] == tables[1] and len(tables[0]) > 5
    assert (tmp_path / "whole" / "made").read_text() == "1"
    lines = lines_of(path)
    assert len(lines) == len(arms) * len(seeds) * 2
    # Lines must be small enough to be committed.
    assert max(len(json.dumps(line)) for line in lines) < 2500


@pytest.mark.heavy
def test_a_failed_run_is_named_and_the_others_finish(
    content, write_study, finish, tmp_path
):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "model.ckpt-1.index").write_text("damaged")
    content["arms"]["broken"] = {"start": str(broken)}
    del content["arms"]["mlm"]
    content |= {"seeds": [1], "against": "electra"}
    path = write_study(content)
    printed = finish(path, status=1)
    assert "FAILED broken/1/sst: exit status 1: error: " in printed
    assert "2 of 3 runs are done" in printed and "sst: accuracy" in printed
    lines = {line["cell"]: line for line in lines_of(path)}
    assert lines.keys() == {"electra/1", "electra/1/sst"}
    assert lines["electra/1"]["results"]["step"] == [10]
    line = lines["electra/1/sst"]
    # The main metric, by which runs are compared, comes first.
    assert next(iter(line["results"])) == "accuracy"
    assert line["seconds"] > 0 and "cores" in line["processor"]
    assert "broken/1/sst: FAILED" in (tmp_path / "out" / runner.LOG).read_text()
    # If the time is up before a run begins, no finished run is lost.
    content["seeds"] = [1, 2]
    path = write_study(content)
    printed = finish(path, "--time_budget=0.0001", status=runner.TIME_IS_UP)
    assert "2 of 6 runs are done" in printed
    assert "Run the same command again" in printed


@pytest.mark.parametrize("is_link", [True, False])
def test_the_data_of_the_user_are_not_replaced(
    is_link, content, write_study, tmp_path
):
    data = tmp_path / "out" / "finetuning_data"
    data.mkdir(parents=True)
    if is_link:
        data = data.rename(tmp_path / "elsewhere")
        (tmp_path / "out" / "finetuning_data").symlink_to(data)
    with pytest.raises(UserError, match="expected a link to the study's"):
        StudyRunner(Study(write_study(content)), 1.0, 0.0).run()
    assert data.is_dir()
    # Data in the study's own folder need no link.
    if is_link:
        data.rmdir()
        (tmp_path / "finetuning_data").rename(data)
        content["data_dir"] = content["output_dir"]
        with pytest.raises(runner.StoppedError):
            StudyRunner(Study(write_study(content)), 1.0, 0.0).run()
        assert (data / "sst").is_dir()


@pytest.mark.heavy
def test_a_piece_continues_where_the_last_piece_stopped(
    content, write_study, finish, start
):
    del content["tasks"], content["finetune"]
    content |= {"seeds": [1], "arms": {"electra": {}}, "against": "electra"}
    content["budget"] = {"steps": 40}
    content["pretrain"]["save_checkpoints_steps"] = 40
    path = write_study(content)
    finish(path, "--piece=0.05")
    (line,) = lines_of(path)
    assert line["steps"] == 40 and line["results"]["step"] == [40]
    assert line["pieces"] > 1
    # The study passes a signal on to the run, which saves.
    content["budget"] = {"steps": 400_000}
    process = start(write_study(content))
    log = pathlib.Path(content["output_dir"]) / runner.LOG
    while "100/400000" not in log.read_text():
        assert process.poll() is None
    process.terminate()
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert "0 of 1 runs are done" in printed
    assert "Stopped at step" in log.read_text()


@pytest.fixture
def data_study(content, tmp_path, monkeypatch):
    """Return the content of a study whose runs are not started."""
    (tmp_path / "out").mkdir()
    content |= {"seeds": [1], "arms": {"electra": {}}, "against": "electra"}
    del content["tasks"]
    results = {"step": [10]}
    monkeypatch.setattr(runner, "_results", lambda cell: results)
    began = StudyRunner._run_piece

    def process(self, cell, limit):  # Runs are replaced, to save time.
        return 0 if cell.facts else began(self, cell, limit)

    monkeypatch.setattr(StudyRunner, "_run_piece", process)
    return content


@pytest.fixture
def two_studies(data_study, write_study):
    """Return the results file and the runners of one file's two studies."""
    data_study["seeds"] = [1, 2]
    path = write_study(data_study)
    folders = [data_study["output_dir"] + end for end in ("", "_2")]
    runners = [StudyRunner(Study(path, f), 60.0, 60.0) for f in folders]
    return pathlib.Path(path).with_suffix(".jsonl"), runners


def finish_one(study_runner, number):
    """Write the line of a study's run."""
    run = study_runner._study.runs({})[number]
    study_runner._write_line(run, 1, 1, {})


def test_studies_of_one_file_keep_the_lines_of_each_other(two_studies):
    path, runners = two_studies
    for number, study_runner in enumerate(runners):
        finish_one(study_runner, number)
    cells = [line["cell"] for line in lines_of(path)]
    assert cells == ["electra/1", "electra/2"]
    assert len(runners[1].lines) == 2


def test_a_line_that_is_removed_meanwhile_stays_removed(two_studies):
    path, (study_runner, _) = two_studies
    finish_one(study_runner, 0)
    path.write_text("")
    finish_one(study_runner, 1)
    assert [line["cell"] for line in lines_of(path)] == ["electra/2"]


def test_a_damaged_line_loses_no_finished_run(two_studies, capsys):
    path, (study_runner, _) = two_studies
    finish_one(study_runner, 0)
    first = path.read_text()
    path.write_text(f"{first}<<<<<<< HEAD\n")
    finish_one(study_runner, 1)
    *earlier_lines, added = path.read_text().splitlines()
    assert earlier_lines == [first.rstrip(), "<<<<<<< HEAD"]
    assert json.loads(added)["cell"] == "electra/2"
    assert len(study_runner.lines) == 2
    assert "The line of electra/2 was appended" in capsys.readouterr().out


def test_changed_commands_make_their_data_again(
    data_study, write_study, tmp_path, capsys
):
    data, texts = tmp_path / "made", []
    for text in "ABA":
        command = ["-c", f"open({str(data)!r}, 'w').write({text!r})"]
        data_study["data"] = {str(data): command}
        study = pathlib.Path(write_study(data_study, "tiny"))
        study.with_suffix(".jsonl").unlink(missing_ok=True)
        StudyRunner(Study(write_study(data_study)), 60.0, 60.0).run()
        texts.append(data.read_text())
    assert texts == ["A", "B", "A"]
    assert "warning" not in capsys.readouterr().out


@pytest.mark.parametrize("key", ["data", "exam"])
def test_data_that_was_removed_is_made_again(
    data_study, write_study, tmp_path, key
):
    path = tmp_path / "made"
    data_study[key] = {str(path): ["-c", f"open({str(path)!r}, 'w')"]}
    StudyRunner(Study(write_study(data_study)), 60.0, 60.0).run()
    path.unlink()
    data_study["seeds"] = [1, 2]
    StudyRunner(Study(write_study(data_study)), 60.0, 60.0).run()
    assert path.exists()


@pytest.mark.parametrize("starts", [1, 2])
@pytest.mark.parametrize("key", ["data", "exam"])
def test_a_command_that_does_not_make_its_key_is_a_failed_run(
    data_study, write_study, tmp_path, key, starts
):
    path = tmp_path / "absent"
    data_study[key] = {str(path): ["-c", ""]}
    study = Study(write_study(data_study))
    for _ in range(starts):
        study_runner = StudyRunner(study, 60.0, 60.0)
        study_runner.run()
    reason = study_runner.failed[f"{key}.{path}"]
    assert f"the command ended, but {path} does not exist" in reason
    assert study_runner.failed["electra/1"].startswith(f"needs {key}.")
    assert not study_runner.lines


def test_a_finished_run_of_different_data_is_warned_of(
    data_study, write_study, tmp_path, capsys
):
    pattern = data_study["pretrain"]["pretrain_tfrecords"]
    records = tmp_path / "records"
    shutil.copytree(os.path.dirname(pattern), records)
    data_study["pretrain"]["pretrain_tfrecords"] = f"{records}/pretrain*"

    def run():
        StudyRunner(Study(write_study(data_study)), 60.0, 60.0).run()
        return capsys.readouterr().out

    warnings = ("warning: the data of electra/1 has changed", "jsonl, and ")
    printed = run()
    assert not any(warning in printed for warning in warnings)
    (first, *_) = sorted(records.glob("pretrain*"))
    shutil.copy(first, records / "pretrain_more")
    printed = run()
    assert all(warning in printed for warning in warnings)


def test_data_that_a_new_checkout_makes_otherwise_is_warned_of(
    data_study, write_study, tmp_path, capsys
):
    """The commands are the same; what they read, or the code, is not."""
    made, exam = tmp_path / "made", tmp_path / "exam.npz"
    copy = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])"
    for path, key in ((made, "data"), (exam, "exam")):
        source = str(path.with_suffix(".source"))
        data_study[key] = {str(path): ["-c", copy, source, str(path)]}
    data_study["pretrain"]["pretrain_tfrecords"] = str(made)

    def run(records, questions, seeds):
        for path, text in ((made, records), (exam, questions)):
            path.with_suffix(".source").write_text(text)
            path.unlink(missing_ok=True)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        data_study["seeds"] = seeds
        StudyRunner(Study(write_study(data_study)), 60.0, 60.0).run()
        printed = capsys.readouterr().out.splitlines()
        return [line for line in printed if line.startswith("warning: ")]

    assert not run("records", "questions", [1])
    (warning,) = run("other records", "questions", [1, 2])
    assert warning.startswith("warning: the data of electra/1 has changed")
    warnings = run("records", "other questions", [1, 2, 3])
    differences = {
        "electra/1 was scored on an exam that differs",
        "electra/2 was scored on an exam that differs",
        "the data of electra/2 has changed",
    }
    seen = {text for text in differences if text in "".join(warnings)}
    assert seen == differences and len(warnings) == len(differences)


@pytest.fixture
def exam_study(content, write_study, tmp_path, monkeypatch):
    """Return a study of an exam, and the log of its run's evaluations.

    As a real run does, the replaced run only evaluates the last step if the log
    lacks that step.
    """
    exam = tmp_path / "exam.npz"
    exam.write_text("questions")
    content |= {"seeds": [1], "arms": {"electra": {}}, "against": "electra"}
    content["exam"] = {str(exam): ["-c", ""]}
    del content["tasks"]
    (run,) = Study(write_study(content)).runs({})
    log = pathlib.Path(run.folder, "eval_log.jsonl")
    log.parent.mkdir(parents=True)

    def evaluate(self, run, limit):
        if run.facts and '"step": 10' not in log.read_text():
            with log.open("a") as file:
                file.write('{"step": 10, "exam_generator_auc": 0.75}\n')
        return 0

    monkeypatch.setattr(StudyRunner, "_run_piece", evaluate)
    return content, log


@pytest.mark.parametrize(
    "last",
    [
        "",
        '{"step": 10, "disc_auc": 0.5}\n',
        '{"step": 10, "exam_generator_auc": 0.5}\n',
        '{"step": 10, "disc_auc": 0.5}\n' * 2,
    ],
    ids=["unfinished", "without_exam", "of_another_exam", "twice"],
)
def test_a_run_that_had_ended_before_is_scored_on_the_exam(
    exam_study, write_study, last
):
    content, log = exam_study
    first = '{"step": 5, "exam_generator_auc": 0.25}\n'
    log.write_text(first + last)
    path = write_study(content)
    StudyRunner(Study(path), 60.0, 60.0).run()
    (line,) = lines_of(path)
    assert line["results"] == {"step": [10], "exam_generator_auc": [0.75]}
    (exam,) = content["exam"]
    assert line["exam_sha256"] == file_sha256(exam)
    assert log.read_text().startswith(first)
    assert len(log.read_text().splitlines()) == 2


@pytest.mark.heavy
def test_a_run_of_a_shared_folder_is_only_evaluated_for_an_exam(
    content, write_study, finish, tmp_path
):
    content |= {"seeds": [1], "arms": {"electra": {}}, "against": "electra"}
    del content["tasks"], content["finetune"]
    path = write_study(content, "plain")
    finish(path)
    (plain,) = lines_of(path)
    (run,) = Study(path).runs({})
    exam, pretrain = str(tmp_path / "exam.npz"), content["pretrain"]
    arguments = {
        "generator": run.folder,
        "vocab_file": pretrain["vocab_file"],
        "pretrain_tfrecords": pretrain["pretrain_tfrecords"],
        "max_seq_length": pretrain["max_seq_length"],
        "seed": 1,
        "examples": 4,
    }
    flags = [f"--{name}={value}" for name, value in arguments.items()]
    command = ["-m", "electra_tf", "draw_exam", exam, *flags]
    path = write_study(content | {"exam": {exam: command}}, "scored")
    finish(path)
    (line,) = lines_of(path)
    assert line["results"].items() > plain["results"].items()
    assert line["results"]["exam_generator_auc"] != [None]
    train_log = pathlib.Path(run.folder, "train_log.jsonl").read_text()
    assert train_log.count('"step": 10,') == 1


def test_an_exam_that_changes_during_a_run_is_a_failed_run(
    exam_study, write_study, monkeypatch
):
    content, log = exam_study
    log.write_text("")
    (exam,) = content["exam"]
    evaluate = StudyRunner._run_piece

    def replace_exam(self, run, limit):
        if run.facts:
            pathlib.Path(exam).write_text("other questions")
        return evaluate(self, run, limit)

    path = write_study(content)
    with monkeypatch.context() as patches:
        patches.setattr(StudyRunner, "_run_piece", replace_exam)
        failed = StudyRunner(Study(path), 60.0, 60.0)
        failed.run()
    assert "exam.npz changed during the run" in failed.failed["electra/1"]
    assert not failed.lines
    StudyRunner(Study(path), 60.0, 60.0).run()
    (line,) = lines_of(path)
    assert line["exam_sha256"] == file_sha256(exam)


MAKES_CASED = """
import shutil, sys
from electra_tf.text.casing import write_casing
shutil.copy(sys.argv[1], sys.argv[2])
write_casing(sys.argv[2], False, False)
"""


@pytest.mark.parametrize(
    "arm", [{}, {"start": "random"}], ids=["pretrained", "random"]
)
def test_a_cased_vocabulary_that_the_data_makes_is_fine_tuned_cased(
    content, write_study, tmp_path, monkeypatch, arm
):
    folder = tmp_path / "cased"
    folder.mkdir()
    vocab_file, made = content["pretrain"]["vocab_file"], folder / "vocab.txt"
    content["pretrain"]["vocab_file"] = str(made)
    content["data"] = {str(made): ["-c", MAKES_CASED, vocab_file, str(made)]}
    content |= {"seeds": [1], "arms": {"cased": arm}, "against": "cased"}
    commands, run_piece = [], StudyRunner._run_piece

    def record(self, run, limit):
        if not run.facts:
            return run_piece(self, run, limit)
        commands.append(run.command)
        return 0

    monkeypatch.setattr(StudyRunner, "_run_piece", record)
    monkeypatch.setattr(runner, "_results", lambda _: {"accuracy": [50.0]})
    monkeypatch.setattr(runner, "_verdicts", lambda _: {})
    path = write_study(content)
    study = Study(path)
    StudyRunner(study, 60.0, 60.0).run()
    hparams = json.loads(commands[-1][-1].removeprefix("--hparams="))
    assert hparams["do_lower_case"] is False
    digests = {line["digest"] for line in lines_of(path)}
    assert digests == {run.digest for run in Study(path).runs({})}
    assert digests == {run.digest for run in study.runs({})}


SAVES_WHEN_STOPPED = """
import pathlib, signal, sys, time
note = pathlib.Path(sys.argv[1])
def save(number, frame):
    note.write_text("saved")
    sys.exit(128 + number)
signal.signal(signal.SIGTERM, save)
note.write_text("at work")
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_study_stops_its_piece_too(
    content, write_study, start, tmp_path, number
):
    note = tmp_path / "note"
    content["data"] = {"x": ["-c", SAVES_WHEN_STOPPED, str(note)]}
    process = start(write_study(content))
    while not (note.exists() and note.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number, printed
    assert note.read_text() == "saved"


def test_a_signal_that_comes_while_a_piece_starts_reaches_it(
    content, write_study, monkeypatch, tmp_path
):
    content["data"] = {"x": ["-c", "import time; time.sleep(600)"]}
    study_runner = StudyRunner(Study(write_study(content)), 60.0, 60.0)
    start_child = subprocess.Popen

    def start_late(*arguments, **settings):
        study_runner._on_signal(signal.SIGINT, None)
        return start_child(*arguments, **settings)

    monkeypatch.setattr(subprocess, "Popen", start_late)
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        with pytest.raises(runner.StoppedError) as stopped:
            study_runner.run()
    finally:
        for signal_number, handler in handlers.items():
            signal.signal(signal_number, handler)
    assert stopped.value.status == 128 + signal.SIGINT


@pytest.mark.skipif(sys.platform != "linux", reason="prctl")
def test_a_piece_ends_with_its_killed_study(
    content, write_study, start, tmp_path
):
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid()))"
    content["data"] = {"x": ["-c", f"{code}; time.sleep(600)"]}
    process = start(write_study(content))
    while not (note.exists() and note.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{note.read_text()}"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
