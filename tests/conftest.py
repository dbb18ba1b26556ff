# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures that the tests of several packages share."""

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

pytest_plugins = ["tests.answering"]

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
# Descriptions of tasks: one of each kind, and the important options.
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

# Set before TensorFlow is imported: tests need no accelerator, hide messages of
# its start, and leave cores to other processes.
for name, value in {
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_NUM_INTRAOP_THREADS": "2",
    "TF_NUM_INTEROP_THREADS": "2",
}.items():
    os.environ.setdefault(name, value)
# A shell that starts the tests in the background ignores SIGINT, and programs
# that the tests start and interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Tests run with the kernels of training; see electra_tf/__init__.py.
import electra_tf  # noqa: E402

# All tests of a process use the same kernels, in any order of imports.
electra_tf.use_onednn = lambda is_enabled: None

hypothesis.settings.register_profile("default", deadline=None, max_examples=50)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=15)
hypothesis.settings.register_profile(
    "ci", deadline=None, max_examples=50, derandomize=True
)
hypothesis.settings.load_profile("ci" if "CI" in os.environ else "default")


def refused(message, call, /, *arguments, **settings):
    """Assert that a call raises a UserError whose message matches."""
    with pytest.raises(UserError, match=message):
        call(*arguments, **settings)


def differences(actual, expected, rtol=0.0, atol=0.0):
    """Return a line for each array of two dictionaries that differs.

    The bounds are those of `np.testing.assert_allclose`.
    """
    lines = [f"{name}: missing" for name in expected.keys() - actual.keys()]
    lines += [f"{name}: unexpected" for name in actual.keys() - expected.keys()]
    for name in expected.keys() & actual.keys():
        try:
            if rtol or atol:
                np.testing.assert_allclose(
                    actual[name], expected[name], rtol, atol
                )
            else:
                np.testing.assert_array_equal(actual[name], expected[name])
        except AssertionError as error:
            lines.append(f"{name}: {error}")
    return sorted(lines)


def restore(model, path, allow_missing=False):
    """Load a checkpoint of the original; return the matched variables."""
    from electra_tf.checkpoints.assignment import assign
    from electra_tf.checkpoints.tf1 import open_tf1

    weights = open_tf1(path)
    return assign(weights, model.variables, missing_is_fine=allow_missing)


def read_json(path):
    return json.loads(path.read_text())


def marked_slow(*cases):
    """Return cases of a test that `make quick` leaves out."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


def marked_heavy(*cases):
    """Return cases of a test that only `pytest -m heavy` runs."""
    return [pytest.param(case, marks=pytest.mark.heavy) for case in cases]


def pytest_collection_modifyitems(config, items):
    """Skip heavy tests, unless `-m` selects them; the summary counts them."""
    skip = pytest.mark.skip("heavy: `pytest -m heavy` runs it")
    if "heavy" in config.option.markexpr:
        return
    for item in items:
        if item.get_closest_marker("heavy"):
            item.add_marker(skip)


def pytest_terminal_summary(terminalreporter):
    """Report the count of skipped tests by reason and directory."""
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
    """Exclude imported modules from garbage collection, which saves time."""
    gc.collect()
    gc.freeze()


def _custom_gradients():
    """Return the registry of gradients, and the names of custom ones.

    TensorFlow never removes them, and keeps a graph with each.
    """
    ops = sys.modules.get("tensorflow.python.framework.ops")
    registry = ops.gradient_registry._registry if ops else {}
    return registry, {
        name for name in registry if name.startswith("CustomGradient-")
    }


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Remove the graphs that a test made, and the global seed."""
    _, before = _custom_gradients()
    try:
        return (yield)
    finally:
        registry, now = _custom_gradients()
        for name in now - before:
            del registry[name]
        if eager := sys.modules.get("tensorflow.python.eager.context"):
            eager.context()._set_global_seed(None)


