from errno import EPERM

import pytest

from rlcredit.tasks import ReasoningGym, Records
from rlcredit.verification import sandbox
from rlcredit.verification.reasoning_gym_scorers import has_evaluating_scorer
from rlcredit.verification.sandbox import build_seccomp_filter
from rlcredit.verification.verifiers import MathVerifier, Verdict
from rlcredit.verification.worker_pool import WorkerPool
from tests.rlcredit.verification.suspects import FORBIDDEN, attempts

pytestmark = pytest.mark.skipif(not sandbox.can_lock_process(), reason="needs seccomp")


@pytest.fixture(scope="module")
def pool():
    return WorkerPool(attempts)


@pytest.mark.parametrize("attempt", FORBIDDEN)
def test_a_locked_process_may_not(pool, attempt):
    assert pool.answer_requests([(attempt,)]) == [EPERM]


def test_the_filter_fits_both_machines():
    # 4 instructions in front, then per group its calls, a jump, its test and two results, and a refusal at the end.
    assert (
        len(build_seccomp_filter(3, "x86_64"))
        == len(build_seccomp_filter(3, "aarch64"))
        == 8 * (4 + 18 + 3 + 2 + 5 + 2 + 5 + 1)
    )


def test_without_a_lock_answers_are_not_evaluated(monkeypatch):
    monkeypatch.setattr(sandbox, "can_lock_process", lambda: False)
    with pytest.raises(
        ValueError, match=r"scorer of countdown evaluates .* --unsafe_scorers \(in fit: --unsafe_scorers true\)"
    ):
        ReasoningGym("countdown", train_size=1, validation_size=1)
    with pytest.raises(
        ValueError, match=r"math-verify evaluates .* --unsafe_scorers \(in fit: --unsafe_scorers true\)"
    ):
        MathVerifier().judge_one(r"\boxed{x+1}", "1+x")
    assert MathVerifier().judge_one(r"\boxed{2}", "2") is Verdict.RIGHT
    ReasoningGym("countdown", train_size=1, validation_size=1, unsafe_scorers=True)
    ReasoningGym("chain_sum", train_size=1, validation_size=1, prompts_per_step=1).setup()


def test_a_task_that_needs_a_lock_is_refused_before_its_first_answer(monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox, "can_lock_process", lambda: False)
    table = tmp_path / "table.csv"
    table.write_text("question,answer\n1 + 1?,2\n1 + 2?,3\n1 + 3?,4\n1 + 4?,5\n")
    settings = {"path": str(table), "validation_size": 1, "prompts_per_step": 1}
    with pytest.raises(
        ValueError, match=r"math-verify.* evaluates .* --unsafe_scorers \(in fit: --unsafe_scorers true\)"
    ):
        Records(**settings).setup()
    Records(**settings, unsafe_scorers=True).setup()


def test_composed_data_sets_evaluate_if_a_part_does():
    assert has_evaluating_scorer("composite", {"datasets": [{"name": "chain_sum"}, {"name": "countdown"}]})
    assert not has_evaluating_scorer("composite", {"datasets": [{"name": "chain_sum"}]})
