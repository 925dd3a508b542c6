import json
from types import SimpleNamespace

import pytest
from tiny_traces import CHAIN_SUM

from rlcredit.cli.explain import render_call
from rlcredit.tasks import GSM8K, JSONL, MATH, HubDataset, ReasoningGym, Records
from rlcredit.tasks.held_out_split import is_held_out
from rlcredit.verification.reasoning_gym_scorers import EVALUATING_DATASETS
from rlcredit.verification.verifiers import Verdict


def test_correct_threshold_is_a_parameter_of_the_task(task, monkeypatch):
    monkeypatch.setattr(task.worker_pool, "answer_requests", lambda requests: [0.7] * len(requests))
    examples = task.held_out_set[:1]
    assert task.judge(["the answer is 1."], examples) == [Verdict.WRONG]
    monkeypatch.setattr(task, "solved_at", 0.5)
    assert task.judge(["the answer is 1."], examples) == [Verdict.RIGHT]


def questions(examples):
    return {example.question for example in examples}


def write(path, *records):
    path.write_text("\n".join(record if isinstance(record, str) else json.dumps(record) for record in records))
    return path


def test_no_training_question_is_held_out_whatever_the_seed():
    sizes = {"train_size": 500, "validation_size": 100}
    tasks = [ReasoningGym("chain_sum", CHAIN_SUM, generator_seed=seed, **sizes) for seed in (0, 7)]
    for task in tasks:
        task.setup()
        assert len(questions(task.train_set)) == 500
        assert len(questions(task.held_out_set)) == 100
    for task in tasks:
        assert not questions(task.train_set) & (questions(tasks[0].held_out_set) | questions(tasks[1].held_out_set))


def test_about_a_tenth_is_held_out():
    assert 0.08 < sum(is_held_out(f"question {i}") for i in range(5000)) / 5000 < 0.12


@pytest.mark.parametrize(
    ("completion", "verdict"),
    [
        ("the answer is {answer}.", Verdict.RIGHT),
        (r"\boxed{{{answer}}}", Verdict.RIGHT),
        ("the answer is {answer}7.", Verdict.WRONG),
        ("{answer}", Verdict.NO_ANSWER),
        ("Answer: **{answer} apples**", Verdict.RIGHT),
        ("the answer is {answer} or 5.", Verdict.WRONG),
        ("the answer is - {answer}.", Verdict.WRONG),
    ],
)
def test_reasoning_gym_judges_with_its_own_scorer(task, completion, verdict):
    example = task.train_set[0]
    assert task.judge([completion.format(answer=example.answer)], [example]) == [verdict]


def test_partial_credit_is_no_verdict(task):
    example = task.train_set[0]._replace(answer="1")
    assert task.source.score_answer("12", example._asdict()) == 0.5
    assert task.judge(["the answer is 12."], [example]) == [Verdict.WRONG]


def test_a_scorer_that_raises_is_counted_not_zeroed(task):
    broken = task.train_set[0]._replace(answer=[])  # no text
    assert task.judge(["the answer is 1."], [broken]) == [Verdict.UNJUDGED]


def test_a_scorer_that_hangs_is_killed_and_its_answer_wrong(monkeypatch):
    monkeypatch.setattr("rlcredit.tasks.reasoning_gym.SCORE_TIMEOUT", 1.0)
    monkeypatch.setitem(EVALUATING_DATASETS, "countdown", lambda *_: True)
    task = ReasoningGym("countdown", train_size=4, validation_size=2, prompts_per_step=1)
    task.setup()
    verdicts = task.judge([r"\boxed{9**9**9**9}", rf"\boxed{{{task.train_set[1].answer}}}"], task.train_set[:2])
    assert verdicts == [Verdict.WRONG, Verdict.RIGHT]


def test_a_budget_must_be_positive():
    with pytest.raises(ValueError, match="verify_budget must be positive, got 0"):
        ReasoningGym("chain_sum", verify_budget=0)


