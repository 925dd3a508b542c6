"""The angle by which the operators below a place rotate the gradient."""

import re
from collections.abc import Mapping

from lightning.pytorch import Trainer
from torch import Tensor

from rlcredit.credit.alternatives import Credit
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.gradient_vectors import Vector, vector_agreement
from rlcredit.formulas.masked import masked_mean
from rlcredit.training.credit_gradients import compute_credit_gradients, predict_optimizer_steps
from rlcredit.training.module import PolicyModule
from rlcredit.training.periodic_measurement import PeriodicMeasurement

PARAMETER_PART = re.compile(r"layers\.(\d+)\.|lora_([AB])\.")


def split_gradient(vector: Vector) -> dict[str, Vector]:
    """Return a gradient cut by layer, and by the A and B matrices of LoRA."""
    vectors: dict[str, dict[str, Tensor]] = {}
    for name, values in vector.items():
        for layer, matrix in PARAMETER_PART.findall(name):
            vectors.setdefault(f"layer_{layer}" if layer else f"lora_{matrix}", {})[name] = values
    return dict(sorted(vectors.items()))


class GradientProbe(PeriodicMeasurement, CreditOperator, reads="advantages step", costly=True):
    r"""Log the angle between the gradient of the stack above and that of the whole stack, on the same batch.

    Three vectors are compared: ``raw``, the gradient; ``preconditioned``, that over Adam's warm
    :math:`\sqrt{\hat v} + \epsilon`; and ``change``, the step that the optimizer would take, momentum included. For
    each the cosine, the angle in degrees, the part at right angles and the ratio of lengths, above over whole; cosines
    by layer and by LoRA matrix. ``rescaling_degrees`` is the angle to the whole stack's credit averaged over every
    completion, ``selection_degrees`` the angle between that average and the whole stack's credit: the first shows how
    much the change reweights completions, the second how much it selects tokens. Compare all with ``NoiseFloor``.

    Args:
        every_n_steps: Steps from one measurement to the next; each takes one more forward and three backward passes.

    """

    def __init__(self, every_n_steps: int = 10) -> None:
        super().__init__()
        self.every_n_steps = self.require_interval(every_n_steps)

    def measure(self, trainer: Trainer, module: PolicyModule, rollout: Rollout, credit: Credit) -> Mapping[str, float]:
        """Compare."""
        mean = masked_mean(rollout.advantages, rollout.mask, dim=-1, keepdim=True).expand(rollout.mask.shape)
        raw = compute_credit_gradients(trainer, module, rollout, [credit, rollout.credit, Credit(mean)])
        gradient_above, whole, mean_gradient = raw
        metrics = {f"raw_{name}": value for name, value in vector_agreement(gradient_above, whole).items()}
        metrics["rescaling_degrees"] = vector_agreement(gradient_above, mean_gradient)["degrees"]
        metrics["selection_degrees"] = vector_agreement(mean_gradient, whole)["degrees"]
        pairs = {"raw": (gradient_above, whole)}
        if steps := predict_optimizer_steps(trainer, module, [gradient_above, whole]):
            for kind in ("preconditioned", "change"):
                pairs[kind] = (getattr(steps[0], kind), getattr(steps[1], kind))
                metrics |= {f"{kind}_{name}": value for name, value in vector_agreement(*pairs[kind]).items()}
        for kind, (vector, reference) in pairs.items():
            references = split_gradient(reference)
            for part, part_vector in split_gradient(vector).items():
                metrics[f"{part}_{kind}_cosine"] = vector_agreement(part_vector, references[part])["cosine"]
        return metrics
