"""References that no completion can be expected to state are counted and shown before a run."""

import json

import pytest

from rlcredit.tasks import Example, ReasoningGym, Records
from rlcredit.tasks.reference_checks import find_reference_faults, find_unreadable_references
from rlcredit.verification.verifiers import MathVerifier, Verdict


def faults(answer, answer_format="boxed", alternatives=()):
    verifier = MathVerifier(formats=(answer_format,))

    def judge(completions, examples):
        return verifier.judge(completions, [example.answer for example in examples])

    found = find_reference_faults([Example("?", answer, {}, alternatives)], answer_format, judge)
    return [fault for _, fault in found]


@pytest.mark.parametrize(
    ("answer", "answer_format", "fault"),
    [
        (r"\frac{1}{2", "boxed", "no answer"),
        ("2 + 2 = 4\n#### 4", "boxed", "a solution with its answer in the format hashes"),
        (r"so it is $\boxed{4}$", "whole", "a solution with its answer in the format boxed"),
        ("First count.\n" * 50, "boxed", "a text of several lines"),
    ],
)
def test_a_reference_that_cannot_be_stated_is_a_fault(answer, answer_format, fault):
    (found,) = faults(answer, answer_format)
    assert fault in found


@pytest.mark.parametrize(
    "answer", ["42", r"\frac{1}{2}", "Paris", "$4$, $6$", "\\begin{pmatrix} 1 \\\\\n 2 \\end{pmatrix}"]
)
def test_references_of_every_kind_are_right_against_themselves(answer):
    assert faults(answer) == []


def test_every_alternative_is_tried():
    assert len(faults("42", alternatives=("43", "{"))) == 1


def test_a_run_tells_once_how_many_references_are_at_fault_and_where(tmp_path, capsys):
    answers = [str(n) if n % 10 else "{" for n in range(40)]
    (tmp_path / "q.csv").write_text(
        "question,answer\n" + "".join(f"{n} + 0?,{each}\n" for n, each in enumerate(answers))
    )
    task = Records(str(tmp_path / "q.csv"), prompts_per_step=2)
    task.setup()
    task.setup()
    told = capsys.readouterr().err
    assert told.count("warning: ") == 1
    assert "4 of 40 references are not judged right even when a completion states them as `\\boxed{...}`" in told
    assert f"{tmp_path / 'q.csv'}, line " in told
    (tmp_path / "q.jsonl").write_text("".join(f'{{"prompt": "{n}?", "answer": "so\\n#### {n}"}}\n' for n in range(40)))
    Records(str(tmp_path / "q.jsonl"), prompts_per_step=2).setup()
    assert "If solutions mark their answers like this, set data.init_args.reference: hashes." in capsys.readouterr().err
    Records(str(tmp_path / "q.jsonl"), prompts_per_step=2, reference="hashes").setup()
    assert "references" not in capsys.readouterr().err


def test_a_task_that_judges_in_its_own_way_is_not_asked(tmp_path, capsys):
    class Anything(Records):
        def judge(self, completions, examples):
            raise AssertionError("this may cost something")

    (tmp_path / "q.jsonl").write_text("".join(f'{{"prompt": "{n}?", "answer": "{{"}}\n' for n in range(40)))
    Anything(str(tmp_path / "q.jsonl"), prompts_per_step=2).setup()
    assert "references" not in capsys.readouterr().err


def test_a_data_set_without_references_says_so_before_the_run(capsys):
    sizes = {"train_size": 10, "validation_size": 2, "prompts_per_step": 2}
    ReasoningGym("propositional_logic", **sizes).setup()
    told = capsys.readouterr().err
    assert "8 of 8 references are not judged right even" in told
    assert "The scorer of propositional_logic decides" in told
    ReasoningGym("leg_counting", **sizes).setup()
    assert "references" not in capsys.readouterr().err


def test_time_for_references_is_bounded(monkeypatch):
    monkeypatch.setattr("rlcredit.tasks.reference_checks.CHECK_SECONDS", -1)
    examples = [Example(f"{n}?", "{", {}) for n in range(3)]
    assert (
        list(find_reference_faults(examples, "boxed", lambda completions, _: [Verdict.WRONG] * len(completions))) == []
    )


@pytest.mark.parametrize(
    ("answer", "is_readable"),
    [
        ("7", True),
        ("Paris", True),
        (r"\sqrt{2}", True),
        ("(1, 2)", True),
        (r"f(x) \equiv 0", True),
        ("p \\to q", False),
    ],
)
def test_a_reference_against_which_nothing_is_judged_cannot_be_read(answer, is_readable):
    example = Example("?", answer, {})
    found = find_unreadable_references(
        [example],
        "boxed",
        lambda completions, asked: MathVerifier().judge(completions, [each.answer for each in asked]),
    )
    assert found == ([] if is_readable else [example], 1)


def test_a_run_tells_how_many_references_cannot_be_read(tmp_path, capsys):
    answers = [f"f_{n}(x) \\equiv {n}" if n % 4 == 0 else str(n) for n in range(40)]
    rows = [json.dumps({"question": f"{n}?", "answer": answer}) for n, answer in enumerate(answers)]
    (tmp_path / "q.jsonl").write_text("\n".join(rows))
    Records(str(tmp_path / "q.jsonl"), prompts_per_step=2).setup()
    told = capsys.readouterr().err
    assert "10 of 40 references that were tried cannot be read by the verifier, first: " in told
    assert "not judged right" not in told


def test_time_for_reading_references_is_bounded(monkeypatch):
    monkeypatch.setattr("rlcredit.tasks.reference_checks.OTHER_ANSWER_SECONDS", -1)
    examples = [Example("7?", "7", {}), *(Example(f"{n}?", f"x_{n}", {}) for n in range(3))]
    assert find_unreadable_references(examples, "boxed", lambda completions, _: []) == ([], 1)
