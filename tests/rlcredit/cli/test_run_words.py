import pytest

from rlcredit.cli.run_words import resolve_run_words


@pytest.mark.parametrize(
    ("words", "resolved"),
    [
        (["--out", "a b"], ["--trainer.default_root_dir=a b"]),
        (["--out=a"], ["--trainer.default_root_dir=a"]),
        (["--mlflow", "none"], ["--trainer.logger=false"]),
        (["--mlflow=env"], ["--trainer.logger.init_args.tracking_uri=null"]),
        (["--mlflow", "http://t:1"], ["--trainer.logger.init_args.tracking_uri=http://t:1"]),
        (["--threads", "1"], ["--threads", "1"]),
    ],
)
def test_flags_of_every_command_become_words_of_a_configuration(words, resolved):
    assert resolve_run_words(["fit", *words]) == ["fit", *resolved]


@pytest.mark.parametrize("words", [["--out"], ["--mlflow="]])
def test_a_flag_without_its_value_is_refused(words):
    with pytest.raises(ValueError, match=r"its value is missing\. Say it, as `--"):
        resolve_run_words(["fit", *words])
