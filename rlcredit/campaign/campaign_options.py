"""The parser of ``rlcredit campaign``; it imports nothing of the stack."""

from pathlib import Path

from rlcredit.cli.shared_options import add_machine_options
from rlcredit.config.arguments import CommandParser, add_out_option, parse_path


def make_campaign_parser() -> CommandParser:
    """Return the parser of ``rlcredit campaign``."""
    parser = CommandParser(
        "rlcredit campaign",
        "FILE",
        "Run conditions x seeds as a file declares them, and go on where it was interrupted.",
        ["rlcredit campaign configs/campaigns/tiny_smoke.yaml --plan"],
    )
    parser.add_argument("file", type=parse_path, metavar="FILE", help="declaration (docs/howto/campaign.md)")
    run = parser.add_argument_group("runs")
    run.add_argument("--plan", action="store_true", help="print costs and what can be shown, and stop")
    run.add_argument(
        "--print-commands",
        action="store_true",
        help="fix the declaration, print one command a line for each missing run, and stop (docs/howto/cluster.md)",
    )
    add_out_option(run, "folder for campaigns, each in a folder of its name", Path("campaigns"))
    add_machine_options(run, "CPU threads per run (default: the cores divided among the slots)")
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument(
        "--launcher",
        default="local",
        metavar="local|ray|FUNCTION",
        help="this machine, a Ray cluster, or the dotted path of a function that opens machines (default: local)",
    )
    cluster.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="address of the Ray cluster (default: that of RAY_ADDRESS, or this machine)",
    )
    return parser
