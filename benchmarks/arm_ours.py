# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arms of this project, from this checkout or from a checkout of --before.

`PLACES` lists every name of the product that benchmarks use.
"""

import importlib
import importlib.util
import itertools
import os
import pathlib
import sys
import tempfile

import harness
import work

# Module -> names in the module. Update this table when the product's names
# change.
PLACES = {
    "configure.pretraining": "PretrainingConfig",
    "configure.finetuning": "FinetuningConfig",
    "electra_tf.text.tokenization": "FullTokenizer",
    "electra_tf.text.graph_tokenization": "GraphTokenizer",
    "electra_tf.data.input_pipeline": "input_options",
    "electra_tf.pretraining.model": "build_model",
    "electra_tf.pretraining.build": "build_train_loop build_model",
    "electra_tf.modeling.precision": "LossScale",
    "electra_tf.training.loop": "TrainLoop EvalLoop",
    "electra_tf.training.threads": "count_cores",
    "electra_tf.finetuning.registry": "get_tasks",
    "electra_tf.finetuning.build": "trained_variables",
    "electra_tf.prediction.predictor": "Predictor",
    "electra_tf.checkpoints.assignment": "assign",
    "electra_tf.checkpoints.weights": "ModelWeights",
    "electra_tf.checkpoints.formats": "open_weights",
    "electra_tf.checkpoints.tf1": "write_tf1",
    "electra_tf.checkpoints.tf2": "write_native",
    "electra_tf.checkpoints.huggingface_writer": "write_huggingface",
}
# Module -> names in the modules of earlier checkouts, from 4a16307 on. These
# checkouts may be passed as --before.
EARLIER_PLACES = {
    "electra_tf.finetuning.trial": "PredictLoop",
    "electra_tf.training.loss_scale": "LossScale",
    "electra_tf.training.loop": "LossScale",
    "electra_tf.training.strategy": "cores",
    "electra_tf.finetuning.steps": "FinetuningLoop PredictLoop",
    "electra_tf.checkpoints.native": "write_native variables_by_name",
    "electra_tf.checkpoints.restore": "assign",
    "electra_tf.checkpoints.weights": "ModelWeights assign",
}


def product(name, root=None, needed=True):
    """Import an object of the product from the listed module that has it.

    `root` is the checkout that is imported. Its package is imported first, as
    in its entry points, because it sets environment variables for TensorFlow.
    """
    if root and root not in sys.path:
        sys.path.insert(0, root)
    importlib.import_module("electra_tf")
    for module, names in [*PLACES.items(), *EARLIER_PLACES.items()]:
        if name in names.split() and importlib.util.find_spec(module):
            imported = importlib.import_module(module)
            if hasattr(imported, name):
                return getattr(imported, name)
    if needed:
        raise ImportError(
            f"{name}: not found in the modules that arm_ours.py lists. Add its"
            " module to PLACES"
        )
    return None


def _count_cores():
    """Return the function that counts cores; None in early checkouts."""
    earlier = product("cores", needed=False)
    return product("count_cores", needed=False) or earlier


class Arm(work.Trainer):
    PACKAGES = ("tensorflow", "tf_keras")

    def __init__(self, spec, builder):
        product("LossScale", spec["root"])
        self._build = importlib.import_module(builder)
        threads = spec["hparams"].get("threads", 0)
        each = not threads and 1 < spec["threads"] <= 4
        if each and _count_cores():  # Each core computes a share of the rows.
            threads = 1
        work.use_threads(threads or spec["threads"], spec["threads"])
        self.imported = harness.process_memory()["now"]
        self._work = spec["work"]
        hparams = {**self._work["hparams"], **spec["hparams"]}
        if spec["precision"] != "float32":
            hparams.setdefault("mixed_precision", spec["precision"])
        with tempfile.TemporaryDirectory() as folder:
            hparams.setdefault("vocab_file", _write_vocab(folder))
            self._make_model(folder, hparams)

    def weights(self):
        return self._model.trainable_variables

    def losses(self, steps):
        import tensorflow as tf

        self._loop.train(tf.constant(steps))
        chunk = self._loop.take_chunk()
        return chunk.values[:, chunk.names.index("total_loss")].tolist()


class Pretraining(Arm):
    """The loop of run_pretraining.py on one batch, masking included."""

    def __init__(self, spec):
        super().__init__(spec, "electra_tf.pretraining.build")
        import orbit
        import tensorflow as tf

        batch = work.make_batch(self._work)
        features = ("input_ids", "input_mask", "segment_ids")
        features = {name: tf.constant(batch[name]) for name in features}
        self._loop = product("build_train_loop")(
            self._config,
            self._model,
            self._build.build_optimizer(self._config, self._model),
            itertools.repeat(features),
            orbit.utils.create_global_step(),
            tf.distribute.get_strategy(),
            loss_scale=product("LossScale").of(self._config.mixed_precision),
        )

    def _make_model(self, folder, hparams):
        make = product("PretrainingConfig").create
        self._config = make("benchmark", folder, **hparams)
        self._model = product("build_model")(self._config)


class Finetuning(Arm):
    """The loops of run_finetuning.py on batches in memory."""

    def __init__(self, spec):
        super().__init__(spec, "electra_tf.finetuning.build")
        import orbit
        import tensorflow as tf

        train = self._batches("train")
        self._dev = self._batches("dev", by_length=self._config.length_buckets)
        shared = {"seed": 0, "strategy": tf.distribute.get_strategy()}

        def compute(features, seed, training):
            results = self._model.compute(features, training, seed)
            return {**results, "total_loss": results["loss"]}

        if count := _count_cores():
            shared["cores"] = count(self._config, shared["strategy"])
        build, steps = self._build.build_optimizer, work.FINETUNING["steps"]
        # Only checkouts at 4a16307 have this class.
        train_loop = product("FinetuningLoop", needed=False)
        self._loop = (train_loop or product("TrainLoop"))(
            element_spec=train.element_spec,
            compute=compute,
            variables=product("trained_variables")(self._config, self._model),
            optimizer=build(self._config, self._model, steps),
            iterator=itertools.cycle(list(train)),
            step=orbit.utils.create_global_step(),
            step_values=lambda features, outputs: {},
            **shared,
        )
        shared |= {"batch_size": self._work["batch"], "compute": compute}
        if earlier := product("PredictLoop", needed=False):
            self._predict = earlier(task_names=("sst",), **shared).predict
            return

        def outputs(features, task_outputs):
            return {"task_id": features["task_id"], **task_outputs["sst"]}

        self._predict = product("EvalLoop")(outputs=outputs, **shared).run

    def _make_model(self, folder, hparams):
        make = product("FinetuningConfig").create
        self._config = make("benchmark", folder, **hparams)
        tasks = product("get_tasks")(self._config)
        self._model = self._build.build_model(self._config, tasks)

    def evaluate(self):
        rows = []

        def take(
            row_outputs, _
        ):  # Earlier checkouts pass a task's name and a row.
            rows.extend(
                row_outputs["task_id"] if "task_id" in row_outputs else [0]
            )

        seconds = work.timed(self._predict, self._dev, take)
        return {"seconds": seconds / len(rows), "rows": len(rows)}

    def losses(self, steps):
        return [loss / self._work["batch"] for loss in super().losses(steps)]

    def _batches(self, split, by_length=False):
        import tensorflow as tf

        fixed = not self._config.length_buckets
        made = work.make_batches(self._work, split, fixed, by_length)
        for number, batch in enumerate(made):
            labels = batch.pop("labels")
            batch["task_id"] = labels * 0
            batch["sst_eid"] = labels * 0 + number
            batch["sst_label_ids"] = labels
        signature = {
            name: tf.TensorSpec([len(array), None][: array.ndim], tf.int32)
            for name, array in made[0].items()
        }
        make = tf.data.Dataset.from_generator
        dataset = make(lambda: iter(made), output_signature=signature)
        options = product("input_options", needed=False) or tf.data.Options
        return dataset.prefetch(2).with_options(options())


class Checkpoints(work.Checkpoints, Pretraining):
    def __init__(self, spec):
        super().__init__(spec)
        self._format = spec["format"]
        # Only checkouts at 4a16307 have this function.
        by_name = product("variables_by_name", needed=False)
        variables = by_name(self.weights()) if by_name else self.weights()
        self._weights = product("ModelWeights")(variables, 0, "model")

    def write(self, folder):
        write, more = product(f"write_{self._format}"), {}
        if self._format == "huggingface":
            more["hparams"] = self._work["hparams"]
            more["drop_unrepresentable"] = True
        write(self._weights, self._place(folder), overwrite=True, **more)

    def read(self, folder):
        some = {"missing_is_fine": self._format == "huggingface"}
        weights_file = product("open_weights")(self._place(folder))
        report = product("assign")(weights_file, self.weights(), **some)
        # Some variables have no counterpart in transformers and stay missing.
        assert len(report.loaded) > len(report.missing)

    def _place(self, folder):
        if self._format == "huggingface":
            return folder
        return os.path.join(folder, "model.ckpt-0")


class Predictor(work.Answering):
    PACKAGES = ("tensorflow", "tensorflow-text")

    def load(self, spec):
        # The product sets environment variables for TensorFlow, so it must be
        # imported before TensorFlow.
        make = product("Predictor", spec["root"])
        work.use_threads(spec["threads"])
        predictor = make.from_pretrained(spec["paths"]["run"])

        def ask(texts):
            # A single text is passed as a user would pass it.
            many = len(texts) > 1
            answers = predictor(texts) if many else [predictor(texts[0])]
            return [answer["probabilities"].values() for answer in answers]

        return ask


class Served(Predictor):
    """The exported model, called through `serve_text` by TensorFlow alone."""

    def load(self, spec):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401

        work.use_threads(spec["threads"])
        self._loaded = tf.saved_model.load(os.path.join(spec["path"], "1"))
        serve = self._loaded.signatures["serve_text"]
        return lambda texts: serve(text=tf.constant(texts))["probabilities"]


class OnnxRuntime(work.Answering):
    """An ONNX file of an export, with this project's tokenizer."""

    PACKAGES = ("onnxruntime",)

    def load(self, spec):
        import numpy as np
        import onnxruntime

        make = product("FullTokenizer", spec["root"])
        encode = make(os.path.join(spec["paths"]["run"], "vocab.txt")).encode
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = spec["threads"]
        # Threads that wait in a loop after a run would delay the next arm.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        session = onnxruntime.InferenceSession(spec["path"], options)

        def ask_at_once(rows):
            longest = max(map(len, rows)) + 2
            ids, mask = np.zeros((2, len(rows), longest), np.int32)
            for number, row in enumerate(rows):
                row = [work.CLS, *row, work.SEP]
                ids[number, : len(row)], mask[number, : len(row)] = row, 1
            arrays = {"input_ids": ids, "input_mask": mask}
            arrays["segment_ids"] = np.zeros_like(ids)
            (answers,) = session.run(["probabilities"], arrays)
            return answers

        def ask(texts):
            rows = [encode(text)[: spec["length"] - 2] for text in texts]
            group = spec["rows_at_once"] or len(rows)
            # Rows of similar length are together, as in `serve_text`.
            order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
            answers = [None] * len(rows)
            for start in range(0, len(rows), group):
                numbers = order[start : start + group]
                of_group = ask_at_once([rows[n] for n in numbers])
                for number, answer in zip(numbers, of_group, strict=True):
                    answers[number] = answer
            return answers

        return ask


class Tokenizers(work.Tokenizers):
    def __init__(self, spec):
        kind, names = "FullTokenizer", ("encode", "tokenize")
        if spec["in_graph"]:
            kind, names = "GraphTokenizer", ("encode", "encode_with_offsets")
        self._kind = product(kind, spec["root"])
        if spec["in_graph"]:
            work.use_threads(1)
        super().__init__(spec, names)

    def encoder(self, name, file):
        # Graphs have only a weak reference to the tokenizer, so the closure
        # must keep the tokenizer alive.
        tokenizer = self._kind(file)
        call = getattr(tokenizer, name)
        if self._spec["in_graph"]:
            return lambda lines: (call(lines), tokenizer)[0]
        return lambda lines: [call(line) for line in lines]


def _write_vocab(folder):
    tokens = [f"word{number}" for number in range(work.VOCABULARY)]
    tokens[0], tokens[100], tokens[work.MASK] = "[PAD]", "[UNK]", "[MASK]"
    tokens[work.CLS], tokens[work.SEP] = "[CLS]", "[SEP]"
    path = pathlib.Path(folder, "vocab.txt")
    path.write_text("".join(f"{token}\n" for token in tokens))
    return str(path)


if __name__ == "__main__":
    harness.serve()
