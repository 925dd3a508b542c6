"""Games: what they say, when they are won, and that nothing but the seed and the actions decides."""

import random
import time

import pytest

from rlcredit.episodes.games import Bisection, Calculator, Corridor, FrozenLake, Mastermind, RunningSum
from rlcredit.tasks.example import Example

GAMES = {
    Corridor: ["red", "blue", "gold", "what"],
    Bisection: ["0", "31", "62", "63", "-1", "٣", "\x1c2"],
    RunningSum: ["3", " -12 ", "4 + 1", "9" * 5000, "\x1f7"],
    Mastermind: ["abc", "aab", "abcd", "x"],
    FrozenLake: [*"lrud", "left"],
}
"""Some actions of each."""


def begin(game, seed=0, **dials):
    environment = game(**dials)
    return environment, environment.reset(Example("", "", {"seed": seed}))


def play(environment, actions):
    """Return all turns up to the end of the episode."""
    turns = []
    for action in actions:
        turns.append(environment.step(action))
        if turns[-1].done:
            break
    return turns


@pytest.mark.parametrize(("game", "actions"), GAMES.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_an_episode_follows_from_the_seed_and_the_actions_and_ends(game, actions):
    for seed in (0, 1, 2**32):
        choices = random.Random(seed).choices(actions, k=50)
        (environment, opening), (second, second_opening) = begin(game, seed), begin(game, seed)
        turns = play(environment, choices)
        assert (opening, turns) == (second_opening, play(second, choices))
        assert turns[-1].done
        assert {turn.reward for turn in turns[:-1]} <= {0.0}
        assert turns[-1].reward in (0.0, 1.0)
    assert begin(game, 0)[1] == begin(game, 0)[1]


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.__name__)
def test_no_text_of_an_action_breaks_a_game(game):
    for code in [*range(256), 0x2003, 0x2028, 0x3000, 0x0663, 0xFF12, 0x1F600]:
        for action in (chr(code), f"{chr(code)}1", f"1{chr(code)}", f"-{chr(code)}1"):
            environment, _ = begin(game)
            assert isinstance(environment.step(action).text, str)


