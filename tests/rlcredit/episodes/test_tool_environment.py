import asyncio
import sys
import textwrap

import pytest

from rlcredit.config.class_paths import ClassPathError
from rlcredit.episodes.environment import Turn
from rlcredit.episodes.episode_table import EpisodeTable, TurnLimits, open_episode, step_environments
from rlcredit.episodes.observation_format import choose_turn_format
from rlcredit.episodes.tool_environment import ToolEnvironment
from rlcredit.tasks.example import Example
from tests.rlcredit.episodes.test_observation_format import make_policy

EXAMPLE = Example("Guess my number. ", "7", {"seed": 7})


class Guessing:
    """As TRL's users write them."""

    def reset(self, seed, **row):
        self.number, self.guesses, self.is_solved = seed, 0, False
        return "It is below 10."

    def guess(self, number: int) -> str:
        """Guess the number.

        Args:
            number: A guess.

        """
        self.guesses += 1
        self.is_solved = number == self.number
        return "right" if self.is_solved else "higher" if number < self.number else "lower"

    def count_guesses(self) -> int:
        """Return how many guesses were made."""
        return self.guesses

    def get_reward(self) -> float:
        return float(self.is_solved)

    def _hidden(self) -> int:
        return self.number


class Echo:
    """One tool, asynchronous, and no reward."""

    def reset(self):
        self.done = False

    async def repeat(self, text: str) -> str:
        """Say a text again.

        Args:
            text: Text.

        """
        await asyncio.sleep(0)
        self.done = text == "bye"
        return text


def begin(environment, example=EXAMPLE):
    own = environment.copy()
    return own, own.reset(example)


def test_tools_are_the_public_methods_and_the_opening_follows_the_question():
    environment = ToolEnvironment(Guessing)
    assert [tool["function"]["name"] for tool in environment.tools] == ["count_guesses", "guess"]
    assert environment.tools[1]["function"]["parameters"] == {
        "type": "object",
        "properties": {"number": {"type": "integer", "description": "A guess."}},
        "required": ["number"],
    }
    assert begin(environment)[1] == "Guess my number. It is below 10."


def test_calls_are_answered_and_an_action_without_one_ends_the_episode():
    episode, _ = begin(ToolEnvironment(Guessing))
    call = '<tool_call>\n{"name": "guess", "arguments": {"number": %d}}\n</tool_call>'
    assert episode.step(f"Low first. {call % 3}") == Turn("higher", 0.0, False)
    count = '<tool_call>{"name": "count_guesses"}</tool_call>'
    assert episode.step(f"{call % 7}\n{count}") == Turn("right\n2", 1.0, False)
    assert episode.step("It is 7.") == Turn("", 0.0, True)


def test_a_reward_that_falls_again_is_taken_back():
    episode, _ = begin(ToolEnvironment(Guessing))
    rewards = [episode.step(f'{{"name": "guess", "parameters": {{"number": {n}}}}}').reward for n in (7, 3, 7)]
    assert rewards == [1.0, -1.0, 1.0]


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ("<tool_call>guess 7</tool_call>", "{'error': 'The call is not valid JSON: Expecting value: line 1 column 1"),
        ('<tool_call>{"name": "guess"', "{'error': 'The call is not valid JSON: Expecting"),
        ("<tool_call>[7]</tool_call>", "{'error': 'The call is \\'[7]\\'. Expected {\"name\": ..., \"arguments\""),
        ('<tool_call>{"name": "ask"}</tool_call>', "{'error': 'Tool ask not found. There are: count_guesses, guess.'}"),
        ('<tool_call>{"name": "_hidden"}</tool_call>', "{'error': 'Tool _hidden not found."),
        ('<tool_call>{"name": "get_reward"}</tool_call>', "{'error': 'Tool get_reward not found."),
        (
            '<tool_call>{"name": "guess", "arguments": {"value": 7}}</tool_call>',
            "{'error': \"Guessing.guess() got an unexpected keyword argument 'value'\"}",
        ),
        (
            '<tool_call>{"name": "guess", "arguments": {"number": "7"}}</tool_call>',
            "{'error': \"'<' not supported between instances of 'str' and 'int'\"}",
        ),
        ('<tool_call>{"name": "guess", "arguments": "7"}</tool_call>', "{'error': 'The call is \\'{"),
    ],
)
def test_calls_that_fail_are_told(action, told):
    episode, _ = begin(ToolEnvironment(Guessing))
    turn = episode.step(action)
    assert turn.text.startswith(told)
    assert not turn.done


