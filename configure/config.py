# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What both configs do: they are made from layers, checked, and saved as JSON.

A field's type says what it may hold, its comment is its help.
"""

import copy
import dataclasses
import functools
import json
import re
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from configure.bounds import (
    BelowOne,
    Bound,
    Natural,
    NonNegative,
    Positive,
    Seed,
    Size,
    Width,
    at_least,
    at_most,
    check_bounds,
    one_of,
)
from configure.errors import UserError
from configure.validation import check_names
from configure.values import coerce


def default_of(field: dataclasses.Field) -> Any:
    """A field's default; `dataclasses.MISSING` if it has none."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


MODEL_SIZES = ("small", "base", "large")
_ModelSize = Annotated[str, one_of(*MODEL_SIZES)]
_Optimizer = Annotated[str, one_of("original", "adamw", "lamb")]
# Float32 holds nothing smaller to its full precision.
_Epsilon = Annotated[float, at_least(1e-37)]
# TensorFlow allocates a shuffle buffer's places at once, 24 bytes each.
_Buffer = Annotated[Natural, at_most(2**26)]
_Threads = Annotated[Natural, at_most(2**12)]
_OnNonFinite = Annotated[str, one_of("stop", "rewind")]
_ReadOrder = Annotated[str, one_of("after_increment", "before_increment")]
_Strategy = Annotated[
    str, one_of("auto", "one_device", "mirrored", "multi_worker", "tpu")
]
_Precision = Annotated[
    str,
    Bound(
        lambda value: value in ("", "bf16", "fp16"),
        "bf16, fp16 or empty (float32)",
    ),
]

# The original's transformer settings, for model_hparam_overrides.
_OVERRIDES: dict[str, Any] = {
    "vocab_size": Size,
    "hidden_size": Width,
    "num_hidden_layers": Annotated[Positive, at_most(10_000)],
    "num_attention_heads": Width,
    "hidden_act": str | None,
    "intermediate_size": Size,
    "hidden_dropout_prob": BelowOne,
    "attention_probs_dropout_prob": BelowOne,
    "max_position_embeddings": Size,
    "type_vocab_size": Size,
    "initializer_range": NonNegative,
    "layer_norm_eps": NonNegative,
}

NAMES = ("model_name", "data_dir")
# What fine-tuning takes from a pre-trained model.
SIZE_HPARAMS = tuple(
    "model_size embedding_size vocab_size model_hparam_overrides".split()
)
TOKENIZER_HPARAMS = ("do_lower_case", "strip_accents")
# Origins that a value has without anybody asking for it.
_SETTLED_ORIGINS = frozenset({"default", "preset", "derived"})
# Origins of values that a file of the model states, and will state again.
_INFERRED_ORIGINS = frozenset({"checkpoint", "vocabulary"})

