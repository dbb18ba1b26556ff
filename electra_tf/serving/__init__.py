# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Room card: serving, floor 10: an exported model behind HTTP, on this machine.

In: a folder of SavedModels, laid out as `<folder>/<version>/`. Out: TensorFlow
Serving's REST protocol for predictions, and a page for people.
May import: everything up to export, and nothing of it is needed to serve: the
SavedModel knows its tokenizer, its labels and its kind.

Reading order: `served_model` (folder -> functions and their specs),
`requests` (JSON -> tensors), `responses` (tensors -> JSON), `batching`
(requests computed together), `application` (the routes), `server` (start and
stop), `page/` (what a browser gets).
"""

from electra_tf import leave_kernels_to_tensorflow

leave_kernels_to_tensorflow()
