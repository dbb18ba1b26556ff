# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Command lines of the programs, parsed with absl.

Every flag is accepted with dashes or underscores. Booleans take `--flag`,
`--flag=false`, `--flag False`, `--no-flag` and `--noflag`.
"""

import argparse
import contextlib
import dataclasses
import errno
import functools
import inspect
import json
import os
import re
import sys
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from absl import app, logging
from absl.flags import argparse_flags

from configure import output
from configure.bounds import list_bounds, plain_types
from configure.config import NAMES, Config, TrainingConfig, default_of
from configure.errors import TRY_AGAIN, UserError
from configure.hparams_json import read_hparams
from configure.suggestions import check_names
from configure.values import coerce

# Patterns of sections, comments and fields in the source of a config class. The
# comment of a field is its help, so that help and source agree.
_SECTION = re.compile(r"    # -{4} (.+) -{4}")
_COMMENT = re.compile(r"    # (.*)")
_FIELD = re.compile(r"    ([a-z]\w*): .*?(?:  # (.*))?")


@functools.cache
def read_sections(config_class: type[Any]) -> dict[str, dict[str, str]]:
    """Return the comments of fields by section; base classes come last."""
    sections: dict[str, dict[str, str]] = {}
    for part in filter(dataclasses.is_dataclass, config_class.__mro__):
        try:
            lines = inspect.getsource(part).splitlines()
        except (OSError, TypeError):  # A frozen application has no source.
            return {}
        notes: dict[str, str] = {}  # comments of fields above the first section
        pending: list[str] = []
        for line in lines:
            if heading := _SECTION.fullmatch(line):
                notes = sections.setdefault(heading[1], {})
            elif comment := _COMMENT.fullmatch(line):
                pending.append(comment[1])
                continue
            elif field := _FIELD.fullmatch(line):
                notes[field[1]] = " ".join([*pending, field[2] or ""]).strip()
            pending = []
    return sections


Parsed = TypeVar("Parsed")


class FlagParser(argparse_flags.ArgumentParser):
    """An argument parser for absl with readable help and errors.

    Unknown arguments are errors. Abbreviations are errors, too, except those of
    the original's flags (`originals`), which existing command lines may use.
    """

    def __init__(
        self,
        command: str = "",
        description: str | None = None,
        originals: Sequence[str] = (),
        **kwargs: Any,
    ):
        """Make the parser of a command `python -m electra_tf COMMAND`.

        Args:
          command: name of the command; "": `prog` in `kwargs` names a different
            program.
          originals: flags of the original, with their dashes, such as
            "--data_dir".
        """
        self._originals = originals
        if command:
            kwargs["prog"] = f"python -m electra_tf {command}"
        super().__init__(
            description=description,
            allow_abbrev=False,
            # absl modules may define flags of the same names, which these flags
            # replace.
            conflict_handler="resolve",
            formatter_class=_HelpFormatter,
            **kwargs,
        )

    def parse_args(self, args=None, namespace=None):  # noqa: ANN001, ANN201
        """Parse `args` and reject unknown arguments; see `argparse`."""
        args = sys.argv[1:] if args is None else args
        args = [re.sub("^--[^=]+", self._full_name, word) for word in args]
        # For `--NAME=--`, argparse would return an empty list.
        for word in args:
            if re.fullmatch("--[^=]+=--", word):
                self.error(
                    f"{word}: expected a value after the equals sign; add the"
                    " value"
                )
        namespace, extra = self.parse_known_args(args, namespace)
        if extra:
            self.error(self._explain_extra(extra))
        return namespace

    def _full_name(self, match: re.Match) -> str:
        """Return the full name of a flag that is abbreviated or has dashes."""
        flag = "--" + match[0][2:].replace("-", "_")
        if flag in self._option_string_actions:
            return flag
        names = [name for name in self._originals if name.startswith(flag)]
        return names[0] if len(names) == 1 else flag

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}\nTry: {self.prog} --help\n")

    def _explain_extra(self, extra: Sequence[str]) -> str:
        known = [option.strip("-") for option in self._option_string_actions]
        names = [w.split("=")[0][2:] for w in extra if w.startswith("--")]
        try:
            check_names(names, known, "flag")
        except UserError as error:
            return str(error)
        noun = "argument" if len(extra) == 1 else "arguments"
        return (
            f"unexpected {noun}: {' '.join(extra)}. Write a flag before each"
            " value, and quotes around values with spaces"
        )


class _HelpFormatter(argparse.HelpFormatter):
    """A formatter that lists each flag once; the usage has required flags."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=4, width=80)

    def add_usage(self, usage: Any, actions: Any, *others: Any) -> None:
        if usage is None:
            usage = "%(prog)s"
            for action in actions:
                if not action.option_strings:
                    usage += f" {self._format_args(action, action.metavar)}"
                elif action.required:
                    usage += f" {self._format_action_invocation(action)}"
            usage += " [--flag VALUE ...]"
        super().add_usage(usage, actions, *others)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        shown = action.option_strings[0]
        if action.metavar and action.nargs != 0:
            shown += f" {action.metavar}"
        return shown


