"""Conditions that a card tests: condition files, or operators in a default stack, with the code that they name."""

import copy
import functools
import importlib
import inspect
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from rlcredit.base.files import suggest_path, write_atomically
from rlcredit.base.messages import suggest_name
from rlcredit.cli.application import read_expanded_config
from rlcredit.config import code_fingerprint
from rlcredit.config.allowed_values import validate_folder_name
from rlcredit.config.class_paths import collect_argument_hints, find_hint_classes, list_parameter_names
from rlcredit.config.config_expansion import expand_call_forms
from rlcredit.config.paths import extend_import_path, find_config_file, find_configs_folder
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.credit.catalogue import find_operator_classes, find_usual_writer, load_operator
from rlcredit.credit.contract import OperatorContract
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import MEANINGFUL_FIELDS


@dataclass(frozen=True)
class CardCondition:
    """A condition to be tested.

    Args:
        name: Name in tables; letters, digits, ``_`` and ``-``.
        origin: How the condition was named on the command line.
        content: Content of the condition's file.

    Attributes:
        modules: Files of the user's modules that the condition names or that these import, by module name.
        meanings: Fingerprints of these modules' code when they are imported, by module name.

    """

    name: str
    origin: str
    content: dict[str, Any]
    modules: Mapping[str, Path] = field(init=False, compare=False)
    meanings: Mapping[str, str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Find the user's modules while they can be found.

        Raises:
            ValueError: its name is none of a folder.

        """
        validate_folder_name(f"{shorten_name(self.origin)}: condition", self.name)
        object.__setattr__(
            self, "modules", code_fingerprint.trace_user_modules(code_fingerprint.find_dotted_paths(self.content))
        )
        object.__setattr__(self, "meanings", code_fingerprint.fingerprint_modules(self.modules))

    @property
    def is_stack_only(self) -> bool:
        """Whether the condition is a stack and nothing else."""
        return {*self.content} <= {"condition", "trainer"} and {*self.content["trainer"]} <= {"callbacks"}

    def refuse_edits(self) -> None:
        """Refuse to continue if code on disk is no longer what was imported.

        Raises:
            ValueError: with the module.

        """
        fingerprints = code_fingerprint.fingerprint_modules(self.modules)
        if edits := [str(self.modules[name]) for name in fingerprints if fingerprints[name] != self.meanings[name]]:
            raise ValueError(
                f"{shorten_name(', '.join(edits))} was edited while {self.name} was measured. Run the command again."
            )

    def write_files(self, folder: Path) -> Path:
        """Write the condition and the modules that it names into a folder; return the condition's file."""
        self.refuse_edits()
        folder.mkdir(parents=True, exist_ok=True)
        sources = {source.resolve() for source in self.modules.values()}
        for stale in folder.rglob("*.py"):
            if stale.resolve() not in sources:
                stale.unlink()
        for name, source in self.modules.items():
            copy = folder / build_module_path(name, source)
            if copy.resolve() != source.resolve():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
        file = folder / "condition.yaml"
        write_atomically(file, yaml.safe_dump(self.content, sort_keys=False))
        return file


def build_module_path(module: str, source: Path) -> Path:
    """Return the path of a module below the folder from which it is imported."""
    path = Path(*module.split("."))
    return path / source.name if source.name == "__init__.py" else path.with_suffix(".py")


def build_default_condition(cls: type[CreditOperator], path: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default stack around an operator, with GRPO at the top.

    An operator that writes only advantages stands below the usual writers of what it reads. Other operators, such as
    ``SEPA``, are tested inside the shortest shipped stack that contains them. An operator around another, such as
    ``AnnealOut``, stands where that one would.

    Args:
        cls: Class of the operator.
        path: Class path by which a condition names the operator.
        arguments: Arguments of the operator that replace its defaults, or those of the shipped stack.

    Raises:
        ValueError: no such condition is known; with the repair.

    """
    if not cls.writes:
        raise ValueError(f"{cls.__name__} is a probe: it measures credit and assigns none.")
    inner = _find_inner_operator(cls, arguments)
    if inner is not None:
        return _wrap_inner_operator(cls, path, arguments, inner)
    required = [
        name
        for name, parameter in list(inspect.signature(cls.__init__).parameters.items())[1:]
        if parameter.default is parameter.empty
        and parameter.kind is not parameter.VAR_KEYWORD
        and name not in arguments
    ]
    if cls.writes != {"advantages"} or required:
        if cls.__module__.startswith("callbacks."):
            return _read_shortest_condition(cls, arguments)
        if required:
            entry = f"{path}({', '.join(f'{name}=...' for name in required)})"
            raise ValueError(f"{cls.__name__} has no default for {', '.join(required)}. Name a condition with {entry}.")
        fields = ", ".join(sorted(cls.writes))
        raise ValueError(
            f"{cls.__name__} writes {fields}, not only advantages. "
            "Name a condition in which its output reaches the advantages."
        )
    writers = [_find_usual_writer("advantages")] if "advantages" in cls.reads else []
    names = [writer.__name__ for writer in [*writers, *_list_usual_writers(cls)]]
    stack = [*names, _replace_arguments(path, arguments)]
    return {"condition": _name_operator(cls, arguments), "trainer": {"callbacks": stack}}


def _find_inner_operator(cls: type[CreditOperator], arguments: Mapping[str, Any]) -> str | None:
    """Return the name of the argument that is itself an operator, None if there is none."""
    hints = collect_argument_hints(cls)
    kinds = {name: [*find_hint_classes(hints.get(name))] for name in arguments}
    return next((name for name in kinds if any(issubclass(kind, OperatorContract) for kind in kinds[name])), None)


def _wrap_inner_operator(
    cls: type[CreditOperator], path: str, arguments: Mapping[str, Any], inner: str
) -> dict[str, Any]:
    """Return the default stack around the inner operator, with the outer one in its place."""
    entry = arguments[inner]
    name, inner_arguments = _find_entry_name(entry), entry.get("init_args", {}) if isinstance(entry, dict) else {}
    content = copy.deepcopy(_resolve_class_path(name, inner_arguments).content)
    stack = [
        {"class_path": path, "init_args": {**arguments, inner: operator}}
        if _find_entry_name(operator) == name
        else operator
        for operator in content["trainer"]["callbacks"]
    ]
    trainer = {**content["trainer"], "callbacks": stack}
    return {**content, "condition": _name_operator(cls, arguments), "trainer": trainer}


def _replace_arguments(entry: Any, arguments: Mapping[str, Any]) -> Any:
    """Return an entry of a stack with some arguments replaced."""
    if not arguments:
        return entry
    description = entry if isinstance(entry, dict) else {"class_path": entry}
    return {**description, "init_args": {**description.get("init_args", {}), **arguments}}


def _name_operator(cls: type[CreditOperator], arguments: Mapping[str, Any]) -> str:
    """Return the name of the condition around an operator, which folders can have.

    Example:
        >>> from callbacks import GTPO
        >>> _name_operator(GTPO, {}), _name_operator(GTPO, {"beta": 0.2})
        ('GTPO', 'GTPO-beta-0.2')

    """
    words = [f"{name}-{_spell_argument(value)}" for name, value in arguments.items()]
    return re.sub(r"[^\w.]+", "-", "-".join([cls.__name__, *words])).strip("-")


def _spell_argument(value: Any) -> str:
    """Return an argument as words; a class by its name and its own arguments.

    Example:
        >>> _spell_argument({"class_path": "EntropyMask", "init_args": {"rho": 0.3}}), _spell_argument(50)
        ('EntropyMask-rho-0.3', '50')

    """
    if not (isinstance(value, dict) and "class_path" in value):
        return str(value)
    arguments = value.get("init_args", {})
    return "-".join(
        [value["class_path"], *(f"{name}-{_spell_argument(argument)}" for name, argument in arguments.items())]
    )


def _list_usual_writers(cls: type[OperatorContract]) -> list[type[OperatorContract]]:
    """Return the usual writers of the fields that an operator reads, in stack order."""
    stack: list[type[OperatorContract]] = []
    for name in sorted(cls.reads - MEANINGFUL_FIELDS):
        writer = _find_usual_writer(name)
        stack += [operator for operator in [*_list_usual_writers(writer), writer] if operator not in stack]
    return stack


def _find_usual_writer(name: str) -> type[OperatorContract]:
    writer = load_operator("GRPO") if name == "advantages" else find_usual_writer(name)
    if writer is None:
        raise ValueError(f"no shipped operator writes `{name}`. Name a condition in which one does.")
    return writer


def _read_shortest_condition(cls: type[CreditOperator], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shipped condition with the fewest callbacks among those that list an operator."""
    conditions = []
    for file, content in _read_shipped_conditions().items():
        entries = content.get("trainer", {}).get("callbacks") or []
        names = [_find_entry_name(entry) for entry in entries]
        if cls.__name__ in names:
            conditions.append((len(names), file.stem, content))
    if not conditions:
        raise ValueError(f"{cls.__name__} is in no shipped condition. Name a condition that lists it.")
    *_, content = min(conditions, key=lambda found: found[:2])
    content = copy.deepcopy(content)
    stack = [
        _replace_arguments(entry, arguments) if _find_entry_name(entry) == cls.__name__ else entry
        for entry in content["trainer"]["callbacks"]
    ]
    trainer = {**content["trainer"], "callbacks": stack}
    return {**content, "condition": _name_operator(cls, arguments), "trainer": trainer}


@functools.cache
def _read_shipped_conditions() -> dict[Path, dict[str, Any]]:
    """Return the content of every shipped condition, by file."""
    files = sorted((find_configs_folder() / "conditions").glob("*/*.yaml"))
    return {file: read_expanded_config(file) for file in files}


def _find_entry_name(entry: Any) -> str:
    return entry["class_path"] if isinstance(entry, dict) else entry


def resolve_card_condition(text: str) -> CardCondition:
    """Return the condition that a name on the command line refers to.

    Args:
        text: File of a condition, Python file with one operator, ``file.py:Class``, or class path of an operator, with
            arguments in call form if need be, as ``GTPO(beta=0.2)``; for shipped operators the name is enough.

    Raises:
        ValueError: it stands for nothing that assigns credit; with the repair.

    """
    if "(" in text:
        find_operator_classes()  # so that a message can name their parameters
        entry = expand_call_forms({"operator": text}, {"operator": CreditOperator})["operator"]
        if entry != text:
            if not isinstance(entry, dict):
                return _resolve_class_path(entry, {})
            return replace(_resolve_class_path(entry["class_path"], entry["init_args"]), origin=text)
    path, _, class_name = text.partition(":")
    if path.endswith((".yaml", ".yml")):
        return _read_condition_file(text)
    if path.endswith(".py"):
        return _resolve_python_file(text, Path(path), class_name)
    return _resolve_class_path(text, {})


def list_shipped_operators() -> list[str]:
    """Return the names of the shipped operators whose output can reach the advantages."""
    names = []
    for cls in find_operator_classes():
        try:
            resolve_card_condition(cls.__name__)
        except ValueError:
            continue
        names.append(cls.__name__)
    return names


def _read_condition_file(text: str) -> CardCondition:
    file = Path(find_config_file(text))
    if not file.is_file():
        raise ValueError(f"{shorten_name(file)}: there is no such condition. `rlcredit list` shows the shipped ones.")
    content = read_expanded_config(file)
    if not isinstance(content, dict) or not isinstance(content.get("trainer"), dict):
        raise ValueError(f"{shorten_name(file)}: a condition lists callbacks, trainer: {{callbacks: [GRPO, ...]}}.")
    extend_import_path([str(file)])
    return CardCondition(str(content.get("condition") or file.stem), text, content)


def _resolve_python_file(text: str, path: Path, class_name: str) -> CardCondition:
    if not path.is_file():
        raise ValueError(f"{shorten_name(path)}: there is no such file.{suggest_path(path)}")
    if not path.stem.isidentifier():
        raise ValueError(
            f"{shorten_name(path)}: Python imports no such name. Rename the file: letters, digits and _ only."
        )
    classes = _import_file_operators(path)
    matches = [cls for cls in classes if not class_name or cls.__name__ == class_name]
    if len(matches) != 1:
        names = ", ".join(cls.__name__ for cls in classes) or "none"
        subject = f"one operator called {class_name}" if class_name else "one operator, a subclass of CreditOperator"
        advice = f"Say {path.name}:Name." if classes else "Define one: `rlcredit new operator FILE` shows how."
        raise ValueError(f"{shorten_name(path)}: expected {subject}, found {names}. {advice}")
    condition = _wrap_lone_operator(matches[0], text, f"{path.stem}.{matches[0].__name__}", {})
    for name, file in condition.modules.items():
        copy_path = path.parent / build_module_path(name, file)
        if copy_path.is_file() and copy_path.resolve() != file.resolve():
            raise ValueError(
                f"{shorten_name(path)}: another module {name} is imported already, {file}. Rename one of them."
            )
    return condition


def _import_file_operators(path: Path) -> list[type[CreditOperator]]:
    """Import a Python file as a configuration beside it would, and return the operators that it defines."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        module = importlib.import_module(path.stem)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{shorten_name(path)} cannot be imported: {type(error).__name__}: {error}") from error
    if Path(module.__file__ or "").resolve() != path.resolve():
        raise ValueError(
            f"{shorten_name(path)}: another module {path.stem} is imported already, {module.__file__}. Rename the file."
        )
    classes = (cls for cls in vars(module).values() if inspect.isclass(cls) and cls.__module__ == path.stem)
    return [cls for cls in classes if issubclass(cls, CreditOperator)]


def _resolve_class_path(path: str, arguments: Mapping[str, Any]) -> CardCondition:
    by_name = {cls.__name__: cls for cls in find_operator_classes()}
    by_path = {f"{cls.__module__}.{cls.__name__}": cls for cls in by_name.values()}
    if cls := by_name.get(path) or by_path.get(path):
        return _wrap_lone_operator(cls, cls.__name__, cls.__name__, arguments)
    module, _, name = path.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module), name) if module else None
    except (ImportError, AttributeError, ValueError):
        cls = None
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    if not (inspect.isclass(cls) and issubclass(cls, CreditOperator)):
        raise ValueError(
            f"{path}: neither an operator nor the class path of one.{suggest_name(path, by_name)} "
            "`rlcredit list operators` shows the shipped ones; a condition file ends in .yaml, a Python file in "
            ".py."
        )
    return _wrap_lone_operator(cls, path, path, arguments)


def _wrap_lone_operator(
    cls: type[CreditOperator], origin: str, path: str, arguments: Mapping[str, Any]
) -> CardCondition:
    parameters = list_parameter_names(cls)
    if strangers := sorted({*arguments} - {*parameters}):
        raise ValueError(
            f"`{cls.__name__}` has no parameter `{strangers[0]}`.{suggest_name(strangers[0], parameters)} "
            f"It accepts {', '.join(parameters) or 'none'}."
        )
    return CardCondition(_name_operator(cls, arguments), origin, build_default_condition(cls, path, arguments))
