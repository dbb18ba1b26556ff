# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns and ratios of benchmarks, failing arms, and names that arms import."""

import sys

import arm_ours
import harness
import pytest

ARM = f"""
import os, sys
sys.path.insert(0, {harness.HERE!r})
import harness

class Arm:
    def __init__(self, spec):
        print("chatter of a library")
        self.size = spec["size"]
        if self.size < 0:
            raise ValueError("negative")

    def double(self, times):
        return self.size * 2**times

    def variable(self, name):
        return os.environ.get(name)

    def die(self):
        os.write(2, b"out of memory")
        os._exit(3)

harness.serve()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "arm.py"
    path.write_text(ARM, encoding="utf-8")
    return str(path)


def worker(script, size, **environment):
    spec = {"task": "Arm", "size": size}
    return harness.Worker("a", sys.executable, script, spec, environment)


def arguments(*arguments):
    return harness.parser("", repeats=3).parse_args(arguments)


def test_arms_take_turns_and_ratios_are_of_turns_in_a_row():
    order = []

    def run(arm):
        order.append(arm)
        return len(order)

    result = harness.take_turns({"a": "A", "b": "B"}, run, 2, warm_up=1)
    assert order == ["A", "B"] * 3
    assert result == {"a": [3, 5], "b": [4, 6]}
    seconds = {"ours": [1.0, 3.0, 4.0], "theirs": [2.0, 9.0, 4.0]}
    spread = harness.faster(seconds)
    assert spread == {"theirs": harness.Spread(median=2.0, low=1.0, high=3.0)}
    assert harness.shown(spread, "theirs") == "2.00x (1.00 to 3.00)"
    assert harness.shown(spread, "ours") == ""


def test_an_arm_answers_and_reports_why_it_failed(script):
    arm = worker(script, 3)
    assert arm.ask("double", times=2) == 12 and arm.ask("memory")["peak"] > 1
    with pytest.raises(harness.ArmError, match="unexpected keyword"):
        arm.ask("double", often=2)
    assert arm.ask("double", times=0) == 3
    output = "a: ended with code 3(?s:.*)out of memory"
    with pytest.raises(harness.ArmError, match=output):
        arm.ask("die")
    arm.close()
    with pytest.raises(harness.ArmError, match="negative"):
        worker(script, -1)


def test_an_arm_inherits_no_variable_of_this_project(script, monkeypatch):
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "ours")
    arm = worker(script, 3, GIVEN="yes")
    assert arm.ask("variable", name="TF_ENABLE_ONEDNN_OPTS") != "ours"
    assert arm.ask("variable", name="GIVEN") == "yes"
    arm.close()


def test_arms_are_planned_for_installed_peers_checkouts_and_variants():
    kinds = ("ours", "tfmodels", "transformers")
    variants = '{"wide": {"hparams": {"a": 1}}}'
    args = arguments(f"--before={harness.ROOT}", f"--variants={variants}")
    planned = harness.plan(args, kinds, task="x", hparams={"b": 2})
    assert list(planned) == ["ours", "before", "tfmodels", "ours, wide"]
    assert planned["ours, wide"][1]["hparams"] == {"a": 1, "b": 2}
    with pytest.raises(SystemExit, match="no arm 'transformers'"):
        harness.plan(arguments("--arms=transformers"), kinds)


@pytest.mark.parametrize(
    "name",
    [name for names in arm_ours.PLACES.values() for name in names.split()],
)
def test_the_product_has_every_name_that_an_arm_uses(name):
    assert arm_ours.product(name, harness.ROOT)