# Value that marks a required flag in place of a default.
REQUIRED = object()


def add_flags(
    parser: argparse.ArgumentParser,
    title: str,
    *rows: tuple[str, Any, str | Sequence[str], str],
) -> argparse._ArgumentGroup:
    """Add a group of flags from rows (name, default, value, help).

    Args:
      default: default value, which also sets the flag's type. `int`, `float` or
        `bool`: an optional flag of this type; None: an optional text;
        `REQUIRED`: a required text.
      value: placeholder of the flag's value in the help; a sequence: the
        choices. Defaults and choices are appended to the help.
    """
    group = parser.add_argument_group(title)
    for name, default, value, text in rows:
        if default is bool or isinstance(default, bool):
            default = None if default is bool else default
            boolean_argument(group, name, default, text)
            continue
        settings: dict[str, Any] = {"metavar": value}
        notes = []
        if not isinstance(value, str):
            settings = {"metavar": "NAME", "choices": tuple(value)}
            notes.append(", ".join(value))
        if default is REQUIRED:
            settings["required"] = True
        elif isinstance(default, type):
            settings["type"] = default
        elif default is not None:
            settings |= {"type": type(default), "default": default}
            is_float = isinstance(default, float)
            shown = f"{default:g}" if is_float else f"{default}"
            if shown:
                notes.append(f"default: {shown}")
        if notes:
            text = f"{text} ({'; '.join(notes)})"
        group.add_argument(f"--{name}", help=text, **settings)
    return group


def boolean_argument(
    parser: Any,
    name: str,
    default: Any = False,
    help: str | None = None,
    declared: Any = bool,
) -> None:
    """Add a boolean flag, its negations, and its name without `do_`."""
    names = dict.fromkeys([name, name.removeprefix("do_")])
    parser.add_argument(
        *(f"--{n}" for n in names),
        dest=name,
        nargs="?",
        const=True,
        default=default,
        type=functools.partial(_read_boolean, declared),
        metavar="BOOL",
        help=help,
    )
    parser.add_argument(
        *(f"--{no}{n}" for n in names for no in ("no_", "no")),
        dest=name,
        action="store_const",
        const=False,
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
    )


def _read_boolean(declared: Any, text: str) -> bool | None:
    """Parse a text as a boolean or None; an empty text is false."""
    try:
        return coerce("flag", text.strip() or "false", declared)
    except UserError:
        raise argparse.ArgumentTypeError(
            f"expected true or false, got {text!r}"
        ) from None


