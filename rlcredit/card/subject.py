"""What a card judges: a condition, with the code that it names."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rlcredit.files import write_atomically
from rlcredit.inputs import code
from rlcredit.inputs.names import validate_folder_name
from rlcredit.inputs.strict_yaml import shorten_name


@dataclass(frozen=True)
class CardCondition:
    """A condition to be judged.

    Args:
        name: in tables; letters, digits, ``_`` and ``-``.
        origin: how it was named.
        content: of the condition's file.

    Attributes:
        modules: of one's own that it names, and those that these import: their files, by their names.
        meanings: what these modules say, by their names, when they are imported.

    """

    name: str
    origin: str
    content: dict[str, Any]
    modules: Mapping[str, Path] = field(init=False, compare=False)
    meanings: Mapping[str, str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Find its modules, while they can be found.

        Raises:
            ValueError: its name is none of a folder.

        """
        validate_folder_name(f"{shorten_name(self.origin)}: condition", self.name)
        object.__setattr__(self, "modules", code.trace_user_modules(code.find_dotted_paths(self.content)))
        object.__setattr__(self, "meanings", code.fingerprint_modules(self.modules))

    @property
    def is_stack_only(self) -> bool:
        """Whether it is a stack and nothing else."""
        return {*self.content} <= {"condition", "trainer"} and {*self.content["trainer"]} <= {"callbacks"}

    def refuse_edits(self) -> None:
        """Refuse to go on where the code on the disk is no longer what was imported.

        Raises:
            ValueError: with the module.

        """
        now = code.fingerprint_modules(self.modules)
        if changed := [str(self.modules[name]) for name in now if now[name] != self.meanings[name]]:
            raise ValueError(
                f"{shorten_name(', '.join(changed))} was edited while {self.name} was measured. Begin again."
            )

    def write_files(self, folder: Path) -> Path:
        """Write the condition, and the modules that it names, into a folder; return its file."""
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
    """Return where a module lies below the folder from which it is imported."""
    path = Path(*module.split("."))
    return path / source.name if source.name == "__init__.py" else path.with_suffix(".py")
