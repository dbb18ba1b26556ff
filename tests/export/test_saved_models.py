# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""SavedModels give another process the outputs of the Python model.

That process imports tensorflow and tensorflow_text only. Heads other than those
of texts are compared with their modules, and other tests compare the modules
with the models.
"""

import functools
import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export import saved_model
from electra_tf.export.encoder import EncoderModule
from electra_tf.export.heads import (
    ElectricModule,
    FillMaskModule,
    ReplacedTokensModule,
)
from electra_tf.export.saved_model import export
from electra_tf.export.signatures import Inputs
from electra_tf.finetuning.classification import TextExample
from electra_tf.inspection.fill_mask import MaskFiller, padded
from electra_tf.inspection.text_scores import TextScorer
from electra_tf.prediction.loading import load_pretrained
from tests.conftest import marked_heavy, refused
from tests.export.conftest import as_numpy

TEXTS = [
    b"The cat, the dog and the ing.",
    b"",
    b"   \t\n",
    b"\xff\xfe the \xc3 was \xe2\x82",
    b"a" * 1000,
    "Übermaß \u4e2d\u6587 \u0130stanbul e\u0301 \U0001f600 of".encode(),
    b"the of and to " * 5000,
    b"[CLS] [SEP] [MASK] [PAD]",
    b"\x00a\x00\x01b",
]
NAMES = Inputs._fields
ELECTRIC = {"electric_objective": True, "electra_objective": False}
MODULES = {
    "encoder": (EncoderModule, {}),
    "replaced_tokens": (ReplacedTokensModule, {}),
    "fill_mask": (FillMaskModule, {}),
    "electric": (ElectricModule, ELECTRIC),
}


def _check_answers(loaded, got, expected):
    task = loaded.task()
    if "value" in got:
        value = expected["predictions"]
        np.testing.assert_allclose(got["scaled"], value, atol=1e-5)
        np.testing.assert_allclose(got["value"], task.unscale(value), atol=6e-5)
        return
    logits = expected["logits"]
    np.testing.assert_allclose(got["logits"], logits, atol=1e-5)
    if "chosen" in got:
        np.testing.assert_array_equal(got["chosen"], expected["predictions"])
        for label, chosen in zip(got["label"], got["chosen"], strict=True):
            names = [n for n, c in zip(task.labels, chosen, strict=True) if c]
            assert label.decode() == ",".join(names)
        probabilities = tf.sigmoid(logits)
    else:
        np.testing.assert_array_equal(got["label_id"], expected["predictions"])
        for label, number in zip(got["label"], got["label_id"], strict=True):
            assert label.decode() == task.labels[number]
        probabilities = tf.nn.softmax(logits)
    np.testing.assert_allclose(got["probabilities"], probabilities, atol=1e-5)


def _random_ids(batch, length, seed):
    """Return rows of up to L tokens in one or two segments; some are empty."""
    random = np.random.default_rng(seed)
    ids = np.zeros([batch, length], np.int32)
    mask, segments = np.zeros_like(ids), np.zeros_like(ids)
    for row in range(batch):
        size = int(random.integers(0, length + 1)) if row else length
        ids[row, :size] = random.integers(105, 200, size)
        mask[row, :size] = 1
        if size > 3:
            half = int(random.integers(1, size - 1))
            ids[row, [half, size - 1]] = 102  # [SEP]
            segments[row, half + 1 : size] = 1
    return dict(zip(NAMES, (ids, mask, segments), strict=True))


SHAPES = [(1, 1), (1, 512), (2, 2), (7, 33), (64, 1), (64, 48), (16, 128)]


@pytest.fixture(scope="module")
def served(finetuned_module, tmp_path_factory):
    """Return a factory of models and their exports by the task's name."""
    output_dir = tmp_path_factory.mktemp("served")

    @functools.cache
    def make(name):
        loaded, module = finetuned_module(name)
        return loaded, export(module, str(output_dir / name))

    return make


