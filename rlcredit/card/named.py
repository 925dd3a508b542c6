"""What a name on the command line stands for."""

import importlib
import inspect
import sys
from pathlib import Path

from callbacks.base import CreditOperator
from rlcredit.card.subject import CardCondition, build_module_path
from rlcredit.card.surroundings import build_default_condition
from rlcredit.command_line.suggestions import find_closest_name
from rlcredit.inputs import strict_yaml
from rlcredit.inputs.found import extend_import_path, find_config_file
from rlcredit.inputs.strict_yaml import shorten_name


def resolve_card_condition(named: str) -> CardCondition:
    """Return what a name on the command line stands for.

    Args:
        named: a condition's file, a Python file with one operator, ``file.py:Class``, or the class path of an operator;
            for shipped operators the name is enough.

    Raises:
        ValueError: it stands for nothing that assigns credit; with the repair.

    """
    path, _, chosen = named.partition(":")
    if path.endswith((".yaml", ".yml")):
        return _read_condition_file(named)
    if path.endswith(".py"):
        return _resolve_python_file(named, Path(path), chosen)
    return _resolve_class_path(named)


def list_shipped_operators() -> list[str]:
    """Return the shipped operators that lead to credit, by name."""
    from callbacks import find_operator_classes  # noqa: PLC0415  (imports every operator)

    found = []
    for cls in find_operator_classes():
        try:
            resolve_card_condition(cls.__name__)
        except ValueError:
            continue
        found.append(cls.__name__)
    return found


def _read_condition_file(named: str) -> CardCondition:
    file = Path(find_config_file(named))
    if not file.is_file():
        raise ValueError(
            f"{shorten_name(file)}: there is no such condition. `rlcredit list` names those that are shipped."
        )
    content = strict_yaml.read_yaml(file)
    if not isinstance(content, dict) or not isinstance(content.get("trainer"), dict):
        raise ValueError(f"{shorten_name(file)}: a condition lists callbacks, trainer: {{callbacks: [GRPO, ...]}}.")
    extend_import_path([str(file)])
    return CardCondition(str(content.get("condition") or file.stem), named, content)


def _resolve_python_file(named: str, path: Path, chosen: str) -> CardCondition:
    if not path.is_file():
        raise ValueError(f"{shorten_name(path)}: there is no such file.")
    if not path.stem.isidentifier():
        raise ValueError(f"{shorten_name(path)}: Python imports no such name. Rename the file: letters, digits and _.")
    every = _import_file_operators(path)
    own = [cls for cls in every if not chosen or cls.__name__ == chosen]
    if len(own) != 1:
        names = ", ".join(cls.__name__ for cls in every) or "none"
        which = f"one operator called {chosen}" if chosen else "one operator, a subclass of CreditOperator"
        raise ValueError(f"{shorten_name(path)}: expected {which}, found {names}. Say {path.name}:Name.")
    found = _wrap_lone_operator(own[0], named, f"{path.stem}.{own[0].__name__}")
    for name, file in found.modules.items():
        beside = path.parent / build_module_path(name, file)
        if beside.is_file() and beside.resolve() != file.resolve():
            raise ValueError(f"{shorten_name(path)}: Python knows another module {name}, {file}. Rename one of them.")
    return found


def _import_file_operators(path: Path) -> list[type[CreditOperator]]:
    """Import a file as a configuration beside it would, and return the operators that it defines."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        module = importlib.import_module(path.stem)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{shorten_name(path)} cannot be imported: {type(error).__name__}: {error}") from error
    if Path(module.__file__ or "").resolve() != path.resolve():
        raise ValueError(
            f"{shorten_name(path)}: Python knows another module {path.stem}, {module.__file__}. Rename the file."
        )
    own = (cls for cls in vars(module).values() if inspect.isclass(cls) and cls.__module__ == path.stem)
    return [cls for cls in own if issubclass(cls, CreditOperator)]


def _resolve_class_path(named: str) -> CardCondition:
    import callbacks  # noqa: PLC0415  (imports every operator)

    by_name = {cls.__name__: cls for cls in callbacks.find_operator_classes()}
    by_path = {f"{cls.__module__}.{cls.__name__}": cls for cls in by_name.values()}
    if cls := by_name.get(named) or by_path.get(named):
        return _wrap_lone_operator(cls, cls.__name__, cls.__name__)
    module, _, name = named.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module), name) if module else None
    except (ImportError, AttributeError, ValueError):
        cls = None
    except (Exception, SystemExit) as error:
        raise ValueError(f"{named} cannot be imported: {type(error).__name__}: {error}") from error
    if not (inspect.isclass(cls) and issubclass(cls, CreditOperator)):
        meant = find_closest_name(named, [*by_name])
        raise ValueError(
            f"{named}: neither an operator nor the path of one.{f' Did you mean {meant}?' if meant else ''} `rlcredit "
            "list operators` names those that are shipped; a condition ends in .yaml, a file with an operator of one's "
            "own in .py."
        )
    return _wrap_lone_operator(cls, named, named)


def _wrap_lone_operator(cls: type[CreditOperator], origin: str, path: str) -> CardCondition:
    return CardCondition(cls.__name__, origin, build_default_condition(cls, path))
