# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What arms on TensorFlow have in common: ours and tf-models-official's."""

import importlib
import sys

import workers


class TensorFlowArm:
    """A model in training; a subclass sets `_model` and says how it trains.

    Args:
      threads: of one operation, and operations at a time. All that the arm
        uses has been imported by now: what memory it takes is kept apart.
    """

    PACKAGES = ("tensorflow", "tf_keras")

    def __init__(self, threads):
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        self.imported = workers.process_memory()["now"]
        self._model = None

    def describe(self):
        """Parameters, versions, memory after the imports."""
        import comparing

        weights = self._model.trainable_variables
        return {
            "parameters": sum(v.shape.num_elements() for v in weights),
            "versions": comparing.versions(*self.PACKAGES),
            "imported": self.imported,
        }


def import_checkout(root):
    """Makes a checkout the one that is imported, as its front doors do."""
    sys.path.insert(0, root)
    # Before TensorFlow: it has a say in how that starts.
    importlib.import_module("electra_tf")


def our_hparams(spec):
    """The hparams of an arm of ours: the work's, its own, the precision."""
    hparams = {**spec["work"]["hparams"], **spec["hparams"]}
    if spec["precision"] != "float32":
        hparams.setdefault("mixed_precision", spec["precision"])
    return hparams


def use_keras_precision(precision):
    """Sets the policy that tf-models-official's layers follow."""
    import tf_keras

    if precision == "bf16":
        tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")


def tfmodels_encoder(sizes, embedding_size):
    """tf-models-official's configuration of a BERT encoder of these sizes."""
    from official.nlp.configs import encoders

    return encoders.EncoderConfig(
        type="bert",
        bert=encoders.BertEncoderConfig(
            vocab_size=sizes["vocab_size"],
            hidden_size=sizes["hidden_size"],
            num_layers=sizes["num_hidden_layers"],
            num_attention_heads=sizes["num_attention_heads"],
            intermediate_size=sizes["intermediate_size"],
            dropout_rate=sizes["hidden_dropout_prob"],
            attention_dropout_rate=sizes["attention_probs_dropout_prob"],
            max_position_embeddings=sizes["max_position_embeddings"],
            type_vocab_size=sizes["type_vocab_size"],
            embedding_size=embedding_size,
        ),
    )
