# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns, ratios and fits of the comparisons; workers that fail."""

import sys

import comparing
import pytest
import workers

ARM = f"""
import os, sys
sys.path.insert(0, {workers.__file__.rsplit("/", 1)[0]!r})
import workers

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

workers.serve(Arm)
"""


def test_arms_take_turns_and_the_warm_up_is_not_kept():
    order = []

    def run(arm):
        order.append(arm)
        return len(order)

    found = comparing.take_turns({"a": "A", "b": "B"}, run, 2, warm_up=1)
    assert order == ["A", "B"] * 3
    assert found == {"a": [3, 5], "b": [4, 6]}


def test_ratios_are_of_runs_that_followed_each_other():
    spread = comparing.ratios([2.0, 9.0, 4.0], [1.0, 3.0, 4.0])
    assert spread == comparing.Spread(median=2.0, low=1.0, high=3.0)
    assert spread.shown(1, "x") == "2.0x (1.0 to 3.0)"


def test_the_exponent_of_a_power_law_is_found():
    xs = [8, 16, 64]
    exponent, factor = comparing.fit_power(xs, [3.0 * x**1.5 for x in xs])
    assert exponent == pytest.approx(1.5)
    assert factor == pytest.approx(3.0)
    with pytest.raises(ValueError, match="two different"):
        comparing.fit_power([8, 8], [1.0, 2.0])


def test_a_worker_answers_and_says_why_it_failed(tmp_path):
    script = tmp_path / "arm.py"
    script.write_text(ARM, encoding="utf-8")
    with workers.Arms() as arms:
        arm = arms["a"] = workers.Worker(
            "a", sys.executable, str(script), {"size": 3}
        )
        assert arm.ask("double", times=2) == 12
        assert arm.ask("memory")["peak"] > 1
        with pytest.raises(workers.ArmError, match="unexpected keyword"):
            arm.ask("double", often=2)
        assert arm.ask("double", times=0) == 3
        with pytest.raises(
            workers.ArmError, match="a: ended with code 3(?s:.*)out of memory"
        ):
            arm.ask("die")
    with pytest.raises(workers.ArmError, match="negative"):
        workers.Worker("a", sys.executable, str(script), {"size": -1})


def test_what_we_set_for_ourselves_does_not_reach_a_worker(
    tmp_path, monkeypatch
):
    script = tmp_path / "arm.py"
    script.write_text(ARM, encoding="utf-8")
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "ours")
    with workers.Arms() as arms:
        arm = arms["a"] = workers.Worker(
            "a", sys.executable, str(script), {"size": 3}, {"GIVEN": "yes"}
        )
        assert arm.ask("variable", name="TF_ENABLE_ONEDNN_OPTS") != "ours"
        assert arm.ask("variable", name="GIVEN") == "yes"
