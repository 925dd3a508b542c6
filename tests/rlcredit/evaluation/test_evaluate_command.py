"""The command: its files, its comparisons, what it refuses, and how it goes on."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient

from rlcredit.base.exit_status import PolicyMismatch
from tests.forks import CommandFork
from tests.rlcredit.decoding.fake_vllm import FakeVLLM, served


def read(folder="out", name="results.json"):
    return json.loads((Path(folder) / name).read_text())


def lines(folder="out"):
    return [json.loads(line) for line in (Path(folder) / "answers.jsonl").read_text().splitlines()]


def test_base_and_adapter_on_two_tasks_with_paired_verdicts(evaluate, adapter):
    status, out, err = evaluate("--adapter", adapter, "--against", "base", out="out")
    assert status == 0, err
    results = read()
    assert list(results["results"]) == ["three", "four"]
    assert list(results["results"]["three"]) == ["base", "taught"]
    assert [(each["task"], each["policy"], each["baseline"]) for each in results["comparisons"]] == [
        ("three", "taught", "base"),
        ("four", "taught", "base"),
    ]
    answers = lines()
    assert len(answers) == 2 * 2 * 8 * 4
    mine = [each["verdict"] == "right" for each in answers if (each["policy"], each["task"]) == ("taught", "three")]
    measured = results["results"]["three"]["taught"]["pass_at_1"]
    assert measured["mean"] == pytest.approx(sum(mine) / 32)
    assert measured["low"] < measured["mean"] < measured["high"]
    first = answers[0]
    assert first["prompt"][0]["content"].startswith("State the final answer")
    assert {"reference", "completion", "answer", "verdict", "tokens", "logprob", "entropy"} <= first.keys()
    for text in (out, (Path("out") / "results.md").read_text()):
        assert "taught" in text
        assert "paired by question" in text.lower()
        assert results["comparisons"][0]["verdict"] in text
    assert results["versions"]["version.torch"]
    assert results["settings"]["tasks"]["three"]["file_sha256"]
    assert results["drawing"]["temperature"] == 0.7


def test_the_first_of_several_policies_is_the_baseline(evaluate, adapter):
    status, _, err = evaluate(
        "--adapter", f"first={adapter}", f"second={adapter}", adapter, files=["three.yaml"], out="out"
    )
    assert status == 0, err
    found = [(each["policy"], each["baseline"], each["verdict"]) for each in read()["comparisons"]]
    alike = "undecided: about 368 questions would decide"  # eight questions without a difference
    assert found == [("second", "first", alike), ("taught", "first", alike)]


def test_policies_of_one_name_are_numbered(evaluate, adapter):
    evaluate("--adapter", adapter, adapter, files=["three.yaml"], out="out")
    assert list(read()["results"]["three"]) == ["taught", "taught-2"]


def test_a_model_alone_is_evaluated_and_found_again(evaluate):
    status, out, err = evaluate(model="tiny", k=2, completions=None)
    assert status == 0, err
    (folder,) = Path("evaluations").iterdir()
    assert folder.name.startswith("tiny-")
    assert "paired" not in out
    before = (folder / "results.json").stat().st_mtime_ns, (folder / "batches.jsonl").read_bytes()
    assert evaluate(model="tiny", k=2, completions=None)[1] == out
    assert (folder / "batches.jsonl").read_bytes() == before[1]
    assert list(Path("evaluations").iterdir()) == [folder]


@pytest.mark.slow
def test_greedy_is_temperature_zero_and_one_completion(evaluate):
    assert evaluate("--greedy", model="tiny", completions=None, out="greedy")[0] == 0
    assert evaluate(model="tiny", completions=None, temperature=0, out="zero")[0] == 0
    assert lines("greedy") == lines("zero")
    assert len(lines("greedy")) == 16
    assert read("greedy")["drawing"] == read("zero")["drawing"]


@pytest.mark.slow
def test_filters_change_what_is_drawn(evaluate):
    for out, flags in (("plain", {}), ("one", {"top_k": 1}), ("all", {"top_p": 1.0}), ("half", {"top_p": 0.5})):
        assert evaluate(model="tiny", out=out, **flags)[0] == 0
    texts = {out: [each["completion"] for each in lines(out)] for out in ("plain", "one", "all", "half")}
    assert texts["all"] == texts["plain"] != texts["half"]
    assert all(len({texts["one"][4 * q + j] for j in range(4)}) == 1 for q in range(16))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no policy is named. Name one with --ckpt_path"),
        (["--model", "tiny", "--against", "base"], "there is no policy to compare with it"),
        (["--model", "tiny", "--k", "8"], "--k: pass@8 needs 8 completions per question, got 4"),
        (["--model", "tiny", "--greedy"], "--greedy: all 4 completions would be the same"),
        (["--model", "tiny", "--top_p", "1.5"], "top_p must be above 0 and at most 1, got 1.5"),
        (["--model", "tiny", "--top_k", "0"], "--top_k: expected a number from 1 on, got '0'"),
        (["--model", "tiny", "--temperature", "-1"], "--temperature: expected a number from 0, got '-1'"),
        (["--model", "tiny", "--temperature", "nan"], "--temperature: expected a number from 0, got 'nan'"),
        (["--model", "tiny", "--temperature", "0", "--top_k", "2"], "greedy keeps one token"),
        (["--model", "tiny", "--questions", "1"], "--questions: expected a number from 2 on"),
        (["--model", "tiny", "--margin", "0"], "--margin: expected a proportion"),
        (["--model", "tiny", "--device", "abacus"], "--device: expected cpu, cuda or cuda:1"),
        (["--model", "no/such/folder"], "--model: there is no folder 'no/such/folder' here"),
        (["--model", "tiny", "--model_args", "dtyp=float32"], "dtyp"),
        (["--model", "tiny", "--model_args", "float32"], "--model_args: 'float32' is not KEY=VALUE"),
        (["--model", "tiny", "--tasks", "none.yaml"], "none.yaml: there is no such file"),
        (["--model", "tiny", "--tasks", "three.yaml", "three.yaml"], "--tasks: three occurs twice"),
        (["--ckpt_path", "nowhere"], "nowhere is no run folder"),
        (["--model", "tiny", "--mlflow", "http://ann:secret@host"], "holds a password"),
        (["--model", "tiny", "--mlflow", "env"], "MLFLOW_TRACKING_URI"),
        (["--model", "tiny", "--out", "full"], "full holds other files, for instance thesis.tex"),
        (
            ["--model", "tiny", "--engine", "vLLM"],
            "--engine: 'vLLM' makes no engine (Expected a dot import path string: vLLM). Name",
        ),
        (["--model", "tiny", "--engine", "VLLMServer", "--top_p", "0.5"], "--top_p: VLLMServer draws from the whole"),
        (["--model", "tiny", "--questons", "3"], "--questons: no such option. Did you mean `--questions`?"),
        (["--model", "tiny", "--unknown", "3"], "--unknown: no such option. `rlcredit evaluate --help` lists"),
    ],
)
def test_a_mistake_gets_one_sentence_and_leaves_nothing(evaluate, here, monkeypatch, arguments, message):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (here / "full").mkdir()
    (here / "full" / "thesis.tex").write_text("")
    before = sorted(here.rglob("*"))
    status, out, err = evaluate(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert sorted(here.rglob("*")) == before


def test_an_adapter_of_another_model_is_refused(evaluate, here, adapter):
    file = here / adapter / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "r": 4}))
    status, _, err = evaluate("--adapter", adapter, out="out")
    assert status == 2
    assert "tiny: the adapter is not of this model: lm.base_model.model.model.layers.0." in err
    assert not (here / "out").exists()


@pytest.mark.slow
def test_a_folder_of_other_settings_is_refused(evaluate):
    assert evaluate(model="tiny", out="out")[0] == 0
    before = (Path("out") / "batches.jsonl").read_bytes()
    status, _, err = evaluate(model="tiny", out="out", temperature=1.0)
    assert status == 2
    assert "drawing.temperature: 0.7, not 1.0" in err
    assert (Path("out") / "batches.jsonl").read_bytes() == before
    assert evaluate(model="tiny", out="out", k=2, margin=0.05, batch_size=8)[0] == 0  # what answers do not depend on


@pytest.mark.slow
def test_it_is_recorded_in_mlflow_once(evaluate, mlflow_database, adapter):
    for _ in range(2):
        place = {"out": "out", "mlflow": f"sqlite:///{mlflow_database}"}
        assert evaluate("--adapter", adapter, "--against", "base", **place)[0] == 0
    client = MlflowClient(f"sqlite:///{mlflow_database}")
    (run,) = client.search_runs([each.experiment_id for each in client.search_experiments()])
    assert run.info.status == "FINISHED"
    results = read()
    assert run.data.metrics["three/taught/pass_at_1"] == results["results"]["three"]["taught"]["pass_at_1"]["mean"]
    assert run.data.metrics["three/taught - base/pass_at_1"] == pytest.approx(
        results["comparisons"][0]["differences"]["pass_at_1"]["mean"]
    )
    assert run.data.params["policy/base"] == "tiny, no adapter"
    files = {each.path for each in client.list_artifacts(run.info.run_id)}
    assert {"results.json", "results.md", "answers.jsonl", "answers.json"} <= files
    assert "answers.json" in run.data.tags["mlflow.loggedArtifacts"]


@pytest.mark.slow
def test_a_record_that_was_cut_off_is_replaced(evaluate, mlflow_database, here):
    address = f"sqlite:///{mlflow_database}"
    assert evaluate(model="tiny", out="out", mlflow=address)[0] == 0
    record = here / "out" / "record.jsonl"
    record.write_text(record.read_text().splitlines(keepends=True)[0])
    assert evaluate(model="tiny", out="out", mlflow=address)[0] == 0
    client = MlflowClient(address)
    (run,) = client.search_runs([each.experiment_id for each in client.search_experiments()])
    assert run.data.metrics["three/base/pass_at_1"] == read()["results"]["three"]["base"]["pass_at_1"]["mean"]


@pytest.mark.slow
def test_it_is_finished_where_mlflow_is_away(evaluate, monkeypatch):
    monkeypatch.setattr("rlcredit.record.logger.STATUS_PATIENCE", {"FINISHED": 0.5})
    status, out, err = evaluate(model="tiny", out="out", mlflow="http://127.0.0.1:9")
    assert status == 0
    assert "pass@1" in out
    assert "rlcredit deliver out" in err


COMMAND = [
    *("-m", "rlcredit", "evaluate", "--tasks", "three.yaml", "four.yaml", "--adapter", "taught/adapter"),
    *("--against", "base", "--completions", "4", "--max_tokens", "40", "--device", "cpu", "--mlflow", "none"),
    *("--batch_size", "8"),
]


def started(here, out):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    return CommandFork([*COMMAND, "--out", out], here, environment)


def interrupted(here, number, batches):
    """Let it be stopped after so many batches."""
    process, file = started(here, "stopped"), here / "stopped" / "batches.jsonl"
    while process.poll() is None and (not file.exists() or file.read_bytes().count(b"\n") < batches):
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    return process.returncode, err


@pytest.mark.slow
def test_stopped_and_killed_it_goes_on_to_the_same_bits(here, tasks, adapter):
    whole = started(here, "whole")
    assert interrupted(here, signal.SIGKILL, 3)[0] == -signal.SIGKILL
    status, err = interrupted(here, signal.SIGINT, 6)
    assert status == 130
    assert "interrupted by SIGINT; to go on: rlcredit evaluate --tasks three.yaml" in err
    with (here / "stopped" / "batches.jsonl").open("a") as file:
        file.write('{"policy": "base", "task": "thr')  # half a line
    process = started(here, "stopped")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "it goes on after them" in err
    assert whole.communicate(timeout=120)
    for name in ("batches.jsonl", "answers.jsonl", "results.json", "results.md"):
        assert (here / "stopped" / name).read_bytes() == (here / "whole" / name).read_bytes(), name


@pytest.mark.slow
def test_a_server_answers_for_every_policy_and_the_scores_are_the_policys(evaluate, adapter):
    asked = ("--adapter", adapter, "--against", "base")
    with served(FakeVLLM()) as url:
        status, out, err = evaluate(*asked, engine=f'VLLMServer(url="{url}")', files=["three.yaml"], out="served")
    assert status == 0, err
    assert "decoded by VLLMServer" in out
    assert read("served")["settings"]["engine"] == "VLLMServer"
    assert evaluate(*asked, files=["three.yaml"], out="here")[0] == 0
    assert "engine" not in read("here")["settings"]
    for name in ("base", "taught"):
        one, other = ([each for each in lines(out) if each["policy"] == name] for out in ("served", "here"))
        assert [each["question"] for each in one] == [each["question"] for each in other]
        assert [each["completion"] for each in one] != [each["completion"] for each in other]  # noise of its own
        means = [sum(each["entropy"] for each in some) / len(some) for some in (one, other)]
        assert means[0] == pytest.approx(means[1], abs=0.1)
    status, _, err = evaluate(*asked, files=["three.yaml"], out="served")
    assert status == 2
    assert "engine" in err


@pytest.mark.slow
def test_a_server_with_another_policy_ends_the_evaluation(evaluate, adapter):
    deaf = FakeVLLM()
    deaf.deaf = True
    with served(deaf) as url:
        status, _, err = evaluate("--adapter", adapter, engine=f'VLLMServer(url="{url}", patience=0.1)', out="deaf")
    assert status == PolicyMismatch.status
    assert "--engine: VLLMServer is" in err
