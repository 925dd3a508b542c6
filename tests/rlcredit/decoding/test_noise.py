import numpy as np
import torch
from torch.testing import assert_close

from rlcredit.decoding.noise import VALIDATION, inverse_cdf, sampling_uniforms, token_uniforms


def test_a_draw_is_named_by_seed_step_prompt_sample_and_position():
    base = sampling_uniforms(0, 0, [0], [0], 8)
    for other in (
        sampling_uniforms(1, 0, [0], [0], 8),
        sampling_uniforms(0, 1, [0], [0], 8),
        sampling_uniforms(0, 0, [1], [0], 8),
        sampling_uniforms(0, 0, [0], [1], 8),
        sampling_uniforms(0, VALIDATION, [0], [0], 8),
    ):
        assert not (base == other).any()
    assert_close(sampling_uniforms(0, 0, [0], [0], 3), base[:, :3], rtol=0, atol=0)
    assert len(set(base.flatten().tolist())) == 8


def test_random_operators_of_neighbouring_streams_draw_other_numbers():
    draws = [token_uniforms(0, 0, stream, (2, 4), 1) for stream in (0, 1, 2)]
    assert len(set(torch.cat(draws).flatten().tolist())) == 24


def test_tokens_occur_as_often_as_their_probability_says():
    probabilities = torch.tensor([[0.5, 0.0, 0.3, 0.2]])
    draws = sampling_uniforms(0, 0, [0], [0], 20_000)[0]
    counts = torch.bincount(inverse_cdf(probabilities.expand(20_000, 4), draws), minlength=4)
    expected = probabilities[0].numpy() * 20_000
    deviation = np.abs(counts.numpy() - expected) / np.sqrt(np.maximum(expected, 1))
    assert counts[1] == 0
    assert (deviation < 4).all()


def test_the_last_possible_token_catches_a_rounded_uniform():
    probabilities = torch.tensor([[0.3, 0.3, 0.3999999, 0.0]])
    assert inverse_cdf(probabilities, torch.tensor([1.0 - 1e-17])).item() == 2