@pytest.mark.parametrize(
    "name", ["pairs", "topics", *marked_heavy("reviews", "grade")]
)
def test_another_process_gives_the_model_s_answers(
    name, served, ask_elsewhere, head_outputs
):
    loaded, folder = served(name)
    texts = [_texts(size, name == "pairs") for size in (1, len(TEXTS), 20)]
    ids = [_random_ids(*shape, seed=i) for i, shape in enumerate(SHAPES)]
    not_given = dict.fromkeys(NAMES[1:], np.zeros([0, 0], np.int32))
    batches = [("serve_text", inputs) for inputs in texts]
    batches += [("serving_default", features) for features in ids]
    batches += [("serving_default", {**f, **not_given}) for f in ids]
    batches += [("serve_ids", {"input_ids": f["input_ids"]}) for f in ids]
    answers = ask_elsewhere(folder, batches)
    task, truncated = loaded.task(), []
    for inputs, got in zip(texts, answers, strict=False):
        features, cut = _featurized(task, inputs)
        _check_answers(loaded, got, head_outputs(loaded, features))
        truncated.append(cut)
    text_answers = answers[: len(texts)]
    assert [got["truncated"].tolist() for got in text_answers] == truncated
    for features, got in zip(ids * 3, answers[len(texts) :], strict=True):
        _check_answers(loaded, got, head_outputs(loaded, features))


def _texts(size, pairs):
    first, second = TEXTS * 8, (TEXTS[3:] + TEXTS[:3]) * 8
    inputs = {"text": first[:size]}
    return inputs | ({"text_pair": second[:size]} if pairs else {})


def _featurized(task, inputs):
    """Return training's features of texts, and for each if it is cut."""
    rows, cut = [], []
    for i, text in enumerate(inputs["text"]):
        before = dict(task.row_report.losses)
        second = inputs.get("text_pair")
        example = TextExample(
            eid=0,
            task_name=task.name,
            text_a=text,
            text_b=second[i] if second else None,
        )
        rows.append(task.featurize(example, False))
        cut.append(task.row_report.losses != before)
    return {n: np.array([row[n] for row in rows]) for n in NAMES}, cut


LABELS = ["bad", "good", "Übermaß"]


@pytest.fixture(scope="module")
def reviews(served):
    """Return the folder of a SavedModel, the model, and its description."""
    _, folder = served("reviews")
    served_model = tf.saved_model.load(folder)
    return folder, served_model, served_model.signatures["describe"]()


def test_labels_are_inside(reviews):
    _, served_model, description = reviews
    described, attribute = (
        [label.decode() for label in labels.numpy()]
        for labels in (description["labels"], served_model.labels)
    )
    assert described == attribute == LABELS


def test_the_config_is_inside_without_paths(served, reviews):
    loaded, _ = served("reviews")
    text = reviews[2]["config"].numpy().decode()
    config = json.loads(text)
    assert config["task"] == "reviews" and config["kind"] == "classification"
    assert config["hparams"]["max_seq_length"] == 48
    assert loaded.folder not in text and loaded.config.data_dir not in text


def test_rows_longer_than_the_positions_are_refused(reviews):
    _, served_model, _ = reviews
    with pytest.raises(tf.errors.InvalidArgumentError, match="512 positions"):
        served_model.signatures["serve_ids"](tf.ones([1, 513], tf.int32))


def test_files_for_people_have_labels_config_and_vocabulary(reviews):
    folder, _, description = reviews
    labels, config, vocabulary = (
        pathlib.Path(folder, "assets.extra", name).read_text("utf-8")
        for name in ("labels.txt", "config.json", "vocab.txt")
    )
    assert labels.split("\n") == [*LABELS, ""]
    assert json.loads(config) == json.loads(description["config"].numpy())
    assert len(vocabulary.splitlines()) == 200


def _compare(got, expected):
    assert set(got) == set(expected)
    for name, tensor in expected.items():
        value = tensor.numpy()
        assert got[name].shape == value.shape, name
        if name.endswith("_index"):
            continue  # Masked positions are equally good.
        if value.dtype.kind == "f":
            sizes = np.abs(
                value[np.abs(value) < 1e9]
            )  # larger ones mark masked tokens
            bound = 1e-5 * max(1.0, sizes.max(initial=0.0))
            np.testing.assert_allclose(
                got[name], value, rtol=1e-5, atol=bound, err_msg=name
            )
        else:
            np.testing.assert_array_equal(got[name], value, err_msg=name)