Config = TypeVar("Config", bound="TrainingConfig")


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Base of the configs: the hparams that both have, and how one is made."""

    purpose: ClassVar[str]  # what the program does, for `--help`

    _: dataclasses.KW_ONLY
    # Where each value came from.
    origins: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )

    # ---- Model ----
    model_size: _ModelSize = "small"  # the paper's sizes
    # Changes to the size's transformer: hidden_size, num_hidden_layers, ...
    model_hparam_overrides: dict[str, Any] = dataclasses.field(
        default_factory=dict
    )
    embedding_size: Width | None = None  # small: 128; none: the hidden size
    vocab_size: Size = 30522  # tokens in the vocabulary
    do_lower_case: bool = True  # is the text lower-cased?

    # ---- TPU settings ----
    use_tpu: bool = False  # the same as distribution_strategy=tpu
    num_tpu_cores: Positive = 1  # kept for the original's command lines
    tpu_job_name: str | None = None  # worker job, where there are several
    tpu_name: str | None = None  # the Cloud TPU to use
    tpu_zone: str | None = None  # the zone it is in
    gcp_project: str | None = None  # the project it belongs to

    # ---- Extensions of both programs ----
    seed: Seed = 0  # of every random draw in a run
    strip_accents: bool = True  # were accents stripped when lower-casing?
    # Update k uses rate k ("after_increment", what the original does when
    # run) or rate k-1 ("before_increment").
    lr_read_order: _ReadOrder = "after_increment"
    # original (Adam with decoupled decay), adamw (tf_keras's) or lamb (that of
    # tf-models-official). A run's slots are of one only. Loshchilov and Hutter
    # add epsilon after the bias correction, this adamw before it: after six
    # updates at 1e-2, weights differ by 0.0001 to 0.0003.
    optimizer: _Optimizer = "original"
    adam_beta_1: BelowOne = 0.9  # decay of the first moment
    adam_beta_2: BelowOne = 0.999  # ... of the second
    adam_epsilon: _Epsilon = 1e-6  # added to the second's square root
    adam_bias_correction: bool = False  # textbook Adam, as adamw and lamb are
    shuffle_buffer_size: _Buffer = 100  # examples shuffled among each other
    gradient_accumulation_steps: Positive = 1  # micro-batches of a batch
    eval_every_n_steps: Natural = 0  # evaluate while training; 0: never
    # Metric whose best evaluation's model is kept (pre-training: in
    # <model_dir>/best; fine-tuning: and scored); of a loss or mse the lowest.
    keep_best: str | None = None
    # Regular expression: variables that init_checkpoint may lack (fine-tuning:
    # besides the heads).
    allow_missing: str | None = None
    overwrite: bool = False  # allow replacing existing models and results
    # Stop at what is else only warned of: text or records that do not suit the
    # model's casing, labels that no training example has, bad rows.
    strict: bool = False
    log_every_n_steps: Positive = 10  # steps between lines on the console
    # A loss or gradient that is not finite: stop, or rewind to the last
    # checkpoint and go on with other batches.
    on_nonfinite: _OnNonFinite = "stop"
    # After SIGTERM a run saves and leaves; wherever it is then, it has left
    # after so many seconds. 0: as many as it takes.
    preemption_seconds: NonNegative = 25.0
    distribution_strategy: _Strategy = "auto"  # which devices share the work
    require_gpu: bool = False  # refuse to run without a GPU
    # XLA makes one program of a step: other draws, and slower on CPUs.
    jit_compile: bool = False
    # CPU threads of an operation. 0: TensorFlow's choice; programs that train
    # take one where the machine has two to four cores and no GPU, and each core
    # computes rows of a batch of its own.
    threads: _Threads = 0
    # bf16 or fp16: transformer blocks compute in half precision; weights,
    # norms, softmaxes and losses stay float32. Empty: all in float32.
    mixed_precision: _Precision = ""
    # Training keeps only the inputs of transformer blocks and computes the
    # rest again: less memory, more time, the same results but for the last
    # digits. Null: where it would take too much of the machine's memory
    # otherwise (never on accelerators).
    recompute_grad: bool | None = None

    def __post_init__(self):
        for name, declared in self.field_types().items():
            check_bounds(f"hparam {name}", getattr(self, name), declared)
        for problem in self._problems():
            raise UserError(f"hparam {problem}")

    @classmethod
    def create(
        cls: type[Config], model_name: str, data_dir: str, **hparams: Any
    ) -> Config:
        return cls.from_layers(model_name, data_dir, [("argument", hparams)])

    @classmethod
    def from_layers(
        cls: type[Config],
        model_name: str,
        data_dir: str,
        layers: Iterable[tuple[str, Mapping[str, Any]]],
        names_origin: str = "argument",
    ) -> Config:
        """Builds a config from (origin, hparams) pairs, later ones winning.

        The order is the original's: defaults (a preset counts as defaults, each
        of its model_hparam_overrides, too), the given values, what is derived
        from them, and the given values again, so that they always win.
        """
        layers = [(origin, cls.clean_hparams(new)) for origin, new in layers]
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}

        def put(new: Mapping[str, Any], origin: str) -> None:
            values.update(copy.deepcopy(dict(new)))
            origins.update(dict.fromkeys(new, origin))

        put(cls.default_hparams(), "default")
        for name, value in zip(NAMES, (model_name, data_dir), strict=True):
            put({name: coerce(name, value, str)}, names_origin)
        given = {k: v for _, new in layers for k, v in new.items()}
        preset = cls.clean_hparams(cls._preset(given))
        put(preset, "preset")
        for origin, new in layers:
            if (name := "model_hparam_overrides") in preset and name in new:
                new[name] = preset[name] | new[name]
            put(new, origin)
        put(cls._derived(values, origins), "derived")
        for origin, new in layers:
            put(new, origin)
        return cls(**values, origins=origins)

    def is_stated(self, name: str) -> bool:
        return self.origins.get(name, "argument") not in _SETTLED_ORIGINS

    def with_values(
        self: Config, origin: str, values: Mapping[str, Any]
    ) -> Config:
        """The config made anew of what was stated, and of these values."""
        layers = [
            (self.origins.get(name, "argument"), {name: value})
            for name, value in self.as_dict().items()
            if self.is_stated(name) and name not in NAMES
        ]
        return type(self).from_layers(
            *(getattr(self, name) for name in NAMES),
            [*layers, (origin, values)],
            self.origins.get("model_name", "argument"),
        )

    def with_settings_of(
        self: Config, run: Mapping[str, Any], skip: Collection[str] = ()
    ) -> Config:
        """The config with what `run`'s JSON has, where nothing is stated."""
        known = (*self.field_types(), "_origins")
        given = {name: run[name] for name in known if name in run}
        asked = self.explicit_hparams(given) if "_origins" in given else {}
        skip = {*skip, *NAMES, "do_eval", "do_train", "overwrite"}
        # Of the machine that trained it.
        skip |= {"distribution_strategy", "require_gpu", "threads", "use_tpu"}
        values = {
            name: value
            for name, value in asked.items()
            if not (name in skip or self.is_stated(name))
            # Values inferred from files of the model are inferred again.
            and given["_origins"].get(name) not in _INFERRED_ORIGINS
        }
        return self.with_values("run", values) if values else self

    @classmethod
    def command_line_layers(
        cls, given: Mapping[str, Any]
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """Layers that hparams of a command line bring, below their own."""
        return []

    @classmethod
    def _preset(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Hparams that count as defaults, by what is given."""
        return {}

    @classmethod
    def _derived(
        cls, values: Mapping[str, Any], origins: Mapping[str, str]
    ) -> Mapping[str, Any]:
        """What follows from the values so far."""
        return {}

    def check_mode(self) -> None:
        """Raises unless there is something to do."""

    def warnings(self) -> list[str]:
        """What will run but is probably not meant, one text each."""
        return list(self._doubts())

    def _doubts(self) -> Iterator[str]:
        if self.do_train and self.learning_rate == 0:
            yield "learning_rate is 0: no weight will change"
        if self.use_tpu and self.distribution_strategy not in ("auto", "tpu"):
            yield (
                "use_tpu is set but distribution_strategy is"
                f" {self.distribution_strategy}, which is used"
            )

    def _problems(self) -> Iterator[str]:
        """Settings that cannot work together: the hparam and the remedy."""
        rows = self.model_hparam_overrides.get("max_position_embeddings", 512)
        if self.max_seq_length > rows:
            yield (
                f"max_seq_length: {self.max_seq_length} is longer than the"
                f" position table, max_position_embeddings = {rows}."
                " Shorten the examples, or use a model of more positions (when"
                " pre-training, set model_hparam_overrides to"
                f' {{"max_position_embeddings": {self.max_seq_length}}})'
            )
        if set("[*?") & set(self.model_dir):
            yield (
                f"model_dir: {self.model_dir!r} has [, * or ?, which TensorFlow"
                " takes for a pattern when it reads a checkpoint; choose"
                " another"
            )
        if "," in self.data_dir:
            yield (
                f"data_dir: {self.data_dir!r} has a comma, which stands between"
                " patterns of files; choose another"
            )
        if self.train_batch_size % self.gradient_accumulation_steps:
            yield (
                "gradient_accumulation_steps:"
                f" {self.gradient_accumulation_steps} does not divide"
                f" train_batch_size {self.train_batch_size}"
            )
        if self.keep_best and not self.eval_every_n_steps:
            yield (
                "keep_best: needs evaluations while training; set"
                " eval_every_n_steps"
            )
        try:
            re.compile(self.allow_missing or "")
        except re.error as error:
            yield (
                f"allow_missing: {self.allow_missing!r} is not a regular"
                f" expression ({error})"
            )

    @classmethod
    @functools.cache
    def field_types(cls) -> dict[str, Any]:
        """The declared type of every hparam, those that all have last."""
        hints = typing.get_type_hints(cls, include_extras=True)
        shared = [field.name for field in dataclasses.fields(TrainingConfig)]
        names = [
            f.name for f in dataclasses.fields(cls) if f.name not in shared
        ]
        return {n: hints[n] for n in [*names, *shared] if n != "origins"}

    @classmethod
    def default_hparams(cls) -> dict[str, Any]:
        values = {f.name: default_of(f) for f in dataclasses.fields(cls)}
        del values["origins"]
        missing = dataclasses.MISSING
        return {name: v for name, v in values.items() if v is not missing}

    @classmethod
    def clean_hparams(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Checks names and converts values to their declared types.

        Differs: the original keeps unknown names in `model_hparam_overrides`
        without a word.
        """
        known = cls.field_types()
        check_names(given, [n for n in known if n not in NAMES])
        clean = {n: coerce(n, value, known[n]) for n, value in given.items()}
        if overrides := clean.get("model_hparam_overrides"):
            kind = "model_hparam_overrides"
            check_names(overrides, _OVERRIDES, f"{kind} key")
            for name, value in overrides.items():
                label, declared = f"{kind}.{name}", _OVERRIDES[name]
                overrides[name] = coerce(label, value, declared)
                check_bounds(f"hparam {label}", overrides[name], declared)
        return clean

    @classmethod
    def explicit_hparams(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Undoes `to_json`: keeps only what somebody asked for.

        A value that a default, a preset or a derivation would give again is
        dropped, so that it follows a new model name, task or length; one
        that differs (the file was edited) is kept.
        """
        values = {k: v for k, v in given.items() if not k.startswith("_")}
        origins = given.get("_origins")
        if not isinstance(origins, Mapping):
            return values
        if origins.get("overwrite") not in _SETTLED_ORIGINS:
            values.pop("overwrite", None)  # It was of that one start.
        asked = {
            name: value
            for name, value in values.items()
            if name in NAMES or origins.get(name) not in _SETTLED_ORIGINS
        }
        settled = cls.create(
            *(asked.get(name, "") for name in NAMES),
            **{name: v for name, v in asked.items() if name not in NAMES},
        ).as_dict()
        return {
            name: value
            for name, value in values.items()
            if name in asked or name not in settled or settled[name] != value
        }

    def to_json(self) -> str:
        """All values and their origins as JSON, which `--hparams` takes."""
        values = {**self.as_dict(), "_origins": dict(self.origins)}
        return json.dumps(values, indent=2) + "\n"

    def as_dict(self) -> dict[str, Any]:
        names = self.field_types()
        return {name: copy.deepcopy(getattr(self, name)) for name in names}
