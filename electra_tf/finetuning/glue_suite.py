# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""All GLUE tasks one after the other, and one table of them."""

import dataclasses
import datetime
import json
import os
from typing import Any

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf import files
from electra_tf.finetuning import runner
from electra_tf.finetuning.build import is_stated, resolve_start, with_values
from electra_tf.finetuning.registry import GLUE_TASKS
from electra_tf.metrics import glue
from electra_tf.training.summaries import Console

_FORMAT = 1
# Each task has its own; one path for all would mix them up.
_PATHS = (
    "model_dir",
    "preprocessed_data_dir",
    "results_txt",
    "results_pkl",
    "results_json",
)


@dataclasses.dataclass
class Outcome:
    """How a task went."""

    state: str  # "done", "interrupted", "failed", "no data", or "not reached"
    why: str = ""  # what the state does not say
    # Over the trials there are; None without any.
    score: glue.TaskScore | None = None
    collapsed: tuple[int, ...] = ()  # trials whose predictions are all the same


def run(
    config: FinetuningConfig, console: Console | None = None
) -> dict[str, Any]:
    """Fine-tunes on each task that has data, as far as that is not done."""
    config.check_mode()
    return _Suite(config, console or Console()).run()


class _Suite:
    def __init__(self, config: FinetuningConfig, console: Console) -> None:
        _check(config)
        self._config = config
        self._console = console
        self._configs = {
            task: with_values(config, "program", {"task_names": [task]})
            for task in config.task_names
        }
        self._outcomes = {
            task: Outcome("no data", why)
            if (why := _missing_data(task_config, task))
            else Outcome("not reached")
            for task, task_config in self._configs.items()
        }
        base = os.path.join(config.pretrained_model_dir, "results", "glue")
        self._text_path, self._json_path = f"{base}.txt", f"{base}.json"

    def run(self) -> dict[str, Any]:
        """Runs the tasks."""
        there = [t for t, o in self._outcomes.items() if o.state != "no data"]
        if not there:
            raise UserError(
                "no GLUE task has data:\n"
                + "".join(
                    f"  {t}: {o.why}\n" for t, o in self._outcomes.items()
                )
                + "Put the tasks' files there, or use --data_source=tfds."
            )
        first = self._configs[there[0]]
        if first.do_train:
            resolve_start(first)  # Else every task fails for the same reason.
        interrupted = None
        for number, task in enumerate(there, 1):
            self._console.heading(f"GLUE {number}/{len(there)}: {task}")
            interrupted = self._run_task(task)
            self._write()
            if interrupted is not None:
                break
        self._console.heading("GLUE")
        for text in self._lines():
            self._console.line(text)
        self._console.line(f"Wrote {self._text_path} and {self._json_path}")
        result: dict[str, Any] = {
            "outcomes": self._outcomes,
            "text": self._text_path,
            "json": self._json_path,
        }
        if interrupted is not None:
            result["interrupted"] = interrupted
        return result

    def _run_task(self, task: str) -> int | None:
        """Trains, evaluates and predicts; a signal's number if stopped."""
        outcome = self._outcomes[task]
        interrupted = None
        try:
            result = runner.run(self._configs[task], self._console)
            interrupted = result.get("interrupted")
            records = result["trials"]
            if records:
                outcome.score = glue.score_task(task, records)
            outcome.collapsed = tuple(
                record["trial"] for record in records if record["collapsed"]
            )
            if interrupted is None:
                interrupted = self._predict_what_is_missing(task)
        except UserError as error:
            self._console.warning(f"{task} failed: {error}")
            outcome.state, outcome.why = "failed", str(error)
            return None
        outcome.state = "done"
        if interrupted is not None:
            outcome.state = "interrupted"
            outcome.why = "run the same command again to continue"
        return interrupted

    def _predict_what_is_missing(self, task: str) -> int | None:
        """Predicts test sets with models that an earlier run trained."""
        config = self._configs[task]
        if not (config.write_test_outputs and config.do_train):
            return None
        trials = range(1, min(config.num_trials, config.n_writes_test) + 1)
        missing = [
            path
            for split in GLUE_TASKS[task].files
            if not GLUE_TASKS[task].labelled(split)
            and _has_split(config, task, split)
            for trial in trials
            if not files.exists(
                path := config.test_predictions(task, split, trial)
            )
        ]
        if not missing:
            return None
        if not config.keep_all_models:
            self._console.warning(
                f"{task}: {len(missing)} files of test predictions are not"
                f" there, such as {missing[0]}; the models that would make"
                " them were not kept (keep_all_models)"
            )
            return None
        only = {
            "do_train": False,
            "do_eval": False,
            "init_checkpoint": None,
            "num_trials": len(trials),
        }
        predicting = with_values(config, "program", only)
        return runner.run(predicting, self._console).get("interrupted")

    def _scores(self) -> dict[str, glue.TaskScore]:
        return {
            task: outcome.score
            for task, outcome in self._outcomes.items()
            if outcome.score is not None
        }

    def _lines(self) -> list[str]:
        """The table, and what is to be said of single tasks."""
        lines = glue.table_lines(self._scores()) if self._scores() else []
        for task, outcome in self._outcomes.items():
            if outcome.state != "done":
                why = f": {outcome.why}" if outcome.why else ""
                lines.append(f"{task}: {outcome.state}{why}")
            if outcome.score is not None and outcome.score.lacking:
                lines.append(
                    f"{task}: its score lacks"
                    f" {', '.join(outcome.score.lacking)}, for want of data"
                )
            for trial in outcome.collapsed:
                lines.append(f"{task}: trial {trial} collapsed")
        unasked = [t for t in glue.TASKS if t not in self._outcomes]
        if unasked:
            lines.append(f"not among task_names: {', '.join(unasked)}")
        return lines

    def _write(self) -> None:
        now = datetime.datetime.now(datetime.timezone.utc)
        contents = {
            "format": _FORMAT,
            "time": now.isoformat(timespec="seconds"),
            "tasks": {
                task: {
                    "state": outcome.state,
                    "why": outcome.why,
                    "collapsed_trials": list(outcome.collapsed),
                    "results_json": self._configs[task].results_json,
                    **(outcome.score.as_dict() if outcome.score else {}),
                }
                for task, outcome in self._outcomes.items()
            },
            "averages": glue.average_scores(self._scores()),
            "config": self._config.as_dict(),
        }
        text = json.dumps(contents, indent=1, allow_nan=False)
        files.write_atomically(self._json_path, f"{text}\n")
        text = "\n".join([*self._lines(), ""])
        files.write_atomically(self._text_path, text)


