# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What every config does with files: to JSON text and back."""

import copy
import dataclasses
import json
from collections.abc import Collection
from typing import Any, ClassVar, TypeVar

from configure import hparams as hparam_rules

Config = TypeVar("Config", bound="SavedConfig")


class SavedConfig:
    """Base of the config dataclasses; they add fields and `from_layers`.

    Attributes:
      settled_origins: origins of values that nobody asked for.
    """

    settled_origins: ClassVar[Collection[str]]

    @classmethod
    def from_json(cls: type[Config], text_or_path: str) -> Config:
        """Reads back what `to_json` wrote.

        Args:
          text_or_path: the JSON text, or the path of a `.json` file.

        Returns:
          A config equal to the one written.

        Raises:
          UserError: the text is not such a config.
        """
        given = hparam_rules.explicit_hparams(
            hparam_rules.read_hparams(text_or_path),
            cls.create,
            cls.settled_origins,
        )
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