def test_asynchronous_tools_are_awaited_and_done_ends_the_episode():
    environment = ToolEnvironment(Echo)
    assert environment.slow
    assert not ToolEnvironment(Guessing).slow
    episodes = [open_episode(environment, EXAMPLE) for _ in range(2)]
    assert [episode.opening for episode in episodes] == [None, None]
    for episode, text in zip(episodes, ("hello", "bye"), strict=True):
        episode.actions.append(f'<tool_call>{{"name": "repeat", "arguments": {{"text": "{text}"}}}}</tool_call>')
    assert step_environments(episodes, "Echo") == [Turn("hello", None, False), Turn("bye", None, True)]


def test_a_plain_action_is_the_argument_of_the_only_tool():
    environment = ToolEnvironment(Echo, plain=True)
    assert environment.tools == ()
    episode, _ = begin(environment)
    assert asyncio.run(episode.step("<tool_call>")) == Turn("<tool_call>", None, False)


def test_a_chat_with_tools_is_one_row():
    policy = make_policy("qwen2_5")
    environment = ToolEnvironment(Guessing)
    turn_format = choose_turn_format(policy, environment.tools)
    table = EpisodeTable(environment, [EXAMPLE] * 2, turn_format, TurnLimits(turns=3))
    encode, (stop,) = policy.tokenizer.encode, policy.stop_ids.tolist()
    call = encode('<tool_call>\n{"name": "guess", "arguments": {"number": 7}}\n</tool_call>')
    answers = table.answer_turns([0, 1], [[*call, stop], [*encode("7"), stop]])
    assert answers[1] is None
    assert policy.tokenizer.decode(answers[0]) == (
        "\n<|im_start|>user\n<tool_response>\nright\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )
    assert table.answer_turns([0], [[*encode("It is 7."), stop]]) == [None]
    assert table.list_rewards().tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_copies_go_their_own_ways():
    environment = ToolEnvironment(Guessing)
    episode, _ = begin(environment)
    call = '{"name": "guess", "parameters": {"number": 3}}'
    episode.step(call)
    branch = episode.copy()
    assert branch.step(call).text == "higher"
    assert (episode.item.guesses, branch.item.guesses) == (1, 2)


def test_what_is_no_class_of_tools_is_refused():
    class Typeless(Echo):
        def shout(self, text):
            """Shout."""

    class Bare:
        def guess(self, number: int) -> int:
            return number

    class Toolless:
        def reset(self, **row):
            return None

    for cls, message in (
        (Typeless, r"Typeless\.shout is no tool: .*Give its arguments types, and a docstring that describes it"),
        (Bare, r"Bare needs a method reset\(\*\*row\) and a tool, a public method\."),
        (Toolless, r"Toolless needs a method reset"),
    ):
        with pytest.raises(ValueError, match=message):
            ToolEnvironment(cls)
    with pytest.raises(ValueError, match=r"one tool of one argument, and Guessing has count_guesses, guess\. Leave"):
        ToolEnvironment(Guessing, plain=True)
    with pytest.raises(ClassPathError, match="there is no module `no_such_tools`"):
        ToolEnvironment("no_such_tools.Guessing")


def test_classes_are_named_by_their_path(tmp_path, monkeypatch):
    (tmp_path / "tools_of_mine.py").write_text(
        textwrap.dedent('''
            class Doubling:
                def reset(self, **row):
                    return 7 if row["question"] == "seven" else None

                def double(self, number: int) -> int:
                    """Double a number.

                    Args:
                        number: Number.
                    """
                    return 2 * number
        ''')
    )
    monkeypatch.syspath_prepend(tmp_path)
    environment = ToolEnvironment("tools_of_mine.Doubling")
    episode, opening = begin(environment)
    assert opening is None
    assert episode.step('{"name": "double", "parameters": {"number": 4}}') == Turn("8", None, False)
    fault = open_episode(environment, Example("seven", "", {})).fault
    assert "Doubling.reset returned 7 for a question. Return None" in fault
    monkeypatch.delitem(sys.modules, "tools_of_mine")


def test_a_tool_cannot_end_the_process():
    class Leaving(Echo):
        def leave(self, code: int) -> None:
            """Leave.

            Args:
                code: Status.

            """
            sys.exit(code)

    episode = open_episode(ToolEnvironment(Leaving), EXAMPLE)
    episode.actions.append('{"name": "leave", "parameters": {"code": 3}}')
    (answer,) = step_environments([episode], "ToolEnvironment")
    assert answer == Turn("{'error': '3'}", None, False)
