# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A study file: what it says, checked, as cells that processes can run.

A cell is one run: of building data, of pre-training, or of fine-tuning on a
task. Its digest is of all that makes its result: a cell that is changed in the
file is another cell in another folder.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from configure.config import SIZE_HPARAMS, TOKENIZER_HPARAMS
from configure.errors import UserError
from configure.finetuning import FinetuningConfig
from configure.formatting import shorten
from configure.pretraining import PretrainingConfig
from configure.validation import nearest_names
from electra_tf.checkpoints.formats import (
    find_hugging_face_weights,
    resolve_reference,
)
from electra_tf.checkpoints.hub import hub_hint
from electra_tf.data.record_checks import check_records
from electra_tf.files import filesystem
from electra_tf.files.digests import file_sha256
from electra_tf.files.json_files import read_json
from electra_tf.metrics.direction import lower_is_better
from electra_tf.metrics.statistics import describe, from_json
from electra_tf.plan.flops import pretraining_step_flops
from electra_tf.plan.parameters import pretraining_parameters
from electra_tf.text.casing import with_vocab_casing

_ARM_KEYS = {"start": str, "pretrain": dict, "finetune": dict, "budget": dict}
_KEYS = {
    **{"description": str, "data_dir": str, "output_dir": str},
    **{"data": dict, "exam": dict, "tasks": dict},
    **{"arms": dict, "grid": dict, "seeds": list, "against": str},
    **{"choose_learning_rate": dict, "figures": dict, **_ARM_KEYS},
}
_CHOICE_KEYS = {"values": list, "num_trials": int}
_BUDGETS = dict.fromkeys(("steps", "tokens", "flops"), (int, float))
_CONFIGS = {"pretrain": PretrainingConfig, "finetune": FinetuningConfig}
# What a study says to each run by its seeds, tasks, start and data_dir.
_OWN = frozenset(
    """
    data_dir do_eval do_train exam finetune.init_checkpoint model_dir model_name
    overwrite preprocessed_data_dir results_json results_pkl results_txt
    run_name seed task_names
    """.split()
)
_MOST_STEPS = 2**31 - 1
_MOST_OPERATIONS = 1e30  # or tokens; beyond any machine
_CHOOSING = 2**30  # added to the seeds that choose a rate and do not count
RANDOM = "random"
Hparams = dict[str, Any]
Lines = Mapping[str, Mapping[str, Any]]  # digest -> a finished cell's line


