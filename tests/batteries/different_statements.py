"""Completions in which a gold occurs, and is denied, taken back, only thought, or one of two answers."""

import re

from gold_kinds import is_scalar, read_gold_number, read_option_letter, strip_dollars
from rewriting import Rewrite, choose_other_value, is_quotable_in_sentence, write_in_box

_JOINTS = {
    "or": r" \text{ or } ",
    "or in plain words": " or ",
    "and": r" \text{ and } ",
    "and also": r", \text{ and also } ",
    "comma": ", ",
    "semicolon": "; ",
    "colon": " : ",
    "slash": " / ",
    "spaced slash in text": r"\text{ / }",
    "bar": " | ",
    "wide space": r" \quad ",
    "line end": "\n",
    "row end": r" \\ ",
    "sign of or": r" \lor ",
    "sign of and": r" \land ",
    "sign of equality": " = ",
    "sign of inequality": r" \neq ",
    "sign of equivalence": r" \equiv ",
    "sign of approximation": r" \approx ",
    "arrow": r" \to ",
    "implication": r" \implies ",
    "union": r" \cup ",
    "plus or minus": r" \pm ",
    "not": r" \text{ not } ",
    "but maybe": r" \text{ but maybe } ",
    "rather": r", \text{ or rather } ",
    "alternatively": r"; \text{alternatively } ",
    "respectively": r" \text{ resp. } ",
    "if not": r" \text{ if not } ",
    "dollars": "$ or $",
    "dollars alone": "$ $",
    "ampersand": " & ",
    "dots": r" \ldots ",
    "full stop": ". ",
    "dash": " -- ",
    "brackets": r" \text{ (or) } ",
    "times": r" \times ",
    "binary or": " || ",
}
"""What may stand between two answers."""


_DENIALS = {
    "not in the box": r"\boxed{\text{not } VALUE}",
    "not behind, in the box": r"\boxed{VALUE \text{ is not right}}",
    "sign of inequality in the box": r"\boxed{\neq VALUE}",
    "anything but, in the box": r"\boxed{\text{anything but } VALUE}",
    "not before the dollars": "The answer is not $VALUE$.",
    "definitely not": "The answer is definitely not VALUE.",
    "anything but": "The answer is anything but $VALUE$.",
    "not, in a label": "Answer: not $VALUE$",
    "not, in a tag": "<answer>not VALUE</answer>",
    "not, behind hashes": "#### not VALUE",
    "neither": "The answer is neither $VALUE$ nor $OTHER$.",
    "either": "The answer is either $VALUE$ or $OTHER$.",
    "one phrase, two answers": "The answer is $VALUE$ or $OTHER$.",
    "one phrase, two answers, the wrong one first": "The answer is $OTHER$ or $VALUE$.",
    "one label, two answers": "Answer: $VALUE$ or $OTHER$",
    "one tag, two answers": "<answer>VALUE or OTHER</answer>",
    "hashes, two answers": "#### VALUE or OTHER",
    "one of them": r"\boxed{\text{one of } VALUE, OTHER}",
}
"""What denies an answer, or takes two."""


_STATED_ELSEWHERE = {
    "empty box": r"It is VALUE. \boxed{}",
    "wrong box after the right one": r"\boxed{VALUE} is what one thinks. In truth it is \boxed{OTHER}.",
    "wrong phrase after the right one": "The answer is VALUE. No, wait. The answer is OTHER.",
    "wrong label after the right one": "Answer: VALUE\nAnswer: OTHER",
    "wrong tag after the right one": "<answer>VALUE</answer><answer>OTHER</answer>",
    "wrong hashes after the right ones": "#### VALUE\n#### OTHER",
    "only thought": r"<think>So \boxed{VALUE}.</think>So \boxed{OTHER}.",
    "thought in a box, another said": r"<think>So \boxed{VALUE}.</think>The answer is OTHER.",
    "thought, and nothing said": r"<think>So \boxed{VALUE}.</think>That was difficult.",
    "cut in the thought": r"<think>So it must be \boxed{VALUE}. But let me check",
    "last box cut": r"First \boxed{VALUE}. Then, corrected, \boxed{OTHER",
    "mentioned, not stated": "I thought of VALUE, but I do not know.",
    "in a phantom": r"\boxed{\phantom{VALUE}}",
    "phantom beside another": r"\boxed{OTHER\phantom{VALUE}}",
    "in a comment": "\\boxed{OTHER % VALUE\n}",
}
"""Where the gold occurs, and is not what is answered."""


_SAID = {("not", True), ("rather", False)}
"""What says the gold alone, if one reads it well."""


_ARITHMETIC = (" / ", r" \times ", r" \pm ", " -- ")
"""Joints that may leave the value of a relation."""

_CLOSE = (" = ", r" \cup ")
"""Joints that may be part of a value where it is a relation, a set or a letter."""


def hedge_answer(joint: str, gold_first: bool) -> Rewrite:
    """Return the rewrite that answers gold and another in one box."""

    def rewrite(gold: str) -> str | None:
        value = strip_dollars(gold)
        sums = joint in _ARITHMETIC and not is_scalar(value)
        kept = joint in _CLOSE and (read_option_letter(value) or re.search(r"[<>,=]|\\[lg]eq?|\\[{lc]", value))
        if not is_quotable_in_sentence(value) or read_gold_number(value) == 0 or kept or sums:
            return None
        pair = (value, choose_other_value(gold)) if gold_first else (choose_other_value(gold), value)
        return write_in_box(joint.join(pair))

    return rewrite


def state_beside_other(pattern: str) -> Rewrite:
    """Return the rewrite that fills gold and another value into a text."""

    def rewrite(gold: str) -> str | None:
        value = strip_dollars(gold)
        if not is_quotable_in_sentence(value):
            return None
        return pattern.replace("VALUE", value).replace("OTHER", choose_other_value(gold))

    return rewrite


STATED: dict[str, Rewrite] = {
    name: state_beside_other(pattern) for name, pattern in {**_DENIALS, **_STATED_ELSEWHERE}.items()
}
"""The gold denied, taken back, or only mentioned."""


HEDGES: dict[str, Rewrite] = {
    f"hedge by {name}, gold {'first' if first else 'last'}": hedge_answer(joint, first)
    for name, joint in _JOINTS.items()
    for first in (True, False)
    if (name, first) not in _SAID
}
"""The gold and another answer."""
