# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Studies, which compare the runs of a study file's arms, seeds and tasks.

study_file: a study file and its runs. arms: the compared settings, and their
cost. checks: errors in study files. runner: the execution of runs.
result_lines: the results file. report: tables of results. pictures: curves and
scores.
"""