@pytest.mark.parametrize("name", ["leg_counting", "gcd", "spell_backward"])
def test_any_data_set_of_reasoning_gym(name):
    task = ReasoningGym(name, train_size=20, validation_size=5)
    task.setup()
    answers = [f"the answer is {example.answer}" for example in task.train_set]
    assert task.judge(answers, task.train_set) == [Verdict.RIGHT] * 20


def test_too_few_questions_are_refused():
    task = ReasoningGym("chain_sum", {"min_terms": 2, "max_terms": 2, "max_digits": 1}, train_size=500)
    with pytest.raises(ValueError, match="too few distinct questions"):
        task.setup()


def test_an_instruction_needs_a_place_for_the_question():
    with pytest.raises(ValueError, match=r"must contain \{question\}"):
        ReasoningGym("chain_sum", instruction="think hard")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", r"train.jsonl, line 3: not JSON"),
        ("[1]", r"line 3: expected an object with a question and an answer, got list"),
        ({"prompt": "2+2"}, r"line 3: column `answer` is missing; found \['prompt'\]"),
        ({"prompt": "2+2", "answer": None}, r"line 3: column `answer` must be a non-empty text or a number, got None"),
        ({"prompt": " ", "answer": 4}, r"line 3: column `prompt` must be a non-empty text"),
        ({"prompt": "2+2", "answer": True}, r"line 3: column `answer`"),
    ],
)
def test_a_malformed_line_names_file_line_and_field(tmp_path, line, message):
    write(tmp_path / "train.jsonl", {"prompt": "1+1", "answer": "2"}, "", line)
    with pytest.raises(ValueError, match=message):
        Records(str(tmp_path / "train.jsonl")).setup()


def test_a_file_takes_held_out_questions_out_of_training(tmp_path):
    train = write(tmp_path / "a.jsonl", *({"prompt": f"{i}+1", "answer": i + 1, "level": 3} for i in range(20)))
    validation = write(tmp_path / "b.jsonl", {"prompt": "3+1", "answer": "4"}, {"prompt": "90+1", "answer": "91"})
    task = Records(str(train), str(validation))
    task.setup()
    assert questions(task.held_out_set) == {"3+1", "90+1"}
    assert len(task.train_set) == 19
    small = Records(str(train), str(validation), validation_size=1)
    small.setup()
    assert len(small.held_out_set) == 1
    assert questions(small.train_set) == questions(task.train_set)
    assert task.train_set[0].metadata == {"level": 3}
    many = write(tmp_path / "c.jsonl", *({"prompt": f"{i}+1", "answer": i + 1} for i in range(100)))
    alone = Records(str(many), validation_size=None)
    alone.setup()
    assert questions(alone.train_set) | questions(alone.held_out_set) == {f"{i}+1" for i in range(100)}
    assert questions(alone.train_set).isdisjoint(questions(alone.held_out_set))


def hub_folder(folder, column, answer, test_answer):
    for part, value in (("train", answer), ("test", test_answer)):
        write(folder / f"{part}.jsonl", *({column[0]: f"{part} {i}?", column[1]: value.format(i=i)} for i in range(12)))
    return str(folder)


def test_gsm8k_reads_the_number_after_the_mark(tmp_path):
    task = GSM8K(hub_folder(tmp_path, ("question", "answer"), "so <<1+1={i}>>\n#### 1,{i}00", "#### {i}"), name=None)
    task.setup()
    assert [task.train_set[3].answer, task.held_out_set[3].answer] == ["1,300", "3"]
    answers = [r"\boxed{1300}", "so it is\n#### 1300", "The final answer is 1,300.", "#### 1301"]
    assert task.judge(answers, task.train_set[3:4] * 4) == [Verdict.RIGHT] * 3 + [Verdict.WRONG]
    assert "####" in task.instruction, "the prompt says what the verifier wants"


def test_math_reads_the_last_box(tmp_path):
    solution = r"\boxed{{0}} no, \boxed{{\frac{{{i}}}{{2}}}}"
    task = MATH(hub_folder(tmp_path, ("problem", "solution"), solution, solution), name=None)
    task.setup()
    assert task.train_set[3].answer == r"\frac{3}{2}"
    assert task.judge([r"so \boxed{1.5}"], [task.train_set[3]]) == [Verdict.RIGHT]
    assert r"\boxed{}" in task.instruction


