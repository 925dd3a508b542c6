"""Every task file, on a few rows with the columns that its repository has."""

from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict

from rlcredit.tasks import GSM8K, Records
from rlcredit.tasks.task import Task
from rlcredit.verification.verifiers import Verdict
from tests.slow_cases import mark_others_slow

TASKS = Path(__file__).parents[3] / "configs" / "tasks"
SIZE = 40
DAPO = (
    "Solve the following math problem step by step. The last line of your response should be of the form Answer: "
    "$Answer (without quotes) where $Answer is the answer to the problem.\n\nWhat is {n} + 1?\n\nRemember to put your "
    'answer on its own line after "Answer:".'
)
SCHEMAS = {
    "gsm8k": lambda n: {"question": f"What is {n} + 1?", "answer": f"It is <<{n}+1={n + 1}>>{n + 1}.\n#### {n + 1}"},
    "math": lambda n: {
        "problem": f"What is {n} + 1?",
        "level": "Level 1",
        "type": "Algebra",
        "solution": rf"Not $\boxed{{0}}$ but $\boxed{{{n + 1}}}$.",
    },
    "math_500": lambda n: {
        "problem": f"What is {n} + 1?",
        "solution": rf"$\boxed{{{n + 1}}}$",
        "answer": str(n + 1),
        "subject": "Algebra",
        "level": 1,
        "unique_id": f"test/algebra/{n}.json",
    },
    "aime_2024": lambda n: {
        "id": n,
        "problem": f"What is {n} + 1?",
        "solution": "...",
        "answer": f"{n + 1:03d}",
        "url": "",
        "year": "2024",
    },
    "aime_2025": lambda n: {
        "id": str(n),
        "problem": f"What is {n} + 1?",
        "answer": str(n + 1),
        "solution": "...",
        "year": "2025",
    },
    "amc_2023": lambda n: {"id": n, "question": f"What is {n} + 1?", "answer": float(n + 1), "url": ""},
    "minerva": lambda n: {"question": f"What is {n} + 1?", "answer": str(n + 1)},
    "olympiadbench": lambda n: {
        "id": n,
        "question": f"What is {n} + 1?",
        "solution": ["..."],
        "final_answer": [f"${n + 1}$"],
        "context": None,
        "image_1": None,
        "is_multiple_answer": False,
        "unit": None,
        "answer_type": "Numerical",
        "subject": "Math",
        "language": "English",
    },
    "dapo_math_17k": lambda n: {
        "data_source": "math_dapo",
        "prompt": [{"content": DAPO.format(n=n), "role": "user"}],
        "ability": "MATH",
        "reward_model": {"ground_truth": str(n + 1), "style": "rule-lighteval/MATH_v2"},
        "extra_info": {"index": f"{n}"},
    },
    "deepscaler": lambda n: {"problem": f"What is {n} + 1?", "answer": str(n + 1), "solution": "..."},
}
SPLITS = {"gsm8k": ("train", "test"), "math": ("train", "test"), "math_500": ("test",), "amc_2023": ("test",)}
SPLITS["minerva"] = ("test",)
INSTRUCTED = {"gsm8k": "####", "dapo_math_17k": "Answer: $Answer"}
STATED = {"gsm8k": "so\n#### {}", "dapo_math_17k": "so\nAnswer: {}"}


ACTED = sorted(path.stem for path in TASKS.glob("*.yaml") if "environment:" in path.read_text())


def rows(name, part):
    first = 1000 * part
    return [SCHEMAS[name](n) for n in range(first, first + SIZE)]


@pytest.fixture
def folder(tmp_path):
    """Save rows of a repository as `save_to_disk` does."""

    def save(name):
        parts = {split: rows(name, part) for part, split in enumerate(SPLITS.get(name, ("train",)))}
        DatasetDict({split: Dataset.from_list(part) for split, part in parts.items()}).save_to_disk(tmp_path / name)
        return str(tmp_path / name)

    return save


def of(name, folder):
    """Return the task of a file, with a local copy in place of its repository."""
    task = Task.read(TASKS / f"{name}.yaml", path=folder(name), name=None, prompts_per_step=4)
    task.setup("fit" if task.train_split else "validate")
    return task


def test_every_task_file_has_its_schema_here():
    published = {path.stem for path in TASKS.glob("*.yaml") if "ReasoningGym" not in path.read_text()}
    assert published - set(ACTED) == SCHEMAS.keys()


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_task_file_reads_its_columns_and_judges_what_its_prompt_asks_for(name, folder):
    task = of(name, folder)
    examples = [*task.train_set, *task.held_out_set]
    assert len(examples) == SIZE * len(SPLITS.get(name, ("train",)))
    for example in examples:
        n = int(float(example.answer.strip("$"))) - 1
        assert f"What is {n} + 1?" in example.question
        assert "." not in example.answer
    stated, wrong = (STATED.get(name, r"so it is \boxed{{{}}}.").format(answer) for answer in (n + 1, n + 2))
    assert task.judge([stated, wrong], [example] * 2) == [Verdict.RIGHT, Verdict.WRONG]
    other = r"Not \boxed{7}" if name in STATED else "#### 7"
    assert task.judge([f"{stated}\n{other}"], [example]) == [Verdict.RIGHT], "what the prompt asks for comes first"
    asked = task.instruction.replace("{question}", example.question)
    assert INSTRUCTED.get(name, r"\boxed{}") in asked


GENERATED = sorted(path.stem for path in TASKS.glob("*.yaml") if path.stem not in {*SCHEMAS, *ACTED})


