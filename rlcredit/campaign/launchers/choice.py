"""Launchers by the names they have on the command line."""

from contextlib import AbstractContextManager
from pathlib import Path

from rlcredit.campaign.launchers.launcher import Opened, Share
from rlcredit.campaign.launchers.local import this_machine


def _ray_cluster(root: Path, address: str | None, most: int | None) -> AbstractContextManager[Share]:
    try:
        from rlcredit.campaign.launchers.ray_cluster import ray_cluster  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ValueError("--launcher ray needs Ray. Install it: pip install 'rlcredit[cluster]'.") from None
    return ray_cluster(root, address, most)


LAUNCHERS: dict[str, Opened] = {"local": this_machine, "ray": _ray_cluster}
