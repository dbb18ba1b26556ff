# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command writes or refuses files; model cards state recorded facts."""

import json
import os
import pathlib
import re
import shutil
import types

import pytest

from electra_tf.commands import export_model
from electra_tf.export.card import check_card, recorded, render, write_card
from electra_tf.export.saved_model import export, make_task_module
from electra_tf.prediction.loading import load_finetuned
from electra_tf.pretraining.loading import load_pretrained
from tests.conftest import ROOT, refused, save_run


@pytest.fixture(scope="module")
def folders(tmp_path_factory, tiny_finetuning, pretrained_folder):
    from configure.finetuning import FinetuningConfig
    from electra_tf.finetuning.model import FinetuningModel
    from electra_tf.finetuning.registry import get_tasks

    folder = tmp_path_factory.mktemp("models")
    config = FinetuningConfig.create(
        "tiny",
        str(folder),
        task_names=["cola", "sst"],
        model_dir=str(folder / "m_1"),
        max_seq_length=32,
        **tiny_finetuning,
    )
    model = FinetuningModel(config, get_tasks(config))
    return save_run(str(folder / "m_1"), config, model), pretrained_folder()


def _run(*flags):
    export_model.main(export_model.parse_flags(["export_model", *flags]))


def test_a_finetuned_task_is_exported_and_checked(folders, tmp_path, capsys):
    finetuned, _ = folders
    output = str(tmp_path / "served")
    flags = ("--model", finetuned, "--output_dir", output, "--task=sst")
    _run(*flags)
    printed = capsys.readouterr().out
    assert f"classification (sst) -> {output}/1" in printed
    assert "serve_text(text) -> label, label_id, logits" in printed
    assert {*os.listdir(f"{output}/1")} == {
        "MODEL_CARD.md",
        "assets",
        "assets.extra",
        "digests.json",
        "fingerprint.pb",
        "saved_model.pb",
        "variables",
    }
    _run("--check", f"{output}/1")
    assert "agrees with the measurements" in capsys.readouterr().out
    refused("1 exists", _run, *flags, "--version=1")


@pytest.mark.parametrize(
    ("model", "flags", "message"),
    [
        (
            "finetuned",
            "",
            "several tasks. Pass one of the model's tasks: cola, sst",
        ),
        ("finetuned", "--task=mnli", "has no task mnli"),
        ("finetuned", "--head=fill_mask", "Pass --head=task or encoder"),
        ("pretrained", "", "--head is missing, but .* Pass --head=encoder or"),
        ("pretrained", "--head=encoder --task=sst", "--task applies to heads"),
        ("empty", "--head=encoder", "empty"),
        ("pretrained", "--head=encoder --vocab_file=x", "x: no such file"),
        ("pretrained", "--head=encoder --max_seq_length=513", "512 positions"),
        ("pretrained", "--head=fill_mask --top_k=0", "1 or more"),
        (
            "pretrained",
            "--head=encoder --top_k=5",
            "--top_k applies to fill_mask",
        ),
        ("finetuned", "--task=sst --int8", "Pass --onnx or --tflite=float"),
        ("finetuned", "--task=sst --score_split=dev", "neither is set"),
    ],
)
def test_a_refused_export_writes_nothing(
    model, flags, message, folders, tmp_path
):
    (tmp_path / "empty").mkdir()
    finetuned, pretrained = folders
    paths = {"finetuned": finetuned, "pretrained": pretrained}
    path = str(paths.get(model, tmp_path / model))
    output = tmp_path / "served"
    required = ("--model", path, "--output_dir", str(output))
    refused(message, _run, *required, *flags.split())
    assert not output.exists()