@dataclasses.dataclass(frozen=True)
class Arm:
    """One setting that is compared with others."""

    line: str  # its name in the file
    point: str  # its place in the grid
    own: Hparams  # what the file says of it alone
    start: str = ""  # "" (it is pre-trained), RANDOM, or a checkpoint
    pretrain: Hparams = dataclasses.field(default_factory=dict)
    config: PretrainingConfig | None = None  # None: the checkpoint has its own
    cost: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        return ",".join(filter(None, (self.line, self.point))) or "all"


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run, which one process after another brings to its end."""

    name: str
    digest: str  # "" while its learning rate is not chosen
    facts: dict[str, Any]  # what its line says; of data, which has none, {}
    command: Sequence[str] = ()  # program and arguments
    needs: tuple["Cell", ...] = ()
    folder: str = ""  # where its model and results are
    reads: str = ""  # patterns of the files of data, where that is known


class Study:
    """A study file that can be run; raises a UserError for one that cannot."""

    def __init__(
        self, path: str, output_dir: str = "", data_dir: str = ""
    ) -> None:
        said = read_json(path)
        base = said.pop("base", "")
        if not isinstance(base, str):
            raise UserError(
                f"{path}: base: expected the name of a study file, got"
                f" {json.dumps(base)[:60]}"
            )
        if base:
            base = os.path.join(os.path.dirname(path), base)
            said = _merged(read_json(base), said)
        self.path, self._said, self.digest = path, said, _digest(said)
        self.name = os.path.splitext(os.path.basename(path))[0]
        with _at(path):
            _check_said(said)
            self.data_dir = data_dir or said.get("data_dir", "")
            folder = os.path.join("runs", self.name)
            self.output = output_dir or said.get("output_dir", folder)
            self.tasks: dict[str, Hparams] = said.get("tasks", {})
            self.seeds: list[int] = said.get("seeds", [1])
            self.figures: dict[str, list[str]] = said.get("figures", {})
            self._choice = said.get("choose_learning_rate", {})
            data = list(said.get("data", {}).items())
            self._data = tuple(
                Cell(f"data.{place}", _digest(data[:number]), {}, words)
                for number, (place, words) in enumerate(data, 1)
            )
            self._exams = tuple(
                Cell(f"exam.{place}", _digest([data, words]), {}, words)
                for place, words in said.get("exam", {}).items()
            )
            self.exam = next(iter(said.get("exam", {})), "")
            self.arms = list(self._read_arms())
            first = self.arms[0].line or self.arms[0].name
            self.against = said.get("against", first)
            self._check_names()
            self._check_runs()

    def _read_arms(self) -> Iterator[Arm]:
        grid = self._said.get("grid", {})
        for line, base in self._said.get("arms", {"": {}}).items():
            for values in itertools.product(*grid.values()):
                places = list(zip(grid, values, strict=True))
                own = reduce(_merged, (_nested(*p) for p in places), base)
                point = ",".join(
                    f"{key.split('.')[-1]}={value:.10g}"
                    if type(value) in (int, float)
                    else f"{key.split('.')[-1]}={json.dumps(value)}"
                    for key, value in places
                )
                point = re.sub(r"[^\w.=,+-]+", "-", point.replace('"', ""))
                with _at(f"arms.{line}" if line else "pretrain"):
                    yield self._arm(Arm(line, point, own))

    def _arm(self, arm: Arm) -> Arm:
        """With what follows from what the file says."""
        if not re.fullmatch(r"\w[\w.=,+-]*", arm.name):
            raise UserError(f"{arm.name!r}: a folder cannot have this name")
        whole = _merged(self._said, arm.own)
        start, hparams = whole.get("start", ""), whole.get("pretrain", {})
        if start not in ("", RANDOM):
            _check_start(start)
            return dataclasses.replace(arm, start=start)
        names, cost = (arm.name, self.output), {}
        config = PretrainingConfig.create(*names, **hparams)
        if not start:
            steps = _cost(config, whole.get("budget", {}))["steps"]
            defaults = {"export_at_end": False, "keep_checkpoint_max": 1}
            defaults["eval_every_n_steps"] = steps
            hparams = {**defaults, **hparams, "num_train_steps": steps}
            config = PretrainingConfig.create(*names, **hparams)
            cost = _cost(config, {})
            config = with_vocab_casing(config)
            if not config.eval_every_n_steps:
                raise UserError("eval_every_n_steps: 0 leaves no results")
        return dataclasses.replace(
            arm, start=start, pretrain=hparams, config=config, cost=cost
        )

    def _check_names(self) -> None:
        names = [f"{a.name}/{s}" for a in self.arms for s in self.seeds]
        for name in names:
            if names.count(name) > 1:
                raise UserError(
                    f"arms, grid, seeds: two cells are named {name}; make the"
                    " values or the seeds differ"
                )
        known = {name for arm in self.arms for name in (arm.name, arm.line)}
        if self.against not in known:
            raise UserError(f"against: there is no arm {self.against!r}")
        if self.tasks and not self.data_dir:
            raise UserError("data_dir: missing; it holds finetuning_data")
        for name in self.figures:
            if name not in ("pretrain", *self.tasks):
                raise UserError(f"figures.{name}: no such task in this study")

    def _check_runs(self) -> None:
        """Refuses settings that no run accepts, and data that is not there."""
        for arm in self.arms:
            if not (arm.start or self._data):
                with _at("pretrain"):
                    check_records(arm.config, training=True)
            for task in self.tasks:
                hparams = self._finetuning_hparams(arm, task)
                with _at(f"tasks.{task}"):
                    names = (arm.name, self.data_dir)
                    for own in ({}, *self._choices()):
                        given = {**hparams, **own}
                        config = FinetuningConfig.create(*names, **given)
                        if config.num_trials < 1:
                            raise UserError("num_trials: expected 1 or more")
                    first = arm is self.arms[0]  # All have these figures.
                    figures = self.figures.get(task, ()) if first else ()
                    _check_task(config, task, figures)

    def _finetuning_hparams(self, arm: Arm, task: str) -> Hparams:
        # Where no checkpoint tells it.
        names = (*SIZE_HPARAMS, *TOKENIZER_HPARAMS) if arm.config else ()
        sizes = {name: getattr(arm.config, name) for name in names}
        shared = _merged(self._said.get("finetune", {}), self.tasks[task])
        own = _merged(shared, arm.own.get("finetune", {}))
        told = {"keep_all_models": False, **own, "task_names": [task]}
        # One size or rate among the overrides leaves the others as they are.
        return _merged(sizes, told)

    def cells(self, lines: Lines) -> list[Cell]:
        """All but data, in order; `lines` tell which rates are best."""
        found: list[Cell] = []
        for seed, arm in itertools.product(self.seeds, self.arms):
            found += filter(None, [self.pretraining(arm, seed)])
            for task in self.tasks:
                found += self._choosing(arm, task).values()
                found.append(self.counted(arm, seed, task, lines))
        return list({cell.name: cell for cell in found}.values())

    def pretraining(self, arm: Arm, seed: int) -> Cell | None:
        """An arm's pre-training, which arms that do not differ in it share."""
        if arm.start:
            return None
        arm = next(a for a in self.arms if a.pretrain == arm.pretrain)
        # Sitting it changes no weight: it is no part of what is made.
        exam = {"exam": self.exam} if self.exam and _detects(arm) else {}
        return self._cell(
            f"{arm.name}/{seed}",
            {
                "kind": "pretrain",
                "arm": arm.name,
                "seed": seed,
                **arm.cost,
                "hparams": arm.own.get("pretrain", {}),
                **exam,
            },
            "run_pretraining.py",
            {**arm.pretrain, "seed": seed},
            made_of=self._said.get("data"),
            needs=self._data + self._exams,
            reads=arm.config.pretrain_text or arm.config.pretrain_tfrecords,
            places=exam,
        )

    def counted(self, arm: Arm, seed: int, task: str, lines: Lines) -> Cell:
        """The fine-tuning whose results count, with all its trials."""
        tried = {}
        for rate, cell in self._choosing(arm, task).items():
            if figures := lines.get(cell.digest, {}).get("results"):
                figure = next(iter(figures))  # the main one
                mean = describe(from_json(figures[figure])).mean
                if mean == mean:
                    tried[rate] = -mean if lower_is_better(figure) else mean
        own = {"learning_rate": max(tried, key=tried.get)} if tried else {}
        cell = self._finetuning("", arm, seed, task, {**own, "seed": seed})
        waits = bool(self._choice) and not tried
        return dataclasses.replace(cell, digest="") if waits else cell

    def _choosing(self, arm: Arm, task: str) -> dict[float, Cell]:
        """The fine-tunings that choose a rate, on the first seed's weights."""
        seed, found = self.seeds[0], {}
        for own in self._choices():
            rate, own["seed"] = own["learning_rate"], seed + _CHOOSING
            names = (f"/learning_rate={rate}", arm, seed, task)
            found[rate] = self._finetuning(*names, own)
        return found

    def _choices(self) -> Iterator[Hparams]:
        own = {"num_trials": 1, **self._choice}
        for rate in own.pop("values", ()):
            yield {**own, "learning_rate": rate}

    def _finetuning(
        self, ending: str, arm: Arm, seed: int, task: str, own: Hparams
    ) -> Cell:
        made_of: Any = [arm.start, arm.pretrain, self._said.get("data")]
        start = None if arm.start == RANDOM else arm.start
        if pretraining := self.pretraining(arm, seed):
            made_of, start = pretraining.digest, pretraining.folder
        records = os.path.join(self.output, "finetuning_tfrecords", task)
        places = {"init_checkpoint": start, "preprocessed_data_dir": records}
        if arm.config:
            places["vocab_file"] = arm.config.vocab_file
        hparams = {**self._finetuning_hparams(arm, task), **own}
        reads = os.path.join(self.data_dir, "finetuning_data", task, "*")
        path = hparams.get("task_config")
        if path and (described := read_json(path))["name"] == task:
            made_of = [made_of, file_sha256(path)]
            folder, names = os.path.dirname(path), described["files"].values()
            reads = ",".join(os.path.join(folder, name) for name in names)
        told = {n: v for n, v in own.items() if n == "learning_rate"}
        return self._cell(
            f"{arm.name}/{seed}/{task}{ending}",
            {"kind": "finetune", "arm": arm.name, "seed": seed, "task": task}
            | {"hparams": {**arm.own.get("finetune", {}), **told}},
            "run_finetuning.py",
            hparams,
            made_of=made_of,
            needs=(pretraining,) if pretraining else self._data,
            reads=reads,
            places=places,
        )

    def _cell(
        self,
        name: str,
        facts: dict[str, Any],
        program: str,
        hparams: Hparams,
        made_of: Any,
        needs: tuple[Cell, ...],
        reads: str,
        places: Hparams | None = None,  # do not count as what it is made of
    ) -> Cell:
        digest = _digest([made_of, hparams])
        model = f"{facts['kind']}-{digest}"
        text = json.dumps({**(places or {}), **hparams})
        names = (f"--data-dir={self.output}", f"--model-name={model}")
        command = (program, *names, f"--hparams={text}")
        folder = os.path.join(self.output, "models", model)
        return Cell(name, digest, facts, command, needs, folder, reads)


