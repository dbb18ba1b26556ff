# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What all exported modules have in common: settings inside, signatures.

Signatures of a module for a task:

  serving_default  `input_ids` [B, L]; `input_mask` and `segment_ids` [B, L]
                   may be empty ([0, 0], which is also the default recorded
                   for servers that know defaults) and are then derived.
  serve_ids        `input_ids` alone.
  serve_text       strings; which, is said by the module of the task.
  describe         nothing in; kind, labels and config out.

B and L are free in every one. Outputs have B first; labels are no inputs.
"""

from __future__ import annotations

import abc
import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from electra_tf.export.packing import Inputs, complete
from electra_tf.text.graph_tokenization import GraphTokenizer

Outputs = dict[str, tf.Tensor]
Signatures = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Settings:
    """What goes into a module besides the weights.

    Attributes:
      kind: of head: "classification", "tagging", "fill_mask" ...
      vocab_file: read when the module is made; the tokens are kept inside.
      do_lower_case: as in training.
      strip_accents: as in training.
      max_seq_length: wordpieces that a text is cut to.
      max_positions: rows of the position table, the most an L may be.
      labels: names, in the order of the head's outputs; may be empty.
      config: plain values, kept inside as JSON.
    """

    kind: str
    vocab_file: str
    do_lower_case: bool
    strip_accents: bool
    max_seq_length: int
    max_positions: int
    labels: tuple[str, ...] = ()
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class ServingModule(tf.Module, abc.ABC):
    """Base of what is written as a SavedModel.

    A subclass gives `signatures`; what its functions use of a model must be
    among `model_variables`. (Keras layers are not tracked themselves: their
    variables are enough, and Keras would save functions of its own.)

    Args:
      settings: what it is.
      model_variables: every variable its functions read.

    Attributes:
      settings: as given; not in the SavedModel.
      tokenizer: the in-graph tokenizer.
      kind: string variable, in the SavedModel.
      labels: string variable [C], in the SavedModel.
      config_json: string variable, in the SavedModel: `settings.config` with
        kind, labels and the tokenizer's settings.
    """

    def __init__(
        self, settings: Settings, model_variables: list[tf.Variable]
    ) -> None:
        super().__init__(name=settings.kind)
        self._settings_of = lambda: settings  # A function is not tracked.
        self.model_variables = list(model_variables)
        self.tokenizer = GraphTokenizer(
            settings.vocab_file,
            settings.do_lower_case,
            settings.strip_accents,
        )
        self.kind = _text_variable(settings.kind, "kind")
        self.labels = _text_variable(list(settings.labels), "labels")
        self.config_json = _text_variable(
            json.dumps(self.config(), ensure_ascii=False), "config_json"
        )

    @property
    def settings(self) -> Settings:
        """What the module is."""
        return self._settings_of()

    @abc.abstractmethod
    def compute(self, inputs: Inputs) -> Outputs:
        """From inputs [B, L] to named outputs, as the ids' signatures give."""

    @abc.abstractmethod
    def signatures(self) -> Signatures:
        """Returns functions by signature name, `describe` among them.

        Each is a `tf.function` with an input signature; the keys of what it
        returns are the names of the outputs.
        """

    def root(self) -> Any:
        """Returns the object that is saved: itself, unless overridden."""
        return self

    def parts(self) -> dict[str, Any]:
        """Returns further objects, saved in folders of these names."""
        return {}

    def config(self) -> dict[str, Any]:
        """Returns what is kept inside as JSON."""
        settings = self.settings
        return {
            "kind": settings.kind,
            "labels": list(settings.labels),
            "max_seq_length": settings.max_seq_length,
            "max_positions": settings.max_positions,
            "do_lower_case": settings.do_lower_case,
            "strip_accents": settings.strip_accents,
            **settings.config,
        }

    def describe_signature(self) -> Signatures:
        """Returns the signature `describe`, for `signatures`."""

        @tf.function(input_signature=[], autograph=False)
        def describe() -> Outputs:
            return {
                "kind": self.kind.read_value(),
                "labels": self.labels.read_value(),
                "config": self.config_json.read_value(),
            }

        return {"describe": describe}

    def ids_signatures(
        self, compute: Callable[[Inputs], Outputs]
    ) -> Signatures:
        """Returns `serving_default` and `serve_ids`, for `signatures`.

        Args:
          compute: from inputs [B, L] to named outputs.
        """
        matrix = tf.TensorSpec([None, None], tf.int32)
        not_given = tf.zeros([0, 0], tf.int32)

        @tf.function(input_signature=[matrix] * 3, autograph=False)
        def serving_default(
            input_ids: tf.Tensor,
            input_mask: tf.Tensor = not_given,
            segment_ids: tf.Tensor = not_given,
        ) -> Outputs:
            return compute(self.complete(input_ids, input_mask, segment_ids))

        @tf.function(input_signature=[matrix], autograph=False)
        def serve_ids(input_ids: tf.Tensor) -> Outputs:
            return compute(self.complete(input_ids))

        return {"serving_default": serving_default, "serve_ids": serve_ids}

    def complete(
        self,
        input_ids: tf.Tensor,
        input_mask: tf.Tensor | None = None,
        segment_ids: tf.Tensor | None = None,
    ) -> Inputs:
        """Fills in mask and segments, and refuses rows that are too long.

        Args:
          input_ids: int32 [B, L].
          input_mask: int32 [B, L]; None or empty: 1 where no [PAD] is.
          segment_ids: int32 [B, L]; None or empty: 1 after the first [SEP].

        Returns:
          The inputs. L beyond the position table makes an
          InvalidArgumentError when the function runs.
        """
        limit = self.settings.max_positions
        check = tf.debugging.assert_less_equal(
            tf.shape(input_ids)[1],
            limit,
            f"input_ids: rows are longer than the model's {limit} positions",
        )
        with tf.control_dependencies([check]):
            input_ids = tf.identity(input_ids)
        return complete(
            input_ids,
            input_mask,
            segment_ids,
            self.tokenizer.pad_id,
            self.tokenizer.sep_id,
        )


def _text_variable(value: str | list[str], name: str) -> tf.Variable:
    value = tf.constant(value, tf.string, shape=None if value else [0])
    return tf.Variable(value, trainable=False, name=name)
