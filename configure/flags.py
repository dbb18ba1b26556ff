# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""Command lines of the entry points, on absl.

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
from configure.json_text import read_hparams
from configure.validation import check_names
from configure.values import coerce

# A config class's comments, so that `--help` says what the code says.

_SECTION = re.compile(r"    # -{4} (.+) -{4}")
_COMMENT = re.compile(r"    # (.*)")
_FIELD = re.compile(r"    ([a-z]\w*): .*?(?:  # (.*))?")


@functools.cache
def read_sections(config_class: type[Any]) -> dict[str, dict[str, str]]:
    """The comments of fields, by section; those of base classes come last."""
    sections: dict[str, dict[str, str]] = {}
    for part in filter(dataclasses.is_dataclass, config_class.__mro__):
        try:
            lines = inspect.getsource(part).splitlines()
        except (OSError, TypeError):  # A frozen application has no source.
            return {}
        notes: dict[str, str] = {}  # what stands above the first section
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
    """An absl-aware argument parser with readable help and errors.

    Leftover words are errors, and so are abbreviations, but for those of the
    original's own flags (`originals`), which meant one flag only there.
    """

    def __init__(
        self,
        command: str = "",
        description: str | None = None,
        originals: Sequence[str] = (),
        **kwargs: Any,
    ):
        """Of a command of `python -m electra_tf`, or of another program."""
        self._originals = originals
        if command:
            kwargs["prog"] = f"python -m electra_tf {command}"
        super().__init__(
            description=description,
            allow_abbrev=False,
            # absl modules may have flags of the same names; ours win.
            conflict_handler="resolve",
            formatter_class=_HelpFormatter,
            **kwargs,
        )

    def parse_args(self, args=None, namespace=None):  # noqa: ANN001, ANN201
        """Parses all of `args`; see `argparse.ArgumentParser.parse_args`."""
        args = sys.argv[1:] if args is None else args
        args = [re.sub("^--[^=]+", self._in_full, word) for word in args]
        # argparse would take the dashes out, and give a list of nothing.
        if bare := [word for word in args if re.fullmatch("--[^=]+=--", word)]:
            self.error(f"{bare[0]}: expected a value after the =")
        namespace, extra = self.parse_known_args(args, namespace)
        if extra:
            self.error(self._explain_extra(extra))
        return namespace

    def _in_full(self, found: re.Match) -> str:
        """A flag's name with underscores, and whole."""
        flag = "--" + found[0][2:].replace("-", "_")
        meant = [name for name in self._originals if name.startswith(flag)]
        known = flag in self._option_string_actions
        return meant[0] if len(meant) == 1 and not known else flag

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}\nTry: {self.prog} --help\n")

    def _explain_extra(self, extra: Sequence[str]) -> str:
        known = [option.strip("-") for option in self._option_string_actions]
        names = [w.split("=")[0][2:] for w in extra if w.startswith("--")]
        try:
            check_names(names, known, "flag")
        except UserError as error:
            return str(error)
        return (
            f"unexpected argument{'s' * (len(extra) > 1)}: {' '.join(extra)}."
            " Every value belongs to a flag, and a value with spaces needs"
            " quotes"
        )


class _HelpFormatter(argparse.HelpFormatter):
    """80 columns, one spelling per flag; usage names what must be given."""

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


# In the place of a default: the flag has to be given.
REQUIRED = object()


def add_flags(
    parser: argparse.ArgumentParser,
    title: str,
    *rows: tuple[str, Any, str | Sequence[str], str],
) -> argparse._ArgumentGroup:
    """Adds a group of flags, one for each (name, default, shown, help).

    The flag's type is its default's. `int`, `float` or `bool` in its place: one
    that may be left out; None: a text that may be; `REQUIRED`: one that may
    not. `shown` stands for the value in the help; a sequence lists the only
    choices. Defaults are told at the end of the help.
    """
    group = parser.add_argument_group(title)
    for name, default, shown, text in rows:
        if default is bool or isinstance(default, bool):
            default = None if default is bool else default
            boolean_argument(group, name, default, text)
            continue
        words: dict[str, Any] = {"metavar": shown}
        notes = []
        if not isinstance(shown, str):
            words = {"metavar": "NAME", "choices": tuple(shown)}
            notes.append(", ".join(shown))
        if default is REQUIRED:
            words["required"] = True
        elif isinstance(default, type):
            words["type"] = default
        elif default is not None:
            words |= {"type": type(default), "default": default}
            told = f"{default:g}" if isinstance(default, float) else default
            notes.append(f"default: {told}")
        if notes:
            text = f"{text} ({'; '.join(notes)})"
        group.add_argument(f"--{name}", help=text, **words)
    return group