def test_which_formats_count_is_a_parameter_of_the_task():
    task = ReasoningGym("chain_sum", train_size=4, validation_size=4, prompts_per_step=4, answer_formats=("tag",))
    task.setup()
    example = task.train_set[0]
    answers = [f"<answer>{example.answer}</answer>", f"the answer is {example.answer}.", "no idea"]
    assert task.judge(answers, [example] * 3) == [Verdict.RIGHT, Verdict.UNJUDGED, Verdict.NO_ANSWER]


def test_a_hub_record_without_its_mark_names_split_row_and_column(tmp_path):
    task = GSM8K(hub_folder(tmp_path, ("question", "answer"), "twelve", "#### {i}"), name=None)
    with pytest.raises(ValueError, match=r"split train, row 0: column `answer` has no `####`"):
        task.setup()


def test_a_missing_column_is_named(tmp_path):
    task = Records(hub_folder(tmp_path, ("question", "answer"), "{i}", "{i}"), question="prompt")
    with pytest.raises(ValueError, match=r"question: .*has no column `prompt`. It has answer, question\."):
        task.setup()


def test_tasks_are_written_as_they_were_so_that_older_runs_go_on():
    written = render_call(ReasoningGym("chain_sum", {"min_terms": 3}, train_size=16, validation_size=8))
    assert written == "ReasoningGym(name='chain_sum', config={min_terms: 3}, train_size=16, solved_at=1.0)"
    expected = "HubDataset(path='a/b', name=None, revision=None, train_split='train', validation_split='test', "
    assert render_call(HubDataset("a/b")) == f"{expected}question='question', answer='answer')"
    assert render_call(GSM8K(instruction="{question}")) == (
        "GSM8K(path='openai/gsm8k', name='main', instruction='{question}')"
    )
    assert render_call(JSONL("a.jsonl")) == "JSONL(train=PosixPath('a.jsonl'), validation=None)"


REWARDS = """
def reward_len(completions, **kwargs):
    return [-abs(20 - len(completion)) for completion in completions]

def reads_columns(prompts, completions, prompt_column, solution, level, **kwargs):
    return [10.0 * level[0] + float(solution[0] in text) for text in completions]

def sees_answer(completions, answer, question, metadata, **kwargs):
    return [float(answer[0] == "4" and question[0] == "2+2?" and metadata[0] == {}) for _ in completions]

def reads_chat(prompts, completions, **kwargs):
    assert [turn["role"] for turn in prompts[0]] == ["system", "user"]
    return [float(len(completion[0]["content"])) for completion in completions]

def partly(completion, answer, metadata):
    return 0.3 if answer in completion else 0.0
"""


@pytest.fixture
def asking(tmp_path, monkeypatch):
    (tmp_path / "task_rewards.py").write_text(REWARDS)
    monkeypatch.chdir(tmp_path)

    def ask(records, completions, **arguments):
        write(tmp_path / "questions.jsonl", *records)
        task = Records("questions.jsonl", validation_size=1, prompts_per_step=1, **arguments)
        task.setup()
        example = next(each for each in [*task.train_set, *task.held_out_set] if each.text == "2+2?")
        return task.score(completions, [example] * len(completions))

    return ask


PLAIN = [{"question": f"{i}+{i}?", "answer": str(2 * i)} for i in range(2, 6)]


def test_a_length_reward_in_the_form_that_trl_documents_counts_as_it_is(asking):
    scores = asking(PLAIN, ["a" * 20, "a" * 5], rewards="task_rewards.reward_len")
    assert scores.rewards.tolist() == [0.0, -15.0]
    assert scores.verdicts == [Verdict.WRONG, Verdict.WRONG]
    scores = asking(PLAIN, ["a" * 20, "a" * 5], rewards="task_rewards.reward_len", solved_at=-1.0)
    assert scores.verdicts == [Verdict.RIGHT, Verdict.WRONG]


