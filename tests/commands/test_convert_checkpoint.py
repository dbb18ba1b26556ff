# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command that converts checkpoints."""

import json
import os
import pathlib
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from configure.pretraining import PretrainingConfig
from electra_tf.checkpoints import formats, tf1
from electra_tf.checkpoints.contents import PARTS
from electra_tf.checkpoints.formats import open_weights, read_electra_config
from electra_tf.checkpoints.weights import MemoryWeights
from electra_tf.commands import convert_checkpoint
from electra_tf.commands.convert_checkpoint import parse_flags
from electra_tf.keras import Encoder, Tokenizer
from electra_tf.pretraining.loading import load_pretrained
from electra_tf.pretraining.model import PretrainingModel
from tests.checkpoints.conftest import RandomWeights
from tests.conftest import TASKS, TINY, read_json, refused

HEADS = '{"model_hparam_overrides": {"num_attention_heads": 4}}'
TO_HUGGING_FACE = ("--output_format=huggingface",)


def convert(*arguments):
    args = parse_flags(["convert_checkpoint", *map(str, arguments)])
    convert_checkpoint.main(args)


@pytest.fixture(scope="module")
def source(tmp_path_factory, tiny_pretraining, tiny_vocab):
    """Return a checkpoint in TF1's format, with slots, of this project."""
    folder = tmp_path_factory.mktemp("source")
    config = PretrainingConfig.create("tiny", str(folder), **tiny_pretraining)
    shapes = {v.name[:-2]: v.shape for v in PretrainingModel(config).variables}
    tf1.write_tf1(RandomWeights(shapes, step=40), str(folder / "model.ckpt-40"))
    shutil.copy(tiny_vocab, folder / "vocab.txt")
    return str(folder / "model.ckpt-40")


def tensors(path):
    return {name: value.tobytes() for name, value in open_weights(str(path))}


def report_of(path):
    return read_json(pathlib.Path(f"{path}.conversion.json"))


def dropped_of(report):
    return {name for names in report["dropped"].values() for name in names}


def test_a_conversion_and_its_inverse_keep_every_bit(source, tmp_path, capsys):
    native, back = tmp_path / "native" / "m", tmp_path / "back" / "m"
    convert(source, native, "--output_format=native")
    assert open_weights(str(native)).kind == "native"
    convert(native, back)
    assert open_weights(str(back)).kind == "tf1"
    assert tensors(back) == tensors(native) == tensors(source)
    assert capsys.readouterr().out.count("step 40") == 4


def test_config_report_and_unknown_variables_are_written(
    source, tmp_path, capsys
):
    target = tmp_path / "new" / "m"
    convert(source, target, "--hparams", HEADS)
    folder = target.parent
    sizes = read_electra_config(str(folder))
    expected = TINY["model_hparam_overrides"] | {"num_attention_heads": 4}
    assert sizes["model_hparam_overrides"] == expected
    vocab = pathlib.Path(source).parent / "vocab.txt"
    assert (folder / "vocab.txt").read_bytes() == vocab.read_bytes()
    report = report_of(target)
    assert report["from"]["slots"] == report["to"]["slots"] > 0
    assert report["to"]["parameters"] == report["from"]["parameters"]
    assert {path.name for path in folder.iterdir()} == {
        "checkpoint",
        "m.index",
        "m.data-00000-of-00001",
        "vocab.txt",
        "m.conversion.json",
        "digests.json",
        "electra_config.json",
    }
    assert not any("heads" in text for text in report["assumed"])
    cased = tmp_path / "cased" / "m"
    hparams = json.loads(HEADS) | {"do_lower_case": False}
    convert(source, cased, "--hparams", json.dumps(hparams))
    assert read_electra_config(str(cased.parent))["do_lower_case"] is False
    assert not any("case" in text for text in report_of(cased)["assumed"])
    values = dict(open_weights(source))
    values["my_adapter/kernel"] = np.ones([2, 2], np.float32)
    strange, target = tmp_path / "strange" / "m", tmp_path / "x" / "m"
    tf1.write_tf1(MemoryWeights(values), str(strange))
    convert(strange, target)
    assert "my_adapter/kernel" in tensors(target)
    assert "Unknown  my_adapter/kernel" in capsys.readouterr().out
    part = tmp_path / "y" / "m"
    convert(strange, part, "--part=generator")
    assert "my_adapter/kernel" in dropped_of(report_of(part))
    assert not report_of(part)["unknown"]


