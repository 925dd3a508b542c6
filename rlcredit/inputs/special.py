"""Paths that are no files to read: pipes, devices, and what the system shows of itself."""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
SYSTEM = ("proc", "sys")
"""Folders at the top whose files are made while they are read."""


def find_special_kind(path: Path | str) -> str | None:
    """Say what a path is that is neither a file nor a folder; None for these, and where nothing is.

    Example:
        >>> find_special_kind("/dev/zero"), find_special_kind("/proc/self/environ"), find_special_kind("configs"), find_special_kind("no/such/file")
        ('a device', 'a part of the running system', None, None)

    """
    try:
        kind = KINDS.get(stat.S_IFMT(Path(path).stat().st_mode))
        inside = Path(path).resolve().parts[1:2]
    except (OSError, ValueError):  # there is nothing, or no file can have this name
        return None
    return kind or ("a part of the running system" if inside and inside[0] in SYSTEM else None)


def refuse_special_files(config: Any, key: str = "") -> None:
    """Refuse a configuration that names a pipe, a device or the like, at whatever place: reading one may never end.

    Args:
        config: mappings, lists and values.
        key: where they stand.

    Raises:
        ValueError: names the place and the repair.

    """
    if isinstance(config, str) and (kind := find_special_kind(config)):
        place = f"{key}: " if key else ""
        raise ValueError(f"{place}{config[:80]} is {kind}, not a file. Write what it says into a file and name that.")
    if isinstance(config, Mapping):
        for name, value in config.items():
            refuse_special_files(value, f"{key}.{name}".lstrip("."))
    elif isinstance(config, list | tuple):
        for place, value in enumerate(config):
            refuse_special_files(value, f"{key}[{place}]")