def boolean_argument(
    parser: Any,
    name: str,
    default: Any = False,
    help: str | None = None,
    declared: Any = bool,
) -> None:
    """Adds a boolean flag in all its forms; `do_this` is `--this`, too."""
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
    """Reads a boolean (or none) as people write it; no text is false."""
    try:
        return coerce("flag", text.strip() or "false", declared)
    except UserError:
        raise argparse.ArgumentTypeError(
            f"expected true or false, got {text!r}"
        ) from None


def config_parser(config_class: type[TrainingConfig], prog: str) -> FlagParser:
    """The parser of a program that trains, with every hparam as a flag."""
    names = config_class.field_types()
    more = "--preset" if "preset" in names else "those of --task_config"
    parser = FlagParser(
        originals=("--data_dir", "--model_name", "--hparams"),
        prog=prog,
        usage=f"{prog} --data-dir DIR --model-name NAME [--hparams JSON]\n"
        "       [--print_config] [--any_hparam VALUE ...]",
        description=f"{config_class.purpose} Running the same command again"
        " continues where it stopped. Later sources win: defaults (also"
        f" {more}), --hparams, flags. Dashes and underscores are the same in"
        " flag names. Booleans take --flag, --noflag and --flag=false.",
    )
    add_flags(
        parser,
        "Program",
        (
            *("hparams", None, "JSON"),
            "hyperparameters as JSON or a .json file (the one beside a model"
            " will do; with a trial's, state --seed and --model_dir again)",
        ),
        (
            *("print_config", False, ""),
            "print every value and where it came from, and stop",
        ),
    )
    add_field_flags(parser, config_class, {"origins"}, given_only=True)
    return parser


