"""How the turns of an episode are written for a policy."""

from collections.abc import Sequence

from rlcredit.policy.policy import Policy


class TurnFormat:
    """How turns are written (raw text)."""

    def __init__(self, policy: Policy) -> None:
        self.tokenizer, self.turn_end = policy.tokenizer, "\n"
        self.stops = set(policy.stop_ids.tolist())

    @property
    def turn_ends(self) -> tuple[str, ...]:
        """Texts that end a turn, beside the policy's stop tokens."""
        return (self.turn_end,)

    def has_ended(self, tokens: Sequence[int]) -> bool:
        """Whether a turn has ended with its last token."""
        return tokens[-1] in self.stops or self.turn_end in self.tokenizer.decode(tokens[-4:])

    def find_action(self, tokens: Sequence[int]) -> str:
        """Return the text of a turn without its end."""
        return self.tokenizer.decode(tokens, skip_special_tokens=True).partition(self.turn_end)[0]

    def encode_observation(self, text: str, is_cut: bool = False) -> list[int]:
        """Return the tokens between two turns."""
        return self.tokenizer.encode(("\n" if is_cut else "") + text + self.turn_end, add_special_tokens=False)
