# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every command of README and the guides runs, and prints the output shown."""

import re

import pytest

from tests.documents.blocks import Block, blocks_of
from tests.documents.pages import PAGES, write_tasks
from tests.documents.session import Page, Programs, Session


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    programs = Programs(tmp_path_factory.mktemp("programs"))
    yield programs
    programs.stop()


# Makes the models that the pages on their use begin with.
TRAINED = """
python3 run_finetuning.py --data-dir data --model-name mine \\
  --init_checkpoint reference --task_names sst --learning_rate 1e-3 \\
  --num_train_epochs 8 --train_batch_size 8 --max_seq_length 32
electra-tf convert_checkpoint data/models/mine/finetuning_models/sst_model_1 \\
  my-classifier --output_format huggingface --strip_optimizer
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory, programs):
    """Return a folder with a fine-tuned model, also as one of transformers."""
    folder = tmp_path_factory.mktemp("trained")
    page = Page(lambda folder, fixture: write_tasks(folder, "sst"))
    session = Session("", page, folder, programs, None)
    failure, printed = session.execute(Block("bash", 1, TRAINED))
    assert not failure, failure + printed
    return folder


def cases():
    for document, page in PAGES.items():
        marks = [pytest.mark.heavy] if page.is_heavy else []
        yield pytest.param(document, marks=[pytest.mark.slow, *marks])


@pytest.mark.parametrize("document", cases())
def test_the_commands_of_a_document_run(document, tmp_path, programs, request):
    page, fixture = PAGES[document], request.getfixturevalue
    failures = Session(document, page, tmp_path, programs, fixture).run()
    assert not failures, "\n".join(failures)


@pytest.mark.heavy
def test_the_scores_in_the_readme_are_those_of_its_command(
    reference_dir, tmp_path, programs
):
    blocks = blocks_of("README.md")
    block = next(
        block for block in blocks if "--task_names chunk" in block.text
    )
    command = block.text.partition("electra-tf")[0]
    data = tmp_path / "data" / "finetuning_data"
    data.mkdir(parents=True)
    source = reference_dir / "data" / "finetuning_data" / "chunk"
    (data / "chunk").symlink_to(source)
    page = Page(lambda folder, fixture: None)
    session = Session("README.md", page, tmp_path, programs, None)
    failure, printed = session.execute(Block("bash", block.line, command))
    assert not failure, failure + printed
    scores = [
        float(re.search(r"f1: ([\d.]+)", text)[1])
        for text in (block.output, printed)
    ]
    # Kernels of other processors round differently.
    assert scores[1] == pytest.approx(scores[0], abs=0.5)