@pytest.fixture(scope="module", autouse=True)
def collect_garbage():
    """Free the models of a module, which are reference cycles."""
    yield
    registry, now = _custom_gradients()
    for name in now:
        del registry[name]
    gc.collect()


@pytest.fixture(scope="session", autouse=True)
def without_pictures():
    """Let runs draw no plots and count tokens of 100 examples, to save time."""
    drawing = [
        ("electra_tf.finetuning.results", "draw_scores", b""),
        ("electra_tf.training.curves", "draw_curves", ""),
    ]
    with pytest.MonkeyPatch.context() as patch:
        originals = []
        for name, function, nothing in drawing:
            # Modules that no test imported stay unimported.
            if module := sys.modules.get(name):
                originals.append((module, function, getattr(module, function)))
                patch.setattr(module, function, lambda *_, n=nothing: n)
        if module := sys.modules.get("electra_tf.pretraining.unigram"):
            patch.setattr(module.count_tokens, "__defaults__", (100,))
        yield originals


@pytest.fixture
def with_pictures(without_pictures, monkeypatch):
    """Let runs draw their plots."""
    for original in without_pictures:
        monkeypatch.setattr(*original)


@pytest.fixture(scope="session")
def run_python():
    """Return a function that runs Python in a separate process."""

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
    """Return the directory of reference data; skip if it is absent."""
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
    """Return the folder of numbers recorded from the original."""
    return reference_dir / "golden"


# Biases whose gradients are rounding noise, because no loss depends on them: a
# bias of attention keys adds a constant to a query's scores, and a bias of
# answers' starts (`dense`) or ends (`dense_1`) adds a constant to the logits of
# all positions. Softmax cancels constants.
NOISE = re.compile(
    r"/attention/self/key/bias$"
    r"|^task_specific/(squad|squadv1|newsqa|triviaqa)/dense(_1)?/bias$"
)


@pytest.fixture(scope="session")
def is_noise():
    """Return a function from a variable's name to whether its gradient is 0."""
    return lambda name: NOISE.search(name) is not None


@pytest.fixture(scope="session")
def assert_gradients(is_noise):
    """Return a function that asserts that gradients equal recorded ones."""

    def check(gradients, recorded, recorded_norm):
        import tensorflow as tf

        assert set(gradients) == set(recorded)
        norm = float(tf.linalg.global_norm(list(gradients.values())))
        np.testing.assert_allclose(norm, recorded_norm, rtol=1e-5)
        for name, gradient in gradients.items():
            gradient = tf.convert_to_tensor(gradient).numpy()
            size = np.linalg.norm(recorded[name])
            if is_noise(name):
                # The noise differs between kernels. It was at most 2e-8 of the
                # norm; the smallest other gradient is 1.6e-4 of it.
                assert np.linalg.norm(gradient) <= 1e-6 * norm, name
                assert size <= 1e-6 * norm, name
            else:
                error = np.linalg.norm(gradient - recorded[name])
                assert error <= 1e-5 * max(size, 1e-3 * norm), name

    return check


@pytest.fixture(scope="session")
def assert_recorded_weights():
    """Return a function that compares weights and slots with recorded ones."""

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
    """Return the path of a WordPiece vocabulary of 200 tokens."""
    return str(FIXTURES / "vocab_200.txt")


@pytest.fixture(scope="session")
def bpe_file(tmp_path_factory):
    """Return a function that trains a byte-level BPE on a text."""
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
    from electra_tf.data.tfrecords import ExampleEncoder, frame_record

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
    """Return a folder with records of length 16: 3 for training, 1 held out."""
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
    """Return the hparams of a tiny model's pre-training on `data_dir`."""
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
    """Return a factory of tiny configs: `tiny_config(mask_prob=0.3)`."""

    def make(model_name="tiny", data_dir=None, **hparams):
        from configure.pretraining import PretrainingConfig

        settings = {**copy.deepcopy(tiny_pretraining), **hparams}
        folder = str(data_dir or tmp_path)
        return PretrainingConfig.create(model_name, folder, **settings)

    return make