def _check(config: FinetuningConfig) -> None:
    for name in config.task_names:
        if name not in GLUE_TASKS:
            raise UserError(
                f"hparam task_names: {name} is no GLUE task (they are:"
                f" {', '.join(glue.TASKS)}); use run_finetuning.py for it."
            )
    for name in (*_PATHS, "task_config"):
        if is_stated(config, name) and getattr(config, name):
            raise UserError(
                f"hparam {name}: every GLUE task has its own; leave it out, or"
                " use run_finetuning.py for the task."
            )


def _missing_data(config: FinetuningConfig, task: str) -> str:
    """Names the files that a task cannot do without and that are not there."""
    splits = ["train"] * config.do_train + ["dev"] * config.do_eval
    if not splits:
        splits = [s for s in GLUE_TASKS[task].files if "test" in s][:1]
    spec, directory = GLUE_TASKS[task], config.raw_data_dir(task)
    missing = [
        spec.split(name, directory).path
        for split in splits
        if (name := split if split in spec.files else f"{split}_matched")
        and not _has_split(config, task, name)
    ]
    return f"no {', '.join(missing)}" if missing else ""


def _has_split(config: FinetuningConfig, task: str, split: str) -> bool:
    if config.data_source == "tfds":
        return True
    place = GLUE_TASKS[task].split(split, config.raw_data_dir(task))
    return files.exists(place.path)
