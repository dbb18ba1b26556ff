# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files on local and remote file systems, read and written by path.

filesystem: existence, size, listing, opening, renaming and removing by path.
patterns: the files that glob patterns match.
atomic: files and folders that get their names only when they are complete.
locks: a lock that admits a single process to a folder.
digests: checksums of the files in a model's folder.
reading: whole files and UTF-8 texts, with errors for users.
lines: the lines of users' files, one at a time.
json_files: JSON objects in files.
figures: plots as PNG images.

TensorFlow takes seconds to import, and is therefore imported only when a
`scheme://` path is used.
"""
