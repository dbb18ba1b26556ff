# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arms of checkpoint_speed.py: the models of pretraining_step.py on disk."""

import os
import time

import workers


def make(spec):
    """An arm by `kind`: tf1, native, huggingface, tfmodels, transformers."""
    kind = spec["kind"]
    if kind == "tfmodels":
        return _tfmodels(spec)
    if kind == "transformers":
        return _transformers(spec)
    return _ours(spec, kind)


class _Timed:
    """Saves and loads; `save` and `load` of an arm take a folder.

    Args:
      model: an arm of pretraining_step.py, for what it says of itself.
      save: from a folder.
      load: from a folder.
    """

    def __init__(self, model, save, load):
        self._model, self._save, self._load = model, save, load

    def describe(self):
        """See the model's arm."""
        return self._model.describe()

    def turn(self, folder):
        """Seconds of writing and of reading back, bytes on disk."""
        started = time.perf_counter()
        self._save(folder)
        written = time.perf_counter()
        self._load(folder)
        return {
            "write": written - started,
            "read": time.perf_counter() - written,
            "bytes": sum(
                os.path.getsize(os.path.join(place, name))
                for place, _, names in os.walk(folder)
                for name in names
            ),
        }


def _ours(spec, kind):
    import pretraining_ours

    arm = pretraining_ours.Arm(spec)
    variables = arm._model.trainable_variables
    from electra_tf.checkpoints import tf1, tf2
    from electra_tf.checkpoints.formats import open_weights
    from electra_tf.checkpoints.huggingface_writer import write_huggingface
    from electra_tf.checkpoints.restore import assign
    from electra_tf.checkpoints.weights import ModelWeights

    weights = ModelWeights(tf2.variables_by_name(variables), 0, "model")

    def prefix_in(folder):
        return os.path.join(folder, "model.ckpt-0")

    def save(folder):
        if kind == "tf1":
            tf1.write_tf1(weights, prefix_in(folder), overwrite=True)
        elif kind == "native":
            tf2.write_native(weights, prefix_in(folder), overwrite=True)
        else:
            write_huggingface(
                weights,
                folder,
                hparams=spec["work"]["hparams"],
                overwrite=True,
                drop_unrepresentable=True,
            )

    def load(folder):
        is_folder = kind == "huggingface"
        report = assign(
            open_weights(folder if is_folder else prefix_in(folder)),
            variables,
            missing_is_fine=is_folder,
        )
        # All but what transformers has no place for.
        assert len(report.loaded) > len(report.missing)

    return _Timed(arm, save, load)


def _tfmodels(spec):
    import pretraining_tfmodels

    arm = pretraining_tfmodels.Arm(spec)
    arm.losses(1)  # Variables are made at the first step.
    import tensorflow as tf

    checkpoint = tf.train.Checkpoint(model=arm._model)

    def load(folder):
        path = os.path.join(folder, "ckpt")
        checkpoint.read(path).assert_existing_objects_matched()

    return _Timed(
        arm, lambda folder: checkpoint.write(os.path.join(folder, "ckpt")), load
    )


def _transformers(spec):
    import pretraining_transformers

    arm = pretraining_transformers.Arm(spec)
    parts = {"generator": arm._generator, "discriminator": arm._discriminator}

    def save(folder):
        for name, model in parts.items():
            model.save_pretrained(os.path.join(folder, name))

    def load(folder):
        for name, model in parts.items():
            type(model).from_pretrained(os.path.join(folder, name))

    return _Timed(arm, save, load)


if __name__ == "__main__":
    workers.serve(make)