@pytest.mark.parametrize("name", mark_others_slow(GENERATED, fast=2))
def test_a_task_file_of_reasoning_gym_asks_and_judges(name):
    task = Task.read(TASKS / f"{name}.yaml", validation_size=8)
    task.setup("validate")
    assert len(task.held_out_set) == 8
    right = [f"The answer is {example.answer}." for example in task.held_out_set]
    wrong = [f"The answer is {example.answer}7." for example in task.held_out_set]
    assert task.judge(right, task.held_out_set) == [Verdict.RIGHT] * 8
    assert task.judge(wrong, task.held_out_set) == [Verdict.WRONG] * 8


@pytest.mark.parametrize("name", sorted({*ACTED} - {"gsm8k_calculator"}))
def test_a_task_file_of_an_environment_begins_its_episodes(name):
    if name == "guess_the_number":
        pytest.importorskip("textarena")
    task = Task.read(TASKS / f"{name}.yaml", validation_size=8)
    task.setup("validate")
    assert len(task.held_out_set) == 8
    assert all(example.question for example in task.held_out_set)


def test_the_calculator_is_a_tool_of_its_task_file(folder):
    task = Task.read(TASKS / "gsm8k_calculator.yaml", path=folder("gsm8k"), name=None, prompts_per_step=4)
    task.setup()
    (tool,) = task.tools
    assert tool["function"]["name"] == "calculate"


def test_physical_answers_may_be_rounded(folder):
    task = of("minerva", folder)
    example = task.held_out_set[0]._replace(answer="0.33333")
    said = [rf"\boxed{{{number}}}" for number in ("0.33335", "0.3340")]
    assert task.judge(said, [example] * 2) == [Verdict.RIGHT, Verdict.WRONG]


@pytest.mark.parametrize(
    "name", [name for name in SCHEMAS if name not in ("gsm8k", "math", "dapo_math_17k", "deepscaler")]
)
def test_what_is_only_held_out_cannot_be_trained_on(name, folder):
    task = Task.read(TASKS / f"{name}.yaml", path=folder(name), name=None)
    with pytest.raises(ValueError, match=r"nothing can be trained on them. Name it in data.init_args.held_out"):
        task.setup("fit")


def test_math_takes_its_subjects_in_turn(tmp_path):
    for subject in ("algebra", "geometry"):
        (tmp_path / subject).mkdir()
        for split in ("train", "test"):
            made = Dataset.from_list(
                [{"problem": f"{subject} {split} {n}", "solution": r"\boxed{1}"} for n in range(3)]
            )
            made.to_parquet(tmp_path / subject / f"{split}.parquet")
    configs = "".join(
        f"- config_name: {subject}\n  data_files:\n  - {{split: train, path: {subject}/train.parquet}}\n"
        f"  - {{split: test, path: {subject}/test.parquet}}\n"
        for subject in ("algebra", "geometry")
    )
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    task = Task.read(TASKS / "math.yaml", path=str(tmp_path), name=["algebra", "geometry"], validation_size=2)
    assert [example.question for example in task.held_out_examples()] == ["algebra test 0", "geometry test 0"]


def test_several_answers_are_one(tmp_path):
    Dataset.from_list([{"question": "roots?", "final_answer": ["$4$", "$6$"]}]).save_to_disk(tmp_path / "x")
    task = Task.read(TASKS / "olympiadbench.yaml", path=str(tmp_path / "x"), name=None)
    (example,) = task.held_out_examples()
    assert example.answer == "$4$, $6$"
    assert task.judge([r"\boxed{6, 4}", r"\boxed{4}"], [example] * 2) == [Verdict.RIGHT, Verdict.WRONG]


def test_arguments_replace_those_of_the_file():
    task = Task.read(str(TASKS / "aime_2024.yaml"), held_out_completions=8, unsafe_scorers=True)
    assert isinstance(task, Records)
    assert (task.held_out_completions, task.unsafe_scorers, task.train_split) == (8, True, None)
    assert isinstance(Task.read(TASKS / "gsm8k.yaml"), GSM8K)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: {}", "x.yaml: a task file holds `data: {class_path: ..., init_args: ...}` and nothing else."),
        ("data: {init_args: {}}", "x.yaml: data: expected class_path and init_args, got init_args."),
        (
            "data: {class_path: Records, init_args: {path: x.csv, anser: b}}",
            "x.yaml: data.init_args.anser: Records has no such parameter. Did you mean `answer`? It accepts answer, ",
        ),
        (
            "data: {class_path: Recods, init_args: {path: x.csv}}",
            "x.yaml: data.class_path: there is no task `Recods`. There are ",
        ),
        ("data: {class_path: os.path.join}", "x.yaml: data.class_path: `os.path.join` is Python's own"),
        ("data: {class_path: Records}", "x.yaml: data.init_args.path is missing; Records needs it."),
        (
            "data: {class_path: Records, init_args: {path: x.csv, validation_size: many}}",
            "x.yaml: data.init_args.validation_size: cannot be 'many'.",
        ),
        (
            "data: {class_path: Records, init_args: {path: x.csv, validation_size: -1}}",
            "x.yaml: data.init_args.validation_size: expected a number from 1 on, got -1.",
        ),
        ("data: [", "not YAML: "),
    ],
)
def test_a_task_file_that_is_none_is_refused_in_one_sentence(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text(text)
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (the message is compared below)
        Task.read("x.yaml")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_task_file_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"nowhere.yaml: there is no such file"):
        Task.read("nowhere.yaml")
