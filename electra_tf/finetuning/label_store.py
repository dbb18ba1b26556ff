# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Labels found in data, kept beside the records for runs without the data."""

import json
import os
from collections.abc import Callable
from typing import Any

from configure.errors import UserError
from electra_tf.data import storage


def find_or_load(
    path: str, find: Callable[[], Any | None], task_name: str
) -> Any:
    """Finds something in the data, or loads what an earlier run found.

    The data wins, so what is kept cannot be stale while the data is there.

    Args:
      path: JSON file to keep it in.
      find: looks through the data; None if there is none.
      task_name: for the error.

    Returns:
      What was found or loaded, as JSON has it.

    Raises:
      UserError: there is neither data nor file.
    """
    found = find()
    if found is not None:
        storage.make_directory(os.path.dirname(path))
        with storage.open_file(path + ".tmp", "wb") as file:
            text = json.dumps(found, indent=1, ensure_ascii=False)
            file.write(f"{text}\n".encode())
        storage.rename(path + ".tmp", path)
        return found
    if not storage.exists(path):
        raise UserError(
            f"task {task_name}: its labels are not known: there is no labelled"
            f" data to take them from, and no {path} of an earlier run"
        )
    return load(path)


def load(path: str) -> Any:
    """Loads what an earlier run found, whatever the data are now.

    Args:
      path: JSON file that is there.

    Raises:
      UserError: it is not JSON.
    """
    with storage.open_file(path, "rb") as file:
        try:
            return json.loads(file.read())
        except ValueError as error:
            raise UserError(f"{path}: not valid JSON: {error}") from None
