"""Launchers by the names they have on the command line."""

from contextlib import AbstractContextManager
from pathlib import Path

from rlcredit.campaign.launchers.launcher import Opened, Share
from rlcredit.campaign.launchers.local import open_local_machine


def _open_ray_if_installed(root: Path, address: str | None, most: int | None) -> AbstractContextManager[Share]:
    try:
        from rlcredit.campaign.launchers.ray_cluster import open_ray_cluster  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ValueError("--launcher ray needs Ray. Install it: pip install 'rlcredit[cluster]'.") from None
    return open_ray_cluster(root, address, most)


LAUNCHERS: dict[str, Opened] = {"local": open_local_machine, "ray": _open_ray_if_installed}
