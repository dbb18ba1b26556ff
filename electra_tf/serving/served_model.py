# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a folder of SavedModels to functions that can be called by name."""

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

# Registers the ops of the in-graph tokenizer.
import tensorflow_text  # noqa: F401
from google.protobuf import json_format
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from configure.errors import UserError

SAVED_MODEL_FILE = "saved_model.pb"
DEFAULT_SIGNATURE = "serving_default"
DESCRIBE = "describe"
_SERVE_TAG = "serve"
# Added by the loader for itself.
_HIDDEN = frozenset({"__saved_model_init_op", "__saved_model_train_op"})


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """A named input or output.

    Attributes:
      dtype: of its elements.
      shape: None for lengths that are free; None for free rank.
    """

    dtype: tf.DType
    shape: tuple[int | None, ...] | None


class Signature:
    """One function of a model.

    Attributes:
      name: its name.
      inputs: by name.
      outputs: by name.
      defaults: values of inputs that may be left out.
    """

    def __init__(
        self, name: str, proto: meta_graph_pb2.SignatureDef, function: Any
    ) -> None:
        self.name, self._function = name, function
        self.inputs = _infos(proto.inputs)
        self.outputs = _infos(proto.outputs)
        self.defaults = {
            key: tf.make_ndarray(value) for key, value in proto.defaults.items()
        }

    def __call__(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Computes.

        Raises:
          tf.errors.InvalidArgumentError: the model refuses them.
        """
        given = {**self.defaults, **arrays}
        tensors = {
            name: tf.constant(given[name], info.dtype)
            for name, info in self.inputs.items()
        }
        found = self._function(**tensors)
        # A scalar string is no array yet.
        return {
            name: np.asarray(
                t.numpy(), None if t.dtype != tf.string else object
            )
            for name, t in found.items()
        }


class ServedModel:
    """One version of a model.

    Attributes:
      name: what clients call it.
      version: number of the version.
      folder: of the SavedModel.
      signatures: by name.
      kind: what the model does ("classification" ...), "" where it does not
        say.
      labels: names of its outputs, where it has any.
      config: what is known of it, plain values.
      metadata: the signatures as TensorFlow Serving's REST protocol shows
        them.
    """

    def __init__(self, folder: str, name: str, version: int) -> None:
        """Loads a SavedModel."""
        self.folder, self.name, self.version = folder, name, version
        protos = _signature_protos(folder)
        try:
            self._loaded = tf.saved_model.load(folder)
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise UserError(
                f"{folder}: TensorFlow cannot load it: {error}"
            ) from error
        functions = self._loaded.signatures
        self.signatures = {
            key: Signature(key, protos[key], functions[key])
            for key in sorted(protos)
            if key in functions
        }
        if not self.signatures:
            raise UserError(f"{folder}: has no signature that could be called")
        self.metadata = {
            key: json_format.MessageToDict(
                protos[key], preserving_proto_field_name=True
            )
            for key in self.signatures
        }
        self.kind, self.labels, self.config = self._describe()

    @property
    def text_signature(self) -> Signature | None:
        """The signature that takes strings, if there is one."""
        return self.signatures.get("serve_text")

    def _describe(self) -> tuple[str, list[str], dict[str, Any]]:
        if DESCRIBE not in self.signatures:
            return "", [], {}
        said = self.signatures[DESCRIBE]({})
        labels = [label.decode() for label in np.ravel(said["labels"])]
        config = json.loads(_scalar(said["config"]))
        return _scalar(said["kind"]), labels, config


def open_model(
    folder: str, name: str | None = None, version: int | None = None
) -> ServedModel:
    """Loads a version of a model.

    Args:
      name: what clients call it; None: the folder's name.
      version: which; None: the highest.
    """
    place = os.path.abspath(folder)
    if not os.path.isdir(place):
        raise UserError(f"{folder}: no such folder")
    if _is_saved_model(place):
        own = os.path.basename(place)
        number = int(own) if own.isdecimal() else 1
        if own.isdecimal():
            name = name or os.path.basename(os.path.dirname(place))
        return ServedModel(place, name or own, number)
    numbers = versions_in(place)
    if not numbers:
        raise UserError(
            f"{folder}: holds no <version>/{SAVED_MODEL_FILE}; give the folder"
            " that export_model wrote"
        )
    if version is None:
        version = numbers[-1]
    if version not in numbers:
        raise UserError(
            f"{folder}: has no version {version}; there are:"
            f" {', '.join(map(str, numbers))}"
        )
    path = os.path.join(place, str(version))
    return ServedModel(path, name or os.path.basename(place), version)


def versions_in(folder: str) -> list[int]:
    """Returns the numbers of the complete versions in a folder, sorted."""
    return sorted(
        int(name)
        for name in os.listdir(folder)
        if name.isdecimal() and _is_saved_model(os.path.join(folder, name))
    )


def _is_saved_model(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, SAVED_MODEL_FILE))


def _signature_protos(folder: str) -> dict[str, Any]:
    """The signatures as stored: with defaults, and names in the graph."""
    path = os.path.join(folder, SAVED_MODEL_FILE)
    proto = saved_model_pb2.SavedModel()
    try:
        with open(path, "rb") as file:
            proto.ParseFromString(file.read())
    except Exception as error:  # protobuf's own class is not public
        raise UserError(f"{path}: not a SavedModel: {error}") from error
    for graph in proto.meta_graphs:
        if _SERVE_TAG in graph.meta_info_def.tags:
            found = dict(graph.signature_def)
            return {k: v for k, v in found.items() if k not in _HIDDEN}
    raise UserError(f"{path}: has no graph tagged {_SERVE_TAG!r}")


def _infos(protos: Mapping[str, Any]) -> dict[str, TensorInfo]:
    found = {}
    for name in sorted(protos):
        shape = protos[name].tensor_shape
        dims: tuple[int | None, ...] | None = None
        if not shape.unknown_rank:
            dims = tuple(d.size if d.size >= 0 else None for d in shape.dim)
        found[name] = TensorInfo(tf.as_dtype(protos[name].dtype), dims)
    return found


def _scalar(value: np.ndarray) -> str:
    return np.ravel(value)[0].decode()
