# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hooks of `mkdocs build` that generate pages of the site.

README, CONTRIBUTING and CHANGELOG become pages; the help of commands and the
table of hyperparameters are generated from the programs. mkdocs calls the
functions whose names begin with `on_`.
"""

import contextlib
import dataclasses
import importlib
import io
import os
import pathlib
import re
import subprocess
import sys
import typing

import griffe
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
# page of the site -> the document that it shows
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "models/reference/README.md": "reference_model.md",
}
COMMANDS_INTRODUCTION = (
    "The programs run as `python3 PROGRAM`. All other commands run as"
    " `electra-tf COMMAND` or `python3 -m electra_tf COMMAND`, and `electra-tf"
    " help` lists them. This page has the output of `--help`."
)
HPARAMS_INTRODUCTION = (
    "Each hparam is a flag (`--learning_rate 1e-3`) and a key of the JSON of"
    " `--hparams`. `--print_config` prints all values with their sources. A"
    " value of `None` is unset or derived from other hparams."
)
# Keras documents these methods of layers, so the reference omits them.
KERAS_METHODS = {"get_config", "call", "build", "compute_output_shape"}
# The original's programs; their help comes from a config or a parser.
CONFIGS = {
    "run_pretraining.py": ("configure.pretraining", "PretrainingConfig"),
    "run_finetuning.py": ("configure.finetuning", "FinetuningConfig"),
}


def _target_of(link, source):
    """Return a link from a document outside docs/ as a link from its page."""
    name, hash_sign, anchor = link.partition("#")
    if not name or ":" in name:
        return link
    path = os.path.normpath(os.path.join(os.path.dirname(source), name))
    page = PAGES.get(path, path.removeprefix("docs/"))
    return page + hash_sign + anchor


def _with_links(text, source):
    """Return the text of a document with the links of its page."""

    def replaced(match):
        return f"{match[1]}{_target_of(match[2], source)}{match[3]}"

    text = re.sub(r"(\]\()([^)\s]+)(\))", replaced, text)
    return re.sub(r'((?:src|srcset)=")([^"]+)(")', replaced, text)


def _help_of(module, name):
    """Return the help that a command prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        module.parse_flags([name, "--help"])
    if not printed.getvalue():
        raise PluginError(
            f"{name} --help printed nothing; expected its help. Correct the"
            " command."
        )
    return printed.getvalue().rstrip()


def _commands_page():
    """Return the page of every command's help."""
    from electra_tf.__main__ import COMMAND_GROUPS, PROGRAMS

    os.environ["COLUMNS"] = "80"
    lines = ["# Commands", "", COMMANDS_INTRODUCTION, "", "## Programs", ""]
    for program, purpose in PROGRAMS.items():
        lines += [f"### {program}", "", _sentence(purpose), ""]
        if program in CONFIGS:
            anchor = program.replace(".", "")
            link = f"[hyperparameters](hyperparameters.md#{anchor})"
            lines += [f"Its flags are its {link}.", ""]
            continue
        help_text = subprocess.check_output(
            [sys.executable, str(ROOT / program), "--help"], text=True
        )
        lines += ["```text", help_text.rstrip(), "```", ""]
    for title, commands in COMMAND_GROUPS.items():
        lines += [f"## {title}", ""]
        for name, purpose in commands.items():
            module = importlib.import_module(f"electra_tf.commands.{name}")
            lines += [f"### {name}", "", _sentence(purpose), ""]
            lines += ["```text", _help_of(module, name), "```", ""]
    return "\n".join(lines)


def _sentence(phrase):
    return phrase[0].upper() + phrase[1:] + "."


def _cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def _hyperparameters_page():
    """Return the table of every hyperparameter of both programs."""
    from configure import flags
    from configure.config import default_of

    lines = ["# Hyperparameters", "", HPARAMS_INTRODUCTION, ""]
    for program, (module, class_name) in CONFIGS.items():
        config_class = getattr(importlib.import_module(module), class_name)
        hints = typing.get_type_hints(config_class, include_extras=True)
        fields = {f.name: f for f in dataclasses.fields(config_class)}
        lines += [f"## {program}", ""]
        for title, notes in flags.read_sections(config_class).items():
            rows = []
            for name, note in notes.items():
                if name not in fields or (not note and name.startswith("_")):
                    continue
                default = default_of(fields.pop(name))
                kind = _cell(flags.type_name(hints[name]))
                if default is dataclasses.MISSING:
                    value = f"{kind}, required"
                elif default == "":
                    value = f'{kind} = ""'
                else:
                    value = f"{kind} = {_cell(default)}"
                rows.append(f"| `{name}`<br>`{value}` | {_cell(note)} |")
            if rows:
                lines += [f"### {title.rstrip(':.')}", ""]
                lines += ["| Hparam | Meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _named_objects():
    """Return the public names in README and the guides, by document."""
    names = {}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        for module, imported in re.findall(
            r"(?m)^from ((?:electra_tf|configure)[\w.]*) import (.+)$", text
        ):
            for name in imported.split(","):
                names[f"{module}.{name.strip()}"] = path.name
        for name in re.findall(r"`(electra_tf(?:\.\w+)+\.[A-Z]\w+)`", text):
            names[name] = path.name
    return names


def _check_reference():
    """Raise an error if a public name is undocumented."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    entries = re.findall(r"(?m)^::: (\S+)$", text)
    for name, document in _named_objects().items():
        if name not in entries:
            raise PluginError(
                f"{document} names {name}, but docs/reference.md has no entry"
                f" for it. Add the line '::: {name}' there."
            )
    loader = griffe.GriffeLoader(search_paths=[str(ROOT)])
    packages = {
        package: loader.load(package) for package in ("configure", "electra_tf")
    }
    undocumented = []
    for name in entries:
        package, _, path = name.partition(".")
        loaded = packages[package][path]
        if loaded.is_alias:
            loaded = loaded.final_target
        undocumented += [
            member.path
            for member in [loaded, *loaded.members.values()]
            if not member.name.startswith("_")
            and not member.is_alias
            and member.name not in KERAS_METHODS
            and (member is loaded or member.is_function)
            and not member.has_docstring
        ]
    if undocumented:
        raise PluginError(
            f"{', '.join(undocumented)}: no docstring; expected one, because"
            " docs/reference.md shows it. Write one."
        )


def on_files(files, config):
    """Add the generated pages, and the files that documents link to."""
    # mkdocs restores the path after this import, so it is extended again.
    sys.path.insert(0, str(ROOT))
    _check_reference()
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        content = _with_links(text, source)
        files.append(File.generated(config, page, content=content))
    for page, write in (
        ("commands.md", _commands_page),
        ("hyperparameters.md", _hyperparameters_page),
    ):
        files.append(File.generated(config, page, content=write()))
    names = ["LICENSE", "CITATION.cff"]
    names += [
        f"examples/{p.name}" for p in sorted(ROOT.glob("examples/*.ipynb"))
    ]
    for name in names:
        content = (ROOT / name).read_bytes()
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown, page, **_):
    """Redirect links out of docs/ to pages or files of the site."""

    def replaced(match):
        path = os.path.normpath(os.path.join("docs", match[1]))
        return f"]({PAGES.get(path, path)}{match[2]})"

    if page.file.src_uri in PAGES.values():
        return markdown
    return re.sub(r"\]\((\.\./[^)#\s]+)((?:#[^)\s]*)?)\)", replaced, markdown)