def test_the_config_next_to_the_source_is_copied(source, tmp_path):
    first, second = tmp_path / "1" / "m", tmp_path / "2" / "m"
    convert(source, first, "--hparams", HEADS)
    convert(first, second, "--part=discriminator")
    stated = read_electra_config(str(tmp_path / "1"))
    assert report_of(second)["hparams"] == stated
    assert tensors(second).keys() < tensors(first).keys()
    convert(first, tmp_path / "3" / "m", "--part=generator")
    configs = [read_electra_config(str(tmp_path / n)) for n in "23"]
    assert configs[0] == configs[1]


@pytest.mark.parametrize("part", PARTS)
def test_parts_and_no_slots_are_reported(part, source, tmp_path, capsys):
    target = tmp_path / "x" / "m"
    convert(source, target, f"--part={part}", "--strip_optimizer")
    converted, whole = open_weights(str(target)), open_weights(source)
    assert converted.slots == () and converted.global_step == 40
    dropped = dropped_of(report_of(target)) & whole.shapes.keys()
    assert dropped == whole.shapes.keys() - converted.shapes.keys()
    printed = capsys.readouterr().out
    assert "Adam slots are left out" in printed
    assert ("Dropped" in printed) == (part != "all")


FILES_OF_A_NETWORK = {
    "config.json",
    "digests.json",
    "electra_config.json",
    "model.safetensors",
    "special_tokens_map.json",
    "vocab.txt",
    "tokenizer.json",
    "tokenizer_config.json",
}


def test_a_conversion_to_hugging_face_and_back_keeps_the_model(
    source, tmp_path
):
    folder, back = tmp_path / "hf", tmp_path / "back" / "m"
    refused("--drop_unrepresentable", convert, source, folder, *TO_HUGGING_FACE)
    assert not folder.exists()
    flags = (*TO_HUGGING_FACE, "--strip_optimizer")
    convert(source, folder, *flags, "--part=discriminator")
    refused("exists.*--overwrite", convert, source, folder, *flags)
    # Files of the earlier model must not remain above the two subfolders.
    convert(source, folder, *flags, "--overwrite")
    folder = folder.rename(tmp_path / "moved")
    parts = ("discriminator", "generator")
    names = [{p.name for p in (folder / part).iterdir()} for part in parts]
    assert names == [FILES_OF_A_NETWORK, FILES_OF_A_NETWORK]
    assert (folder / "electra_config.json").exists()
    convert(folder, back)
    whole, converted = tensors(source), tensors(back)
    converted.pop("global_step", None)
    shapes = open_weights(source).shapes
    assert converted == {name: whole[name] for name in shapes}
    # An existing folder of this format sets the output format.
    convert(source, folder, "--drop_unrepresentable", "--overwrite")
    report = read_json(folder / "conversion.json")
    assert set(open_weights(source).slots) <= dropped_of(report)
    assert report["to"]["slots"] == 0


