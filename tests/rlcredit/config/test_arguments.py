"""What every command says of an option that it does not understand."""

import pytest

from rlcredit.cli.command_options import make_export_parser, make_sample_parser, make_try_parser
from rlcredit.cli.commands import load_parser
from rlcredit.config.arguments import CommandParser, make_count_parser


def make_small_parser():
    parser = CommandParser("rlcredit small", "FILE", "Do a small thing.")
    parser.add_argument("file", metavar="FILE", help="file")
    parser.add_argument("--count", type=make_count_parser(1, 9), metavar="N", help="count")
    parser.add_argument("--share", type=float, help="share")
    parser.add_argument("--kind", choices=("round", "square"), help="kind")
    parser.add_argument("--quick", action="store_true", help="quick")
    return parser


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "FILE: missing. Say it, as `rlcredit small FILE`."),
        (["f", "--count"], "--count: its value is missing. Say it, as `--count N`."),
        (["f", "--count=10"], "--count: expected a number from 1 to 9, got '10'."),
        (["f", "--share=x"], "--share: expected a number, got 'x'."),
        (["f", "--kind=flat"], "--kind: expected round or square, got 'flat'."),
        (["f", "--quick=1"], "--quick: takes no value. Say `--quick` alone."),
        (["f", "--cuont=1"], "--cuont: no such option. Did you mean `--count`?"),
        (["f", "--cou=1"], "--cou: no such option. Did you mean `--count`?"),
        (["f", "--zzz"], "--zzz: no such option. `rlcredit small --help` lists those that there are."),
        (["--config=f"], "--config: no such option. Name the file or folder alone, as `rlcredit small FILE`."),
        (["f", "g"], "g: no such argument. `rlcredit small --help` lists those that there are."),
    ],
)
def test_an_error_names_the_option_the_value_and_the_repair_in_one_line(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        make_small_parser().parse_args(words)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"error: {message}\n"


@pytest.mark.parametrize(
    ("parser", "words", "message"),
    [
        (make_sample_parser(), [], "--question: missing. Say it, as `rlcredit sample --question TEXT`."),
        (make_export_parser(), ["runs/a"], "runs/a: no such argument. Say `--ckpt_path runs/a`."),
        (make_try_parser(), ["a.yaml"], "a.yaml: no such argument. Say `--config a.yaml`."),
        (make_export_parser(), [], "--out: missing. Say it, as `rlcredit export --out FOLDER`."),
        (
            make_try_parser(),
            ["--temperature=0"],
            "--temperature: expected a number above 0, got '0'. For the likeliest token each time,",
        ),
        (make_try_parser(), ["--questions=0"], "--questions: expected a number from 1 on, got '0'."),
        (make_try_parser(), ["--completions=0"], "--completions: expected a number from 1 on, got '0'."),
    ],
)
def test_commands_refuse_what_they_cannot_use(parser, words, message, capsys):
    with pytest.raises(SystemExit):
        parser.parse_known_args(words)
    assert capsys.readouterr().err.startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["card", "GRPO", "--folder", "x"], "--out"),
        (["card", "GRPO", "--output_dir", "x"], "--out"),
        (["card", "GRPO", "--tracking_uri", "x"], "--mlflow"),
        (["card", "GRPO", "--tracker", "x"], "--mlflow"),
        (["evaluate", "--folder", "x"], "--out"),
        (["report", "--folder=x"], "--out"),
        (["sample", "--question", "1", "--ckpt", "x"], "--ckpt_path"),
    ],
)
def test_an_option_known_from_elsewhere_is_answered_by_what_takes_the_same_here(words, meant, capsys):
    with pytest.raises(SystemExit):
        load_parser(words[0]).parse_args(words[1:])
    flag = words[-1] if "=" in words[-1] else words[-2]
    assert capsys.readouterr().err == (f"error: {flag.partition('=')[0]}: no such option. Did you mean `{meant}`?\n")
