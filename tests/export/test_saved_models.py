# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What another process reads from the files is what the Python model says.

It imports tensorflow and tensorflow_text alone. Heads other than those of texts
are compared with their modules there, and these with the models elsewhere.
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


def _check_answers(loaded, got, wanted):
    task = loaded.task()
    if "value" in got:
        value = wanted["predictions"]
        np.testing.assert_allclose(got["scaled"], value, atol=1e-5)
        np.testing.assert_allclose(got["value"], task.unscale(value), atol=6e-5)
        return
    logits = wanted["logits"]
    np.testing.assert_allclose(got["logits"], logits, atol=1e-5)
    if "chosen" in got:
        np.testing.assert_array_equal(got["chosen"], wanted["predictions"])
        for label, chosen in zip(got["label"], got["chosen"], strict=True):
            names = [n for n, c in zip(task.labels, chosen, strict=True) if c]
            assert label.decode() == ",".join(names)
        probabilities = tf.sigmoid(logits)
    else:
        np.testing.assert_array_equal(got["label_id"], wanted["predictions"])
        for label, number in zip(got["label"], got["label_id"], strict=True):
            assert label.decode() == task.labels[number]
        probabilities = tf.nn.softmax(logits)
    np.testing.assert_allclose(got["probabilities"], probabilities, atol=1e-5)


def _random_ids(batch, length, seed):
    """Rows of any length up to L, of one or two segments, some all padding."""
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
    """A factory: model and its export, by the task's name."""
    place = tmp_path_factory.mktemp("served")

    @functools.cache
    def make(name):
        loaded, module = finetuned_module(name)
        return loaded, export(module, str(place / name))

    return make


@pytest.mark.parametrize(
    "name", ["pairs", "topics", *marked_heavy("reviews", "grade")]
)
def test_other_programs_answer_alike(name, served, ask_elsewhere, head_outputs):
    loaded, folder = served(name)
    texts = [_texts(size, name == "pairs") for size in (1, len(TEXTS), 20)]
    ids = [_random_ids(*shape, seed=i) for i, shape in enumerate(SHAPES)]
    not_given = dict.fromkeys(NAMES[1:], np.zeros([0, 0], np.int32))
    batches = [("serve_text", inputs) for inputs in texts]
    batches += [("serving_default", features) for features in ids]
    batches += [("serving_default", {**f, **not_given}) for f in ids]
    batches += [("serve_ids", {"input_ids": f["input_ids"]}) for f in ids]
    answers = ask_elsewhere(folder, batches)
    for inputs, got in zip(texts, answers, strict=False):
        features, cut = _featurized(loaded.task(), inputs)
        _check_answers(loaded, got, head_outputs(loaded, features))
        assert got["truncated"].tolist() == cut
    for features, got in zip(ids * 3, answers[len(texts) :], strict=True):
        _check_answers(loaded, got, head_outputs(loaded, features))


def _texts(size, pairs):
    first, second = TEXTS * 8, (TEXTS[3:] + TEXTS[:3]) * 8
    inputs = {"text": first[:size]}
    return inputs | ({"text_pair": second[:size]} if pairs else {})


def _featurized(task, inputs):
    """What training makes of texts, and whether it cut them."""
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


def test_labels_and_config_are_inside(served):
    loaded, folder = served("reviews")
    served_model = tf.saved_model.load(folder)
    described = served_model.signatures["describe"]()
    labels = ["bad", "good", "Übermaß"]
    for stated in (described["labels"], served_model.labels):
        assert [name.decode() for name in stated.numpy()] == labels
    text = described["config"].numpy().decode()
    config = json.loads(text)
    assert config["task"] == "reviews" and config["kind"] == "classification"
    assert config["hparams"]["max_seq_length"] == 48
    assert loaded.folder not in text and loaded.config.data_dir not in text
    with pytest.raises(tf.errors.InvalidArgumentError, match="512 positions"):
        served_model.signatures["serve_ids"](tf.ones([1, 513], tf.int32))
    extra = f"{folder}/assets.extra"
    texts = [
        pathlib.Path(extra, name).read_text("utf-8")
        for name in ("labels.txt", "config.json", "vocab.txt")
    ]
    assert texts[0].split("\n") == [*labels, ""]
    assert json.loads(texts[1]) == config and len(texts[2].splitlines()) == 200


def _compare(got, wanted):
    assert set(got) == set(wanted)
    for name, tensor in wanted.items():
        value = tensor.numpy()
        assert got[name].shape == value.shape, name
        if name.endswith("_index"):
            continue  # Masked places are equally good.
        if value.dtype.kind == "f":
            sizes = np.abs(value[np.abs(value) < 1e9])  # others are masked
            bound = 1e-5 * max(1.0, sizes.max(initial=0.0))
            np.testing.assert_allclose(
                got[name], value, rtol=1e-5, atol=bound, err_msg=name
            )
        else:
            np.testing.assert_array_equal(got[name], value, err_msg=name)