@pytest.fixture(scope="module")
def exported(finetuned_folder, tmp_path_factory):
    """Export a run with data and results, and its card."""
    source = finetuned_folder("reviews", seed=11)
    data_dir = os.path.dirname(os.path.dirname(source))
    for split in ("train", "dev"):
        with open(f"{data_dir}/{split}.txt", "w") as file:
            file.write("text\tlabel\nfine\tgood\n")
    loaded = load_finetuned(source)
    results = loaded.config.results_json
    os.makedirs(os.path.dirname(results), exist_ok=True)
    # The metrics of the folder's trial at another step, of another trial, and
    # of the exported weights.
    trials = [
        {
            "trial": number,
            "seed": 1,
            "model_dir": f"/elsewhere/{folder}",
            "global_step": step,
            "results": {"reviews": {"accuracy": accuracy, "loss": None}},
            "details": {"reviews": {"macro_f1": 80.25}},
            "other_splits": {},
            "collapsed": {},
        }
        for number, (folder, step, accuracy) in enumerate(
            [("m_1", 6, 11.5), ("m_2", 7, 12.5), ("m_1", 7, 87.5)], 1
        )
    ]
    content = {"format": 1, "config": {}, "trials": trials}
    with open(results, "w") as file:
        json.dump(content, file)
    module = make_task_module(loaded)
    output_dir = str(tmp_path_factory.mktemp("cards"))
    folder = export(
        module, output_dir, finish=lambda path: write_card(path, loaded, module)
    )
    return loaded, folder


@pytest.mark.parametrize(
    ("later_steps", "metrics"), [(0, {"loss": 1}), (10**6, {})]
)
def test_a_card_has_the_metrics_of_its_checkpoint_only(
    later_steps, metrics, pretrained_folder
):
    loaded = load_pretrained(pretrained_folder(), None, {"max_seq_length": 16})
    assert loaded.max_length == 16
    module = types.SimpleNamespace(config=lambda: {"hparams": {}})
    path = pathlib.Path(loaded.path).parent / "results" / "unsup_results.json"
    path.parent.mkdir(exist_ok=True)
    step = loaded.global_step + later_steps
    path.write_text(json.dumps({"step": step, "metrics": {"loss": 1}}))
    assert recorded(loaded, module)["metrics"] == metrics


def test_damaged_results_of_an_exported_run_are_refused(exported):
    loaded, _ = exported
    module = types.SimpleNamespace(
        config=lambda: {"hparams": {}, "task": "reviews"}
    )
    path = pathlib.Path(loaded.config.results_json)
    written = path.read_text()
    try:
        for damaged in ("", written[:-9], written[1:]):
            path.write_text(damaged)
            refused(re.escape(str(path)), recorded, loaded, module)
        path.write_text(written.replace("87.5", '"87.5"'))
        refused(r"trials\[2\]: results is .*expected", recorded, loaded, module)
    finally:
        path.write_text(written)
    assert recorded(loaded, module)["metrics"]["dev accuracy"] == 87.5


@pytest.mark.parametrize(
    "text", ["", "[]", '{"step": 7, "metrics": [1]}', '{"metrics": "loss"}']
)
def test_damaged_results_of_a_pretraining_are_refused(pretrained_folder, text):
    loaded = load_pretrained(pretrained_folder())
    module = types.SimpleNamespace(config=lambda: {"hparams": {}})
    path = pathlib.Path(loaded.path).parent / "results" / "unsup_results.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    try:
        refused(f"{re.escape(str(path))}: ", recorded, loaded, module)
    finally:
        path.unlink()


@pytest.fixture
def recorded_of():
    """Return a function that returns recorded facts of a pre-trained model."""

    def record(path):
        loaded = load_pretrained(path)
        module = types.SimpleNamespace(config=lambda: {"hparams": {}})
        return recorded(loaded, module)

    return record


def test_a_card_of_the_reference_model_states_its_data_and_scores(recorded_of):
    facts = recorded_of("reference")
    assert facts["name"] == "reference"
    assert "170 MB" in facts["data"]["size"]
    assert facts["training"]["tokens"].startswith("182 million")
    assert "comparison" not in facts["training"].values()
    assert facts["metrics"]["chunk: F1 of conlleval"]["pre-trained"]
    part = recorded_of(str(ROOT / "models/reference/discriminator"))
    assert part["metrics"] == facts["metrics"]