@pytest.fixture(scope="session")
def tiny_finetuning(tiny_vocab):
    """Return the hparams of a tiny model, fine-tuned from random weights."""
    sizes = {**TINY["model_hparam_overrides"], "max_position_embeddings": 64}
    return {
        **TINY,
        "vocab_file": tiny_vocab,
        "init_checkpoint": None,
        "model_hparam_overrides": sizes,
    }


@pytest.fixture(scope="session")
def finished_runs(tmp_path_factory, tiny_finetuning):
    """Return a factory of `finetuned_folder` fixtures.

    Such a fixture makes the folder of a finished trial; `draw` sets the
    weights.
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
            run_hparams = {
                "task_config": str(spec),
                "model_dir": folder,
                "task_names": [name],
                **settings,
                **hparams,
            }
            config = FinetuningConfig.create(
                "tiny", str(directory), **run_hparams
            )
            model = FinetuningModel(config, get_tasks(config))
            draw(model.variables)
            save_run(folder, config, model)
            if not fresh:  # The caller modifies a fresh folder.
                made[key] = folder
            return folder

        return make

    return factory


def save_run(folder, config, model):
    """Write the folder of a run at step 7."""
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
    """Return the sizes of a tiny model with 512 positions."""
    return TINY["model_hparam_overrides"] | {"max_position_embeddings": 512}


@pytest.fixture(scope="session")
def roughen():
    """Return a function that adds noise to weights, so that outputs differ."""

    def change(variables):
        import tensorflow as tf

        random = tf.random.Generator.from_seed(3)
        for variable in variables:
            variable.assign_add(random.normal(variable.shape, stddev=0.3))

    return change


@pytest.fixture(scope="session")
def pretrained_folder(tmp_path_factory, tiny_vocab, roughen, long_sizes):
    """Return a factory of folders of pre-training runs, by hparams."""
    made = {}

    def make(**hparams):
        from configure.pretraining import PretrainingConfig
        from electra_tf.pretraining.model import PretrainingModel

        key = repr(hparams)
        if key not in made:
            folder = str(tmp_path_factory.mktemp("pretrained"))
            defaults = {"vocab_file": tiny_vocab, "max_seq_length": 512}
            defaults |= {"model_hparam_overrides": long_sizes}
            defaults |= {"generator_hidden_size": 0.5}
            settings = {**TINY, **defaults, **hparams}
            config = PretrainingConfig.create("tiny", folder, **settings)
            model = PretrainingModel(config)
            roughen(model.variables)
            made[key] = save_run(folder, config, model)
        return made[key]

    return make


@pytest.fixture(scope="session")
def finetuned_folder(finished_runs):
    """Return a factory of trials' folders: `finetuned_folder("reviews")`."""

    def draw(variables):
        import tensorflow as tf

        # Initial weights are so small that all texts get equal outputs.
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


@pytest.fixture
def write_task(tmp_path):
    """Return a function that writes a task's file and returns its path."""

    def write(task, name, text):
        path = tmp_path / "finetuning_data" / task / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def sst(write_task):
    """Write random rows of SST: 30 for training, 11 to evaluate, 5 to test."""
    random = np.random.RandomState(0)
    common = ["the", "of", "and", "in", "to"]

    def rows(count):
        lines = ["sentence\tlabel"]
        for i in range(count):
            sampled = random.choice(common, random.randint(2, 20))
            lines.append(f"{' '.join(sampled)}\t{i % 2}")
        return "\n".join(lines) + "\n"

    write_task("sst", "train.tsv", rows(30))
    write_task("sst", "dev.tsv", rows(11))
    test = [f"{i}\tthe {word}\n" for i, word in enumerate(common)]
    write_task("sst", "test.tsv", "".join(["index\tsentence\n", *test]))
