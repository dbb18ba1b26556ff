# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: text, floor 1: characters become token ids.

In: text as `str` or `bytes`, and the path of a vocabulary file.
Out: wordpieces and their ids, equal to the original's on every string; checks
    of vocabularies; vocabularies learned from text.
May import: the standard library and `configure`. TensorFlow is imported only
    by the `graph_*.py`, and when a vocabulary's path is remote (`gs://...`),
    so that a worker process which only tokenizes starts at once.

* `characters.py` what counts as white space, control, punctuation, CJK, accent
* `tokenization.py` text to words to pieces, with a memo: `FullTokenizer`
* `graph_tokenization.py` the same by graph operations, for SavedModels:
  `GraphTokenizer`; `graph_normalization.py` text to words
* `words.py` words of running text, their pieces and tags, for tagging models
* `vocab.py` reading, checking and hashing a vocabulary
* `vocab_builder.py` learning one
"""
