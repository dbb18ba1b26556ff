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
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.finetuning.heads import Head
from electra_tf.finetuning.task import Task
from electra_tf.modeling.transformer import EncoderOutput
from electra_tf.prediction.loading import FinetunedModel
from electra_tf.text.graph_tokenization import GraphTokenizer

# Token ids to the inputs of the encoder, in the graph.


class Inputs(NamedTuple):
    """What the encoder takes; all int32 [B, L]."""

    input_ids: tf.Tensor
    input_mask: tf.Tensor
    segment_ids: tf.Tensor


def pack(
    first: tf.RaggedTensor,
    second: tf.RaggedTensor | None,
    max_length: int | tf.Tensor,
    cls_id: int,
    sep_id: int,
    width: int | tf.Tensor | None = None,
) -> tuple[Inputs, tf.Tensor]:
    """Joins texts to `[CLS] first [SEP]` or `[CLS] first [SEP] second [SEP]`.

    What does not fit is dropped from the end of the longer text, of the
    second where both are equally long. A second text without tokens is none.

    Args:
      first: int32 [B, (T)] ids.
      second: int32 [B, (T)] ids, or None for single texts.
      max_length: most ids of a row, the special ones included.
      cls_id: id of [CLS].
      sep_id: id of [SEP].
      width: L; None: the length of the longest row.

    Returns:
      The inputs, padded with 0; and
      bool [B], whether something was dropped.

    Source: google-research/electra, finetune/classification/
      classification_tasks.py, featurize.
    """
    first = tf.cast(first, tf.int32)
    rows = first.nrows(tf.int32)
    cls_column = tf.fill([rows, 1], cls_id)
    sep_column = tf.fill([rows, 1], sep_id)
    a = tf.cast(first.row_lengths(), tf.int32)
    if second is None:
        kept = tf.minimum(a, tf.maximum(max_length - 2, 0))
        ids = tf.concat([cls_column, cut(first, kept), sep_column], 1)
        head = tf.cast(ids.row_lengths(), tf.int32)
        return to_inputs(ids, head, width), kept < a
    second = tf.cast(second, tf.int32)
    b = tf.cast(second.row_lengths(), tf.int32)
    kept_a, kept_b = kept_lengths(a, b, max_length)
    # A second text of which nothing is left has no [SEP] either.
    last = cut(tf.RaggedTensor.from_tensor(sep_column), tf.minimum(kept_b, 1))
    parts = [cls_column, cut(first, kept_a), sep_column, cut(second, kept_b)]
    ids = tf.concat([*parts, last], 1)
    return to_inputs(ids, kept_a + 2, width), (kept_a < a) | (kept_b < b)


