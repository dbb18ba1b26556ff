# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading and writing files, local or remote, free of TensorFlow.

filesystem: existence, size, listing, opening, renaming and removing by path.
patterns: the files that glob patterns match.
atomic: files and folders that appear under their names once complete.
locks: one process per folder.
digests: checksums of the files of a model's folder.
reading: whole files and texts in UTF-8, with errors for users.
lines: the lines of users' files, one at a time.
json_files: JSON objects in files.
figures: plots as PNG files.

Only `scheme://` paths need TensorFlow, which is imported when one is met:
its import takes seconds.
"""