def test_scores_of_weights_that_were_replaced_are_left_out(
    recorded_of, tmp_path
):
    folder = tmp_path / "reference"
    shutil.copytree(ROOT / "models/reference", folder)
    path = folder / "card.json"
    facts = json.loads(path.read_text("utf-8"))
    name = "discriminator/model.safetensors"
    facts["weights"][name] = facts["weights"][name][::-1]
    path.write_text(json.dumps(facts), "utf-8")
    recorded_facts = recorded_of(str(folder))
    assert recorded_facts["metrics"] == recorded_facts["data"] == {}


def test_released_facts_are_those_of_its_readme():
    folder = ROOT / "models/reference"
    readme = " ".join((folder / "README.md").read_text("utf-8").split())
    facts = json.loads((folder / "card.json").read_text("utf-8"))
    values = [v for row in facts["metrics"].values() for v in row.values()]
    missing = [v for v in values if v != "-" and v not in readme]
    assert not missing
    numbers = ("182 million", "3.9 passes", "170 MB", "29 million words")
    text = json.dumps(facts)
    assert not [n for n in numbers if n not in readme or n not in text]


def test_a_card_lists_the_facts_of_a_run(exported):
    loaded, folder = exported
    text = pathlib.Path(folder, "MODEL_CARD.md").read_text("utf-8")
    assert text.startswith("# tiny: classification (reviews)\n")
    count = sum(int(v.shape.num_elements()) for v in loaded.model.variables)
    lines = {
        "- `labels`: bad, good, Übermaß",
        f"- `parameters`: {count}",
        "- `max_seq_length`: 48",
        "- `seed`: 11",
        "- `updates`: 7",
        "- `dev accuracy`: 87.5",
        "- `dev macro_f1`: 80.25",
        "- `dev loss`: None",
    }
    assert lines <= {*text.splitlines()}
    assert "| `train: train.txt` | 21 |" in text
    assert "11.5" not in text and "12.5" not in text
    assert "| `serve_text` | `text`: string [?] | `label`: string [?]" in text
    assert loaded.config.data_dir not in text
    assert check_card(folder) == []


def test_a_card_escapes_markdown_in_names_and_values(exported):
    path = pathlib.Path(exported[1], "assets.extra", "card_facts.json")
    facts = json.loads(path.read_text("utf-8"))
    facts["measured"]["model"]["labels"] = ["a|b", "*c*\n# d"]
    facts["recorded"]["name"] = "<b>*x*</b>"
    facts["recorded"]["data"] = {"`e`\n|f": {"bytes": 1}}
    text = render(facts)
    assert "- `labels`: a\\|b, \\*c\\* # d\n" in text
    assert "| `` `e` \\|f `` | 1 |\n" in text
    assert text.startswith("# \\<b>\\*x\\*\\</b>: classification")


def test_a_folder_without_an_export_is_refused(tmp_path):
    refused(r"--check: .*is missing; expected", check_card, str(tmp_path))


@pytest.fixture
def copied(exported, tmp_path):
    return shutil.copytree(exported[1], tmp_path / "1")


def test_changed_texts_of_an_export_are_reported(copied):
    card = copied / "MODEL_CARD.md"
    card.write_text(card.read_text("utf-8").replace("87.5", "97.5"), "utf-8")
    vocab = copied / "assets.extra" / "vocab.txt"
    vocab.write_text(vocab.read_text() + "more\n")
    config = copied / "assets.extra" / "config.json"
    config.write_text(config.read_text() + "\n")
    problems = "\n".join(check_card(str(copied)))
    assert "files.assets.extra/config.json" in problems
    assert "CARD.md: + - `dev accuracy`: 97.5" in problems
    assert "CARD.md: - - `dev accuracy`: 87.5" in problems
    assert "vocab_size: the card states 200, measured 201" in problems


def test_changed_weights_of_an_export_are_reported(copied):
    weights = copied / "variables" / "variables.data-00000-of-00001"
    content = bytearray(weights.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 400] = bytes(400)
    weights.write_bytes(content)
    problems = "\n".join(check_card(str(copied)))
    assert (
        "sha256: the card states" in problems or "cannot be loaded" in problems
    )


def test_a_facts_file_without_facts_is_reported(copied):
    (copied / "assets.extra" / "card_facts.json").write_text('{"a": 1}')
    assert "not contain the facts of a model card" in check_card(str(copied))[0]