@pytest.mark.parametrize("name", ["names", "manuals", *MODULES])
def test_other_heads_give_elsewhere_what_they_give_here(
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
    given = {"names": [b"a b  c", b"", b"the\nking\n\nof"]}.get(name)
    batches += [("serve_words", {"words": given})] if given else []
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
    """Python's ids of texts in which [MASK] is a token."""
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
    for features, answer in ((padded(rows), got), (asked, by_ids)):
        inputs = [tf.constant(features[name]) for name in NAMES]
        encoded = electra.model.discriminator(*inputs)
        logits = electra.model.discriminator_head(encoded.sequence_output)
        wanted = tf.sigmoid(logits).numpy() * features["input_mask"]
        np.testing.assert_allclose(answer["replaced"], wanted, atol=1e-5)
    for tokens, row in zip(got["tokens"], rows, strict=True):
        shown = [token.decode() for token in tokens if token]
        assert [vocab[token] for token in shown] == row
    lengths = [len(electra.tokenizer.encode(text)) for text in TEXTS]
    assert got["truncated"].tolist() == [size > 510 for size in lengths]


@pytest.mark.parametrize(
    "hparams",
    [{}, ELECTRIC, {"electra_objective": False}],
    ids=["electra", "electric", "masked_lm"],
)
def test_masks_get_the_best_words_of_the_generator(hparams, pretrained_folder):
    loaded = load_pretrained(pretrained_folder(**hparams))
    module = FillMaskModule(loaded, top_k=4)
    texts = [
        b"the [MASK] is [MASK].",
        b"",
        b"[MASK]",
        b"no mask, [mask]",
        b"a[MASK][MASK]b [MASK]\xff",
    ]
    got = as_numpy(module.compute_text(tf.constant(texts)))
    filler = MaskFiller(loaded, top_k=4)
    for i, text in enumerate(texts):
        count = text.count(b"[MASK]")
        assert got["masks"][i] == count
        assert not got["positions"][i, count:].any()
        assert not got["probabilities"][i, count:].any()
        if not count:
            continue
        (filled,) = filler([text.decode("utf-8", "ignore")])
        for slot, mask in enumerate(filled.masks):
            best = mask.candidates
            assert got["positions"][i, slot] == mask.position
            ids = got["token_ids"][i, slot].tolist()
            assert ids == [c.token_id for c in best]
            tokens = [token.decode() for token in got["tokens"][i, slot]]
            assert tokens == [c.token for c in best]
            shares = got["probabilities"][i, slot]
            wanted = [c.probability for c in best]
            np.testing.assert_allclose(shares, wanted, atol=1e-5)


def test_electric_scores_are_those_of_the_scorer(pretrained_folder):
    loaded = load_pretrained(pretrained_folder(**ELECTRIC))
    refused("Pass --head=electric", ReplacedTokensModule, loaded)
    texts = [text.decode("utf-8", "ignore") for text in TEXTS[:6]]
    got = as_numpy(ElectricModule(loaded).compute_text(tf.constant(TEXTS[:6])))
    for i, wanted in enumerate(TextScorer(loaded).score(texts)):
        count = len(wanted.tokens)
        assert got["scored_tokens"][i] == count
        shares, scores = got["token_scores"][i], wanted.token_scores
        np.testing.assert_allclose(shares[1 : count + 1], scores, atol=1e-5)
        assert not shares[count + 1 :].any() and not shares[0]
        np.testing.assert_allclose(got["score"][i], wanted.score, atol=5e-5)


def _add(place, version=None, overwrite=False, text="x", fails=False):
    with saved_model.writing(str(place), version, overwrite) as (folder, final):
        for name in ("saved_model.pb", "other"):
            pathlib.Path(folder, name).write_text(text)
        if fails:
            raise RuntimeError
    return final


def _contents(place):
    return {n: (place / n / "other").read_text() for n in os.listdir(place)}


def test_versions_count_up_and_are_replaced_only_if_asked(tmp_path):
    place = tmp_path / "new" / "served"
    os.makedirs(place / "1.part" / "variables")  # of an export that was killed
    found = [_add(place, version) for version in (None, None, 7, None)]
    assert found == [str(place / name) for name in "1278"]
    assert sorted(os.listdir(place)) == ["1", "2", "7", "8"]
    place = tmp_path / "m"
    _add(place, 2, text="one")
    _add(place, 3, text="old")
    refused(r"m/3 exists.*is 4.*--over", _add, place, 3, text="new")
    with pytest.raises(RuntimeError):
        _add(place, 3, True, text="half", fails=True)
    assert _contents(place) == {"2": "one", "3": "old"}
    # Without a number it is the highest.
    assert _add(place, None, True, text="new").endswith("/3")
    assert _contents(place) == {"2": "one", "3": "new"}
    _add(place, 2, True, text="newer")
    assert _contents(place) == {"2": "newer", "3": "new"}


def test_folders_of_others_are_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("ten years")
    refused(r"contains other files \(thesis.txt\)", _add, tmp_path, None, True)
    os.makedirs(tmp_path / "m" / "1")
    (tmp_path / "m" / "1" / "photo").write_text("mine")
    refused("no saved_model.pb; --overwrite", _add, tmp_path / "m", 1, True)
    refused("is a file; expected a folder", _add, tmp_path / "thesis.txt")
    refused("--version is 0; expected 1 or more", _add, tmp_path / "m", 0)
