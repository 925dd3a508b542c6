import torch

from rlcredit.cli.sampled_completions import sample_completions
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling


def test_what_is_said_of_a_completion_is_what_the_trainer_says(policy, task):
    examples = task.train_set[:2]
    said = [task.build_conversation(example) for example in examples]
    groups = sample_completions(
        policy, InProcessEngine(), said, [0, 1], Sampling(3, max_tokens=24, temperature=0.7), seed=5
    )
    assert [len(group) for group in groups] == [3, 3]
    prompt_ids = policy.encode_questions(said)
    for row, group in enumerate(groups):
        for completion in group:
            assert len(completion.tokens) == len(completion.logprobs) == len(completion.entropy)
            ids = policy.tokenizer(completion.text, add_special_tokens=False, return_tensors="pt")["input_ids"]
            if not completion.truncated:
                assert completion.tokens[-1] == ""
                ids = torch.cat([ids, torch.tensor([[policy.tokenizer.eos_token_id]])], 1)
            assert ids.shape[1] == len(completion.tokens)
            with torch.no_grad():
                scores = policy.score_prompts(prompt_ids[row : row + 1], ids, temperature=0.7)
            torch.testing.assert_close(scores.logprobs[0], torch.tensor(completion.logprobs), rtol=0, atol=1e-4)
            torch.testing.assert_close(scores.entropy[0], torch.tensor(completion.entropy), rtol=0, atol=1e-4)


def test_a_seed_says_what_is_drawn_and_a_number_keeps_questions_apart(policy, task):
    said = [task.build_conversation(task.train_set[0])] * 2

    def drawn(numbers, seed):
        return [
            group[0].text
            for group in sample_completions(policy, InProcessEngine(), said, numbers, Sampling(1, max_tokens=16), seed)
        ]

    assert drawn([0, 1], 3) == drawn([0, 1], 3)
    assert drawn([4, 4], 3)[0] == drawn([4, 4], 3)[1]
    assert len({*drawn([0, 1], 3), *drawn([2, 3], 3), *drawn([0, 1], 4)}) > 1
