"""Completion in a shell: scripts for bash, zsh and fish that ask rlcredit what may follow."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence

from rlcredit.base.exit_status import FINISHED, REFUSED
from rlcredit.cli.commands import COMMAND_TABLE, load_parser
from rlcredit.config.arguments import join_alternatives
from rlcredit.config.paths import CONFIGS_FOLDER, PACKAGE_FOLDER, find_configs_folder

SHELL_SCRIPTS = {
    "bash": """\
# Completion of rlcredit in bash. In ~/.bashrc: source <(rlcredit --completion bash)
_rlcredit() {
    local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    [[ ${words[-1]} == "=" ]] && words[-1]=""
    mapfile -t COMPREPLY < <(rlcredit --completion words "${words[@]}" 2>/dev/null)
}
complete -o default -F _rlcredit rlcredit
""",
    "zsh": """\
# Completion of rlcredit in zsh. In ~/.zshrc: source <(rlcredit --completion zsh)
_rlcredit() {
    local -a suggested
    suggested=("${(@f)$(rlcredit --completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n $suggested ]]; then compadd -- $suggested; else _files; fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
compdef _rlcredit rlcredit
""",
    "fish": """\
# Completion of rlcredit in fish. In ~/.config/fish/config.fish: rlcredit --completion fish | source
function __rlcredit_words
    set -l words (commandline -opc) (commandline -ct)
    set -l suggested (rlcredit --completion words $words[2..-1] 2>/dev/null)
    if set -q suggested[1]
        printf '%s\\n' $suggested
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c rlcredit -f -a '(__rlcredit_words)'
""",
}
"""What each shell loads; where nothing is suggested, it completes names of files."""

OWN_OPTIONS = ("--help", "--version", "--completion")

NOT_OPERATORS = ("probes",)
"""Rooms of callbacks that lead to no credit."""


def run_completion(words: Sequence[str]) -> int:
    """Print the script of a shell, or what may follow some words; return the exit status."""
    if len(words) == 1 and words[0] in SHELL_SCRIPTS:
        print(SHELL_SCRIPTS[words[0]], end="")
        return FINISHED
    if words and words[0] == "words":
        for word in suggest_words(words[1:]):
            print(word)
        return FINISHED
    request = " ".join(words) or "nothing"
    print(
        f"error: --completion: expected {join_alternatives(list(SHELL_SCRIPTS))}, got {request:.60}.", file=sys.stderr
    )
    return REFUSED


def suggest_words(words: Sequence[str]) -> list[str]:
    """Return the words that may stand in place of the last one, which may be begun.

    Args:
        words: Words after ``rlcredit``, as far as the cursor.

    Example:
        >>> suggest_words(["ex"]), suggest_words(["card", "--budget", "s"])
        (['explain', 'export'], ['standard'])

    """
    *context, prefix = [word for word in words if word != "="] or [""]
    if prefix.startswith("-") and "=" in prefix:  # bash splits such a word, zsh and fish do not
        option, value = prefix.split("=", maxsplit=1)
        return [f"{option}={suggestion}" for suggestion in suggest_words([*context, option, value])]
    if not context:
        return _select_begun([*COMMAND_TABLE, *OWN_OPTIONS], prefix)
    if context[0] not in COMMAND_TABLE:
        return _select_begun(list(SHELL_SCRIPTS) if context == ["--completion"] else [], prefix)
    parser = load_parser(context[0])
    options = parser.options
    if prefix.startswith("-"):
        return _select_begun([option for option in options if option.startswith("--")], prefix)
    flag = next((word for word in reversed(context) if word.startswith("-")), None)
    action = options.get(flag) if flag else None
    if action is not None and action.nargs != 0 and (context[-1] == flag or action.nargs == "+"):
        return _select_begun(_list_values(action), prefix)
    return _select_begun([name for suggestion in parser.places for name in _list_values(suggestion)], prefix)


def _select_begun(names: Sequence[str], prefix: str) -> list[str]:
    return [name for name in names if name.startswith(prefix)]


def _list_values(action: argparse.Action) -> list[str]:
    """Return the values of an option or argument that are known without the stack."""
    if action.choices:
        return [str(choice) for choice in action.choices]
    if isinstance(action.metavar, str) and "|" in action.metavar:
        return [choice for choice in action.metavar.split("|") if choice.islower()]
    return sorted(KNOWN_VALUES[action.dest]()) if action.dest in KNOWN_VALUES else []


def _list_configs(*folders: str) -> Iterator[str]:
    """Yield the shipped configurations of some folders as ``--config`` names them."""
    for folder in folders:
        for file in (
            (find_configs_folder() / folder).rglob("*.yaml") if folder else find_configs_folder().glob("*.yaml")
        ):
            yield f"{CONFIGS_FOLDER}/{file.relative_to(find_configs_folder()).as_posix()}"


def _list_operator_names() -> Iterator[str]:
    """Yield the names of shipped operators, read from their files."""
    for file in (PACKAGE_FOLDER.parent / "callbacks").glob("*/*.py"):
        if file.parent.name not in NOT_OPERATORS and not file.name.startswith("_"):
            yield from re.findall(r"^class ([A-Z]\w*)\(", file.read_text(encoding="utf-8"), re.MULTILINE)


def _list_test_policies() -> Iterator[str]:
    yield from ("aligned", "all", *(file.stem for file in (find_configs_folder() / "organisms").glob("*.yaml")))


KNOWN_VALUES: dict[str, Callable[[], Iterator[str]]] = {
    "config": lambda: _list_configs("", "conditions", "models"),
    "tasks": lambda: _list_configs("tasks"),
    "file": lambda: _list_configs("campaigns"),
    "conditions": _list_operator_names,
    "baseline": _list_operator_names,
    "organism": _list_test_policies,
}
"""Names of options and arguments whose values come with rlcredit."""