def _detects(arm: Arm) -> bool:
    """Whether an arm's evaluations can sit an exam of replaced tokens."""
    config = arm.config
    return config.detects_replacements


def _cost(config: PretrainingConfig, budget: Mapping[str, float]) -> Hparams:
    """Steps, tokens and operations of a run, by a budget of one of them."""
    parameters = pretraining_parameters(config).total
    flops = pretraining_step_flops(config, parameters=parameters)
    a_step = {"steps": 1, "tokens": flops.tokens, "flops": flops.total}
    steps = config.num_train_steps
    if len(budget) > 1 or (budget and config.is_explicit("num_train_steps")):
        raise UserError(
            "budget: one of steps, tokens, flops and num_train_steps says how"
            f" long; got {json.dumps(budget)}, num_train_steps {steps}"
        )
    for name, amount in budget.items():
        steps = round(amount / a_step[name])
        if name == "flops" and config.is_explicit("two_stage_steps"):
            first = config.two_stage_steps
            own = (config, parameters)
            one, two = (pretraining_step_flops(*own, n).total for n in (1, 2))
            steps = first + round((amount - first * one) / two)
            if steps <= first:
                raise UserError(
                    f"budget: {json.dumps(budget)} ends in the first stage"
                    f" (two_stage_steps {first:,}): give more, or fewer steps"
                )
    if steps < 1:
        raise UserError(f"budget: {json.dumps(budget)} is less than a step")
    if steps > _MOST_STEPS:
        raise UserError(
            f"budget: {json.dumps(budget)} is {steps:.4g} steps; expected at"
            f" most {_MOST_STEPS:,}"
        )
    return {name: steps * each for name, each in a_step.items()}