def test_the_released_model_is_found_by_its_name(source, tmp_path, monkeypatch):
    """Convert in a checkout and next to an installed package, to float16."""
    code = tmp_path / "root" / "electra_tf" / "checkpoints" / "formats.py"
    monkeypatch.setattr(formats, "__file__", str(code))
    data = {"data": str(tmp_path / "environment")}
    monkeypatch.setattr(formats.sysconfig, "get_path", data.get)
    message = "root/models/reference, .*repository"
    refused(message, Encoder.from_pretrained, "reference")
    released = tmp_path / "root" / "models" / "reference"
    flags = ("--strip_optimizer", "--half_precision", "--hparams", HEADS)
    convert(source, released, *TO_HUGGING_FACE, *flags)
    weights, whole = open_weights("reference"), dict(open_weights(source))
    for name in weights.shapes:
        half = whole[name].astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(weights.read(name), half)
    assert "discriminator/float16 values" in weights.dropped
    installed = tmp_path / "environment" / "share" / "electra_tf" / "models"
    installed.parent.mkdir(parents=True)
    shutil.move(released.parent, installed)
    encoder = Encoder.from_pretrained("reference")
    assert encoder.sizes["num_attention_heads"] == 4
    tokenizer = Tokenizer.from_pretrained("reference", max_seq_length=16)
    assert encoder(tokenizer(["the of"]))["pooled_output"].shape == (1, 16)
    load_pretrained("reference").require_generator("this test")


def test_a_folder_can_be_the_target_and_the_source_cannot(source, tmp_path):
    convert(os.path.dirname(source), f"{tmp_path}/out/")
    assert (tmp_path / "out" / "model.ckpt-40.index").exists()
    convert(source, tmp_path / "out", "--overwrite")
    before = tensors(source)
    message = "is also the SOURCE"
    (tmp_path / "link").symlink_to(os.path.dirname(source))
    linked = tmp_path / "link" / os.path.basename(source)
    for target in (source, linked):
        refused(message, convert, source, target, "--overwrite")
    assert tensors(source) == before


@pytest.mark.parametrize("file", ["electra_config.json", "vocab.txt"])
def test_files_are_replaced_with_overwrite_only(file, source, tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / file).write_text("mine")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    arguments = (source, folder / "m", "--hparams", HEADS)
    refused("pass --overwrite", convert, *arguments)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    convert(source, folder / "m", "--overwrite")


@pytest.mark.parametrize("form", ["tf1", "native", "huggingface"])
def test_files_of_a_killed_conversion_are_replaced(
    form, source, tmp_path, monkeypatch
):
    def killed(*_):
        raise KeyboardInterrupt  # passes `except Exception`, as a kill does

    folder = tmp_path / "out"
    target = folder if form == "huggingface" else folder / "m"
    flags = (f"--output_format={form}", "--strip_optimizer")
    arguments = (source, target, *flags)
    with monkeypatch.context() as patched:
        patched.setattr(convert_checkpoint, "_format_report", killed)
        patched.setattr(convert_checkpoint.filesystem, "remove", killed)
        with pytest.raises(KeyboardInterrupt):
            convert(*arguments)
    names = {path.name for path in folder.iterdir()}
    convert(*arguments)
    (mark,) = names - {path.name for path in folder.iterdir()}
    assert mark.endswith("conversion.json.unfinished")
    refused("exists", convert, *arguments)


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--hparams", '{"model_size": "base"}', "hidden_size.*model_size"),
        ("--vocab_file", "LARGER", "201 tokens, but the model has 200"),
        ("--extend_positions", "0", "at least 1"),
        ("--half_precision", "true", "Pass --output_format=huggingface"),
    ],
)
def test_a_flag_that_does_not_fit_is_refused(
    flag, value, message, source, tmp_path
):
    if value == "LARGER":
        value = shutil.copy(f"{os.path.dirname(source)}/vocab.txt", tmp_path)
        with open(value, "a") as file:
            file.write("onemore\n")
    target = tmp_path / "x" / "m"
    refused(message, convert, source, target, flag, value)
    assert not target.parent.exists()


LISTING_MODULES = """
import sys
from electra_tf.commands import convert_checkpoint as command
flags = ["", *sys.argv[1:], "--output_format=huggingface", "--strip_optimizer"]
command.main(command.parse_flags(flags))
for name, module in sys.modules.items():
    if name.startswith("electra_tf.") and not hasattr(module, "__path__"):
        print("module", name)
"""