def parse_config(
    config_class: type[Config],
    argv: Sequence[str],
    parser: FlagParser | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> tuple[Config, argparse.Namespace]:
    """Turns a command line, above `defaults`, into a config that can be run."""
    parser = parser or config_parser(config_class, os.path.basename(argv[0]))
    args = parser.parse_args(list(argv[1:]))
    in_file: dict[str, Any] = {}
    if args.hparams is not None:
        read = read_hparams(args.hparams)
        in_file = config_class.explicit_hparams(read)
    is_file = (args.hparams or "").strip().endswith(".json")
    stored = {name: in_file.pop(name, None) for name in NAMES}
    flags = {
        name: getattr(args, name)
        for name in config_class.field_types()
        if hasattr(args, name)
    }
    names = {name: flags.pop(name, None) or stored[name] for name in NAMES}
    missing = [f"--{n.replace('_', '-')}" for n in NAMES[::-1] if not names[n]]
    if missing and not args.print_config:
        parser.error(f"missing {' and '.join(missing)}")
    config = config_class.from_layers(
        *(names[name] or name.upper() for name in NAMES),
        [
            ("program", defaults or {}),
            *config_class.command_line_layers({**in_file, **flags}),
            ("file" if is_file else "json", in_file),
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


def format_config(config: Any) -> str:
    """A table of every hparam: name, value, origin."""
    rows = [("hparam", "value", "origin")]
    for name, value in config.as_dict().items():
        shown = value if isinstance(value, str) else json.dumps(value)
        rows.append((name, shown, config.origins.get(name, "argument")))
    name_width = max(len(name) for name, _, _ in rows)
    # One long path should not push every origin off the screen.
    value_width = min(60, max(len(value) for _, value, _ in rows))
    return "\n".join(
        f"{name:<{name_width}}  {value:<{value_width}}  {origin}"
        for name, value, origin in rows
    )


# Of NVIDIA's driver: on Linux, under Windows, on Jetson.
_GPU_FILES = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl")


def run_program(
    main: Callable[[Parsed], int | None],
    parser: Callable[[Sequence[str]], Parsed] | argparse.ArgumentParser,
    is_log: bool = True,
) -> NoReturn:
    """Runs a program whose users' mistakes are messages, not tracebacks.

    `main` gets what `parser` returned, and returns an exit status or None.
    `is_log`: the program goes on when nobody reads its standard output, which
    merely reports what it does; else it ends, with status 1.

    Exit status: 0 well, 1 a mistake found while running, 2 a mistake on the
    command line, 130 interrupted. Anything but a `UserError` is a bug and
    keeps its traceback.
    """

    def parse(argv: Sequence[str]) -> Parsed:
        with _mistakes_are_messages(2):
            if isinstance(parser, argparse.ArgumentParser):
                return parser.parse_args(list(argv[1:]))
            return parser(argv)

    def guarded(parsed: Parsed) -> int | None:
        # The libraries' own chatter; ours goes to standard output.
        logging.set_verbosity(logging.WARNING)
        # Level 3 keeps back errors, too: without a GPU TensorFlow complains of
        # CUDA at every start. What goes wrong comes as an exception as well.
        os.environ.setdefault(
            "TF_CPP_MIN_LOG_LEVEL",
            "2" if any(map(os.path.exists, _GPU_FILES)) else "3",
        )
        # There is one Keras here. Left to itself TensorFlow imports the other,
        # and with it scikit-learn and scipy.stats: a second of every start.
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
        with _mistakes_are_messages(1):
            return main(parsed)

    with _mistakes_are_messages(1), output.guarded_output(is_log):
        app.run(guarded, flags_parser=parse)


# What the machine refuses, rather than what the program gets wrong.
_USERS_OWN_ERRNOS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC)


def _fail(message: str, status: int) -> NoReturn:
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        print(f"error: {message}", file=sys.stderr, flush=True)
    if status == TRY_AGAIN:
        os._exit(status)  # TensorFlow would wait for the worker that is lost.
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
        # The reader of our output went away (`... | head`); Python flushes
        # standard output once more on its way out.
        output.discard(sys.stdout)
        raise SystemExit(1) from None
    except OSError as e:
        if e.errno == errno.ENOSPC and e.filename is None:
            output.discard(sys.stdout)  # Python would try again at its end.
            _fail("standard output cannot be written: the disk is full", status)
        if e.errno not in _USERS_OWN_ERRNOS or e.filename is None:
            raise
        notes = getattr(e, "__notes__", ())
        _fail("\n".join([f"{e.filename}: {e.strerror}", *notes]), status)


def type_name(declared: Any) -> str:
    """A declared type in words for help pages: `str or none`."""
    words = [
        "none" if option is type(None) else option.__name__
        for option in plain_types(declared)
    ]
    return " or ".join("json" if word == "dict" else word for word in words)


def add_field_flags(
    parser: FlagParser,
    fields_class: type[Any],
    skip: Collection[str] = (),
    given_only: bool = False,
) -> None:
    """Adds a dataclass's fields as flags, under its section headings.

    `given_only`: there are no defaults, and values stay text.
    """
    hints = typing.get_type_hints(fields_class, include_extras=True)
    left = {f.name: f for f in dataclasses.fields(fields_class)}
    for name in skip:
        left.pop(name, None)
    sections = {**read_sections(fields_class), "Other": dict.fromkeys(left, "")}
    for title, notes in sections.items():
        group = parser.add_argument_group(title)
        for name in [name for name in notes if name in left]:
            field, declared = left.pop(name), hints[name]
            facts = [type_name(declared)]
            facts += [bound.words for bound in list_bounds(declared)]
            shown = default_of(field)
            # A derived default is told by the note itself.
            if (
                shown is not dataclasses.MISSING
                and "efault: " not in notes[name]
            ):
                shown = shown if isinstance(shown, str) else json.dumps(shown)
                facts.append(f"default {shown or 'empty'}")
            text = f"{notes[name]} ({'; '.join(facts)})".replace("%", "%%")
            default = argparse.SUPPRESS if given_only else field.default
            if declared in (bool, bool | None):
                boolean_argument(group, name, default, text, declared)
                continue
            group.add_argument(
                f"--{name}",
                metavar=type_name(declared).split()[0].upper(),
                type=str if given_only else plain_types(declared)[0],
                default=default,
                help=text,
            )
