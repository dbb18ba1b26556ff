# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures every package's tests share."""

import collections
import copy
import gc
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import hypothesis
import numpy as np
import pytest

from configure.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
# Tasks from data alone: one of each kind, and the options that matter.
ONE_TEXT = {"text_a": "text", "label": "label"}
WORDS = {"type": "tagging", "format": "conll"}
WORDS["columns"] = {"word": 0, "tag": -1}
TASKS = {
    "reviews": {"columns": ONE_TEXT, "labels": ["bad", "good", "so-so"]},
    "pairs": {
        "columns": {"text_a": "one", "text_b": "two", "label": "label"},
        "labels": ["no", "yes"],
    },
    "grade": {"type": "regression", "columns": ONE_TEXT, "range": [1, 7]},
    "topics": {
        "type": "multilabel",
        "columns": ONE_TEXT,
        "labels": ["art", "law", "war"],
    },
    "names": {**WORDS, "labels": ["PER", "LOC"]},
    "kinds": {**WORDS, "tags": "words", "labels": ["noun", "verb", "other"]},
    "manuals": {"type": "question_answering", "version": "squad2"},
    "facts": {"type": "question_answering", "version": "squad1"},
    "news": {"type": "summarization", "columns": ONE_TEXT},
}

# Before TensorFlow is imported anywhere: tests need no accelerator, keep its
# start-up chatter out of the output, and leave cores to their neighbours.
for name, value in {
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_NUM_INTRAOP_THREADS": "2",
    "TF_NUM_INTEROP_THREADS": "2",
}.items():
    os.environ.setdefault(name, value)
# A shell that starts the tests in the background has it ignored, and so would
# the programs that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The kernels users train with; see electra_tf/__init__.py.
import electra_tf  # noqa: E402

# All tests of a process compute alike, whichever package is imported first.
electra_tf.use_onednn = lambda wanted: None

hypothesis.settings.register_profile("default", deadline=None, max_examples=50)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=15)
hypothesis.settings.register_profile(
    "ci", deadline=None, max_examples=50, derandomize=True
)
hypothesis.settings.load_profile("ci" if "CI" in os.environ else "default")


def refused(words, call, /, *arguments, **settings):
    """Asserts that a call is refused with such a message."""
    with pytest.raises(UserError, match=words):
        call(*arguments, **settings)


def restore(model, path, allow_missing=False):
    """Loads a checkpoint of the original into a model; what matched."""
    from electra_tf.checkpoints.assignment import assign
    from electra_tf.checkpoints.tf1 import open_tf1

    weights = open_tf1(path)
    return assign(weights, model.variables, missing_is_fine=allow_missing)


def read_json(path):
    return json.loads(path.read_text())


def marked_heavy(*cases):
    """Cases of a test, for `pytest -m heavy` alone."""
    return [pytest.param(case, marks=pytest.mark.heavy) for case in cases]


def pytest_collection_modifyitems(config, items):
    """Skips, so that the summary names them, what has to be asked for."""
    skip = pytest.mark.skip("heavy: `pytest -m heavy` runs it")
    if "heavy" in config.option.markexpr:
        return
    for item in items:
        if item.get_closest_marker("heavy"):
            item.add_marker(skip)


def pytest_terminal_summary(terminalreporter):
    """Says what was skipped and why, and how often in which directory."""
    reasons = collections.defaultdict(collections.Counter)
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        path = report.nodeid.partition("::")[0]
        reasons[reason][path.rpartition("/")[0]] += 1
    if reasons:
        terminalreporter.section("skipped, and why")
    for reason, places in reasons.items():
        where = ", ".join(f"{n} in {path}" for path, n in places.items())
        terminalreporter.write_line(f"{where}: {reason}")


def pytest_collection_finish():
    """What was imported is not looked through for garbage again and again."""
    gc.collect()
    gc.freeze()


