"""``rlcredit campaign``: the runs that a declaration asks for, on this machine or on a cluster."""

import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from rlcredit.base.exit_status import signal_exit_status
from rlcredit.base.files import write_atomically
from rlcredit.base.interrupts import read_signal_number
from rlcredit.base.messages import print_message
from rlcredit.campaign.campaign_options import make_campaign_parser
from rlcredit.campaign.campaign_record import discard_refused_campaign, lock_campaign
from rlcredit.campaign.declaration import CampaignDeclaration, read_declaration
from rlcredit.campaign.execution import plan_campaign, run_campaign
from rlcredit.campaign.launchers.local_launcher import open_local_machine
from rlcredit.campaign.launchers.run_launcher import Opened, Share
from rlcredit.campaign.run_spec import render_settings
from rlcredit.config.passwords import redact_passwords
from rlcredit.config.paths import find_config_file


def _open_ray_if_installed(root: Path, address: str | None, most: int | None) -> AbstractContextManager[Share]:
    try:
        from rlcredit.campaign.launchers.ray_cluster import open_ray_cluster  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ValueError("--launcher ray needs Ray. Install it: pip install 'rlcredit[cluster]'.") from None
    return open_ray_cluster(root, address, most)


LAUNCHERS: dict[str, Opened] = {"local": open_local_machine, "ray": _open_ray_if_installed}


def run_campaign_command(args: Sequence[str]) -> int:
    """Run a campaign; return 0 if every run finished as declared, 1 if one did not, 2 if the campaign was refused."""
    options = make_campaign_parser().parse_args(args)
    try:
        declaration = read_declaration(Path(find_config_file(str(options.file))))
        root, settings = options.out / declaration.name, render_settings(declaration.settings)
        with discard_refused_campaign(root), LAUNCHERS[options.launcher](root, options.address, options.slots) as share:
            if options.plan:
                print(_render_campaign_plan(declaration, root, settings, share, options.threads))
                return 0
            with lock_campaign(root):
                return run_campaign(declaration, root, settings, share, options.threads)
    except ValueError as error:
        print(f"error: {redact_passwords(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stopped:
        print_message("interrupted; the same command goes on with what is missing.")
        return signal_exit_status(read_signal_number(stopped))


def _render_campaign_plan(
    declaration: CampaignDeclaration, root: Path, settings: str, share: Share, threads: int | None
) -> str:
    """Return the plan of a campaign without starting it."""
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".plan-", dir=root) as temporary:
        file = Path(temporary) / "settings.yaml"
        write_atomically(file, settings)
        return plan_campaign(declaration, root, file, share, threads).text
