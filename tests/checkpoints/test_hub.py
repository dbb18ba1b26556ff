# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of the hub by name: a small hub on this machine, or a cache."""

import hashlib
import http.server
import json
import os
import sys
import threading

import pytest

from configure.errors import UserError
from electra_tf.checkpoints import hub
from electra_tf.checkpoints.formats import open_weights
from electra_tf.prediction.loading import load_finetuned
from tests.conftest import refused

MODEL = "someone/electra-tiny"
COMMIT = "a" * 40
# A hub holds other frameworks' files, too.
OTHERS = {
    "tf_model.h5": b"tf",
    "flax_model.msgpack": b"flax",
    "pytorch_model.bin": b"torch",
    "README.md": b"a card",
    "onnx/model.onnx": b"onnx",
}
FETCH = """
import sys
from electra_tf.checkpoints import hub
print(hub.fetch(sys.argv[1]))
"""

pytest.importorskip("huggingface_hub", reason="no extra hub")


class Hub(http.server.BaseHTTPRequestHandler):
    """The part of the hub's protocol that a download uses."""

    files: dict[str, bytes]
    asked: list[tuple[str, str]]

    def log_message(self, *_):
        pass

    def refuse(self, status, code):
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send(self, content, **headers):
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.split("?")[0]
        name = "/".join(path.removeprefix("/api/models").split("/")[1:3])
        if name == "someone/private":
            return self.refuse(401, "RepoNotFound")
        if name == "someone/gated":
            return self.refuse(403, "GatedRepo")
        if name == "someone/broken":
            return self.refuse(500, "Broken")
        if name != MODEL:
            return self.refuse(404, "RepoNotFound")
        rest = path.split(MODEL)[1].split("/")[1:]
        revision = rest[1] if len(rest) > 1 else "main"
        if revision not in ("main", "v1", COMMIT):
            return self.refuse(404, "RevisionNotFound")
        if path.startswith("/api/") and rest[:1] == ["tree"]:
            tree = [
                {
                    "type": "file",
                    "path": name,
                    "size": len(content),
                    "oid": hashlib.sha1(content).hexdigest(),
                }
                for name, content in self.files.items()
            ]
            return self.send(json.dumps(tree).encode())
        if path.startswith("/api/"):
            siblings = [{"rfilename": name} for name in self.files]
            info = {"id": MODEL, "sha": COMMIT, "siblings": siblings}
            return self.send(json.dumps(info).encode())
        file = "/".join(rest[2:])
        if file not in self.files:
            return self.refuse(404, "EntryNotFound")
        self.asked.append((self.command, file))
        content = self.files[file]
        etag = hashlib.sha256(content).hexdigest()
        return self.send(content, ETag=f'"{etag}"', X_Repo_Commit=COMMIT)


@pytest.fixture
def served(single, tmp_path):
    """Yield a hub with the folder `single`: its handler and address."""
    single.without_digests()
    files = {path.name: path.read_bytes() for path in single.iterdir()}
    handler = type("Own", (Hub,), {"files": files | OTHERS, "asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield handler, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def fetch(run_python, tmp_path):
    """Return a function that downloads in a process with its own settings."""

    def call(name, endpoint, status=0, **settings):
        env = {n: v for n, v in os.environ.items() if "proxy" not in n.lower()}
        env |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "home")}
        env |= {"HF_HUB_DISABLE_XET": "1", **settings}
        env["PYTHONPATH"] = os.pathsep.join(sys.path)
        done = run_python("-c", FETCH, name, status=status, env=env)
        return done.stderr if status else done.stdout.strip(), done.stderr

    return call


