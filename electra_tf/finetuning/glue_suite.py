# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning on all GLUE tasks in turn, with one table of scores."""

import dataclasses
import datetime
import json
import os
from typing import Any

from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from electra_tf.files import filesystem
from electra_tf.files.atomic import write_atomically
from electra_tf.finetuning import glue_scores as scores
from electra_tf.finetuning import runner
from electra_tf.finetuning.glue_tasks import GLUE_TASKS
from electra_tf.finetuning.initial_checkpoint import open_initial_checkpoint
from electra_tf.training.console import Console

_FORMAT = 1  # the version of the scores file's format
# Each task needs its own value of these paths; a shared path would mix up the
# tasks' files.
_TASK_PATHS = (
    "model_dir",
    "preprocessed_data_dir",
    "task_config",
    "results_txt",
    "results_pkl",
    "results_json",
)


@dataclasses.dataclass
class Outcome:
    """The outcome of one task."""

    state: str  # "done", "interrupted", "failed", "no data", or "not reached"
    reason: str = ""  # the cause of the state; "": no cause
    # The score covers the finished trials; None if no trial finished.
    score: scores.TaskScore | None = None
    collapsed: tuple[int, ...] = ()  # trials whose predictions are all equal


class GlueSuite:
    """A run that fine-tunes on the GLUE tasks of a config, one by one."""

    def __init__(
        self, config: FinetuningConfig, console: Console | None = None
    ) -> None:
        """Check the settings, and look for the data of the tasks.

        Args:
          config: the settings for all tasks.
          console: the console to print to; None: standard output.

        Raises:
          UserError: a setting allows only one task.
        """
        self._config = config
        self._check_settings()
        self._console = console or Console()
        self._configs: dict[str, FinetuningConfig] = {}
        self._outcomes: dict[str, Outcome] = {}
        for task in config.task_names:
            values: dict[str, Any] = {"task_names": [task]}
            if config.wnli_majority:
                values["wnli_majority"] = task == "wnli"
            self._configs[task] = config.with_values("program", values)
            missing = ""
            if config.data_source != "tfds":
                missing = _missing_data(
                    task,
                    config.raw_data_dir(task),
                    config.do_train,
                    config.do_eval,
                )
            if missing:
                self._outcomes[task] = Outcome("no data", missing)
            else:
                self._outcomes[task] = Outcome("not reached")
        name = f"glue_{config.run_name}" if config.run_name else "glue"
        base = os.path.join(config.pretrained_model_dir, "results", name)
        self._text_path, self._json_path = f"{base}.txt", f"{base}.json"

    def _check_settings(self) -> None:
        """Raise a UserError if a setting allows only one task."""
        config = self._config
        config.check_mode()
        if config.distribution_strategy == "multi_worker":
            raise UserError(
                "hparam distribution_strategy: multi_worker cannot run several"
                " tasks, because a process can connect to the other workers"
                " only once. Use run_finetuning.py for each task."
            )
        for name in config.task_names:
            if name not in GLUE_TASKS:
                raise UserError(
                    f"hparam task_names: {name} is not a GLUE task (expected:"
                    f" {', '.join(GLUE_TASKS)}). Use run_finetuning.py for this"
                    " task."
                )
        if config.num_trials < 0:
            raise UserError(
                f"hparam num_trials: {config.num_trials} trains the first task"
                " without end; expected a positive number. Set num_trials to a"
                " positive number, or use run_finetuning.py for one task."
            )
        for name in _TASK_PATHS:
            if config.is_explicit(name) and getattr(config, name):
                raise UserError(
                    f"hparam {name}: the GLUE tasks cannot share one value,"
                    f" because each task needs its own files. Remove {name}, or"
                    " use run_finetuning.py for one task."
                )

    def run(self) -> dict[str, Any]:
        """Fine-tune on each task that has data; skip finished trials.

        Returns:
          `outcomes`: task -> `Outcome`; `interrupted`: the number of the signal
          that stopped the run, if one did.
        """
        tasks = [t for t, o in self._outcomes.items() if o.state != "no data"]
        if not tasks:
            listing = "".join(
                f"  {task}: {outcome.reason}\n"
                for task, outcome in self._outcomes.items()
            )
            raise UserError(
                f"no GLUE task has data:\n{listing}Add the tasks' files, or"
                " pass --data_source=tfds."
            )
        first = self._configs[tasks[0]]
        if first.do_train:
            # Opening the checkpoint first reveals a problem that would make
            # every task fail.
            open_initial_checkpoint(first)
        result: dict[str, Any] = {"outcomes": self._outcomes}
        for number, task in enumerate(tasks, 1):
            self._console.heading(f"GLUE {number}/{len(tasks)}: {task}")
            interrupted = self._run_task(task)
            self._write()
            if interrupted is not None:
                result["interrupted"] = interrupted
                break
        self._console.heading("GLUE")
        for text in self._lines():
            self._console.line(text)
        self._console.line(f"Wrote {self._text_path} and {self._json_path}")
        return result

    def _run_task(self, task: str) -> int | None:
        """Run a task; return the signal number if a signal stopped it."""
        outcome = self._outcomes[task]
        try:
            result = runner.run(self._configs[task], self._console)
            interrupted = result.get("interrupted")
            records = result["trials"]
            if records:
                outcome.score = scores.score_task(task, records)
            outcome.collapsed = tuple(
                record["trial"] for record in records if record["collapsed"]
            )
        except UserError as error:
            self._console.warning(f"{task} failed: {error}")
            outcome.state, outcome.reason = "failed", str(error)
            return None
        outcome.state = "done"
        if interrupted is not None:
            outcome.state = "interrupted"
            outcome.reason = "run the same command again to continue"
        return interrupted

    def _scores(self) -> dict[str, scores.TaskScore]:
        return {t: o.score for t, o in self._outcomes.items() if o.score}

    def _lines(self) -> list[str]:
        """Return the table of scores and the remarks below it."""
        task_scores = self._scores()
        lines = scores.table_lines(task_scores) if task_scores else []
        for task, outcome in self._outcomes.items():
            if outcome.state != "done":
                reason = f": {outcome.reason}" if outcome.reason else ""
                lines.append(f"{task}: {outcome.state}{reason}")
            if outcome.score and outcome.score.lacking:
                lines.append(
                    f"{task}: the score is incomplete, because no data exists"
                    " for"
                    f" {', '.join(outcome.score.lacking)}"
                )
            for trial in outcome.collapsed:
                lines.append(f"{task}: trial {trial} collapsed")
        if self._config.wnli_majority and self._outcomes["wnli"].score:
            lines.append(
                "wnli: no model was used; every prediction is the most frequent"
                " training label (wnli_majority)"
            )
        skipped = [task for task in GLUE_TASKS if task not in self._outcomes]
        if skipped:
            lines.append(
                "tasks skipped, because task_names does not contain them:"
                f" {', '.join(skipped)}"
            )
        return lines

    def _write(self) -> None:
        """Write the scores as a JSON file and as a text file."""
        now = datetime.datetime.now(datetime.timezone.utc)
        tasks = {
            task: {
                "state": outcome.state,
                "why": outcome.reason,
                "collapsed_trials": list(outcome.collapsed),
                "results_json": self._configs[task].results_json,
                **(outcome.score.as_dict() if outcome.score else {}),
            }
            for task, outcome in self._outcomes.items()
        }
        averages = scores.average_scores(self._scores())
        contents = {
            "format": _FORMAT,
            "time": now.isoformat(timespec="seconds"),
            "tasks": tasks,
            "averages": {
                kind: dataclasses.asdict(average)
                for kind, average in averages.items()
            },
            "config": self._config.as_dict(),
        }
        text = json.dumps(contents, indent=1, allow_nan=False)
        write_atomically(self._json_path, f"{text}\n")
        text = "\n".join([*self._lines(), ""])
        write_atomically(self._text_path, text)


def _missing_data(
    task: str, directory: str, do_train: bool, do_eval: bool
) -> str:
    """Return a text that names a task's missing files; "" if all exist."""
    spec = GLUE_TASKS[task]
    splits = []
    if do_train:
        splits.append("train")
    if do_eval:
        splits.append("dev")
    if not splits:
        splits = [split for split in spec.files if "test" in split][:1]
    paths = [spec.find_split(split, directory).path for split in splits]
    missing = [path for path in paths if not filesystem.exists(path)]
    return f"missing: {', '.join(missing)}" if missing else ""