@pytest.mark.parametrize("name", ["names", *marked_heavy("manuals", *MODULES)])
def test_another_process_gives_the_outputs_of_other_heads(
    name,
    finetuned_module,
    pretrained_folder,
    long_sizes,
    ask_elsewhere,
    tmp_path,
):
    if name in MODULES:
        make, hparams = MODULES[name]
        sizes = long_sizes | {"num_hidden_layers": 1}
        folder = pretrained_folder(model_hparam_overrides=sizes, **hparams)
        module = make(load_pretrained(folder))
    else:
        sizes = {"max_query_length": 8, "doc_stride": 12, "beam_size": 5}
        module = finetuned_module(name, **sizes)[1]
    folder = export(module, str(tmp_path / name))
    batches = []
    for seed, shape in enumerate(SHAPES):
        features = _random_ids(*shape, seed=seed)
        features["input_ids"][:, 1::7] = 103  # [MASK]
        batches.append(("serving_default", features))
    if name == "names":
        sentences = [b"a b  c", b"", b"the\nking\n\nof"]
        batches.append(("serve_words", {"words": sentences}))
    columns = ["question", "context"] if name == "manuals" else ["text"]
    batches += [
        ("serve_text", {column: TEXTS[:size] for column in columns})
        for size in (1, 6 if name == "manuals" else len(TEXTS))
    ]
    signatures = module.signatures()
    answers = ask_elsewhere(folder, batches)
    for (signature, inputs), got in zip(batches, answers, strict=True):
        tensors = {n: tf.constant(value) for n, value in inputs.items()}
        _compare(got, signatures[signature](**tensors))


def _encoded(loaded, texts, most=510):
    """Return the tokenizer's ids of texts in which [MASK] is a token."""
    vocab, rows = loaded.tokenizer.vocab, []
    for text in texts:
        ids = []
        for i, part in enumerate(text.split(b"[MASK]")):
            ids += [vocab["[MASK]"]] if i else []
            ids += loaded.tokenizer.encode(part)
        rows.append([vocab["[CLS]"], *ids[:most], vocab["[SEP]"]])
    return rows


def test_replaced_tokens_are_those_of_the_discriminator(pretrained_folder):
    electra = load_pretrained(pretrained_folder())
    module = ReplacedTokensModule(electra)
    asked = _random_ids(5, 40, 0)
    got = as_numpy(module.compute_text(tf.constant(TEXTS)))
    by_ids = as_numpy(module.compute(Inputs(**asked)))
    vocab = electra.tokenizer.vocab
    texts = [text.replace(b"[MASK]", b" [ mask ] ") for text in TEXTS]
    rows = _encoded(electra, texts)
    shares = []
    for features in (padded(rows), asked):
        inputs = [tf.constant(features[name]) for name in NAMES]
        encoded = electra.model.discriminator(*inputs)
        logits = electra.model.discriminator_head(encoded.sequence_output)
        shares.append(tf.sigmoid(logits).numpy() * features["input_mask"])
    np.testing.assert_allclose(got["replaced"], shares[0], atol=1e-5)
    np.testing.assert_allclose(by_ids["replaced"], shares[1], atol=1e-5)
    assert rows == [
        [vocab[token.decode()] for token in tokens if token]
        for tokens in got["tokens"]
    ]
    lengths = [len(electra.tokenizer.encode(text)) for text in TEXTS]
    assert got["truncated"].tolist() == [size > 510 for size in lengths]


MASKED_TEXTS = [
    b"the [MASK] is [MASK].",
    b"",
    b"[MASK]",
    b"no mask, [mask]",
    b"a[MASK][MASK]b [MASK]\xff",
]


@pytest.fixture(
    scope="module",
    params=[{}, ELECTRIC, {"electra_objective": False}],
    ids=["electra", "electric", "masked_lm"],
)
def filled_masks(request, pretrained_folder):
    """Return a model, and the outputs of its export for masked texts."""
    loaded = load_pretrained(pretrained_folder(**request.param))
    module = FillMaskModule(loaded, top_k=4)
    return loaded, as_numpy(module.compute_text(tf.constant(MASKED_TEXTS)))


