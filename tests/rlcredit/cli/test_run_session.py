from rlcredit.cli.run_session import describe_run_results
from rlcredit.record import MLflowDestination
from rlcredit.run_folder.layout import RunFolder

FOLDER = RunFolder("elsewhere/grpo-seed0")


def to(address):
    return MLflowDestination(address, "tiny", "grpo-seed0", {})


def test_a_database_is_opened_by_the_command_that_is_named():
    assert describe_run_results(FOLDER, to("sqlite:////home/me/mlflow.db")).splitlines() == [
        "results are in elsewhere/grpo-seed0, the adapter in elsewhere/grpo-seed0/adapter",
        "in MLflow: run grpo-seed0 of experiment tiny, mlflow ui --backend-store-uri sqlite:////home/me/mlflow.db",
    ]


def test_the_page_of_the_runs_is_named_with_the_numbered_name():
    made = to("sqlite:////home/me/mlflow.db")
    made.experiment_id, made.shown_name = "3", "grpo-seed0 #2"
    *_, run, page = describe_run_results(FOLDER, made).splitlines()
    assert "run grpo-seed0 #2 of experiment tiny" in run
    begin = "its page: http://127.0.0.1:5000/#/experiments/3/runs?"
    assert page == f"{begin}workflowType=machine_learning&viewStateShareKey=rlcredit"
    made.tracking_uri = "https://example.org/"
    assert (
        describe_run_results(FOLDER, made).splitlines()[-1].startswith("its page: https://example.org/#/experiments/3/")
    )


def test_an_address_of_the_environment_is_not_shown(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://me:secret@example.org")
    assert describe_run_results(FOLDER, to(None)).endswith("experiment tiny, the address in MLFLOW_TRACKING_URI")
    assert describe_run_results(FOLDER, to("https://example.org")).endswith("experiment tiny, https://example.org")