def _custom_gradients():
    """TensorFlow keeps them for good, each with its graph, which is slow."""
    ops = sys.modules.get("tensorflow.python.framework.ops")
    kept = ops.gradient_registry._registry if ops else {}
    return kept, {name for name in kept if name.startswith("CustomGradient-")}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Lets go of the graphs that a test made, and of a global seed."""
    _, before = _custom_gradients()
    try:
        return (yield)
    finally:
        kept, now = _custom_gradients()
        for name in now - before:
            del kept[name]
        if eager := sys.modules.get("tensorflow.python.eager.context"):
            eager.context()._set_global_seed(None)


@pytest.fixture(scope="module", autouse=True)
def without_what_earlier_tests_left():
    """Collects models, which refer to themselves."""
    yield
    kept, now = _custom_gradients()
    for name in now:
        del kept[name]
    gc.collect()


@pytest.fixture(scope="session", autouse=True)
def without_pictures():
    """Runs draw nothing and count tokens of 100 examples: half the time."""
    drawing = [
        ("electra_tf.finetuning.results", "draw_scores", b""),
        ("electra_tf.training.summaries", "draw_curves", ""),
    ]
    with pytest.MonkeyPatch.context() as patch:
        originals = []
        for name, function, nothing in drawing:
            # What no test module has imported is not imported for this.
            if module := sys.modules.get(name):
                originals.append((module, function, getattr(module, function)))
                patch.setattr(module, function, lambda *_, n=nothing: n)
        if module := sys.modules.get("electra_tf.pretraining.unigram"):
            patch.setattr(module.count_tokens, "__defaults__", (100,))
        yield originals


@pytest.fixture
def with_pictures(without_pictures, monkeypatch):
    """Runs draw what they draw."""
    for original in without_pictures:
        monkeypatch.setattr(*original)


@pytest.fixture(scope="session")
def run_python():
    """Runs a Python of its own to its end; returns what it said."""

    def run(*arguments, status=0, cwd=ROOT, env=os.environ, **settings):
        paths = {"PYTHONPATH": str(ROOT)} if cwd == ROOT else {}
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=cwd,
            env={**env, **paths},
            capture_output=True,
            text=True,
            timeout=600,
            **settings,
        )
        assert done.returncode == status, done.stderr[-3000:]
        return done

    return run


@pytest.fixture(scope="session")
def reference_dir() -> pathlib.Path:
    """The reference data's directory; skips where it is absent."""
    default = ROOT.parent / "shared"
    path = pathlib.Path(os.environ.get("ELECTRA_TF_REFERENCE", default))
    if not (path / "golden").is_dir():
        pytest.skip(
            f"no reference data at {path} (set ELECTRA_TF_REFERENCE to the"
            " directory that holds golden/ and data/)"
        )
    return path


@pytest.fixture(scope="session")
def golden_dir(reference_dir: pathlib.Path) -> pathlib.Path:
    """Numbers recorded from the original implementation."""
    return reference_dir / "golden"


# Biases on which no loss depends, so that their gradients are rounding noise:
# an attention key's adds the same to a query's scores of all keys, a start's
# (`dense`) and an end's (`dense_1`) the same to the logits of all positions,
# and softmax takes out what is added to all.
NOISE = re.compile(
    r"/attention/self/key/bias$"
    r"|^task_specific/(squad|squadv1|newsqa|triviaqa)/dense(_1)?/bias$"
)


@pytest.fixture(scope="session")
def is_noise():
    """Whether a variable's true gradient is zero, by its name."""
    return lambda name: NOISE.search(name) is not None


@pytest.fixture(scope="session")
def assert_gradients(is_noise):
    """Asserts that gradients by name equal recorded ones."""

    def check(gradients, recorded, recorded_norm):
        import tensorflow as tf

        assert set(gradients) == set(recorded)
        norm = float(tf.linalg.global_norm(list(gradients.values())))
        np.testing.assert_allclose(norm, recorded_norm, rtol=1e-5)
        for name, gradient in gradients.items():
            gradient = tf.convert_to_tensor(gradient).numpy()
            size = np.linalg.norm(recorded[name])
            if is_noise(name):
                # Nothing makes both equal. At most 2e-8 with any processor's
                # kernels; the smallest gradient that is not noise has 1.6e-4.
                assert np.linalg.norm(gradient) <= 1e-6 * norm, name
                assert size <= 1e-6 * norm, name
            else:
                error = np.linalg.norm(gradient - recorded[name])
                assert error <= 1e-5 * max(size, 1e-3 * norm), name

    return check


@pytest.fixture(scope="session")
def assert_recorded_weights():
    """Asserts that weights and Adam slots equal a recorded checkpoint's."""

    def check(prefix, model, optimizer):
        import tensorflow as tf

        if not prefix.with_name(prefix.name + ".index").exists():
            assert not prefix.name.endswith(("-5", "-10")), prefix
            return
        reader = tf.train.load_checkpoint(str(prefix))
        slots = {"adam_m": optimizer.m, "adam_v": optimizer.v}
        for variable in model.trainable_variables:
            name = variable.name.removesuffix(":0")
            error = np.abs(variable.numpy() - reader.get_tensor(name)).max()
            assert error <= 1e-5, (name, prefix.name)
            for kind, of in slots.items():
                if reader.has_tensor(f"{name}/{kind}"):
                    recorded = reader.get_tensor(f"{name}/{kind}")
                    error = np.abs(of[name].numpy() - recorded).max()
                    assert error <= 1e-6, (name, kind, prefix.name)

    return check


@pytest.fixture(scope="session")
def tiny_vocab() -> str:
    """Path of a 200-token WordPiece vocabulary kept in the repository."""
    return str(FIXTURES / "vocab_200.txt")


