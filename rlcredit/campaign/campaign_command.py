"""``rlcredit campaign``: the runs that a declaration asks for, on this machine or on a cluster."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rlcredit.base.exit_status import signal_exit_status
from rlcredit.base.files import write_atomically
from rlcredit.base.interrupts import read_signal_number
from rlcredit.base.messages import print_message
from rlcredit.campaign.campaign_options import make_campaign_parser
from rlcredit.campaign.campaign_record import CampaignRecord, discard_refused_campaign, lock_campaign
from rlcredit.campaign.declaration import CampaignDeclaration, read_declaration
from rlcredit.campaign.execution import plan_campaign, print_run_commands, run_campaign
from rlcredit.campaign.launchers.run_launcher import LauncherFactory, load_machine_opener
from rlcredit.campaign.run_spec import render_settings
from rlcredit.config.passwords import redact_passwords
from rlcredit.config.paths import find_config_file
from rlcredit.config.reader import locate_in_file
from rlcredit.config.strict_yaml import read_text_file


def run_campaign_command(args: Sequence[str]) -> int:
    """Run a campaign; return 0 if every run finished as declared, 1 if one did not, 2 if the campaign was refused."""
    options = make_campaign_parser().parse_args(args)
    try:
        file = Path(find_config_file(str(options.file)))
        declaration = read_declaration(file)
        place = locate_in_file("settings: ", read_text_file(file), str(options.file)).removesuffix(": ")
        root, settings = options.out / declaration.name, render_settings(declaration.settings, place)
        open_machines = load_machine_opener(options.launcher)
        with discard_refused_campaign(root), open_machines(root, options.address, options.slots) as make_launcher:
            if options.plan:
                print(_render_campaign_plan(declaration, root, settings, make_launcher, options.threads))
                return 0
            with lock_campaign(root):
                run = print_run_commands if options.print_commands else run_campaign
                return run(declaration, root, settings, make_launcher, options.threads)
    except ValueError as error:
        print(f"error: {redact_passwords(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stopped:
        print_message("interrupted; the same command goes on with what is missing.")
        return signal_exit_status(read_signal_number(stopped))


def _render_campaign_plan(
    declaration: CampaignDeclaration, root: Path, settings: str, make_launcher: LauncherFactory, threads: int | None
) -> str:
    """Return the plan of a campaign without starting it; one whose declaration has changed is refused.

    Raises:
        ValueError: with what has changed and the repair.

    """
    CampaignRecord(root).refuse_changed_declaration(declaration.to_json())
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".plan-", dir=root) as temporary:
        file = Path(temporary) / "settings.yaml"
        write_atomically(file, settings)
        return plan_campaign(declaration, root, file, make_launcher, threads).text
