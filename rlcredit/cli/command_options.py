"""Parsers of the commands that list, try, sample, export and deliver; they import nothing of the stack."""

from rlcredit.cli.shared_options import add_policy_options, add_sampling_options
from rlcredit.config.arguments import CommandParser, add_out_option, make_count_parser, parse_path


def make_list_parser() -> CommandParser:
    """Return the parser of ``rlcredit list``."""
    parser = CommandParser(
        "rlcredit list",
        "[FILTER]",
        "Name what a configuration can name: operators, losses, tasks, files that come with rlcredit.",
        ["rlcredit list", "rlcredit list signals"],
    )
    parser.add_argument("filter", nargs="?", default="", metavar="FILTER", help="text of the lines or groups to print")
    return parser


def make_new_parser() -> CommandParser:
    """Return the parser of ``rlcredit new``."""
    parser = CommandParser(
        "rlcredit new",
        "operator FILE",
        "Write a file to start from: a working operator.",
        ["rlcredit new operator my_operator.py"],
    )
    parser.add_argument("kind", choices=["operator"], metavar="operator", help="kind of file that is written")
    parser.add_argument("file", type=parse_path, metavar="FILE", help="file to write; its name names the class")
    return parser


def make_try_parser() -> CommandParser:
    """Return the parser of ``rlcredit try``."""
    parser = CommandParser(
        "rlcredit try",
        "",
        "Answer a few training questions of a configuration, before anything is trained.",
        ["rlcredit try --config configs/tiny.yaml", "rlcredit try --ckpt_path runs/grpo-seed0 --questions 8"],
    )
    group = parser.add_argument_group("questions")
    group.add_argument(
        "--questions", type=make_count_parser(), default=4, metavar="N", help="number of questions (default: 4)"
    )
    add_policy_options(parser)
    add_sampling_options(parser, completions=2)
    return parser


def make_sample_parser() -> CommandParser:
    """Return the parser of ``rlcredit sample``."""
    parser = CommandParser(
        "rlcredit sample",
        "--question TEXT",
        "Ask a policy one question, and print log-probability and entropy of every token.",
        ['rlcredit sample --ckpt_path runs/grpo-seed0 --question "2 + 3 = ?" --answer 5'],
    )
    group = parser.add_argument_group("question")
    group.add_argument(
        "--question", required=True, metavar="TEXT", help="question; the task of a configuration words it as its own"
    )
    group.add_argument("--answer", metavar="TEXT", help="reference, compared as a number or as mathematics")
    group.add_argument("--system", metavar="TEXT", help="system prompt (default: that of the configuration)")
    add_policy_options(parser)
    add_sampling_options(parser, completions=1)
    return parser


def make_export_parser() -> CommandParser:
    """Return the parser of ``rlcredit export``."""
    parser = CommandParser(
        "rlcredit export",
        "--out FOLDER",
        "Write a trained policy as a plain model that transformers reads.",
        ["rlcredit export --ckpt_path runs/grpo-seed0 --out models/grpo"],
    )
    group = parser.add_argument_group("output")
    add_out_option(group, "folder for the model, new or empty", required=True)
    group.add_argument(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        default="float32",
        help="type of the weights; fewer bits round them, so that the model is another policy (default: float32)",
    )
    group.add_argument("--adapter_only", action="store_true", help="adapter alone, in PEFT's format")
    add_policy_options(parser)
    return parser


def make_deliver_parser() -> CommandParser:
    """Return the parser of ``rlcredit deliver``."""
    parser = CommandParser(
        "rlcredit deliver",
        "RUN ...",
        "Bring the records of runs to MLflow that it has not received.",
        ["rlcredit deliver runs", "rlcredit deliver runs/grpo-seed0 --mlflow http://tracker:5000"],
    )
    parser.add_argument("runs", nargs="+", type=parse_path, metavar="RUN", help="run folder, or folder with runs in it")
    group = parser.add_argument_group("destination")
    group.add_argument(
        "--mlflow", metavar="URI|env", help="tracker; needed where a folder names another than the usual database"
    )
    group.add_argument("--experiment", metavar="NAME", help="experiment in MLflow (default: that of the run)")
    group.add_argument(
        "--artifact_location", metavar="URI", help="place for files of a new experiment (default: the tracker's)"
    )
    return parser
