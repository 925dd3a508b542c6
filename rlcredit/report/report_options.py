"""The parser of ``rlcredit report``; it imports nothing of the stack."""

from rlcredit.config.arguments import CommandParser, add_out_option, parse_path


def make_report_parser() -> CommandParser:
    """Return the parser of ``rlcredit report``."""
    parser = CommandParser(
        "rlcredit report",
        "CAMPAIGN ...",
        "Say what a campaign has found, in HTML, Markdown, CSV and pictures.",
        ["rlcredit report campaigns/tiny_smoke", "rlcredit report campaigns/tiny_study campaigns/tiny_study_2"],
    )
    parser.add_argument(
        "campaign",
        type=parse_path,
        nargs="+",
        metavar="CAMPAIGN",
        help="campaign folder, or its declaration; of several, one table that corrects all comparisons together",
    )
    output = parser.add_argument_group("output")
    add_out_option(output, "folder for the report (default: `report` in that of the campaign, or `study` beside it)")
    return parser