@pytest.fixture(scope="session")
def bpe_file(tmp_path_factory):
    """Makes a tokenizer.json of byte-level BPE, trained on a text."""
    tokenizers = pytest.importorskip("tokenizers", reason="no extra bpe")

    def make(
        text="the king of the north is in the city, and that was for her. ",
        special=("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
        **settings,
    ):
        made = tokenizers.ByteLevelBPETokenizer(**settings)
        made.train_from_iterator(
            [text],
            vocab_size=290,
            min_frequency=1,
            special_tokens=list(special),
            show_progress=False,
        )
        path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
        made.save(str(path))
        return str(path)

    return make


TINY = {
    "vocab_size": 200,
    "embedding_size": 8,
    "model_hparam_overrides": {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
    },
}


def _write_records(path, examples, seed):
    from electra_tf.data.records import ExampleEncoder, frame_record

    rng = np.random.default_rng(seed)
    encoder = ExampleEncoder(16, cls_id=101, sep_id=102, vocab_size=200)
    records = []
    for _ in range(examples):
        segments = (rng.integers(104, 200, n) for n in rng.integers(3, 7, 2))
        payload = encoder.encode(*(ids.tolist() for ids in segments))
        records.append(frame_record(payload))
    path.write_bytes(b"".join(records))


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """Records of length 16: 3 shards for training and one held out."""
    root = tmp_path_factory.mktemp("data")
    records = root / "pretrain_tfrecords"
    records.mkdir()
    for shard in range(3):
        name = f"pretrain_data.tfrecord-{shard}-of-3"
        _write_records(records / name, 17, shard)
    _write_records(records / "eval_data.tfrecord-0-of-1", 10, 99)
    return root


@pytest.fixture(scope="session")
def tiny_pretraining(tiny_vocab):
    """Hparams of a tiny model's pre-training on `data_dir`."""
    return {
        **TINY,
        "vocab_file": tiny_vocab,
        "max_seq_length": 16,
        "train_batch_size": 4,
        "eval_batch_size": 4,
        "num_train_steps": 20,
        "num_warmup_steps": 4,
        "num_eval_steps": 2,
    }


@pytest.fixture
def tiny_config(tmp_path, tiny_pretraining):
    """A factory of tiny `PretrainingConfig`s: `tiny_config(mask_prob=0.3)`."""

    def make(model_name="tiny", data_dir=None, **hparams):
        from configure.pretraining import PretrainingConfig

        settings = {**copy.deepcopy(tiny_pretraining), **hparams}
        where = str(data_dir or tmp_path)
        return PretrainingConfig.create(model_name, where, **settings)

    return make


@pytest.fixture(scope="session")
def tiny_finetuning(tiny_vocab):
    """Hparams of a tiny model that is fine-tuned from fresh weights."""
    sizes = {**TINY["model_hparam_overrides"], "max_position_embeddings": 64}
    own = {"vocab_file": tiny_vocab, "init_checkpoint": None}
    return {**TINY, **own, "model_hparam_overrides": sizes}


@pytest.fixture(scope="session")
def finished_runs(tmp_path_factory, tiny_finetuning):
    """From a package's weights and settings to its `finetuned_folder`.

    That makes what a finished trial leaves; `draw` sets the weights.
    """

    def factory(draw, labels=None, **settings):
        settings = {**tiny_finetuning, "max_seq_length": 48, **settings}
        made = {}

        def make(name, fresh=False, **hparams):
            from configure.finetuning import FinetuningConfig
            from electra_tf.finetuning.model import FinetuningModel
            from electra_tf.finetuning.registry import get_tasks

            key = (name, repr(hparams))
            if key in made and not fresh:
                return made[key]
            directory = tmp_path_factory.mktemp(name)
            files = {"train": "train.txt", "dev": "dev.txt"}
            task = {"files": files, "name": name, **TASKS[name]}
            if labels and name in labels:
                task["labels"] = labels[name]
            spec = directory / "task.json"
            spec.write_text(json.dumps(task))
            folder = str(directory / "models" / "m_1")
            given = {"task_config": str(spec), "model_dir": folder}
            given |= {"task_names": [name], **settings, **hparams}
            config = FinetuningConfig.create("tiny", str(directory), **given)
            model = FinetuningModel(config, get_tasks(config))
            draw(model.variables)
            save_run(folder, config, model)
            if not fresh:  # The caller breaks those.
                made[key] = folder
            return folder

        return make

    return factory


def save_run(folder, config, model):
    """Writes what a run leaves in its folder at step 7."""
    from electra_tf.checkpoints import formats, tf2
    from electra_tf.checkpoints.weights import ModelWeights
    from electra_tf.training import checkpointing

    weights = ModelWeights(model.variables, 7, folder)
    tf2.write_native(weights, os.path.join(folder, "model.ckpt-7"))
    checkpointing.write_config(folder, config.to_json())
    formats.complete_folder(folder, config.as_dict(), config.vocab_file)
    return folder


@pytest.fixture(scope="session")
def long_sizes():
    """Sizes of a tiny model that reads rows of 512."""
    return TINY["model_hparam_overrides"] | {"max_position_embeddings": 512}


@pytest.fixture(scope="session")
def roughen():
    """Makes fresh weights large enough that answers differ."""

    def change(variables):
        import tensorflow as tf

        random = tf.random.Generator.from_seed(3)
        for variable in variables:
            variable.assign_add(random.normal(variable.shape, stddev=0.3))

    return change


@pytest.fixture(scope="session")
def pretrained_folder(tmp_path_factory, tiny_vocab, roughen, long_sizes):
    """A factory of pre-training runs' folders, by hparams."""
    made = {}

    def make(**hparams):
        from configure.pretraining import PretrainingConfig
        from electra_tf.pretraining.model import PretrainingModel

        key = repr(hparams)
        if key not in made:
            folder = str(tmp_path_factory.mktemp("pretrained"))
            own = {"vocab_file": tiny_vocab, "max_seq_length": 512}
            own |= {"model_hparam_overrides": long_sizes}
            own |= {"generator_hidden_size": 0.5}
            settings = {**TINY, **own, **hparams}
            config = PretrainingConfig.create("tiny", folder, **settings)
            model = PretrainingModel(config)
            roughen(model.variables)
            made[key] = save_run(folder, config, model)
        return made[key]

    return make


@pytest.fixture(scope="session")
def finetuned_folder(finished_runs):
    """A factory of trials' folders: `finetuned_folder("reviews")`."""

    def draw(variables):
        import tensorflow as tf

        # Fresh weights are too small for texts to make a difference.
        random = tf.random.Generator.from_seed(3)
        for variable in variables:
            if "kernel" in variable.name or "_embeddings" in variable.name:
                variable.assign(random.normal(variable.shape, stddev=0.7))

    return finished_runs(
        draw,
        max_query_length=12,
        doc_stride=16,
        beam_size=5,
        fix_tagging_truncation=True,
    )


@pytest.fixture(scope="session")
def head_outputs():
    """What a model's head gives for features (or rows), as NumPy arrays."""
    import tensorflow as tf

    def compute(loaded, features):
        if isinstance(features, list):
            rows = features
            features = {name: [row[name] for row in rows] for name in rows[0]}
        features = {n: tf.constant(value) for n, value in features.items()}
        inputs = ("input_ids", "input_mask", "segment_ids")
        encoded = loaded.model.encoder(*(features[name] for name in inputs))
        found = loaded.model.heads[0].logits(encoded, features)
        return {name: value.numpy() for name, value in found.items()}

    return compute


@pytest.fixture(scope="session")
def qa_example():
    """Makes the example of a question: `qa_example(task, question, text)`."""
    from electra_tf.finetuning.questions import Passage, QAExample

    return lambda task, question, context, number=0: QAExample(
        eid=number,
        task_name=task.name,
        key=str(number),
        question_text=question,
        passage=Passage(context),
    )


@pytest.fixture(scope="session")
def evaluated_questions(head_outputs, qa_example):
    """The evaluation's scorer, having answered (question, context) pairs."""

    def scored(loaded, pairs):
        task = loaded.tasks[0]
        examples = [qa_example(task, *pair, n) for n, pair in enumerate(pairs)]
        scorer = task.scorer_of(examples)
        rows = [row for e in examples for row in task.featurize(e, False)]
        outputs = head_outputs(loaded, rows)
        for i, row in enumerate(rows):
            found = {name: value[i] for name, value in outputs.items()}
            eid = row[f"{task.name}_eid"]
            scorer.update({**found, "eid": eid, "loss": 0.0})
        scorer.answer()
        return scorer

    return scored


@pytest.fixture
def write_task(tmp_path):
    """Writes a task's file where it is looked for; returns the path."""

    def write(task, name, text):
        path = tmp_path / "finetuning_data" / task / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def sst(write_task):
    """Thirty made-up rows of SST, eleven to evaluate, a test set."""
    random = np.random.RandomState(0)
    common = ["the", "of", "and", "in", "to"]

    def rows(count):
        lines = ["sentence\tlabel"]
        for i in range(count):
            words = random.choice(common, random.randint(2, 20))
            lines.append(f"{' '.join(words)}\t{i % 2}")
        return "\n".join(lines) + "\n"

    write_task("sst", "train.tsv", rows(30))
    write_task("sst", "dev.tsv", rows(11))
    test = [f"{i}\tthe {word}\n" for i, word in enumerate(common)]
    write_task("sst", "test.tsv", "".join(["index\tsentence\n", *test]))
