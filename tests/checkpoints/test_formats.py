# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a path holds is told from its content, hparams from shapes."""

import json
import os
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

from configure.errors import UserError
from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import tf1, tf2
from electra_tf.checkpoints.contents import Contents
from electra_tf.checkpoints.formats import (
    ELECTRA_CONFIG,
    complete_folder,
    format_config,
    open_weights,
    read_electra_config,
)
from electra_tf.checkpoints.sizes import (
    list_unseen_differences,
    merge_hparams,
    resolve_sizes,
)
from electra_tf.pretraining.model import PretrainingModel
from tests.checkpoints.conftest import RandomWeights, same_tensors
from tests.conftest import TINY, refused

OVERRIDES = "model_hparam_overrides"
SHAPES = {"electra/a": [3, 2], "electra/b": [4]}


@pytest.fixture
def written(tmp_path):
    prefix = str(tmp_path / "model.ckpt-1234")
    tf1.write_tf1(RandomWeights(SHAPES), prefix)
    return prefix


def test_each_format_is_told_by_prefix_file_and_folder(written, tmp_path):
    ours = str(tmp_path / "ours" / "model.ckpt-1234")
    tf2.write_native(RandomWeights(SHAPES), ours)
    for prefix, kind in ((written, "tf1"), (ours, "native")):
        files = [f"{prefix}.index", f"{prefix}.data-00000-of-00001"]
        for path in (prefix, os.path.dirname(prefix), *files):
            weights = open_weights(path)
            assert weights.kind == kind
            same_tensors(weights, RandomWeights(SHAPES))


def test_a_wrong_prefix_offers_the_nearest(tmp_path):
    for step in range(1000, 13000, 1000):
        (tmp_path / f"model.ckpt-{step}.index").write_bytes(b"")
    for name, first in (("model.ckpt-9001", "9000"), ("electra_small", "")):
        words = rf"Nearest in {tmp_path} \(of 12\): model.ckpt-{first}"
        with pytest.raises(UserError, match=words) as caught:
            open_weights(str(tmp_path / name))
        assert len(str(caught.value).split("): ")[1].split(", ")) == 5


def test_what_is_not_there_is_said(tmp_path, written):
    prefix = str(tmp_path / "many" / "m")
    tf1.write_tf1(RandomWeights(SHAPES), prefix, bytes_per_file=16)
    file = sorted(tmp_path.glob("many/m.data-*"))[2]
    file.unlink()
    (tmp_path / "empty").mkdir()
    os.remove(written + ".index")
    foreign = tf.train.Checkpoint(x=tf.Variable(1.0)).write(f"{tmp_path}/x/x")
    for path, words in (
        (prefix, f"{file.name} is missing"),
        (tmp_path / "empty", "no checkpoint in this directory"),
        (tmp_path / "empty" / "nothing", "empty/nothing"),
        (tmp_path / "nowhere" / "m", "There is no directory .*nowhere"),
        (written, r"in part\. Copy .*1234\.index"),
        (tmp_path, r"in part\. Copy .*1234\.index"),
        (foreign, "of another project: keyed by its"),
    ):
        refused(words, open_weights, str(path))


@pytest.mark.parametrize("content", [b"", None, b"not a table" * 50])
def test_a_damaged_index_is_unreadable(written, content):
    index = pathlib.Path(written + ".index")
    index.write_bytes(index.read_bytes()[:40] if content is None else content)
    refused("unreadable .* copy it again", open_weights, written)


