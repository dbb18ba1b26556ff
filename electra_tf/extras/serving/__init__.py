# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""An HTTP server for an exported model, with a web page.

served_model: the functions of an export.
protocol: the JSON of requests and answers.
batching: requests that are computed together.
hosts: the host names under which requests are accepted.
monitoring: metrics.
application: the routes, and the server.
"""

from electra_tf import use_onednn

use_onednn(False)
