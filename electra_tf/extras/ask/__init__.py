# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Question answering over a folder of texts, with the sources of answers.

text_folder: the files of a folder.
passages: the passages of a file.
index: the passages of a folder and their BM25 scores.
asker: answers to questions.
weight: the weight of retrieval, fitted to questions with answers.
"""
