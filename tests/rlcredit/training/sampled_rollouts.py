"""Completions that the embedded policy finds likely, and plain forward passes of whole contexts."""

from contextlib import nullcontext

import torch

from rlcredit.credit.rollout import Rollout
from rlcredit.tasks import ReasoningGym
from rlcredit.tasks.example import Example
from rlcredit.training.lookahead import PolicyLookahead
from rlcredit.training.micro_batches import MicroBatches

TEMPERATURE = 0.7
QUESTIONS = ["1 + 2", "9 - 4 + 3 - 8 + 1 = ? Think about it for a while."]
ANSWERS = ["3", "-1 or so"]
LENGTHS = (5, 1, 3, 8, 2, 8)


def read_contexts(policy, ids):
    """Return the hidden states of a sequence without padding, shape (S, D), or of several of one length."""
    states = policy.lm.get_base_model().base_model(input_ids=ids.view(-1, ids.shape[-1])).last_hidden_state
    return states.view(*ids.shape, -1)


def next_log_p(policy, states):
    return (states.float() @ policy.head.float().T / TEMPERATURE).log_softmax(-1)


def sample_rollout(policy, lengths=LENGTHS):
    """Two questions of different length with completions that the policy finds likely, of the lengths given."""
    prompt_ids = policy.encode_questions(QUESTIONS).repeat_interleave(len(lengths) // 2, 0)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    completion_ids, old_logprobs = torch.zeros(mask.shape, dtype=torch.long), torch.zeros(mask.shape)
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for row, length in enumerate(lengths):
            ids = prompt_ids[row][prompt_ids[row] != -1]
            for place in range(length):
                log_p = next_log_p(policy, read_contexts(policy, ids)[-1])
                token = torch.multinomial(log_p.exp(), 1, generator=noise)
                completion_ids[row, place], old_logprobs[row, place] = token, log_p[token]
                ids = torch.cat([ids, token])
    rollout = Rollout(
        step=0,
        group_size=len(lengths) // 2,
        prompt_ids=prompt_ids,
        completion_ids=completion_ids,
        mask=mask,
        old_logprobs=old_logprobs,
        entropy=-old_logprobs,
        correct=torch.zeros(len(lengths)),
        tokens=policy.decode_pieces(completion_ids, mask),
        lookahead=make_lookahead(policy),
    )
    rollout.sources = tuple((place, Example(QUESTIONS[place], ANSWERS[place], {})) for place in range(2))
    return rollout


def make_lookahead(policy, size="auto", precision=nullcontext):
    return PolicyLookahead(policy, TEMPERATURE, MicroBatches(size), precision, ReasoningGym("chain_sum"))


def read_answer(policy, rollout, row, place, closing):
    """Return the mean log-probability of the reference answer behind a prefix, from one pass of the whole text."""
    closed = policy.tokenizer.encode(closing, add_special_tokens=False)
    answer = policy.tokenizer.encode(ANSWERS[row // rollout.group_size], add_special_tokens=False)
    prompt = rollout.prompt_ids[row][rollout.prompt_ids[row] != -1]
    ids = torch.cat([prompt, rollout.completion_ids[row, :place], torch.tensor([*closed, *answer])])
    log_p = next_log_p(policy, read_contexts(policy, ids))[-len(answer) - 1 : -1]
    return log_p.gather(-1, torch.tensor(answer)[:, None]).mean()
