# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small form of the load of benchmarks/serving_load.py."""

import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location(
    "serving_load", ROOT / "benchmarks" / "serving_load.py"
)
serving_load = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(serving_load)


def test_many_clients_and_malformed_requests_leave_it_well(toy):
    result = serving_load.run(
        toy.port, requests=300, clients=8, malformed=40, seconds=120
    )
    assert result["ok"], result
    assert result["load"]["errors"] == 0
    assert result["malformed"]["answered_4xx"] == 40
    assert set(result["malformed"]["statuses"]) == {"400", "413"}
