"""Files that a command line names: where they are found, and where what they name is found."""

import difflib
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from rlcredit.base.files import is_existing_file
from rlcredit.config.module_source import CALLBACKS_PACKAGE

PACKAGE_FOLDER = Path(__file__).parents[1]

CONFIGS_FOLDER = "configs"

_MIN_NAME_SIMILARITY = 0.75
"""From which similarity on one name is taken for another, misspelt."""


class _CallbacksFinder:
    """Find ``callbacks`` where it lies beside this package; a finder as Python wants one."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the place of our package of this name; None for every other name."""
        if name != CALLBACKS_PACKAGE:
            return None
        folder = PACKAGE_FOLDER.parent / CALLBACKS_PACKAGE
        return spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])


def prefer_own_callbacks() -> None:
    """Have ``import callbacks`` mean the package that comes with rlcredit, whatever the working directory holds."""
    if _CallbacksFinder not in sys.meta_path:
        sys.meta_path.insert(0, _CallbacksFinder)  # pyright: ignore[reportArgumentType]


def find_configs_folder() -> Path:
    """Return the folder of the configurations that come with rlcredit: in the package, or beside it in a checkout."""
    folder = PACKAGE_FOLDER / CONFIGS_FOLDER
    return folder if folder.is_dir() else PACKAGE_FOLDER.parent / CONFIGS_FOLDER


def find_config_file(name: str) -> str:
    """Return the path of a configuration file.

    Args:
        name: File of the working directory or, where there is none, one of those that come with rlcredit, with or
            without ``configs/`` in front; anything else comes back as it is. ``~`` is the home folder.

    Example:
        >>> Path(find_config_file("configs/no_such_file.yaml")).name, Path(find_config_file("tiny.yaml")).name
        ('no_such_file.yaml', 'tiny.yaml')

    """
    name = os.path.expanduser(name)
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or is_existing_file(path):
        return name
    relative_path = Path(*path.parts[1:]) if path.parts[:1] == (CONFIGS_FOLDER,) else path
    return (
        str(find_configs_folder() / relative_path) if is_existing_file(find_configs_folder() / relative_path) else name
    )


def find_declared_file(name: str, folder: Path | None) -> str:
    """Return a file that a campaign's declaration names: as it is named, if there is such a file, or its new path.

    A file of ``configs`` that is gone is found by its last name in the folders ``conditions`` beside the declaration's
    folder or one above, so that a declaration stays as it ran when its conditions move to it.

    Args:
        name: File as the declaration names it.
        folder: Folder of the declaration; None if it has none.

    """
    if folder is None or Path(name).parts[:1] != (CONFIGS_FOLDER,) or is_existing_file(Path(find_config_file(name))):
        return name
    files = [
        file
        for parent in folder.resolve().parents[:2]
        for file in sorted((parent / "conditions").rglob(Path(name).name))
    ]
    return str(files[0]) if files else name


def find_similar_config(name: str) -> str | None:
    """Return the configuration that a misspelt or misplaced name means: one here, or one that comes with rlcredit.

    Example:
        >>> find_similar_config("chain_sum_3_5.yaml"), find_similar_config("configs/tyni.yaml")
        ('configs/tasks/chain_sum_3_5.yaml', 'configs/tiny.yaml')

    """
    files = sorted(find_configs_folder().rglob("*.yaml"), key=lambda file: len(file.parts))
    stems = {f"{CONFIGS_FOLDER}/{file.relative_to(find_configs_folder()).as_posix()}": file.stem for file in files}
    stems |= {file.name: file.stem for file in Path.cwd().glob("*.yaml")}
    stem = Path(name).stem
    matches = [path for path, path_stem in stems.items() if path_stem == stem]
    close = difflib.get_close_matches(name, stems, n=1, cutoff=_MIN_NAME_SIMILARITY)
    by_stem = difflib.get_close_matches(stem, stems.values(), n=1, cutoff=_MIN_NAME_SIMILARITY)
    return next(iter([*matches, *close, *(path for path, path_stem in stems.items() if path_stem in by_stem)]), None)


def resolve_config_flags(args: Sequence[str]) -> list[str]:
    """Return a command line whose ``--config`` files are where they were found.

    Example:
        >>> resolve_config_flags(["fit", "--threads=2", "--config=nowhere.yaml"])
        ['fit', '--threads=2', '--config=nowhere.yaml']

    """
    words, previous = [], ""
    for word in args:
        flag, equals, value = word.partition("=")
        if flag in ("-c", "--config") and equals:
            word = f"{flag}={find_config_file(value)}"
        elif previous in ("-c", "--config"):
            word = find_config_file(word)
        words.append(word)
        previous = word
    return words


def extend_import_path(args: Sequence[str]) -> None:
    """Let configurations name classes in modules of the working directory, and in modules beside their own file.

    Only folders of files that the command line names are searched, after the working directory and after everything
    that is installed, so that no module there replaces another.

    Args:
        args: Arguments of the command line.

    """
    files = [Path(word.rpartition("=")[2] if word.startswith("-") else word) for word in args]
    folders = [
        file.resolve().parent for file in files if file.suffix in (".yaml", ".yml", ".json") and is_existing_file(file)
    ]
    for folder in map(str, dict.fromkeys([Path.cwd(), *folders])):
        if folder not in sys.path:
            sys.path.append(folder)