def kept_lengths(
    a: tf.Tensor, b: tf.Tensor, max_length: int | tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """How much of two texts is kept: dropping one by one, in closed form.

    Args:
      a: int32 [B], ids of the first text.
      b: int32 [B], ids of the second.
      max_length: most ids of a row, the special ones included.

    Returns:
      int32 [B] each, what is left of the first and of the second.
    """
    room = tf.maximum(max_length - 2 - tf.minimum(b, 1), 0)
    half = room // 2
    kept_a = tf.minimum(a, tf.maximum(room - b, room - half))
    kept_b = tf.minimum(b, tf.maximum(room - a, half))
    return kept_a, kept_b


def cut(ids: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Keeps the beginning of each row.

    Args:
      ids: [B, (T)].
      lengths: int32 [B], at most the rows' own.

    Returns:
      [B, (lengths)].
    """
    places = tf.ragged.range(tf.cast(lengths, ids.row_splits.dtype))
    return tf.gather(ids, places, batch_dims=1)


def to_inputs(
    ids: tf.RaggedTensor,
    head: tf.Tensor,
    width: int | tf.Tensor | None = None,
) -> Inputs:
    """Pads rows, and makes mask and segments of their lengths.

    Args:
      ids: int32 [B, (T)].
      head: int32 [B]; ids from there on are of segment 1.
      width: L; None: the length of the longest row, 1 with no row at all.
    """
    lengths = tf.cast(ids.row_lengths(), tf.int32)
    if width is None:
        width = tf.reduce_max(tf.concat([lengths, [1]], 0))
    mask = tf.sequence_mask(lengths, width, tf.int32)
    segments = mask - tf.minimum(tf.sequence_mask(head, width, tf.int32), mask)
    dense = ids.to_tensor(0, shape=tf.stack([-1, width]))
    return Inputs(dense, mask, segments)


def complete(
    input_ids: tf.Tensor,
    input_mask: tf.Tensor | None,
    segment_ids: tf.Tensor | None,
    pad_id: int,
    sep_id: int,
) -> Inputs:
    """Fills in mask and segments that were not given.

    The ids say it all, since text never makes special tokens: padding is
    where [PAD] is, and the second segment follows the first [SEP].

    Args:
      input_ids: int32 [B, L].
      input_mask: int32 [B, L]; None or without elements: not given.
      segment_ids: int32 [B, L]; None or without elements: not given.
      pad_id: id of [PAD].
      sep_id: id of [SEP].
    """
    real = tf.cast(input_ids != pad_id, tf.int32)
    mask = _or_else(input_mask, real)
    is_sep = tf.cast(input_ids == sep_id, tf.int32)
    after = tf.minimum(tf.cumsum(is_sep, axis=1, exclusive=True), 1)
    return Inputs(input_ids, mask, _or_else(segment_ids, after * mask))


def _or_else(given: tf.Tensor | None, derived: tf.Tensor) -> tf.Tensor:
    if given is None:
        return derived
    return tf.cond(tf.size(given) > 0, lambda: given, lambda: derived)


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


# Base of the modules that serve one task of a fine-tuned model.

# Where files were when the model was trained: nobody else's business.
_PLACES = (
    "data_dir",
    "gcp_project",
    "init_checkpoint",
    "model_dir",
    "preprocessed_data_dir",
    "results_json",
    "results_pkl",
    "results_txt",
    "task_config",
    "tfds_data_dir",
    "tpu_job_name",
    "tpu_name",
    "tpu_zone",
    "vocab_file",
)


class TaskModule(ServingModule):
    """Encoder and one head. A subclass says what goes in and comes out.

    Attributes:
      KIND: the kind of head, as `describe` gives it.
    """

    KIND: ClassVar[str]

    def __init__(self, loaded: FinetunedModel, task: Task) -> None:
        head = loaded.model.heads[loaded.task_index(task.name)]
        # In functions, so that nothing of it is tracked and saved.
        self._loaded_of = lambda: loaded
        self._task_of = lambda: task
        self._head_of = lambda: head
        variables = [*loaded.model.encoder.variables, *head.variables]
        super().__init__(self.make_settings(), variables)

    @property
    def loaded(self) -> FinetunedModel:
        """The model it was made of."""
        return self._loaded_of()

    @property
    def task(self) -> Task:
        """The task that is served."""
        return self._task_of()

    @property
    def head(self) -> Head:
        """The task's head."""
        return self._head_of()

    def label_names(self) -> list[str]:
        """Returns the labels, in the order of the head's outputs."""
        return list(getattr(self.task, "labels", ()))

    def extra_config(self) -> dict[str, Any]:
        """Returns what a subclass adds to the config inside."""
        return {}

    def make_settings(self) -> Settings:
        """Returns the settings of the model and the task."""
        config = self.loaded.config
        sizes = self.loaded.model.encoder_config
        return Settings(
            kind=self.KIND,
            vocab_file=config.vocab_file,
            do_lower_case=config.do_lower_case,
            strip_accents=config.strip_accents,
            max_seq_length=config.max_seq_length,
            max_positions=sizes.max_position_embeddings,
            labels=tuple(self.label_names()),
            config={
                "task": self.task.name,
                **self.extra_config(),
                "encoder": dataclasses.asdict(sizes),
                "hparams": public_hparams(config),
            },
        )

    def encode(self, inputs: Inputs) -> EncoderOutput:
        """Runs the encoder, without dropout.

        Args:
          inputs: int32 [B, L] each.
        """
        return self.loaded.model.encoder(*inputs, None)

    def head_outputs(
        self, inputs: Inputs, **features: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Runs encoder and head as evaluation does; inputs int32 [B, L]."""
        given = {**inputs._asdict(), **features}
        return self.head.logits(self.encode(inputs), given)


def public_hparams(config: FinetuningConfig) -> dict[str, Any]:
    """Returns the hparams without the paths of the machine they ran on."""
    values = config.as_dict()
    return {name: v for name, v in values.items() if name not in _PLACES}
