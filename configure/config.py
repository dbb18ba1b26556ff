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
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from configure import hparams as hparam_rules
from configure.errors import UserError
from configure.hparams import Bound, at_least, one_of

# Types of hparams: what a value must be, besides a number or text.
Positive = Annotated[int, at_least(1)]
Natural = Annotated[int, at_least(0)]
NonNegative = Annotated[float, at_least(0)]
Ratio = Annotated[float, Bound(lambda value: value > 0, "above 0")]
Share = Annotated[
    float, Bound(lambda value: 0 <= value <= 1, "a fraction from 0 to 1")
]
_Dropout = Annotated[
    float, Bound(lambda value: 0 <= value < 1, "at least 0 and below 1")
]
Seed = Annotated[
    Natural, Bound(lambda value: value < 2**31, "below 2147483648")
]
MODEL_SIZES = ("small", "base", "large")
ModelSize = Annotated[str, one_of(*MODEL_SIZES)]
ReadOrder = Annotated[str, one_of("after_increment", "before_increment")]
Strategy = Annotated[
    str, one_of("auto", "one_device", "mirrored", "multi_worker", "tpu")
]
Precision = Annotated[
    str,
    Bound(
        lambda value: value in ("", "bf16", "fp16"),
        "bf16, fp16 or empty (float32)",
    ),
]

# The original's transformer settings, for model_hparam_overrides.
_OVERRIDES: dict[str, Any] = {
    "vocab_size": Positive,
    "hidden_size": Positive,
    "num_hidden_layers": Positive,
    "num_attention_heads": Positive,
    "hidden_act": str | None,
    "intermediate_size": Positive,
    "hidden_dropout_prob": _Dropout,
    "attention_probs_dropout_prob": _Dropout,
    "max_position_embeddings": Positive,
    "type_vocab_size": Positive,
    "initializer_range": NonNegative,
}
_MAX_POSITION_EMBEDDINGS = 512  # of every size

NAMES = ("model_name", "data_dir")
# Origins that a value has without anybody asking for it.
_SETTLED_ORIGINS = frozenset({"default", "preset", "derived"})

