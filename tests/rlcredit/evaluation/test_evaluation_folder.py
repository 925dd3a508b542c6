"""The folder of an evaluation: one request, one writer, whole batches."""

import pytest

from rlcredit.evaluation.evaluation_folder import EvaluationFolder, PolicyTask
from tests.rlcredit.evaluation.answers import answer

SETTINGS = {"drawing": {"temperature": 0.7, "seed": 0}, "tasks": {"sums": {"questions": 8}}}


@pytest.fixture
def folder(tmp_path):
    folder = EvaluationFolder(tmp_path / "evaluation")
    folder.begin_or_resume(SETTINGS, {"torch": "2"})
    return folder


def test_the_same_request_goes_on(folder, capsys):
    folder.begin_or_resume(SETTINGS, {"torch": "2"})
    assert capsys.readouterr() == ("", "")


def test_another_request_is_refused_with_what_differs(folder):
    with pytest.raises(ValueError, match=r"begun with other settings: drawing.temperature: 0.7, not 1.0. Name another"):
        folder.begin_or_resume({**SETTINGS, "drawing": {"temperature": 1.0, "seed": 0}}, {"torch": "2"})


def test_other_versions_go_on_with_a_warning(folder, capsys):
    folder.begin_or_resume(SETTINGS, {"torch": "3"})
    assert 'other versions: torch: "2", not "3"' in capsys.readouterr().err


def test_two_processes_do_not_write_in_one_folder(folder):
    with (
        folder.hold_lock(),
        pytest.raises(ValueError, match="another process writes to"),
        EvaluationFolder(folder.path).hold_lock(),
    ):
        pass


def test_a_folder_of_something_else_stays_as_it_is(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with (
        pytest.raises(ValueError, match=r"holds other files, for instance thesis.tex"),
        EvaluationFolder(tmp_path).hold_lock(),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_half_a_batch_is_forgotten(folder):
    place = PolicyTask("base", "sums")
    journal = folder.open_journal()
    for question in range(3):
        journal.append({**place._asdict(), "answers": [answer(question=question)]})
    whole = folder.batches.read_bytes()
    folder.batches.write_bytes(whole[:-20])
    folder.open_journal().append({**place._asdict(), "answers": [answer(question=2)]})
    assert [each["question"] for each in folder.read_answers()[place]] == [0, 1, 2]
    assert folder.batches.read_bytes() == whole
