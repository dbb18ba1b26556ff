# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Base of the modules that serve one task of a fine-tuned model."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import tensorflow as tf

from configure.finetuning import FinetuningConfig
from electra_tf.data.feature_spec import FeatureSpec
from electra_tf.export.packing import Inputs
from electra_tf.export.signatures import ServingModule, Settings
from electra_tf.finetuning.task import Head, Task
from electra_tf.modeling.encoder import EncoderOutput
from electra_tf.prediction.loading import FinetunedModel

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

    Args:
      loaded: the model; dropout is off in all that is exported.
      task: one of its tasks.

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
        """Runs encoder and head as evaluation does.

        Args:
          inputs: int32 [B, L] each.
          **features: the task's own features that matter, by full name; the
            others (labels, the example's number) are zeros.

        Returns:
          The head's outputs; losses and labels among them mean nothing.
        """
        batch, length = tf.unstack(tf.shape(inputs.input_ids))
        given: dict[str, tf.Tensor] = {**inputs._asdict()}
        for spec in self.task.get_feature_specs():
            shape = [batch, *spec.shape]
            if self._is_per_token(spec):
                shape[1] = length
            dtype = tf.int32 if spec.is_int_feature else tf.float32
            given[spec.name] = tf.zeros(shape, dtype)
        given |= features
        encoded = self.encode(inputs)
        return self.head.compute(encoded, given, False, None, None)[1]

    def _is_per_token(self, spec: FeatureSpec) -> bool:
        if spec.per_token is not None:
            return spec.per_token
        return spec.shape[:1] == [self.loaded.config.max_seq_length]


def public_hparams(config: FinetuningConfig) -> dict[str, Any]:
    """Returns the hparams without the paths of the machine they ran on.

    Args:
      config: any config with `as_dict`.
    """
    values = config.as_dict()
    return {name: v for name, v in values.items() if name not in _PLACES}