def test_reward_functions_read_the_columns_as_the_data_has_them(asking):
    records = [
        {"question": "2+2?", "solution": "2 + 2 = 4 #### 4", "level": 3, "prompt_column": None},
        *({"question": f"{i}+2?", "solution": f"#### {i + 2}", "level": 1, "prompt_column": None} for i in range(3, 6)),
    ]
    scores = asking(
        records,
        ["so 2 + 2 = 4 #### 4", "4"],
        rewards="task_rewards.reads_columns",
        answer="solution",
        reference="hashes",
    )
    assert scores.rewards.tolist() == [31.0, 30.0]


def test_question_answer_and_metadata_are_always_there(asking):
    assert asking(PLAIN, ["?"], rewards="task_rewards.sees_answer").rewards.tolist() == [1.0]


def test_a_chat_is_passed_as_messages(asking):
    assert asking(PLAIN, ["four"], rewards="task_rewards.reads_chat", system="Add.").rewards.tolist() == [4.0]


def test_partial_credit_counts_only_where_rewards_name_the_verifier(asking):
    plain = asking(PLAIN, ["4", "5"], verifier="task_rewards.partly")
    assert (plain.rewards, plain.verdicts) == (None, [Verdict.WRONG, Verdict.WRONG])
    scored = asking(PLAIN, ["4", "5"], verifier="task_rewards.partly", rewards="verifier")
    assert scored.rewards.tolist() == pytest.approx([0.3, 0.0])
    assert scored.verdicts == [Verdict.WRONG, Verdict.WRONG]
    lenient = asking(PLAIN, ["4", "5"], verifier="task_rewards.partly", rewards="verifier", solved_at=0.25)
    assert lenient.verdicts == [Verdict.RIGHT, Verdict.WRONG]


def test_the_verifier_of_a_task_is_added_to_a_reward_function(asking):
    functions = ["verifier", {"function": "task_rewards.reward_len", "weight": 0.1}]
    scores = asking(PLAIN, ["The answer is 4.", "The answer is 5.", "4"], rewards=functions)
    assert scores.rewards.tolist() == pytest.approx([0.6, -0.4, -1.9])
    assert scores.verdicts == [Verdict.RIGHT, Verdict.WRONG, Verdict.NO_ANSWER]
    assert {name: values.tolist() for name, values in scores.parts.items()} == {
        "verifier": [1.0, 0.0, 0.0],
        "reward_len": [-4.0, -4.0, -19.0],
    }


def test_scores_of_reasoning_gym_are_rewards_if_the_task_says_so(task, monkeypatch):
    given = {"train_size": 8, "validation_size": 8}
    scored = ReasoningGym("chain_sum", CHAIN_SUM, rewards="verifier", solved_at=0.5, **given)
    assert scored.rewards == "verifier; right is what the verifier scores 0.5 or more"
    for score, verdict in ((0.7, Verdict.RIGHT), (0.3, Verdict.WRONG)):
        monkeypatch.setattr(
            scored.worker_pool, "answer_requests", lambda requests, score=score: [score] * len(requests)
        )
        found = scored.score(["the answer is 1.", "who knows"], task.held_out_set[:1] * 2)
        assert found.rewards.tolist() == pytest.approx([score, 0.0])
        assert found.verdicts == [verdict, Verdict.NO_ANSWER]


@pytest.mark.parametrize("start", [0, 4, 7])
def test_prompts_of_a_step_are_known_before_the_loader_yields_them(start):
    task = ReasoningGym("chain_sum", CHAIN_SUM, train_size=11, validation_size=4, prompts_per_step=4)
    task.setup()
    module = SimpleNamespace(rounds=1, updates_per_rollout=2)
    task.trainer = SimpleNamespace(global_step=start, global_rank=1, world_size=2, lightning_module=module)
    batches = list(task.train_dataloader())
    assert len(batches) == 4 - start % 4
    for step, batch in enumerate(batches, start):
        assert task.draw_prompts(step) == batch
        assert len(batch.numbers) == 2
