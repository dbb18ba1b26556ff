# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes one classifier in the three forms that prediction.py compares.

Fresh weights, in the folder of a trial (`run`), as a SavedModel (`served`) and
as a Hugging Face folder (`huggingface`). The last holds the encoder; the head
lies beside it in `head.npz`, since that of transformers is another one.
"""

import os
import shutil
import sys

# Name of an export -> rows that its serve_text computes at once (0: all).
SERVED = {"served": 0, "served in groups": 8}


def make(folder, spec):
    """Makes all of them; returns their paths by name.

    Args:
      folder: an empty one.
      spec: `root`, `vocab_file`, `data_dir`, `model_size`, `length`.
    """
    import numpy as np
    import tensorflow as tf

    from configure.finetuning import FinetuningConfig
    from electra_tf.checkpoints import huggingface_writer, tf2
    from electra_tf.checkpoints.formats import open_weights
    from electra_tf.export import saved_model
    from electra_tf.export.saved_model import make_task_module
    from electra_tf.finetuning.model import FinetuningModel
    from electra_tf.finetuning.registry import get_tasks
    from electra_tf.prediction.loading import load_finetuned
    from electra_tf.training import checkpointing

    run = os.path.join(folder, "run")
    config = FinetuningConfig.create(
        "classifier",
        spec["data_dir"],
        model_size=spec["model_size"],
        task_names=["sst"],
        vocab_file=spec["vocab_file"],
        max_seq_length=spec["length"],
        init_checkpoint=None,
        model_dir=run,
    )
    tf.random.set_seed(0)
    model = FinetuningModel(config, get_tasks(config))
    # Fresh weights are too small for texts to make a difference.
    for variable in model.variables:
        if "kernel" in variable.name:
            variable.assign(tf.random.normal(variable.shape, stddev=0.08))
    os.makedirs(run)
    checkpointing.write_config(run, config.to_json())
    shutil.copyfile(spec["vocab_file"], os.path.join(run, "vocab.txt"))
    prefix = os.path.join(run, "model.ckpt-1")
    state = tf2.checkpoint_state(
        model.variables, None, tf.Variable(1, dtype=tf.int64)
    )
    tf.train.Checkpoint(**state).write(prefix)
    tf2.record_newest(run, [prefix])

    loaded = load_finetuned(run)
    served = {
        name: saved_model.export(
            make_task_module(loaded, "sst", rows), os.path.join(folder, name)
        )
        for name, rows in SERVED.items()
    }
    theirs = os.path.join(folder, "huggingface")
    huggingface_writer.write_huggingface(
        open_weights(prefix), theirs, drop_unrepresentable=True
    )
    dense = loaded.model.heads[0].dense
    np.savez(
        os.path.join(theirs, "head.npz"),
        weight=dense.kernel.numpy().T,
        bias=dense.bias.numpy(),
    )
    return {"run": run, **served, "huggingface": theirs}


class Arm:
    """Makes the forms; `paths` gives their places.

    Args:
      spec: of `make`, and `folder`.
    """

    def __init__(self, spec):
        sys.path.insert(0, spec["root"])
        self._paths = make(spec["folder"], spec)

    def paths(self):
        """Paths by name."""
        return self._paths


if __name__ == "__main__":
    import workers

    workers.serve(Arm)