@pytest.mark.parametrize(("game", "actions"), GAMES.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_copy_goes_its_own_way(game, actions):
    environment, _ = begin(game)
    environment.step(actions[0])
    copy = environment.copy()
    assert play(copy, actions * 10) == play(environment, actions * 10)


@pytest.mark.parametrize(("game", "actions"), GAMES.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_turn_takes_less_than_a_tenth_of_a_millisecond(game, actions):
    def measure():
        start, count = time.perf_counter(), 0
        for seed in range(50):
            count += len(play(begin(game, seed)[0], actions * 10))
        return (time.perf_counter() - start) / count

    assert min(measure() for _ in range(5)) < 1e-4


@pytest.mark.parametrize(("rho", "doors"), [(1, 16), (0.25, 4), (1 / 16, 1), (0.001, 1)])
def test_rho_is_the_share_of_doors(rho, doors):
    environment, opening = begin(Corridor, rho=rho)
    places = [opening, *(turn.text for turn in play(environment, ["red"] * 16)[:-1])]
    assert sum(f"of {doors}" in place for place in places) == doors
    assert sum("hall" in place for place in places) == 16 - doors


def test_a_wrong_key_is_noticed_at_the_end_alone():
    openings, rewards = set(), []
    for wrong in (None, 0, 5, 15):
        environment, opening = begin(Corridor, rho=1)
        keys = list(environment.colors.values())
        if wrong is not None:
            keys[wrong] = "red" if keys[wrong] != "red" else "blue"
        turns = play(environment, keys)
        openings.add((opening, *(turn.text for turn in turns)))
        rewards.append(turns[-1].reward)
    assert len(openings) == 1
    assert rewards == [1.0, 0.0, 0.0, 0.0]


def test_a_corridor_that_marks_mistakes_says_so_from_the_wrong_key_on_and_is_won_as_often():
    environment, opening = begin(Corridor, rho=1, length=4, marks_mistakes=True)
    hidden, _ = begin(Corridor, rho=1, length=4)
    right = opening.split(", ")[1].split()[1]
    wrong = "red" if right != "red" else "blue"
    marked = play(environment, [wrong, "red", "red", "red"])
    assert [turn.text.endswith(" lost") for turn in marked] == [True, True, True, False]
    assert [turn.text.removesuffix(" lost") for turn in marked] == [
        turn.text for turn in play(hidden, [wrong, "red", "red", "red"])
    ]
    environment, _ = begin(Corridor, rho=1, length=4, marks_mistakes=True)
    actions = list(environment.colors.values())
    assert [(turn.text.endswith("lost"), turn.reward) for turn in play(environment, actions)][-1] == (False, 1.0)


def test_an_action_that_is_no_key_costs_a_turn_at_a_door_and_nothing_in_a_hall():
    environment, _ = begin(Corridor, length=3)
    environment.colors = {1: "red"}
    assert environment.step("sing").text == "2 red 1 of 1"
    locked = environment.copy()
    assert environment.step("red").text == "3 hall"
    assert environment.step("").reward == 1.0
    assert locked.step("sing").text == "no key, 2 red 1 of 1"
    assert locked.step("red").reward == 0.0  # one place is left


def test_halves_always_find_the_number_in_time():
    for seed in range(100):
        environment, _ = begin(Bisection, seed)
        turns, done = [], False
        while not done:
            turns.append(environment.step(str((environment.low + environment.high) // 2)))
            done = turns[-1].done
        assert turns[-1].reward == 1.0
        assert len(turns) <= 6


def test_bisection_says_higher_and_lower_and_what_is_possible():
    environment, opening = begin(Bisection)
    environment.number = 40
    assert opening == "guess, 0 to 62, 6 left"
    answers = [environment.step(action).text for action in ("31", "50", "5", "x")]
    assert answers == [
        "higher, 32 to 62, 5 left",
        "lower, 32 to 49, 4 left",
        "higher, 32 to 49, 3 left",
        "no number, 32 to 49, 2 left",
    ]
    assert environment.step("41").reward == 0.0
    assert environment.step("40") == ("", 1.0, True)


def test_a_slip_stays_and_can_be_made_good():
    environment, opening = begin(RunningSum, terms=3)
    environment.changes = ["+ 5", "- 2"]
    environment.sum, environment.sums = 3, [3, 8, 6]
    assert opening.count(",") == 1
    assert environment.step("9").text == "9 - 2"
    assert environment.copy().step("7").reward == 0.0
    assert environment.copy().step("six").reward == 0.0
    assert environment.step(" 6 ").reward == 1.0


def test_the_sum_is_the_one_of_the_first_observation():
    for seed in range(20):
        environment, opening = begin(RunningSum, seed)
        assert environment.sums[-1] == eval(opening.partition(",")[0])  # its own text
        assert opening.endswith(f", {environment.sum} {environment.changes[0]}")


def test_mastermind_counts_letters_once():
    environment, opening = begin(Mastermind)
    environment.code = "aab"
    assert opening == "abc 3 places, 4 left"
    answers = [environment.step(action).text for action in ("aba", "bbb", "a")]
    assert answers == ["1 right 2 near, 3 left", "1 right 0 near, 2 left", "no code, 1 left"]
    assert environment.step("aab").reward == 1.0


def test_every_lake_can_be_crossed_in_six_moves():
    for seed in range(200):
        environment, _ = begin(FrozenLake, seed, holes=0.9)
        fields = {(0, 0)}
        for _ in range(6):
            fields |= {
                near
                for row, column in fields
                for near in ((row + 1, column), (row, column + 1))
                if environment.map.get(near, "h") != "h"
            }
        assert (3, 3) in fields


def test_walking_on_the_lake():
    environment, opening = begin(FrozenLake)
    environment.map = dict(zip(environment.map, "sffffhfhfffhhffg", strict=True))
    assert len(opening) == len("sfff fhfh fffh hffg, 1 1")
    answers = [environment.step(action).text for action in ("u", "d", "jump", "d", "r", "d")]
    assert answers == ["1 1", "2 1", "no move, 2 1", "3 1", "3 2", "4 2"]
    assert environment.copy().step("l") == ("", 0.0, True)
    assert environment.step("r").text == "4 3"
    assert environment.step("r") == ("", 1.0, True)


@pytest.mark.parametrize(("game", "dials"), [(Corridor, {"rho": 0}), (RunningSum, {"terms": 1})])
def test_a_dial_out_of_range_is_refused(game, dials):
    with pytest.raises(ValueError, match=f"{game.__name__} expects"):
        game(**dials)


@pytest.mark.parametrize(
    ("expression", "value"),
    [("(3 + 4) * 2.5", "17.5"), ("1,200 / 4", "300"), ("-7 - 2", "-9"), ("2 / 3", "0.6666666667")],
)
def test_the_calculator_calculates(expression, value):
    assert Calculator().calculate(expression) == value


@pytest.mark.parametrize(
    "expression", ["2 ** 9", "__import__('os')", "1 / 0", "3 +", "", "(" * 999, "9" * 400, "-" * 5000 + "1"]
)
def test_the_calculator_says_what_it_cannot_calculate(expression):
    assert Calculator().calculate(expression).startswith("error: ")
