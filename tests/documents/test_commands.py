# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every command of README and the guides runs, and prints what is shown."""

import pytest

from tests.documents.pages import PAGES
from tests.documents.session import Programs, Session


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    programs = Programs(tmp_path_factory.mktemp("programs"))
    yield programs
    programs.stop()


def cases():
    for document, page in PAGES.items():
        marks = [pytest.mark.heavy] if page.is_heavy else []
        yield pytest.param(document, marks=[pytest.mark.slow, *marks])


@pytest.mark.parametrize("document", cases())
def test_the_commands_of_a_document_run(document, tmp_path, programs, request):
    page, fixture = PAGES[document], request.getfixturevalue
    failures = Session(document, page, tmp_path, programs, fixture).run()
    assert not failures, "\n".join(failures)