@pytest.mark.slow
def test_a_conversion_loads_at_most_25_modules(source, tmp_path, run_python):
    output = run_python("-c", LISTING_MODULES, source, tmp_path / "hf").stdout
    lines = [n for n in output.splitlines() if n.startswith("module ")]
    names = {line.removeprefix("module ") for line in lines}
    names.remove("electra_tf.commands.convert_checkpoint")
    assert len(names) <= 25, sorted(names)


@pytest.mark.parametrize(
    ("task", "kind", "labels"),
    [
        ("topics", "Sequence", ["art", "law", "war"]),
        ("grade", "Sequence", ["LABEL_0"]),
        ("kinds", "Token", ["noun", "other", "verb"]),
        # Heads of the original's checkpoints, recognized by their tasks.
        ("mnli", "Sequence", ["contradiction", "entailment", "neutral"]),
        ("sts", "Sequence", ["LABEL_0"]),
        ("chunk", "Token", [f"LABEL_{i}" for i in range(8)]),
    ],
)
def test_a_head_and_its_labels_go_to_hugging_face(
    task, kind, labels, request, tmp_path, capsys
):
    target, flags = tmp_path / "hf", list(TO_HUGGING_FACE)
    if task in TASKS:
        folder = request.getfixturevalue("finetuned_folder")(task)
    else:
        folder = request.getfixturevalue("golden_dir") / f"ckpt_head_{task}"
        flags.append(f"--hparams={HEADS}")
    convert(folder, target, *flags)
    config = read_json(target / "config.json")
    assert config["architectures"] == [f"ElectraFor{kind}Classification"]
    assert list(config["id2label"].values()) == labels
    assert f"task_specific/{task}/dense/bias" in tensors(target)
    is_unnamed = (
        "labels: the names of the labels are unknown" in capsys.readouterr().out
    )
    assert is_unnamed is (task == "chunk")


def test_a_tagger_of_transformers_keeps_its_segment(finetuned_folder, tmp_path):
    folder, prefix = tmp_path / "hf", tmp_path / "tf1" / "m"
    convert(finetuned_folder("kinds"), folder, *TO_HUGGING_FACE)
    tensors = load_file(folder / "model.safetensors")
    row = tensors["electra.embeddings.token_type_embeddings.weight"][0]
    row += 1
    save_file(tensors, folder / "model.safetensors")
    (folder / "digests.json").unlink()
    convert(folder, prefix, "--output_format=tf1")
    name = "electra/embeddings/token_type_embeddings"
    table = open_weights(str(folder)).read(name)
    np.testing.assert_array_equal(table, [row, row])
    converted = open_weights(str(prefix)).read(name)
    np.testing.assert_array_equal(converted, [row, row])


@pytest.mark.parametrize("form", ["tf1", "native"])
def test_a_head_is_kept_through_other_formats(form, finetuned_folder, tmp_path):
    prefix, out = tmp_path / form / "m", tmp_path / "hf"
    folder = finetuned_folder("reviews", pooling="mean")
    convert(folder, prefix, f"--output_format={form}")
    refused("pooling is mean", convert, prefix, out, *TO_HUGGING_FACE)
    (tmp_path / form / "train_log.jsonl").touch()
    refused("the folder of a run", convert, folder, prefix, "--overwrite")


def test_a_vocabulary_of_a_different_model_is_refused(source, tmp_path):
    vocab = pathlib.Path(source).with_name("vocab.txt")
    exchanged = tmp_path / "exchanged.txt"
    *tokens, last_but_one, last = vocab.read_text().split()
    exchanged.write_text("\n".join([*tokens, last, last_but_one]))
    target = tmp_path / "out" / "m"
    refused("expected", convert, source, target, f"--vocab_file={exchanged}")


def test_a_vocabulary_next_to_another_result_is_not_reused(source, tmp_path):
    for path in pathlib.Path(source).parent.glob("model.ckpt-40*"):
        shutil.copy(path, tmp_path)
    convert(source, tmp_path / "out" / "m")
    message = "the vocabulary of SOURCE is unknown"
    target = tmp_path / "out" / "without_vocabulary"
    refused(message, convert, tmp_path / "model.ckpt-40", target)