def config_parser(config_class: type[TrainingConfig], prog: str) -> FlagParser:
    """Return a program's parser, which has a flag for each hparam."""
    has_presets = "preset" in config_class.field_types()
    more = "--preset" if has_presets else "--task_config"
    parser = FlagParser(
        originals=("--data_dir", "--model_name", "--hparams"),
        prog=prog,
        usage=f"{prog} --data-dir DIR --model-name NAME [--hparams JSON]\n"
        "       [--print_config] [--any_hparam VALUE ...]",
        description=f"{config_class.purpose} To continue a run that was"
        " stopped, run the same command again. Flags take precedence over"
        f" --hparams, --hparams over {more}, and {more} over the defaults. Flag"
        " names may be written with dashes or with underscores. A boolean flag"
        " is written as --flag, --noflag or --flag=false.",
    )
    add_flags(
        parser,
        "Program",
        (
            "hparams",
            None,
            "JSON",
            "hyperparameters as JSON, or the path of a .json file such as a"
            " model's config.json (for the config.json of a trial, pass --seed"
            " and --model_dir, too)",
        ),
        (
            "print_config",
            False,
            "",
            "print every value and its origin, then exit",
        ),
    )
    add_field_flags(parser, config_class, {"origins"}, is_override=True)
    return parser


def parse_config(
    config_class: type[Config],
    argv: Sequence[str],
    parser: FlagParser | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> tuple[Config, argparse.Namespace]:
    """Parse a command line into a config and the other arguments.

    Args:
      defaults: hparams of the program, which the command line overrides.
    """
    parser = parser or config_parser(config_class, os.path.basename(argv[0]))
    args = parser.parse_args(list(argv[1:]))
    saved: dict[str, Any] = {}
    if args.hparams is not None:
        saved = config_class.explicit_hparams(read_hparams(args.hparams))
    is_file = (args.hparams or "").strip().endswith(".json")
    saved_names = {name: saved.pop(name, None) for name in NAMES}
    flags = {
        name: getattr(args, name)
        for name in config_class.field_types()
        if hasattr(args, name)
    }
    names = {n: flags.pop(n, None) or saved_names[n] for n in NAMES}
    missing = [f"--{n.replace('_', '-')}" for n in NAMES[::-1] if not names[n]]
    if missing and not args.print_config:
        absent = " and ".join(missing)
        parser.error(f"missing {absent}. Pass a value for each missing flag")
    config = config_class.from_layers(
        *(names[name] or name.upper() for name in NAMES),
        [
            ("program", defaults or {}),
            *config_class.command_line_layers({**saved, **flags}),
            ("file" if is_file else "json", saved),
            ("flag", flags),
        ],
        names_origin="flag",
    )
    if args.print_config:
        print(format_config(config))
        for text in config.warnings():
            print(f"warning: {text}", file=sys.stderr)
        raise SystemExit(0)
    config.check_mode()
    return config, args


def format_config(config: TrainingConfig) -> str:
    """Return a table of all hparams: name, value, origin."""
    rows = [("hparam", "value", "origin")]
    for name, value in config.as_dict().items():
        text = value if isinstance(value, str) else json.dumps(value)
        rows.append((name, text, config.origins.get(name, "argument")))
    name_width = max(len(name) for name, _, _ in rows)
    # A long path would otherwise move all origins off the screen.
    value_width = min(60, max(len(value) for _, value, _ in rows))
    return "\n".join(
        f"{name:<{name_width}}  {value:<{value_width}}  {origin}"
        for name, value, origin in rows
    )


# Device files of NVIDIA's driver on Linux, in WSL and on Jetson.
_GPU_FILES = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl")


def run_program(
    main: Callable[[Parsed], int | None],
    parser: Callable[[Sequence[str]], Parsed] | argparse.ArgumentParser,
    is_log: bool = True,
) -> NoReturn:
    """Run a program, and print users' mistakes without a traceback.

    The exit status is 0 after success, 1 after a mistake found while running,
    2 after a mistake on the command line, and 130 after an interrupt. Any error
    except `UserError` is a bug and keeps its traceback.

    Args:
      main: program, which takes the parsed arguments and returns an exit status
        or None.
      is_log: whether standard output only reports progress. If nobody can read
        standard output, such a program continues, and others exit with status
        1.
    """

    def parse(argv: Sequence[str]) -> Parsed:
        with _mistakes_are_messages(2):
            if isinstance(parser, argparse.ArgumentParser):
                return parser.parse_args(list(argv[1:]))
            return parser(argv)

    def guarded(parsed: Parsed) -> int | None:
        # Only libraries log through absl. Their messages below warnings would
        # clutter the output of this project.
        logging.set_verbosity(logging.WARNING)
        # Without a GPU, TensorFlow logs an error about CUDA at every start, so
        # level 3 hides errors, too. Real errors are also raised as exceptions.
        os.environ.setdefault(
            "TF_CPP_MIN_LOG_LEVEL",
            "2" if any(map(os.path.exists, _GPU_FILES)) else "3",
        )
        # By default TensorFlow imports Keras 3, which this project does not
        # use, together with scikit-learn and scipy.stats. These imports take a
        # second.
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
        with _mistakes_are_messages(1):
            return main(parsed)

    with _mistakes_are_messages(1), output.guarded_output(is_log):
        app.run(guarded, flags_parser=parse)


# Errors that the user can correct, such as a missing permission; other errors
# of the system are bugs.
_USERS_OWN_ERRNOS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC)