@pytest.mark.parametrize("index", range(len(MASKED_TEXTS)))
def test_masks_get_the_likeliest_words_of_the_generator(index, filled_masks):
    loaded, outputs = filled_masks
    text, got = MASKED_TEXTS[index], {n: v[index] for n, v in outputs.items()}
    count = text.count(b"[MASK]")
    assert got["masks"] == count
    assert not got["positions"][count:].any()
    assert not got["probabilities"][count:].any()
    if not count:
        return
    (filled,) = MaskFiller(loaded, top_k=4)([text.decode("utf-8", "ignore")])
    positions = [mask.position for mask in filled.masks]
    assert got["positions"][:count].tolist() == positions
    ids, tokens, shares = (
        [[getattr(c, name) for c in mask.candidates] for mask in filled.masks]
        for name in ("token_id", "token", "probability")
    )
    assert got["token_ids"][:count].tolist() == ids
    assert [
        [t.decode() for t in row] for row in got["tokens"][:count]
    ] == tokens
    np.testing.assert_allclose(got["probabilities"][:count], shares, atol=1e-5)


def test_electric_scores_are_those_of_the_scorer(pretrained_folder):
    loaded = load_pretrained(pretrained_folder(**ELECTRIC))
    refused("Pass --head=electric", ReplacedTokensModule, loaded)
    texts = [text.decode("utf-8", "ignore") for text in TEXTS[:6]]
    got = as_numpy(ElectricModule(loaded).compute_text(tf.constant(TEXTS[:6])))
    scored = list(TextScorer(loaded).score(texts))
    counts = [len(text.tokens) for text in scored]
    assert got["scored_tokens"].tolist() == counts
    token_scores = np.zeros_like(got["token_scores"])
    for row, text, count in zip(token_scores, scored, counts, strict=True):
        row[1 : count + 1] = text.token_scores
    np.testing.assert_allclose(got["token_scores"], token_scores, atol=1e-5)
    is_empty = token_scores == 0
    assert not got["token_scores"][is_empty].any()
    scores = [text.score for text in scored]
    np.testing.assert_allclose(got["score"], scores, atol=5e-5)


def _add(output_dir, version=None, overwrite=False, text="x", fails=False):
    with saved_model.writing(str(output_dir), version, overwrite) as (
        folder,
        final,
    ):
        for name in ("saved_model.pb", "other"):
            pathlib.Path(folder, name).write_text(text)
        if fails:
            raise RuntimeError
    return final


def _contents(output_dir):
    return {
        n: (output_dir / n / "other").read_text()
        for n in os.listdir(output_dir)
    }


def test_versions_count_up_and_are_replaced_only_if_asked(tmp_path):
    output_dir = tmp_path / "new" / "served"
    os.makedirs(output_dir / "1.part" / "variables")  # left by a killed export
    folders = [_add(output_dir, version) for version in (None, None, 7, None)]
    assert folders == [str(output_dir / name) for name in "1278"]
    assert sorted(os.listdir(output_dir)) == ["1", "2", "7", "8"]
    output_dir = tmp_path / "m"
    _add(output_dir, 2, text="one")
    _add(output_dir, 3, text="old")
    refused(r"m/3 exists.*is 4.*--over", _add, output_dir, 3, text="new")
    with pytest.raises(RuntimeError):
        _add(output_dir, 3, True, text="half", fails=True)
    assert _contents(output_dir) == {"2": "one", "3": "old"}
    # Without a number the export replaces the highest version.
    assert _add(output_dir, None, True, text="new").endswith("/3")
    assert _contents(output_dir) == {"2": "one", "3": "new"}
    _add(output_dir, 2, True, text="newer")
    assert _contents(output_dir) == {"2": "newer", "3": "new"}


def test_folders_with_other_files_are_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("ten years")
    refused(r"contains other files \(thesis.txt\)", _add, tmp_path, None, True)
    os.makedirs(tmp_path / "m" / "1")
    (tmp_path / "m" / "1" / "photo").write_text("mine")
    refused("no saved_model.pb; --overwrite", _add, tmp_path / "m", 1, True)
    refused("is a file; expected a folder", _add, tmp_path / "thesis.txt")
    refused("--version is 0; expected 1 or more", _add, tmp_path / "m", 0)
