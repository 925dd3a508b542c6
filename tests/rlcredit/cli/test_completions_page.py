import json
import re

from rlcredit.cli.completions_page import render_completions_page
from rlcredit.cli.sampled_completions import Completion
from rlcredit.verification.verifiers import Verdict


def test_the_page_holds_what_it_shows_and_loads_nothing():
    evil = "</script><script>alert(1)</script>"
    answers = [
        Completion(["4", ""], [-0.12345, 0.0], [0.5, 0.0], False, "4", "5", Verdict.WRONG),
        Completion([evil], [-1.0], [1.0], True),
    ]
    text = render_completions_page("Sums", "tiny", [("<|im_start|>user", answers)])
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert (data["title"], data["about"], data["groups"][0]["prompt"]) == ("Sums", "tiny", "<|im_start|>user")
    first, second = data["groups"][0]["completions"]
    assert first == {
        "tokens": ["4", ""],
        "logprobs": [-0.1235, 0.0],
        "entropy": [0.5, 0.0],
        "truncated": False,
        "verdict": "wrong",
        "answer": "4",
        "reference": "5",
    }
    assert second["tokens"] == [evil]
    assert second["verdict"] is None
    assert evil not in text
    assert not re.search(r"\b(?:src|href)\s*=|url\(|@import|fetch\(", text)
    assert "default-src 'none'" in text