def test_a_folder_of_several_has_to_name_one_in_it(written, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    refused("give the path", open_weights, str(tmp_path))
    assert open_weights(written).kind == "tf1"
    (tmp_path / "model.safetensors").unlink()
    shutil.copy(f"{written}.index", tmp_path / "n.index")
    # As of a folder that was moved.
    state = 'model_checkpoint_path: "/long/gone/model.ckpt-1234"\n'
    (tmp_path / "checkpoint").write_text(state)
    assert open_weights(str(tmp_path)).path == written
    # An older one is not taken for the newest.
    state += 'all_model_checkpoint_paths: "model.ckpt-1234"\n'
    (tmp_path / "checkpoint").write_text(state.replace("1234", "1235", 1))
    newest = "names model.ckpt-1235, .*give its path: model.ckpt-1234"
    refused(newest, open_weights, str(tmp_path))
    (tmp_path / "checkpoint").unlink()
    several = r"several checkpoints \(model.ckpt-1234, n\)"
    refused(several, open_weights, str(tmp_path))
    (tmp_path / "n.index").unlink()
    assert open_weights(str(tmp_path)).path == written


def test_berts_values_slots_and_sizes_come_the_rest_told(tmp_path, of_config):
    names = {
        "electra/": "bert/",
        "generator_predictions/output_bias": "cls/predictions/output_bias",
        "generator_predictions/": "cls/predictions/transform/",
    }
    masked_lm = of_config("pretrain/small_mlm_electra_objective_False", 8)
    shapes = {
        "bert/pooler/dense/kernel": [32, 32],
        "bert/pooler/dense/bias": [32],
        "cls/seq_relationship/output_weights": [2, 32],
        "cls/seq_relationship/output_bias": [2],
    }
    for name, shape in masked_lm.shapes.items():
        start = next(start for start in names if name.startswith(start))
        shapes[name.replace(start, names[start])] = shape
    source = RandomWeights({**shapes, "loss_scale": []})
    tf1.write_tf1(source, str(tmp_path / "bert_model.ckpt"))
    sizes = {"hidden_size": 64, "num_attention_heads": 8, "vocab_size": 200}
    (tmp_path / "bert_config.json").write_text(json.dumps(sizes))
    weights = open_weights(str(tmp_path / "bert_model.ckpt"))
    query = "encoder/layer_1/attention/self/query/kernel"
    ours, theirs = "generator_predictions", "cls/predictions"
    for new, old in (
        (f"electra/{query}", f"bert/{query}"),
        *(
            (f"{ours}/{name}", f"{theirs}/transform/{name}")
            for name in ("dense/kernel/adam_m", "LayerNorm/gamma")
        ),
        (f"{ours}/output_bias", f"{theirs}/output_bias"),
        ("loss_scale", "loss_scale"),
    ):
        np.testing.assert_array_equal(weights.read(new), source.read(old))
    assert weights.global_step == 1234
    assert len(weights.slots) == 2 * len(weights.shapes)
    assert len(weights.shapes) == len(shapes) + 1 - 4
    assert len(weights.dropped) == 3 * 4
    assert "pooler" in weights.dropped["bert/pooler/dense/kernel"]
    assert "next-sent" in weights.dropped["cls/seq_relationship/output_bias"]
    assert weights.hparams["embedding_size"] == 64
    assert weights.hparams[OVERRIDES]["num_attention_heads"] == 8


def test_other_programs_find_their_keys_and_only_the_models(tmp_path):
    given = {"model_size": "large", "do_lower_case": False}
    config = PretrainingConfig.create("m", "secret_folder", **given)
    complete_folder(str(tmp_path), config.as_dict(), None)
    text = (tmp_path / ELECTRA_CONFIG).read_text()
    assert "secret_folder" not in text and "learning_rate" not in text
    expected = {"format_version": 1, "hidden_size": 1024, "vocab_size": 30522}
    expected |= {"num_attention_heads": 16, "do_lower_case": False}
    assert expected.items() <= json.loads(text).items()
    given["embedding_size"] = 1024
    assert given.items() <= read_electra_config(str(tmp_path)).items()


@pytest.mark.parametrize(
    "name", ["bert_config.json", "config.json", ELECTRA_CONFIG]
)
def test_keys_of_other_programs_are_understood(name, tmp_path):
    keys = {"vocab_size": 35000, "embedding_size": 128, "hidden_size": 256}
    keys |= {"num_attention_heads": 4, "architectures": ["ElectraForMaskedLM"]}
    (tmp_path / name).write_text(json.dumps(keys))
    sizes = resolve_sizes(read_electra_config(str(tmp_path)))
    assert (sizes.vocab_size, sizes.embedding_size) == (35000, 128)
    assert sizes.encoder.hidden_size == 256


@pytest.mark.parametrize(
    "change, words",
    [
        ({}, "not valid JSON"),
        ({"format_version": 2}, "format_version is 2"),
        ({"hidden_size": 512}, "hidden_size is 512, but `hparams` make it 256"),
        ({"hparams": []}, "expected a JSON object"),
        ({"hparams": {"modl_size": "base"}}, "model_size"),
    ],
)
def test_a_file_that_cannot_be_is_refused_by_name(change, words, tmp_path):
    text = json.dumps({**json.loads(format_config({})), **change})
    (tmp_path / ELECTRA_CONFIG).write_text(text if change else text[:40])
    with pytest.raises(UserError, match=f"(?s){ELECTRA_CONFIG}.*{words}"):
        read_electra_config(str(tmp_path))


def test_guesses_are_written_but_not_read_as_facts(tmp_path):
    hparams = {OVERRIDES: {"num_attention_heads": 1, "hidden_size": 64}}
    hparams["do_lower_case"] = True
    guesses = ["num_attention_heads", "do_lower_case"]
    complete_folder(str(tmp_path), hparams, None, guesses)
    contents = json.loads((tmp_path / ELECTRA_CONFIG).read_text())
    assert contents["num_attention_heads"] == 1
    assert contents["assumed"] == sorted(guesses)
    read = read_electra_config(str(tmp_path))
    assert read[OVERRIDES] == {"hidden_size": 64}
    assert "do_lower_case" not in read and read["strip_accents"] is True


def model_shapes(tiny_vocab, **hparams):
    hparams |= {"vocab_file": tiny_vocab, "max_seq_length": 16}
    config = PretrainingConfig.create("m", "d", **hparams)
    variables = PretrainingModel(config).variables
    return {v.name[:-2]: list(v.shape) for v in variables}


def test_sizes_are_hparams_there_and_back(config_name, all_configs, tmp_path):
    config = all_configs[config_name]
    contents = Contents(config["shapes"])
    hparams = contents.hparams()
    inferred = resolve_sizes(hparams)
    assert inferred.encoder == contents.sizes.encoder
    assert inferred.embedding_size == contents.sizes.embedding_size
    contents.check_hparams(hparams)
    contents.check_hparams({"learning_rate": 1e-4})
    complete_folder(str(tmp_path / "new"), hparams, None)
    read = read_electra_config(str(tmp_path / "new"))
    assert {name: read[name] for name in hparams} == hparams
    assert resolve_sizes(read) == inferred
    if config_name.startswith("pretrain/"):
        given = dict(config["hparams"])
        # Two towers are taken for Electric's; the variables are the same.
        assert inferred == contents.sizes == resolve_sizes(given)
        contents.check_hparams(given, "test")


def test_inferred_hparams_build_the_same(built_name, all_configs, tiny_vocab):
    shapes = all_configs[built_name]["shapes"]
    assert model_shapes(tiny_vocab, **Contents(shapes).hparams()) == shapes


@pytest.mark.parametrize("hidden, heads", [(64, 1), (200, 2), (130, 2)])
def test_any_hidden_size_makes_a_model(hidden, heads, tiny_vocab):
    sizes = {"hidden_size": hidden, "num_attention_heads": heads}
    sizes |= {"num_hidden_layers": 1, "type_vocab_size": 3}
    overrides = {OVERRIDES: TINY[OVERRIDES] | sizes, "uniform_generator": True}
    shapes = model_shapes(tiny_vocab, **TINY | overrides)
    contents = Contents(shapes)
    assert model_shapes(tiny_vocab, **contents.hparams()) == shapes
    notes = "\n".join(contents.assumptions())
    assert f": {heads} assumed" in notes and "hidden_act" in notes


@pytest.mark.parametrize(
    ("objective", "hparams"),
    [
        ("replace_mlm", {}),
        ("replace_mlm", {"untied_generator": False}),
        ("all_tokens_mlm", {"uniform_generator": True}),
    ],
)
def test_a_second_masked_lm_tells_its_objective(tiny_vocab, objective, hparams):
    hparams = TINY | hparams | {"objective": objective}
    shapes = model_shapes(tiny_vocab, **hparams)
    contents = Contents(shapes)
    found = contents.hparams()
    assert found["objective"] == objective
    assert model_shapes(tiny_vocab, **found) == shapes
    assert contents.unknown == []
    assert "a masked LM of replaced tokens" in contents.description
    contents.check_hparams(hparams)
    other = {"objective": "electra", "electra_objective": True}
    words = "masked LM: checkpoint True, .*objective"
    refused(words, contents.check_hparams, other)
    kept = contents.prefixes("discriminator", "PATH")
    part = Contents({n: s for n, s in shapes.items() if n.startswith(kept)})
    assert part.has("token_predictions/") and part.holds("discriminator")
    assert not part.generates
    part.check_hparams(hparams)


def test_a_generator_alone_has_its_own_sizes(all_configs, tiny_vocab):
    shapes = all_configs["pretrain/small"]["shapes"]
    kept = ("generator", "electra/embeddings/")
    part = {n: s for n, s in shapes.items() if n.startswith(kept)}
    contents = Contents(part)
    hparams = contents.hparams()
    assert hparams[OVERRIDES]["hidden_size"] == 64
    assert hparams["generator_hidden_size"] == 1.0
    built = model_shapes(tiny_vocab, **hparams)
    assert {n: built[n] for n in part} == part
    assert "unknown without" in "\n".join(contents.assumptions())


@pytest.mark.parametrize(
    "hparam, value, words",
    [
        ("model_size", "base", "256, hparams 768"),
        ("embedding_size", 64, "128, hparams 64"),
        ("generator_layers", 0.5, "12, hparams 6"),
        ("embedding_sharing", "token", "embeddings, hparams token"),
        ("max_position_embeddings", 1024, "512, hparams 1024"),
        ("two_tower_generator", True, ""),
        ("untied_generator", False, ""),
        ("electra_objective", True, ""),
    ],
)
def test_a_mismatch_names_the_hparam(all_configs, hparam, value, words):
    name = "small"
    if hparam == "electra_objective":
        name = "small_mlm_electra_objective_False"
    given = {hparam: value}
    if hparam.startswith("max_"):
        given = {OVERRIDES: given}
    with pytest.raises(UserError, match=f"checkpoint.* {words}.*{hparam}"):
        Contents(all_configs[f"pretrain/{name}"]["shapes"]).check_hparams(given)


def test_the_released_small_models_generator_is_named(all_configs):
    # The commonest trap: its generator has the discriminator's hidden size,
    # but the default is a quarter.
    shapes = all_configs["pretrain/small"]["shapes"]
    released = shapes | {
        name.replace("electra/encoder/", "generator/encoder/"): shape
        for name, shape in shapes.items()
        if name.startswith("electra/encoder/")
    }
    base = all_configs["pretrain/base_paper_settings"]["shapes"]
    for shapes, right in ((released, "1.0"), (base, "0.333")):
        words = f"change generator_hidden_size to {right}"
        with pytest.raises(UserError, match=words):
            Contents(shapes).check_hparams({"generator_hidden_size": 0.25})


def test_overrides_are_joined_unless_the_size_is_stated():
    inferred, given = {OVERRIDES: {"a": 1}}, {OVERRIDES: {"b": 2}}
    assert merge_hparams(inferred, given) == {OVERRIDES: {"a": 1, "b": 2}}
    given["model_size"] = "small"
    assert merge_hparams(inferred, given)[OVERRIDES] == {"b": 2}


def test_an_incomplete_checkpoint_and_another_models(all_configs):
    shapes = all_configs["pretrain/small"]["shapes"]
    shapes = {n: s for n, s in shapes.items() if "/encoder/layer_4/" not in n}
    refused("lacks layer 4", Contents(shapes).hparams)
    with pytest.raises(UserError, match="No encoder.*starts with conv/w"):
        Contents({"conv/w": [3, 3]}).hparams()


def test_what_shapes_do_not_show_is_compared_with_the_config_beside():
    stored = {OVERRIDES: {"num_attention_heads": 4}, "do_lower_case": True}
    given = {OVERRIDES: {"hidden_act": "relu"}, "do_lower_case": False}
    stored[OVERRIDES]["hidden_size"] = given[OVERRIDES]["hidden_size"] = 64
    assert list_unseen_differences(stored, stored) == []
    assert list_unseen_differences({}, given) == []
    assert list_unseen_differences(stored, given) == [
        "num_attention_heads: 4 beside the checkpoint, 1 here",
        "hidden_act: gelu beside the checkpoint, relu here",
        "do_lower_case: True beside the checkpoint, False here",
    ]