def _fail(message: str, status: int) -> NoReturn:
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        print(f"error: {message}", file=sys.stderr, flush=True)
    if status == TRY_AGAIN:
        os._exit(status)  # TensorFlow would wait for the lost worker.
    raise SystemExit(status)


@contextlib.contextmanager
def _mistakes_are_messages(status: int) -> Iterator[None]:
    try:
        yield
    except UserError as e:
        _fail(str(e), e.exit_status or status)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except BrokenPipeError:
        # The reader of the output has exited (`... | head`), and Python would
        # fail again when it flushes standard output at exit.
        output.discard(sys.stdout)
        raise SystemExit(1) from None
    except OSError as e:
        if e.errno == errno.ENOSPC and e.filename is None:
            # Python would otherwise fail again when it flushes standard output.
            output.discard(sys.stdout)
            _fail(
                "standard output cannot be written: the disk is full. Free"
                " some space",
                status,
            )
        if e.errno not in _USERS_OWN_ERRNOS or e.filename is None:
            raise
        notes = getattr(e, "__notes__", ())
        _fail("\n".join([f"{e.filename}: {e.strerror}", *notes]), status)


def type_name(declared: Any) -> str:
    """Return the text of a type for help pages, such as `str or none`."""
    names = [
        "none" if option is type(None) else option.__name__
        for option in plain_types(declared)
    ]
    return " or ".join("json" if name == "dict" else name for name in names)


def add_field_flags(
    parser: FlagParser,
    fields_class: type[Any],
    skip: Collection[str] = (),
    is_override: bool = False,
) -> None:
    """Add the fields of a dataclass as flags, grouped by section.

    Args:
      skip: names of fields that get no flag.
      is_override: whether flags override values of other sources. Flags that
        override have no defaults, and their values remain texts.
    """
    hints = typing.get_type_hints(fields_class, include_extras=True)
    fields = {f.name: f for f in dataclasses.fields(fields_class)}
    for name in skip:
        fields.pop(name, None)
    sections = dict(read_sections(fields_class))
    sections["Other"] = dict.fromkeys(fields, "")
    for title, notes in sections.items():
        group = parser.add_argument_group(title)
        for name in [name for name in notes if name in fields]:
            field, declared = fields.pop(name), hints[name]
            text = _field_help(field, declared, notes[name])
            default = argparse.SUPPRESS if is_override else field.default
            if declared in (bool, bool | None):
                boolean_argument(group, name, default, text, declared)
                continue
            group.add_argument(
                f"--{name}",
                metavar=type_name(declared).split()[0].upper(),
                type=str if is_override else plain_types(declared)[0],
                default=default,
                help=text,
            )


def _field_help(field: dataclasses.Field, declared: Any, note: str) -> str:
    """Return the help of a field: its comment, type, bounds and default."""
    facts = [type_name(declared)]
    facts += [bound.requirement for bound in list_bounds(declared)]
    default = default_of(field)
    # The comment itself describes a default that is derived.
    if default is not dataclasses.MISSING and "efault: " not in note:
        if not isinstance(default, str):
            default = json.dumps(default)
        facts.append(f"default {default or 'empty'}")
    return f"{note} ({'; '.join(facts)})".replace("%", "%%")
