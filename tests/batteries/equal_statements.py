"""Completions that answer what a gold answers, stated in many ways."""

from gold_kinds import is_formula, strip_dollars
from rewriting import Rewrite, choose_other_value, is_quotable_in_sentence, state_value


def mention_other_value(pattern: str) -> Rewrite:
    """Return the rewrite that mentions another value where it states nothing."""
    return lambda gold: pattern.replace("VALUE", strip_dollars(gold)).replace("OTHER", choose_other_value(gold))


STATEMENTS: dict[str, Rewrite] = {
    "in a box": state_value(r"\boxed{", "}"),
    "box with spaces inside": state_value(r"\boxed{ ", " }"),
    "space before the brace of the box": state_value(r"\boxed {", "}"),
    "framed box": state_value(r"\fbox{", "}", is_formula),
    "box in displayed mathematics": state_value("Therefore\n$$\n\\boxed{", "}.\n$$\nThis is what was asked for."),
    "box after an equation": state_value(r"So $n + 1 = \boxed{", "}$, as 3 of 4 cases show."),
    "phrase with dollars": state_value("The final answer is $", "$. I hope it is correct.", is_quotable_in_sentence),
    "phrase without dollars": state_value("The answer is ", ".", is_quotable_in_sentence),
    "phrase with a colon": state_value("The answer is: ", "", is_quotable_in_sentence),
    "phrase with inline brackets": state_value(r"The answer is \(", r"\).", is_quotable_in_sentence),
    "phrase with a box": state_value(r"The answer is $\boxed{", "}$."),
    "phrase in bold": state_value("**The final answer is $", "$.**", is_quotable_in_sentence),
    "phrase, answer in the next line": state_value("The answer is\n", "", is_quotable_in_sentence),
    "phrase, answer displayed below": state_value("The answer is:\n\n$$", "$$", is_quotable_in_sentence),
    "phrase, answer in display brackets": state_value("The final answer is\n\\[\n", "\n\\]", is_quotable_in_sentence),
    "label": state_value("Answer: ", "", is_quotable_in_sentence),
    "label in bold": state_value("**Answer:** $", "$", is_quotable_in_sentence),
    "label, answer in the next line": state_value("Answer:\n", "", is_quotable_in_sentence),
    "heading": state_value("### Final Answer\n$", "$", is_quotable_in_sentence),
    "tag": state_value("<answer>", "</answer>"),
    "tag in lines of its own": state_value("<answer>\n$", "$\n</answer>", is_quotable_in_sentence),
    "tag around a box": state_value(r"<answer>\boxed{", "}</answer>"),
    "hashes": state_value("#### ", "", is_quotable_in_sentence),
    "thought of another first": mention_other_value(r"<think>Maybe \boxed{OTHER}.</think>So \boxed{VALUE}."),
    "thought long, then said": mention_other_value("<think>The answer is OTHER? Wait.\n</think>\n\n\\boxed{VALUE}"),
    "corrected box": mention_other_value(r"First I got \boxed{OTHER}, which is a slip. Corrected: \boxed{VALUE}."),
}
"""How an answer may be stated."""
