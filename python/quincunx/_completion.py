"""Completion of the command line in shells: scripts made from its parser, so that they cannot fall behind it."""

import argparse
from collections.abc import Iterator, Mapping
from typing import NamedTuple

SHELLS = ("bash", "zsh", "fish")

#: What zsh needs to read a script for bash.
_ZSH = """#compdef quincunx
(( $+functions[compdef] )) || { autoload -U compinit && compinit }
autoload -U +X bashcompinit && bashcompinit
"""


class Verb(NamedTuple):
    """A verb with the words that lead to it, and what may come behind it."""

    words: tuple[str, ...]
    verbs: dict[str, str]  # the verbs below it, with their help
    positional: list[str]  # the choices of its arguments
    options: dict[str, tuple[str, list[str], bool]]  # help, choices, whether a value follows


def verbs_of(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = (), extra: Mapping[str, list[str]] | None = None
) -> Iterator[Verb]:
    """Yield what can be completed behind each verb of a parser; `extra` has choices of arguments by name."""
    extra = extra or {}
    options: dict[str, tuple[str, list[str], bool]] = {}
    positional: list[str] = []
    below: dict[str, argparse.ArgumentParser] = {}
    helps: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = dict(action.choices)
            helps = {str(choice.dest): choice.help or "" for choice in action._choices_actions}
            continue
        choices = [str(choice) for choice in action.choices] if action.choices else extra.get(action.dest, [])
        for option in action.option_strings:
            options[option] = (action.help or "", choices, action.nargs != 0)
        if not action.option_strings:
            positional.extend(choices)
    yield Verb(words, {name: helps.get(name, "") for name in below}, positional, options)
    for name, verb in below.items():
        yield from verbs_of(verb, (*words, name), extra)


def script(shell: str, verbs: list[Verb]) -> str:
    """Return the script for a shell."""
    if shell == "fish":
        return _fish(verbs)
    bash = _bash(verbs)
    return f"{_ZSH}{bash}" if shell == "zsh" else bash


def _bash(verbs: list[Verb]) -> str:
    paths = {" ".join(verb.words): verb for verb in verbs}
    steps = [f'"{" ".join((*verb.words, name))}"' for verb in verbs for name in verb.verbs]
    values, words = [], []
    for path, verb in paths.items():
        for option, (_, choices, takes) in verb.options.items():
            if takes:
                found = f'COMPREPLY=($(compgen -W "{" ".join(choices)}" -- "$cur"))' if choices else "COMPREPLY=()"
                values.append(f'    "{path}:{option}") {found}; return ;;')
        names = " ".join([*verb.verbs, *verb.positional])
        words.append(f'    "{path}") flags="{" ".join(verb.options)}"; names="{names}" ;;')
    return "\n".join(
        [
            "# Completion of quincunx; files where nothing else fits.",
            "_quincunx() {",
            '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" verb="" word try flags names',
            # zsh, where `path` and `options` are names of its own, takes a length for a modifier that is not in $(()).
            '  for word in "${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do',
            '    try="${verb:+$verb }$word"',
            '    case "$try" in',
            f'      {" | ".join(steps)}) verb="$try" ;;',
            "    esac",
            "  done",
            '  case "$verb:$prev" in',
            *values,
            "  esac",
            '  case "$verb" in',
            *words,
            "  esac",
            '  if [[ "$cur" == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$cur"))',
            '  else COMPREPLY=($(compgen -W "$names" -- "$cur")); fi',
            "}",
            "complete -o default -F _quincunx quincunx",
            "",
        ]
    )


def _fish(verbs: list[Verb]) -> str:
    lines = ["# Completion of quincunx."]
    for verb in verbs:
        seen = " ".join(f"; and __fish_seen_subcommand_from {word}" for word in verb.words).removeprefix("; and ")
        below = " ".join(verb.verbs)
        not_yet = f"not __fish_seen_subcommand_from {below}" if below else ""
        where = "; and ".join(part for part in (seen, not_yet) if part)
        start = f"complete -c quincunx -n {_quoted(where)}" if where else "complete -c quincunx"
        for name, text in verb.verbs.items():
            lines.append(f"{start} -f -a {name} -d {_quoted(text)}")
        if verb.positional:
            lines.append(f"{start} -a {_quoted(' '.join(verb.positional))}")
        for option, (text, choices, takes) in verb.options.items():
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            value = f" -x -a {_quoted(' '.join(choices))}" if choices else " -r" if takes else ""
            lines.append(f"{start} {kind}{value} -d {_quoted(text)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