Config = TypeVar("Config", bound="TrainingConfig")


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Base of the configs; they add fields and what is derived.

    Attributes:
      purpose: what the program does, for `--help`.
      origins: where each value came from.
    """

    purpose: ClassVar[str]

    origins: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False, kw_only=True
    )

    def __post_init__(self):
        """Raises for settings that cannot work."""
        for name, declared in self.field_types().items():
            value = getattr(self, name)
            hparam_rules.check_bounds(f"hparam {name}", value, declared)
        self._check()
        self._check_shared()

    @classmethod
    def create(
        cls: type[Config], model_name: str, data_dir: str, **hparams: Any
    ) -> Config:
        """Builds a config as the original does."""
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

        The order is the original's: defaults (a preset counts as defaults),
        the given values, what is derived from them, and the given values
        again, so that they always win.
        """
        layers = [(origin, cls.clean_hparams(new)) for origin, new in layers]
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}

        def put(new: Mapping[str, Any], origin: str) -> None:
            values.update(copy.deepcopy(dict(new)))
            origins.update(dict.fromkeys(new, origin))

        put(cls.default_hparams(), "default")
        for name, value in zip(NAMES, (model_name, data_dir), strict=True):
            put({name: hparam_rules.coerce(name, value, str)}, names_origin)
        given = {k: v for _, new in layers for k, v in new.items()}
        put(cls.clean_hparams(cls._preset(given)), "preset")
        for origin, new in layers:
            put(new, origin)
        put(cls._derived(values, origins), "derived")
        for origin, new in layers:
            put(new, origin)
        return cls(**values, origins=origins)

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
    ) -> dict[str, Any]:
        """What follows from the values so far."""
        raise NotImplementedError

    def _check(self) -> None:
        """Raises for combinations that cannot work."""
        raise NotImplementedError

    def check_mode(self) -> None:
        """Raises unless there is something to do."""
        raise NotImplementedError

    def warnings(self) -> list[str]:
        """What will run but is probably not meant, one text each."""
        found = []
        if self.do_train and self.learning_rate == 0:
            found.append("learning_rate is 0: no weight will change")
        if self.use_tpu and self.distribution_strategy not in ("auto", "tpu"):
            found.append(
                "use_tpu is set but distribution_strategy is"
                f" {self.distribution_strategy}, which is used"
            )
        return found

    def _check_shared(self) -> None:
        positions = self.model_hparam_overrides.get(
            "max_position_embeddings", _MAX_POSITION_EMBEDDINGS
        )
        if self.max_seq_length > positions:
            raise UserError(
                f"hparam max_seq_length: {self.max_seq_length} is longer than"
                f" the position table, max_position_embeddings = {positions}."
                " Shorten the examples, or use a model of more positions (when"
                " pre-training, set model_hparam_overrides to"
                f' {{"max_position_embeddings": {self.max_seq_length}}})'
            )
        if self.train_batch_size % self.gradient_accumulation_steps:
            raise UserError(
                "hparam gradient_accumulation_steps:"
                f" {self.gradient_accumulation_steps} does not divide"
                f" train_batch_size {self.train_batch_size}"
            )
        if self.keep_best and not self.eval_every_n_steps:
            raise UserError(
                "hparam keep_best: needs evaluations while training; set"
                " eval_every_n_steps"
            )
        try:
            re.compile(self.allow_missing or "")
        except re.error as error:
            raise UserError(
                f"hparam allow_missing: {self.allow_missing!r} is not a"
                f" regular expression ({error})"
            ) from error

    @classmethod
    @functools.cache
    def field_types(cls) -> dict[str, Any]:
        """The declared type of every hparam, in declared order."""
        hints = typing.get_type_hints(cls, include_extras=True)
        names = [field.name for field in dataclasses.fields(cls)]
        return {name: hints[name] for name in names if name != "origins"}

    @classmethod
    def default_hparams(cls) -> dict[str, Any]:
        """Every hparam that has a default, before any derivation."""
        values = {}
        for field in dataclasses.fields(cls):
            if field.default is not dataclasses.MISSING:
                values[field.name] = field.default
            elif field.default_factory is not dataclasses.MISSING:
                values[field.name] = field.default_factory()
        del values["origins"]
        return values

    @classmethod
    def clean_hparams(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Checks names and converts values to their declared types.

        A None for `max_predictions_per_seq`, which asks for the derived value,
        is left out.

        Differs: the original keeps unknown names in `model_hparam_overrides`
        without a word.
        """
        known = cls.field_types()
        hparam_rules.check_names(given, [n for n in known if n not in NAMES])
        clean = {
            name: hparam_rules.coerce(name, value, known[name])
            for name, value in given.items()
        }
        if clean.get("max_predictions_per_seq", 0) is None:
            del clean["max_predictions_per_seq"]
        if overrides := clean.get("model_hparam_overrides"):
            kind = "model_hparam_overrides"
            hparam_rules.check_names(overrides, _OVERRIDES, f"{kind} key")
            for name, value in overrides.items():
                label, declared = f"{kind}.{name}", _OVERRIDES[name]
                overrides[name] = hparam_rules.coerce(label, value, declared)
                hparam_rules.check_bounds(
                    f"hparam {label}", overrides[name], declared
                )
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
        asked = {
            name: value
            for name, value in values.items()
            if name in NAMES or origins.get(name) not in _SETTLED_ORIGINS
        }
        settled = cls.create(
            *(asked.get(name, "") for name in NAMES),
            **{name: v for name, v in asked.items() if name not in NAMES},
        ).as_dict()
        missing = object()
        edited = {
            name: value
            for name, value in values.items()
            if name not in asked and settled.get(name, missing) != value
        }
        return {**asked, **edited}

    @classmethod
    def from_json(cls: type[Config], text_or_path: str) -> Config:
        """Reads back what `to_json` wrote."""
        given = cls.explicit_hparams(hparam_rules.read_hparams(text_or_path))
        names = [given.pop(name, "") for name in NAMES]
        return cls.from_layers(*names, [("file", given)], "file")

    def to_json(self) -> str:
        """All values and their origins as JSON text, which `--hparams` takes.

        Derived values are derived again when it is read, so the file can
        serve another task or model.
        """
        values = {**self.as_dict(), "_origins": dict(self.origins)}
        return json.dumps(values, indent=2) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Every hparam by name, in the order declared."""
        names = self.field_types()
        return {name: copy.deepcopy(getattr(self, name)) for name in names}
