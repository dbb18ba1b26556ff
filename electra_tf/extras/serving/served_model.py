# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a folder of SavedModels to functions that can be called by name."""

import json
import logging
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
from electra_tf.files.digests import check_digest

_logger = logging.getLogger(__name__)
SAVED_MODEL_FILE = "saved_model.pb"
# Added by the loader for itself.
_HIDDEN = ("__saved_model_init_op", "__saved_model_train_op")


class Signature:
    """One function of a model.

    `inputs` and `outputs` are by name; free lengths or ranks are None.
    `defaults` are values of inputs that may be left out.
    """

    def __init__(
        self, name: str, proto: meta_graph_pb2.SignatureDef, function: Any
    ) -> None:
        self.name, self._function = name, function
        both = (sorted(proto.inputs.items()), sorted(proto.outputs.items()))
        self.inputs, self.outputs = (
            {key: tf.TensorSpec(x.tensor_shape, x.dtype) for key, x in found}
            for found in both
        )
        self.defaults = {
            key: tf.make_ndarray(value) for key, value in proto.defaults.items()
        }

    def __call__(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Computes; tf.errors.OpError where the model refuses them."""
        given = {**self.defaults, **arrays}
        tensors = {
            name: tf.constant(given[name], spec.dtype)
            for name, spec in self.inputs.items()
        }
        # A scalar string is no array yet.
        return {
            name: np.asarray(
                t.numpy(), object if t.dtype == tf.string else None
            )
            for name, t in self._function(**tensors).items()
        }


class ServedModel:
    """One version of a model; its `signatures` are by name.

    `kind` is what it does ("classification" ...), "" where it does not say; so
    are `labels` and the plain values of `config`. `metadata` are the signatures
    as TensorFlow Serving's REST protocol shows them.
    """

    def __init__(self, folder: str, name: str, version: int) -> None:
        self.name, self.version = name, version
        check_digest(os.path.join(folder, SAVED_MODEL_FILE))
        protos = _signature_protos(folder)
        try:
            self._loaded = tf.saved_model.load(folder)
        except Exception as error:  # A damaged graph shows as almost any.
            raise UserError(
                f"{folder}: TensorFlow cannot load it: {error!r}"
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
        self.kind, self.labels, self.config = "", [], {}
        if describe := self.signatures.get("describe"):
            said = {
                key: [text.decode() for text in np.ravel(value)]
                for key, value in describe({}).items()
            }
            self.kind, self.labels = said["kind"][0], said["labels"]
            self.config = json.loads(said["config"][0])

    def warm_up(self) -> None:
        """Calls every function with a small row: a first call is slow."""
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
    """Loads a version: of the folder's name and the highest, by default."""
    place = os.path.abspath(folder)
    if not os.path.isdir(place):
        raise UserError(f"{folder}: no such folder")
    if _is_saved_model(place):
        own = os.path.basename(place)
        number = int(own) if own.isdecimal() else 1
        if version not in (None, number):
            raise UserError(
                f"--version={version}: {folder} is version {number} itself"
            )
        if own.isdecimal():
            name = name or os.path.basename(os.path.dirname(place))
        return ServedModel(place, name or own, number)
    numbers = sorted(
        int(found)
        for found in os.listdir(place)
        if found.isdecimal() and _is_saved_model(os.path.join(place, found))
    )
    if not numbers:
        raise UserError(
            f"{folder}: holds no <version>/{SAVED_MODEL_FILE}; give the folder"
            " that export_model wrote"
        )
    version = numbers[-1] if version is None else version
    if version not in numbers:
        raise UserError(
            f"{folder}: has no version {version}; there are:"
            f" {', '.join(map(str, numbers))}"
        )
    path = os.path.join(place, str(version))
    return ServedModel(path, name or os.path.basename(place), version)


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
        if "serve" in graph.meta_info_def.tags:
            found = dict(graph.signature_def)
            return {k: v for k, v in found.items() if k not in _HIDDEN}
    raise UserError(f"{path}: has no graph tagged 'serve'")
