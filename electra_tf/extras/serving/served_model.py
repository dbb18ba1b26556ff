# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Served models: the functions of an exported SavedModel, by name."""

import json
import logging
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

# This import registers the operations of the in-graph tokenizer.
import tensorflow_text  # noqa: F401
from google.protobuf import json_format
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from configure.errors import UserError
from electra_tf.files.digests import check_digest

_logger = logging.getLogger(__name__)
SAVED_MODEL_FILE = "saved_model.pb"
# Functions that TensorFlow adds to a saved model; they are not served.
_HIDDEN = ("__saved_model_init_op", "__saved_model_train_op")


class Signature:
    """One function of a served model.

    Attributes:
      name: the function's name.
      inputs: name -> spec; unknown lengths or ranks are None.
      outputs: name -> spec.
      defaults: the values of inputs that may be omitted.
    """

    def __init__(
        self, name: str, proto: meta_graph_pb2.SignatureDef, function: Any
    ) -> None:
        self.name, self._function = name, function
        self.inputs = _specs(proto.inputs)
        self.outputs = _specs(proto.outputs)
        self.defaults = {
            key: tf.make_ndarray(value) for key, value in proto.defaults.items()
        }

    def __call__(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the outputs of the function.

        Args:
          arrays: the inputs by name.

        Raises:
          tf.errors.OpError: the model refuses the inputs.
        """
        values = {**self.defaults, **arrays}
        tensors = {
            name: tf.constant(values[name], spec.dtype)
            for name, spec in self.inputs.items()
        }
        outputs = {}
        for name, tensor in self._function(**tensors).items():
            # For a scalar string, `numpy` returns bytes instead of an array.
            dtype = object if tensor.dtype == tf.string else None
            outputs[name] = np.asarray(tensor.numpy(), dtype)
        return outputs


def _specs(protos: Mapping[str, Any]) -> dict[str, tf.TensorSpec]:
    """Return the specs of inputs or outputs, sorted by name."""
    return {
        name: tf.TensorSpec(info.tensor_shape, info.dtype)
        for name, info in sorted(protos.items())
    }


class ServedModel:
    """One version of an exported model.

    Attributes:
      name: the name in URLs.
      version: the version in URLs.
      signatures: name -> function.
      metadata: the signatures in the form of TensorFlow Serving's protocol.
      kind: the model's kind of task, such as "classification"; "" if the model
        has no function `describe`.
      labels: the labels that `describe` returns.
      config: the plain values that `describe` returns.
    """

    def __init__(self, folder: str, name: str, version: int) -> None:
        """Load the SavedModel in a folder.

        Raises:
          UserError: the files are damaged, or have no function to call.
        """
        self.name, self.version = name, version
        check_digest(os.path.join(folder, SAVED_MODEL_FILE))
        protos = _signature_protos(folder)
        try:
            self._loaded = tf.saved_model.load(folder)
        except Exception as error:  # A damaged graph may raise any exception.
            raise UserError(
                f"{folder}: TensorFlow cannot load the model ({error!r})."
                " Export the model again."
            ) from error
        functions = self._loaded.signatures
        self.signatures = {
            key: Signature(key, protos[key], functions[key])
            for key in sorted(protos)
            if key in functions
        }
        if not self.signatures:
            raise UserError(
                f"{folder}: the SavedModel has no signature; expected an"
                " output of export_model. Export the model again."
            )
        self.metadata = {
            key: json_format.MessageToDict(
                protos[key], preserving_proto_field_name=True
            )
            for key in self.signatures
        }
        self.kind, self.labels, self.config = "", [], {}
        if describe := self.signatures.get("describe"):
            facts = {}
            for key, value in describe({}).items():
                facts[key] = [text.decode() for text in np.ravel(value)]
            self.kind, self.labels = facts["kind"][0], facts["labels"]
            self.config = json.loads(facts["config"][0])

    def warm_up(self) -> None:
        """Call every function once, because first calls are slow."""
        for name, signature in self.signatures.items():
            arrays = {}
            for key, spec in signature.inputs.items():
                if key in signature.defaults or spec.shape.rank is None:
                    continue
                shape = [size or 1 for size in spec.shape]
                value = b"a" if spec.dtype == tf.string else 1
                arrays[key] = np.full(shape, value, spec.dtype.as_numpy_dtype)
            try:
                signature(arrays)
            except (KeyError, tf.errors.OpError) as error:
                _logger.info("%s was not warmed up: %s", name, error)


def open_model(
    folder: str, name: str | None = None, version: int | None = None
) -> ServedModel:
    """Load a version of an exported model.

    Args:
      folder: the output of `export_model`, or a version in it.
      name: the name in URLs; None: the folder's name.
      version: the number of the version; None: the highest in the folder.

    Raises:
      UserError: the folder or version does not exist, or cannot be loaded.
    """
    path = os.path.abspath(folder)
    if not os.path.isdir(path):
        raise UserError(
            f"{folder}: no such folder. Pass the folder that export_model"
            " wrote."
        )
    if _is_saved_model(path):
        base = os.path.basename(path)
        number = int(base) if base.isdecimal() else 1
        if version not in (None, number):
            raise UserError(
                f"--version={version}: {folder} is version {number}; expected"
                " a folder of versions. Remove --version, or pass the parent"
                " folder."
            )
        if base.isdecimal():
            name = name or os.path.basename(os.path.dirname(path))
        return ServedModel(path, name or base, number)
    numbers = sorted(
        int(entry)
        for entry in os.listdir(path)
        if entry.isdecimal() and _is_saved_model(os.path.join(path, entry))
    )
    if not numbers:
        raise UserError(
            f"{folder}: contains no <version>/{SAVED_MODEL_FILE}. Pass the"
            " folder that export_model wrote."
        )
    version = numbers[-1] if version is None else version
    if version not in numbers:
        raise UserError(
            f"{folder}: no version {version}; expected one of"
            f" {', '.join(map(str, numbers))}. Pass one of these as --version."
        )
    version_folder = os.path.join(path, str(version))
    return ServedModel(version_folder, name or os.path.basename(path), version)


def _is_saved_model(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, SAVED_MODEL_FILE))


def _signature_protos(folder: str) -> dict[str, Any]:
    """Return the signatures that a SavedModel's file describes, by name."""
    path = os.path.join(folder, SAVED_MODEL_FILE)
    proto = saved_model_pb2.SavedModel()
    try:
        with open(path, "rb") as file:
            proto.ParseFromString(file.read())
    except Exception as error:  # protobuf's error class is not public.
        raise UserError(
            f"{path}: not a SavedModel: {error}. Export the model again."
        ) from error
    for graph in proto.meta_graphs:
        if "serve" in graph.meta_info_def.tags:
            signatures = dict(graph.signature_def)
            return {k: v for k, v in signatures.items() if k not in _HIDDEN}
    raise UserError(
        f"{path}: no graph has the tag 'serve'; expected an output of"
        " export_model. Export the model again."
    )
