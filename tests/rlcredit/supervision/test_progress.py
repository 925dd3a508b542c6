"""What people see while a run goes on: the README's command in a real terminal, and in a file."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminal import draw_screen, run_on_terminal

ROOT = Path(__file__).parents[3]
MAIN_JOB = re.search(r"rlcredit (fit --config configs/tiny\.yaml)$", (ROOT / "README.md").read_text(), re.MULTILINE)
SMALL = [
    *("--model.sampling.completions=4", "--model.sampling.max_tokens=48", "--data.init_args.prompts_per_step=2"),
    *("--data.init_args.train_size=8", "--data.init_args.validation_size=8", "--trainer.val_check_interval=2"),
    *("--threads=1", "--mlflow=none"),
]
RATES = r"pass@1 (0|1)\.\d{3}"
GAIN = rf"held out: {RATES} -> (0|1)\.\d{{3}}, pass@4 (0|1)\.\d{{3}} -> (0|1)\.\d{{3}} \(8 questions, %s\)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("terminal")
    (place / "configs").symlink_to(ROOT / "configs")
    return place


@pytest.fixture(scope="module")
def screen(folder):
    """What a terminal shows of the README's command, when it has ended."""
    status, received = run_on_terminal([*MAIN_JOB[1].split(), *SMALL, "--trainer.max_steps=4"], folder)
    assert status == 0, received
    return draw_screen(received)


@pytest.mark.slow
def test_held_out_lines_stand_above_the_bar_from_the_start_to_the_end(screen):
    before = [line for line in screen if line.startswith("held out after")]
    assert [re.match(rf"held out after +(\d+) steps: {RATES}   pass@4", line)[1] for line in before] == ["0", "2", "4"]
    bar = next(number for number, line in enumerate(screen) if line.startswith("step "))
    assert all(screen.index(line) < bar for line in before)
    assert len([line for line in screen if line.startswith(("step ", "held out  "))]) == 1


@pytest.mark.slow
def test_the_bar_counts_steps_and_shows_the_numbers_of_the_last_one(screen):
    bar = next(line for line in screen if line.startswith("step "))
    assert re.search(r"4/4 .*solved \d\.\d\d  entropy \d\.\d{3}  length \d+  [\d,]+ tok/s", bar)
    assert len(bar) <= 140


@pytest.mark.slow
def test_the_end_says_what_has_been_learnt_and_where_it_is(screen):
    gain = next(line for line in screen if line.startswith("held out: "))
    assert re.fullmatch(GAIN % r"4 steps, [\d.]+ \w+", gain)
    assert screen[screen.index(gain) + 1].startswith("results are in runs/grpo-seed0")


def run_into_a_file(folder, *words):
    command = [sys.executable, "-m", "rlcredit", *MAIN_JOB[1].split(), *SMALL, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_a_finished_run_says_that_it_is_finished_and_one_that_goes_on_says_how_far(folder, screen):
    done = run_into_a_file(folder, "--trainer.max_steps=4", "--ckpt_path=last")
    said = "runs/grpo-seed0 is finished: all 4 steps are taken. To go on, ask for more: --trainer.max_steps 8"
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, said), done.stderr
    assert "held out" not in done.stdout
    done = run_into_a_file(folder, "--trainer.max_steps=6", "--ckpt_path=runs/grpo-seed0")
    gain = next(line for line in done.stdout.splitlines() if line.startswith("held out: "))
    assert re.fullmatch(GAIN % r"6 steps, [\d.]+ \w+ for the last 2", gain)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 100])
def test_no_line_of_the_bar_is_wider_than_its_terminal(columns, tmp_path):
    words = ["fit", f"--config={ROOT / 'configs' / 'tiny.yaml'}", *SMALL, "--trainer.max_steps=2"]
    status, received = run_on_terminal(words, tmp_path, columns)
    assert status == 0, received
    bar = next(line for line in draw_screen(received) if line.startswith("step "))
    assert len(bar) <= columns
    assert "tok/s" in bar
