# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arms of tf-models-official and of tensorflow-text.

The library's tasks build the models and the steps, and its AdamWeightDecay
clips and updates. Of the metrics of pre-training, only the means for the losses
are computed. All inputs of a classifier have the same length.
"""

import itertools
import os
import pathlib

import harness
import tensorflow as tf
import tensorflow_text
import tf_keras
import work
from official.nlp import optimization
from official.nlp.configs import electra, encoders
from official.nlp.data import pretrain_dataloader
from official.nlp.data import sentence_prediction_dataloader as loader
from official.nlp.tasks import electra_task, sentence_prediction
from official.nlp.tools import tokenization


class Arm(work.Trainer):
    PACKAGES = ("tf-models-official", "tensorflow", "tf_keras")

    def __init__(self, spec):
        work.use_threads(spec["threads"])
        self.imported = harness.process_memory()["now"]
        if spec["precision"] == "bf16":
            tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
        self._work = spec["work"]
        task, metrics, values, batches = self._prepare()
        self._batches = itertools.cycle(batches)
        self._model = task.build_model()
        metrics = [m for m in metrics() if m.name in _NEEDED]
        optimizer = optimization.create_optimizer(*values.values())
        self._step = tf.function(
            lambda batch: task.train_step(
                batch, self._model, optimizer, metrics
            )[task.loss]
        )
        self.losses(1)  # The first call creates the variables.

    def weights(self):
        return self._model.trainable_variables

    def losses(self, steps):
        losses = [self._step(next(self._batches)) for _ in range(steps)]
        return [float(loss) for loss in losses]


_NEEDED = ("lm_example_loss", "discriminator_loss", "total_loss")


class Pretraining(Arm):
    def _prepare(self):
        sizes = self._work
        model = electra.ElectraPretrainerConfig(
            num_masked_tokens=sizes["predictions"],
            sequence_length=sizes["length"],
            discriminator_loss_weight=work.DISC_WEIGHT,
            tie_embeddings=True,
            generator_encoder=_encoder(sizes, "generator"),
            discriminator_encoder=_encoder(sizes, "discriminator"),
        )
        make = pretrain_dataloader.BertPretrainDataConfig
        data = make(use_next_sentence_label=False)
        config = electra_task.ElectraPretrainConfig(
            model=model, train_data=data
        )
        batch = work.make_batch(sizes)
        inputs = {
            "input_word_ids": tf.constant(batch["masked_ids"]),
            "input_mask": tf.constant(batch["input_mask"]),
            "input_type_ids": tf.constant(batch["segment_ids"]),
            "masked_lm_positions": tf.constant(batch["positions"]),
            "masked_lm_ids": tf.constant(batch["labels"]),
            "masked_lm_weights": tf.ones(batch["labels"].shape),
        }
        task, batches = electra_task.ElectraPretrainTask(config), [inputs]
        return task, task.build_metrics, work.PRETRAINING, batches


class Finetuning(Arm):
    def __init__(self, spec):
        super().__init__(spec)
        answer = tf.function(lambda rows: self._model(rows, training=False))
        self.answer = lambda batch: answer(batch).numpy()
        self.dev = self._rows("dev")

    def _prepare(self):
        config = sentence_prediction.SentencePredictionConfig(
            model=sentence_prediction.ModelConfig(
                num_classes=work.LABELS, encoder=_encoder(self._work, "encoder")
            ),
            train_data=loader.SentencePredictionDataConfig(),
        )
        task = sentence_prediction.SentencePredictionTask(config)
        return task, list, work.FINETUNING, self._rows("train")

    def _rows(self, split):
        names = ("input_word_ids", "input_mask", "input_type_ids", "label_ids")
        batches = work.make_batches(self._work, split, fixed=True, names=names)
        return [
            {n: tf.constant(x) for n, x in batch.items()} for batch in batches
        ]


class Checkpoints(work.Checkpoints, Pretraining):
    def write(self, folder):
        model = tf.train.Checkpoint(model=self._model)
        model.write(os.path.join(folder, "ckpt"))

    def read(self, folder):
        model = tf.train.Checkpoint(model=self._model)
        status = model.read(os.path.join(folder, "ckpt"))
        status.assert_existing_objects_matched()


class Tokenizers(work.Tokenizers):
    """FullTokenizer in Python, and tensorflow-text's tokenizers in graphs."""

    def __init__(self, spec):
        work.use_threads(1)
        names = ["FullTokenizer tokenize", "FullTokenizer encode"]
        names = ["BertTokenizer encode"] if spec["in_graph"] else names
        super().__init__(spec, ["FastBertTokenizer encode", *names])

    def encoder(self, name, file):
        if name.startswith("Full"):
            tokenizer = tokenization.FullTokenizer(file)
            tokenize, ids = tokenizer.tokenize, tokenizer.convert_tokens_to_ids
            if name.endswith("tokenize"):
                return lambda lines: [tokenize(line) for line in lines]
            return lambda lines: [ids(tokenize(line)) for line in lines]
        if name.startswith("Fast"):
            vocabulary = (
                pathlib.Path(file).read_text(encoding="utf-8").splitlines()
            )
            encode = tensorflow_text.FastBertTokenizer(
                vocabulary,
                token_out_type=tf.int32,
                lower_case_nfd_strip_accents=True,
            ).tokenize
        else:
            tokenizer = tensorflow_text.BertTokenizer(
                file, token_out_type=tf.int32, lower_case=True
            )

            def encode(strings):
                return tokenizer.tokenize(strings).merge_dims(1, 2)

        strings = [tf.TensorSpec([None], tf.string)]
        traced = tf.function(encode, input_signature=strings)
        in_graph = traced.get_concrete_function()
        return lambda lines: in_graph(tf.constant(lines))


_NAMES = {
    "num_hidden_layers": "num_layers",
    "hidden_act": "hidden_activation",
    "hidden_dropout_prob": "dropout_rate",
    "attention_probs_dropout_prob": "attention_dropout_rate",
}


def _encoder(run_sizes, role):
    sizes = {_NAMES.get(name, name): v for name, v in run_sizes[role].items()}
    sizes["embedding_size"] = run_sizes["embedding_size"]
    bert = encoders.BertEncoderConfig(**sizes)
    return encoders.EncoderConfig(type="bert", bert=bert)


if __name__ == "__main__":
    harness.serve()
