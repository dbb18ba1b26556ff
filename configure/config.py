# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hparams that pre-training and fine-tuning share.

A field's type declares its bounds, and `--help` prints its comment. The base
class also creates, checks and saves configs.
"""

import copy
import dataclasses
import functools
import json
import re
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

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
from configure.problems import Level, Problem, raise_errors
from configure.suggestions import check_names
from configure.values import coerce

MODEL_SIZES = ("small", "base", "large")
_ModelSize = Annotated[str, one_of(*MODEL_SIZES)]
_Optimizer = Annotated[str, one_of("original", "adamw", "lamb")]
# A smaller epsilon would lose precision in float32.
_Epsilon = Annotated[float, at_least(1e-37)]
# TensorFlow allocates a whole shuffle buffer at once, 24 bytes per example.
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

# Keys of model_hparam_overrides, which are the names of the original's
# transformer settings, and the types of their values.
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
# Hparams that fine-tuning adopts from a pre-trained model.
SIZE_HPARAMS = (
    "model_size",
    "embedding_size",
    "vocab_size",
    "model_hparam_overrides",
)
TOKENIZER_HPARAMS = ("do_lower_case", "strip_accents")
# Origins of values that no user chose: defaults, and values that a preset or
# other values determine.
_IMPLICIT_ORIGINS = frozenset({"default", "preset", "derived"})
# Origins of values that each start infers again from the files of the model.
_INFERRED_ORIGINS = frozenset({"checkpoint", "vocabulary"})
# Hparams that apply to one start of a program, and not to later starts.
_START_HPARAMS = frozenset({"do_eval", "do_train", "overwrite"})
# Hparams that describe the machine, and do not apply to other machines.
_MACHINE_HPARAMS = frozenset(
    {"distribution_strategy", "require_gpu", "threads", "use_tpu"}
)

Config = TypeVar("Config", bound="TrainingConfig")


class OptimizerSettings(NamedTuple):
    """Hparams of an optimizer, except its learning rates."""

    optimizer: str  # original, adamw or lamb
    weight_decay_rate: float
    beta_1: float  # decay rate of the first moment
    beta_2: float  # decay rate of the second moment
    epsilon: float  # added to the square root of the second moment
    bias_correction: bool  # whether the bias of the moments is corrected
    # whether variables with equal rates and decays are updated as one vector
    joins_variables: bool


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Base class of the configs, with the hparams that they share."""

    purpose: ClassVar[str]  # purpose of the program, which `--help` prints

    _: dataclasses.KW_ONLY
    # Origin of each value, such as "flag", "preset" or "derived".
    origins: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )

    # ---- Model ----
    model_size: _ModelSize = "small"  # size from the paper
    # Settings of the transformer that replace those of model_size, such as
    # hidden_size.
    model_hparam_overrides: dict[str, Any] = dataclasses.field(
        default_factory=dict
    )
    # Width of the embedding tables. Default: 128 for small, otherwise the
    # hidden size.
    embedding_size: Width | None = None
    vocab_size: Size = 30522  # number of tokens in the vocabulary
    do_lower_case: bool = True  # lower-case the text

    # ---- TPU settings ----
    use_tpu: bool = False  # same as distribution_strategy=tpu
    # No effect; accepted for the original's commands.
    num_tpu_cores: Positive = 1
    # Name of the worker job, if a TPU has several jobs.
    tpu_job_name: str | None = None
    tpu_name: str | None = None  # Name of the Cloud TPU to train on.
    tpu_zone: str | None = None  # Google Cloud zone of the TPU.
    gcp_project: str | None = None  # Google Cloud project of the TPU

    # ---- Extensions of both programs ----
    seed: Seed = 0  # seed of all random draws in a run
    strip_accents: bool = True  # strip accents when lower-casing
    # Position at which the learning-rate schedule is read for update k: k
    # ("after_increment", as in the original) or k-1 ("before_increment").
    lr_read_order: _ReadOrder = "after_increment"
    # original (Adam with decoupled weight decay), adamw (of tf_keras) or lamb
    # (of tf-models-official). A run cannot change its optimizer. adamw adds
    # epsilon before the bias correction, whereas Loshchilov and Hutter add
    # epsilon after it: after six updates at learning rate 1e-2, weights differ
    # by 0.0001 to 0.0003.
    optimizer: _Optimizer = "original"
    adam_beta_1: BelowOne = 0.9  # decay rate of the first moment estimate
    adam_beta_2: BelowOne = 0.999  # decay rate of the second moment estimate
    # Constant added to the square root of the second moment.
    adam_epsilon: _Epsilon = 1e-6
    # Correct the bias of the moment estimates, as adamw and lamb do.
    adam_bias_correction: bool = False
    # Number of examples in the shuffle buffer of the training data.
    shuffle_buffer_size: _Buffer = 100
    gradient_accumulation_steps: Positive = 1  # micro-batches per batch
    # Training steps between evaluations; 0: none.
    eval_every_n_steps: Natural = 0
    # Metric that selects the best model. Pre-training keeps the best model in
    # <model_dir>/best; fine-tuning keeps the best model and reports its scores.
    # The best value is the highest; for losses and mse, the lowest.
    keep_best: str | None = None
    # Regular expression of variables that may be missing from init_checkpoint
    # (fine-tuning always accepts missing heads).
    allow_missing: str | None = None
    overwrite: bool = False  # replace existing models and results
    # Treat warnings about the data as errors: text or records that do not match
    # the model's casing, labels without a training example, invalid rows.
    strict: bool = False
    log_every_n_steps: Positive = 10  # steps between lines on the console
    # Response to a loss or gradient that is not finite: stop, or rewind to the
    # latest checkpoint and continue with other batches.
    on_nonfinite: _OnNonFinite = "stop"
    # Seconds after SIGTERM within which a run exits, even if its checkpoint is
    # not yet saved. 0: no limit.
    preemption_seconds: NonNegative = 25.0
    distribution_strategy: _Strategy = "auto"  # devices that compute each batch
    require_gpu: bool = False  # refuse to run without a GPU
    # Compile training steps with XLA. XLA changes the random draws, and is
    # slower on CPUs.
    jit_compile: bool = False
    # CPU threads per operation. 0: TensorFlow's default; but when training on
    # two to four cores without a GPU, each core computes a part of the batch
    # with one thread per operation.
    threads: _Threads = 0
    # bf16 or fp16: compute transformer blocks in half precision; weights,
    # norms, softmaxes and losses stay float32. Empty: compute everything in
    # float32.
    mixed_precision: _Precision = ""
    # Activation checkpointing: keep only the inputs of transformer blocks and
    # recompute other activations in the backward pass. Training needs less
    # memory and more time; results differ only in the last digits. Null:
    # recompute only if memory would otherwise be short, and never on
    # accelerators.
    recompute_grad: bool | None = None

    def __post_init__(self):
        for name, declared in self.field_types().items():
            check_bounds(f"hparam {name}", getattr(self, name), declared)
        raise_errors(self._errors())

    @classmethod
    def create(
        cls: type[Config], model_name: str, data_dir: str, **hparams: Any
    ) -> Config:
        """Return a config of explicit hparams and values derived from them."""
        return cls.from_layers(model_name, data_dir, [("argument", hparams)])

    @classmethod
    def from_layers(
        cls: type[Config],
        model_name: str,
        data_dir: str,
        layers: Iterable[tuple[str, Mapping[str, Any]]],
        names_origin: str = "argument",
    ) -> Config:
        """Build a config from pairs (origin, hparams).

        Later pairs take precedence over earlier pairs. Values are applied in
        the original's order: defaults, explicit values, derived values, and the
        explicit values again, which thus replace derived values. A preset
        replaces defaults, and each key of its model_hparam_overrides replaces a
        default key.
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
        explicit: dict[str, Any] = {}
        for _, new in layers:
            explicit |= new
        preset = cls.clean_hparams(cls._preset(explicit))
        put(preset, "preset")
        overrides = "model_hparam_overrides"
        for origin, new in layers:
            if overrides in preset and overrides in new:
                new[overrides] = preset[overrides] | new[overrides]
            put(new, origin)
        put(cls._derived(values, origins), "derived")
        for origin, new in layers:
            put(new, origin)
        return cls(**values, origins=origins)

    def is_explicit(self, name: str) -> bool:
        """Return whether the user chose an hparam's value."""
        return self.origins.get(name, "argument") not in _IMPLICIT_ORIGINS

    def with_values(
        self: Config, origin: str, values: Mapping[str, Any]
    ) -> Config:
        """Return a copy of the config in which `values` are explicit values.

        All values that are not explicit are derived again.
        """
        layers = [
            (self.origins.get(name, "argument"), {name: value})
            for name, value in self.as_dict().items()
            if self.is_explicit(name) and name not in NAMES
        ]
        return type(self).from_layers(
            self.model_name,
            self.data_dir,
            [*layers, (origin, values)],
            self.origins.get("model_name", "argument"),
        )

    def with_run_settings(
        self: Config, run: Mapping[str, Any], skip: Collection[str] = ()
    ) -> Config:
        """Return the config with hparams inherited from an earlier run.

        Only the run's explicit hparams are inherited, and explicit hparams of
        this config take precedence. Values inferred from the checkpoint are
        inferred again.

        Args:
          run: JSON object in the run's config.json.
          skip: names of hparams that are not inherited.
        """
        names = (*self.field_types(), "_origins")
        settings = {name: run[name] for name in names if name in run}
        run_origins = settings.get("_origins")
        if not isinstance(run_origins, Mapping):
            return self
        skip = {*skip, *NAMES} | _START_HPARAMS | _MACHINE_HPARAMS
        values = {
            name: value
            for name, value in self.explicit_hparams(settings).items()
            if not (name in skip or self.is_explicit(name))
            and str(run_origins.get(name)) not in _INFERRED_ORIGINS
        }
        return self.with_values("run", values) if values else self

    @property
    def micro_batch_size(self) -> int:
        """Number of rows in a micro-batch, over all devices."""
        return -(-self.train_batch_size // self.gradient_accumulation_steps)

    @property
    def optimizer_settings(self) -> OptimizerSettings:
        """The hparams of the optimizer, except its learning rates."""
        return OptimizerSettings(
            self.optimizer,
            self.weight_decay_rate,
            self.adam_beta_1,
            self.adam_beta_2,
            self.adam_epsilon,
            self.adam_bias_correction,
            # The other optimizers come from libraries, which update each
            # variable separately.
            self.jit_compile and self.optimizer == "original",
        )

    @property
    def token_rows(self) -> int:
        """Number of rows of the token table."""
        return self.model_hparam_overrides.get("vocab_size", self.vocab_size)

    @property
    def implied_rows_origin(self) -> str | None:
        """Origin of `token_rows`, or None if the user chose the value."""
        if "vocab_size" in self.model_hparam_overrides:
            return None
        origin = self.origins.get("vocab_size", "argument")
        if origin in (*_IMPLICIT_ORIGINS, "checkpoint"):
            return origin
        return None

    @property
    def lets_cores_share(self) -> bool:
        """Return whether the hparams allow CPU cores to share a batch."""
        if self.threads or self.jit_compile or self.use_tpu:
            return False
        return self.distribution_strategy in ("auto", "one_device")

    @classmethod
    def command_line_layers(
        cls, hparams: Mapping[str, Any]
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """Return (origin, hparams) pairs that a command line implies."""
        return []

    @classmethod
    def _preset(cls, hparams: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the hparams of the preset that explicit hparams select."""
        return {}

    @classmethod
    def _derived(
        cls, values: Mapping[str, Any], origins: Mapping[str, str]
    ) -> Mapping[str, Any]:
        """Return the values that are derived from other values."""
        return {}

    def check_mode(self) -> None:
        """Raise a UserError if the config neither trains nor evaluates."""

    def warnings(self) -> list[str]:
        """Return warnings about valid settings that are likely mistakes."""
        return list(self._warnings())

    def _warnings(self) -> Iterator[str]:
        if self.do_train and self.learning_rate == 0:
            yield (
                "learning_rate is 0: training changes no weight. Set a positive"
                " learning_rate"
            )
        if self.use_tpu and self.distribution_strategy not in ("auto", "tpu"):
            yield (
                "use_tpu is true, but distribution_strategy"
                f" {self.distribution_strategy} takes precedence. Remove"
                " use_tpu or distribution_strategy"
            )

    def _errors(self) -> Iterator[Problem]:
        """Yield errors about invalid combinations of values."""
        rows = self.model_hparam_overrides.get("max_position_embeddings", 512)
        if self.max_seq_length > rows:
            yield hparam_error(
                "max_seq_length",
                f"{self.max_seq_length} exceeds max_position_embeddings, the"
                f" number of positions of the model ({rows}). Lower"
                " max_seq_length, or use a model with more positions (when"
                " pre-training, set model_hparam_overrides to"
                f' {{"max_position_embeddings": {self.max_seq_length}}})',
            )
        if set("[*?") & set(self.model_dir):
            yield hparam_error(
                "model_dir",
                f"{self.model_dir!r} contains [, * or ?, which TensorFlow"
                " interprets as a pattern when it reads a checkpoint; rename"
                " the folder",
            )
        if "," in self.data_dir:
            yield hparam_error(
                "data_dir",
                f"{self.data_dir!r} contains a comma, which separates file"
                " patterns; rename the folder",
            )
        if self.train_batch_size % self.gradient_accumulation_steps:
            yield hparam_error(
                "gradient_accumulation_steps",
                f"{self.gradient_accumulation_steps} does not divide"
                f" train_batch_size {self.train_batch_size}; choose a divisor",
            )
        if self.keep_best and not self.eval_every_n_steps:
            yield hparam_error(
                "keep_best",
                f"{self.keep_best!r} requires evaluations during training, but"
                " eval_every_n_steps is 0; set eval_every_n_steps above 0",
            )
        try:
            re.compile(self.allow_missing or "")
        except re.error as error:
            yield hparam_error(
                "allow_missing",
                f"{self.allow_missing!r} is not a regular expression ({error});"
                " correct it",
            )

    @classmethod
    @functools.cache
    def field_types(cls) -> dict[str, Any]:
        """Return each hparam's declared type; shared hparams come last."""
        hints = typing.get_type_hints(cls, include_extras=True)
        shared = [field.name for field in dataclasses.fields(TrainingConfig)]
        names = [
            f.name for f in dataclasses.fields(cls) if f.name not in shared
        ]
        return {n: hints[n] for n in [*names, *shared] if n != "origins"}

    @classmethod
    def default_hparams(cls) -> dict[str, Any]:
        """Return the defaults of all hparams that have a default."""
        defaults = {}
        for field in dataclasses.fields(cls):
            default = default_of(field)
            if field.name != "origins" and default is not dataclasses.MISSING:
                defaults[field.name] = default
        return defaults

    @classmethod
    def clean_hparams(cls, hparams: Mapping[str, Any]) -> dict[str, Any]:
        """Return hparams converted to their declared types.

        Raises a UserError for unknown names and for values out of bounds.
        Differs: the original silently ignores unknown names in
        `model_hparam_overrides`.
        """
        types = cls.field_types()
        check_names(hparams, [name for name in types if name not in NAMES])
        clean = {n: coerce(n, value, types[n]) for n, value in hparams.items()}
        if overrides := clean.get("model_hparam_overrides"):
            kind = "model_hparam_overrides"
            check_names(overrides, _OVERRIDES, f"{kind} key")
            for name, value in overrides.items():
                label, declared = f"{kind}.{name}", _OVERRIDES[name]
                overrides[name] = coerce(label, value, declared)
                check_bounds(f"hparam {label}", overrides[name], declared)
        return clean

    @classmethod
    def explicit_hparams(cls, saved: Mapping[str, Any]) -> dict[str, Any]:
        """Return the explicit hparams of a config that `to_json` wrote.

        Defaults, presets and derived values are left out, because a different
        model name, task or length changes them. A saved value that differs from
        the derived value was edited in the file, and counts as explicit.
        """
        values = {k: v for k, v in saved.items() if not k.startswith("_")}
        origins = saved.get("_origins")
        if not isinstance(origins, Mapping):
            return values
        # Origins are compared as texts, because an edited file may contain a
        # list, which cannot be hashed.
        explicit_names = {
            name
            for name in values
            if str(origins.get(name)) not in _IMPLICIT_ORIGINS
        }
        if "overwrite" in explicit_names:
            values.pop("overwrite", None)  # applies to one start only
        explicit = {
            name: value
            for name, value in values.items()
            if name in NAMES or name in explicit_names
        }
        derived = cls.create(
            *(explicit.get(name, "") for name in NAMES),
            **{n: v for n, v in explicit.items() if n not in NAMES},
        ).as_dict()
        return {
            name: value
            for name, value in values.items()
            if name in explicit or name not in derived or derived[name] != value
        }

    def to_json(self) -> str:
        """Return all values and their origins as JSON, for `--hparams`."""
        values = {**self.as_dict(), "_origins": dict(self.origins)}
        return json.dumps(values, indent=2) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Return a copy of all values as a dictionary."""
        names = self.field_types()
        return {name: copy.deepcopy(getattr(self, name)) for name in names}


def hparam_error(name: str, message: str) -> Problem:
    """Return a problem that reports an invalid value of an hparam."""
    return Problem(Level.ERROR, message, field=f"hparam {name}")


def default_of(field: dataclasses.Field) -> Any:
    """Return a field's default, or `dataclasses.MISSING`."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
