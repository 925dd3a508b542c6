import math

import pytest
import torch

from rlcredit.formulas.gradient_vectors import gram_matrix, vector_agreement


def test_agreement_by_hand():
    one, two = (
        {"a": torch.tensor([3.0]), "b": torch.tensor([4.0])},
        {"a": torch.tensor([6.0]), "b": torch.tensor([0.0])},
    )
    found = vector_agreement(one, two)
    assert found == pytest.approx(
        {"cosine": 0.6, "degrees": math.degrees(math.acos(0.6)), "orthogonal_fraction": 0.8, "norm_ratio": 5 / 6}
    )
    nothing = {name: 0 * value for name, value in one.items()}
    assert vector_agreement(nothing, two) == {"cosine": 0, "degrees": 90, "orthogonal_fraction": 1, "norm_ratio": 0}
    assert gram_matrix([one, two]).tolist() == [[25, 18], [18, 36]]