# What is said, checked.


@contextlib.contextmanager
def _at(where: str) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def _check_said(said: Hparams) -> None:
    _check_keys(said, _KEYS, "")
    choice = said.get("choose_learning_rate", {})
    _check_keys(choice, _CHOICE_KEYS, "choose_learning_rate.")
    for key in ("arms", "grid", "seeds", "tasks"):
        if key in said and not said[key]:
            raise UserError(f"{key}: empty; there is nothing to run")
    _check_arm({key: said[key] for key in _ARM_KEYS if key in said}, "")
    for task, own in said.get("tasks", {}).items():
        _check_arm({"finetune": own}, f"tasks.{task}: ")
    for line, own in said.get("arms", {}).items():
        _check_arm(own, f"arms.{line}.")
    texts = ("data", "exam", "figures")
    lists = {name: said.get(name, {}) for name in (*texts, "grid")}
    if len(lists["exam"]) > 1:
        raise UserError(
            f"exam: expected one file, got {', '.join(lists['exam'])}; leave"
            " all but one out"
        )
    if "choose_learning_rate" in said:
        if "values" not in choice:
            raise UserError("choose_learning_rate.values: missing")
        rates = {"finetune.learning_rate": choice["values"]}
        lists["choose_learning_rate"] = rates
    for section, found in lists.items():
        for key, values in found.items():
            if not isinstance(values, list) or not values:
                raise UserError(
                    f"{section}.{key}: expected a list, got {values!r}"
                )
            for number, value in enumerate(values):
                if section not in texts:
                    _check_arm(_nested(key, value), f"{section}.")
                elif not isinstance(value, str):
                    raise UserError(
                        f"{section}.{key}[{number}]: expected text, got"
                        f" {value!r}"
                    )
    for number, seed in enumerate(said.get("seeds", ())):
        if type(seed) is not int or not 0 <= seed < _CHOOSING:
            raise UserError(f"seeds[{number}]: {seed!r} is no seed")