@pytest.mark.slow
def test_a_model_is_downloaded_once_without_other_frameworks(served, fetch):
    handler, endpoint = served
    folder, _ = fetch(f"hf:{MODEL}", endpoint)
    names = {*handler.files} - {*OTHERS}
    assert {*os.listdir(folder)} == names
    got = [file for command, file in handler.asked if command == "GET"]
    assert {*got} == names
    assert hub.model_name(folder) == "electra-tiny"
    assert open_weights(folder).contents.discriminates
    handler.asked.clear()
    assert fetch(f"hf:{MODEL}@v1", endpoint)[0] == folder
    assert not [f for command, f in handler.asked if command == "GET"]
    # The cache serves where the hub cannot be reached.
    assert fetch(f"hf:{MODEL}", endpoint, HF_HUB_OFFLINE="1")[0] == folder
    again, output = fetch(f"hf:{MODEL}", "http://127.0.0.1:9")
    assert again == folder and "cannot be reached" in output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hf:someone/electra-tinny", "no such model, or the model is private"),
        ("hf:someone/private", "no such model, or the model is private"),
        ("hf:someone/gated", "access to the model is restricted"),
        (f"hf:{MODEL}@v2", "has no revision 'v2'"),
        ("hf:someone/broken", "cannot be reached"),
    ],
)
def test_an_error_of_the_hub_is_reported(name, message, served, fetch):
    output, _ = fetch(name, served[1], status=1)
    line = [x for x in output.splitlines() if "UserError" in x][-1]
    assert f"UserError: {name}: " in line and message in line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "cannot be reached"),
        ({"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE is set"),
    ],
)
def test_a_model_that_is_neither_online_nor_cached_is_refused(
    settings, message, fetch
):
    output, _ = fetch(f"hf:{MODEL}", "http://127.0.0.1:9", 1, **settings)
    assert message in output and "cache" in output


@pytest.mark.slow
def test_a_model_without_readable_weights_is_refused(served, fetch):
    handler, endpoint = served
    for name in ("model.safetensors", "pytorch_model.bin"):
        del handler.files[name]
    output, _ = fetch(f"hf:{MODEL}", endpoint, status=1)
    assert (
        "no weights in a readable format" in output and "tf_model.h5" in output
    )
    assert not handler.asked


@pytest.fixture
def cache(single, tmp_path, monkeypatch):
    """Yield a cache with the folder `single`, made by hand, without a hub."""
    from huggingface_hub import constants

    home = tmp_path / "hub" / "models--someone--electra-tiny"
    snapshot = home / "snapshots" / COMMIT
    snapshot.parent.mkdir(parents=True)
    os.rename(single, snapshot)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub.fetch.cache_clear()
    yield snapshot
    hub.fetch.cache_clear()


@pytest.mark.parametrize("revision", ["", "@main", f"@{COMMIT}"])
def test_a_cached_model_is_opened_by_name(revision, cache):
    weights = open_weights(f"hf:{MODEL}{revision}")
    assert weights.path == str(cache) and weights.contents.discriminates


def test_a_cache_without_weights_or_a_revision_is_refused(cache):
    refused("HF_HUB_OFFLINE", open_weights, f"hf:{MODEL}@v2")
    (cache / "model.safetensors").unlink()
    refused("HF_HUB_OFFLINE", open_weights, f"hf:{MODEL}")


@pytest.mark.parametrize(
    "name",
    ["hf:", "hf:electra", "hf:a/b/c", "hf:a/b@", "hf:a b/c", "hf://a/b"],
)
def test_a_malformed_name_is_refused(name):
    refused("expected hf:OWNER/NAME", open_weights, name)


def test_without_the_extra_its_installation_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    hub.fetch.cache_clear()
    with pytest.raises(UserError, match=r'pip install .*".\[hub\]"'):
        hub.fetch(f"hf:{MODEL}")


@pytest.mark.parametrize(
    ("path", "is_named"),
    [
        ("google/electra-small-discriminator", True),
        ("models/absent", False),  # of a folder that exists
        ("absent", False),
        ("/google/electra", False),
        ("a/b/c", False),
    ],
)
@pytest.mark.parametrize("load", [open_weights, load_finetuned])
def test_a_missing_path_like_a_hub_name_gets_a_hint(
    load, path, is_named, tmp_path, monkeypatch
):
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    message = f"pass hf:{path}" if is_named else path
    with pytest.raises(UserError, match=message) as caught:
        load(path)
    assert ("hf:" in str(caught.value)) == is_named


SHARDS = [
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
]


@pytest.mark.parametrize(
    ("available", "needed"),
    [
        (["model.safetensors", "pytorch_model.bin"], ["model.safetensors"]),
        (["pytorch_model.bin", "tf_model.h5"], ["pytorch_model.bin"]),
        (
            ["model.safetensors.index.json", *SHARDS, "model.fp16.safetensors"],
            ["model.safetensors.index.json", *SHARDS],
        ),
        (["rust_model.ot"], []),
    ],
)
def test_only_one_form_of_the_weights_is_downloaded(available, needed):
    assert hub._files_to_read(["config.json", *available]) == [
        "config.json",
        *needed,
    ]


def test_files_of_two_networks_are_downloaded():
    paths = ["generator/config.json", "generator/model.safetensors"]
    assert hub._files_to_read([*paths, "generator/tf_model.h5"]) == paths
