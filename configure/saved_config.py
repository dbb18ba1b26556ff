# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What every config does: it is made from layers, and goes to JSON and back."""

import copy
import dataclasses
import functools
import json
import typing
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from configure import hparams as hparam_rules
from configure.pretraining_checks import clean_overrides

Config = TypeVar("Config", bound="SavedConfig")

# (origin, hparams) pairs, later ones winning.
Layers = list[tuple[str, dict[str, Any]]]
NAMES = ("model_name", "data_dir")


@dataclasses.dataclass
class Draft:
    """Values of a config in the making.

    Attributes:
      values: hparams by name.
      origins: where each came from.
    """

    values: dict[str, Any]
    origins: dict[str, str]

    def update(self, new: Mapping[str, Any], origin: str) -> None:
        """Sets values; these count from now on."""
        self.values.update(copy.deepcopy(dict(new)))
        self.origins.update(dict.fromkeys(new, origin))


class SavedConfig:
    """Base of the config dataclasses; they add fields and what is derived.

    Attributes:
      settled_origins: origins of values that nobody asked for.
    """

    settled_origins: ClassVar[Collection[str]]

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
        """Builds a config from several sources, later ones winning.

        The order is the original's: defaults (a preset counts as defaults),
        the given values, what is derived from them, and the given values
        again, so that they always win.

        Returns:
          The resolved config; `origins` says where each value came from.
        """
        cleaned = [(origin, cls.clean_hparams(new)) for origin, new in layers]
        values = cls.default_hparams()
        draft = Draft(values, dict.fromkeys(values, "default"))
        names = dict(zip(NAMES, (model_name, data_dir), strict=True))
        names = {k: hparam_rules.coerce(k, v, str) for k, v in names.items()}
        draft.update(names, names_origin)
        cls._begin(draft, cleaned)
        for origin, given in cleaned:
            draft.update(given, origin)
        cls._derive(draft)
        for origin, given in cleaned:
            draft.update(given, origin)
        return cls(**draft.values, origins=draft.origins)

    @classmethod
    def _begin(cls, draft: Draft, layers: Layers) -> None:
        """Sets what given values override; called once."""

    @classmethod
    def _derive(cls, draft: Draft) -> None:
        """Sets what follows from the given values; called once."""

    @classmethod
    @functools.cache
    def field_types(cls) -> dict[str, Any]:
        """Returns the declared type of every hparam, in declared order."""
        hints = typing.get_type_hints(cls)
        fields = dataclasses.fields(cls)
        return {f.name: hints[f.name] for f in fields if f.name != "origins"}

    @classmethod
    def default_hparams(cls) -> dict[str, Any]:
        """Returns every hparam that has a default, before any derivation."""
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

        Returns:
          The same names with values of the declared types. A None for
          `max_predictions_per_seq` asks for the derived value and is left
          out.
        """
        known = cls.field_types()
        hparam_rules.check_names(given, [n for n in known if n not in NAMES])
        clean = {
            name: hparam_rules.coerce(name, value, known[name])
            for name, value in given.items()
        }
        # None asks for the derived value.
        if clean.get("max_predictions_per_seq", 0) is None:
            del clean["max_predictions_per_seq"]
        if overrides := clean.get("model_hparam_overrides"):
            clean["model_hparam_overrides"] = clean_overrides(overrides)
        return clean

    @classmethod
    def explicit_hparams(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Undoes `to_json`: keeps only what somebody asked for.

        A value that a default, a preset or a derivation would give again is
        dropped, so that it follows a new model name, task or length; one
        that differs (the file was edited) is kept.
        """
        return hparam_rules.explicit_hparams(
            given, cls.create, cls.settled_origins
        )

    @classmethod
    def from_json(cls: type[Config], text_or_path: str) -> Config:
        """Reads back what `to_json` wrote."""
        given = cls.explicit_hparams(hparam_rules.read_hparams(text_or_path))
        model_name = given.pop("model_name", "")
        data_dir = given.pop("data_dir", "")
        return cls.from_layers(model_name, data_dir, [("file", given)], "file")

    def to_json(self) -> str:
        """Returns all values and their origins as JSON text.

        `--hparams` accepts a file of this text. Derived values are derived
        again when it is read, so the file can serve another task or model.
        """
        values = self.as_dict()
        values["_origins"] = dict(self.origins)
        return json.dumps(values, indent=2) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Returns every hparam by name, in the order declared."""
        return {
            field.name: copy.deepcopy(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if field.name != "origins"
        }
