"""Losses: credit and ratios to a scalar, each kind one class in one file."""

from rlcredit.losses.base import PolicyLoss, token_weights
from rlcredit.losses.cispo import CISPO
from rlcredit.losses.clip_cov import ClipCov
from rlcredit.losses.clipped_surrogate import ClippedSurrogate
from rlcredit.losses.entropy_bonus import EntropyBonus
from rlcredit.losses.fipo import FIPO
from rlcredit.losses.gspo import GSPO
from rlcredit.losses.importance_sampling import ImportanceSampling
from rlcredit.losses.kl_cov import KLCov
from rlcredit.losses.kl_penalty import KLPenalty
from rlcredit.losses.mean_ratio import MeanRatio
from rlcredit.losses.sis import SIS
from rlcredit.losses.tepo import TEPO

__all__ = [
    "CISPO",
    "FIPO",
    "GSPO",
    "SIS",
    "TEPO",
    "ClipCov",
    "ClippedSurrogate",
    "EntropyBonus",
    "ImportanceSampling",
    "KLCov",
    "KLPenalty",
    "MeanRatio",
    "PolicyLoss",
    "token_weights",
]