def _check_keys(given: Any, keys: Mapping[str, Any], where: str) -> None:
    if not isinstance(given, dict):
        raise UserError(f"{where} expected an object, got {given!r}")
    for key, value in given.items():
        if key not in keys:
            near = ", ".join(nearest_names(key, keys))
            raise UserError(f"{where}{key}: unknown; nearest: {near}")
        if not isinstance(value, keys[key]) or isinstance(value, bool):
            words = {dict: "an object", list: "a list", str: "text"}
            wanted = words.get(keys[key], "a number")
            raise UserError(f"{where}{key}: expected {wanted}, got {value!r}")


def _check_arm(own: Any, where: str) -> None:
    _check_keys(own, _ARM_KEYS, where)
    budget = own.get("budget", {})
    _check_keys(budget, _BUDGETS, f"{where}budget.")
    for name, amount in budget.items():
        # Comparisons are exact for integers that no float holds.
        if not 0 < amount < float("inf"):
            raise UserError(
                f"{where}budget.{name}: expected a number above 0, got"
                f" {shorten(amount)}"
            )
        if amount > _MOST_OPERATIONS:
            raise UserError(
                f"{where}budget.{name}: expected at most"
                f" {_MOST_OPERATIONS:.0e}, got {shorten(amount)}"
            )
    for kind, config in _CONFIGS.items():
        for name, value in own.get(kind, {}).items():
            with _at(f"{where}{kind}.{name}"):
                if {name, f"{kind}.{name}"} & _OWN:
                    raise UserError(
                        "is set by the study (seeds, tasks, start, data_dir)"
                    )
                config.clean_hparams({name: value})


def _check_start(start: str) -> None:
    """Raise a UserError unless a checkpoint is where `start` says."""
    from electra_tf.checkpoints import tf1  # imports TensorFlow

    path = resolve_reference(start)
    if filesystem.exists(f"{path}.index"):
        return
    if not filesystem.exists(path):
        raise UserError(f"start: {start}: no such checkpoint.{hub_hint(start)}")
    is_folder = filesystem.is_directory(path)
    if is_folder and not (
        tf1.list_checkpoints(path) or find_hugging_face_weights(path)
    ):
        raise UserError(
            f"start: {start}: no checkpoint in this folder; expected"
            " model.ckpt-<step> or a model of transformers"
        )


def _check_task(
    config: FinetuningConfig, name: str, figures: Sequence[str]
) -> None:
    from electra_tf.finetuning.registry import get_task  # brings TensorFlow

    # Its vocabulary may still have to be built.
    tokenizer: Any = types.SimpleNamespace(
        convert_tokens_to_ids=lambda tokens: [0 for _ in tokens]
    )
    task = get_task(config, name, tokenizer)
    for split in ("train", "dev"):
        task.check_split(split)
    known = task.metric_names() if figures else ()
    for figure in figures:
        if figure not in known:
            raise UserError(
                f"figures.{name}: no figure {figure!r}; expected one of"
                f" {', '.join(known)}"
            )


def _merged(base: Hparams, own: Hparams) -> Hparams:
    """Later values win; objects are merged key by key, but for a budget."""
    both = {
        key: _merged(base[key], own[key])
        for key in base.keys() & own.keys()
        if isinstance(base[key], dict) and isinstance(own[key], dict)
        if key != "budget" or not own[key].keys() & _BUDGETS.keys()
    }
    return {**base, **own, **both}


def _nested(key: str, value: Any) -> Hparams:
    """{"a": {"b": value}} of "a.b"."""
    for name in reversed(key.split(".")):
        value = {name: value}
    return value


def _digest(what: Any) -> str:
    text = json.dumps(what, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
