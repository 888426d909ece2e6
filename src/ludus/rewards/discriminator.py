"""A reward that is learned: a discriminator tells what an agent does from what its reference does.

It judges differences, as in ADD (Zhang et al. 2025, arXiv 2505.04961): its inputs are state metrics of the world that
are 0 where the agent is like the reference. The one positive sample is 0, negative ones are the differences of the last
rollout. So the differences need no weights of their own: whatever still gives the agent away counts. With
d(x) the logit of the probability D(x) that x is the reference,

    loss = -log D(0) - mean log(1 - D(x)) + gradient_penalty * mean |grad d(x)|^2
    reward = -log(1 - D(x)) = log(1 + exp(d(x)))

The gradient is penalised at negative samples: without it, a single positive sample becomes a peak of no width, and the
reward is nearly 0 everywhere else.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.optim.adamw import adamw

from ludus.core.errors import UnknownNameError
from ludus.core.state import FINITE, MAX_COUNT, load_generator, load_tensors
from ludus.rewards.step_info import StepInfo
from ludus.rewards.weights import StyleConfig

STYLE = "style"  # name of the reward term
_CLIP = 10.0  # of differences, in root mean squares
_MOST = 10.0  # of the reward: a discriminator that is fooled completely must not drown everything else
_BETAS, _EPS = (0.9, 0.999), 1e-8


class Discriminator:
    """Rates steps as a reward term does, and learns from every rollout.

    Attributes:
        inputs: Names of the state metrics that it compares.
    """

    def __init__(
        self, config: StyleConfig, metrics: Sequence[str], *, seed: int = 0, device: torch.device | None = None
    ) -> None:
        """Choose the inputs among a world's state metrics; raise UnknownNameError if a name or pattern fits none."""
        self._config = config
        for pattern in config.differences:
            if not any(fnmatchcase(name, pattern) for name in metrics):
                raise UnknownNameError("state metric (rewards.style.differences)", pattern, metrics)
        self.inputs = tuple(
            name for name in metrics if any(fnmatchcase(name, pattern) for pattern in config.differences)
        )
        sizes = (len(self.inputs), *config.net_arch, 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layers = [nn.Linear(*pair) for pair in pairwise(sizes)]
        self._parameters = [
            parameter.detach().to(device).requires_grad_() for layer in layers for parameter in layer.parameters()
        ]
        self._generator = torch.Generator(device or "cpu").manual_seed(seed)
        own = {f"parameter.{number}": parameter.data for number, parameter in enumerate(self._parameters)}
        for average in ("exp_avg", "exp_avg_sq"):
            own |= {f"{average}.{number}": torch.zeros_like(each) for number, each in enumerate(self._parameters)}
        counters = torch.zeros(len(self._parameters), device=device)
        own |= {"step": counters, "mean_square": torch.zeros(len(self.inputs), device=device)}
        own["rollouts"] = torch.zeros((), device=device)
        self._own = own

    @torch.no_grad()
    def __call__(self, info: StepInfo) -> Tensor:
        """Return the reward of each element of a step's tensors, above 0."""
        judged = self._judge(self._scaled(self._differences(info)))
        return functional.softplus(judged).clamp(max=_MOST)

    def learn(self, info: StepInfo) -> None:
        """Learn from the steps of a rollout, whose rewards were asked for already."""
        differences = self._differences(info).flatten(0, -2)
        self._follow_scale(differences)
        count = len(differences)
        for _ in range(self._config.n_updates):
            chosen = torch.randint(
                count, (min(self._config.batch_size, count),), generator=self._generator, device=differences.device
            )
            self._update(self._scaled(differences[chosen]))

    def _differences(self, info: StepInfo) -> Tensor:
        """Return `(..., inputs)`."""
        values = torch.stack([info.state_metrics[name] for name in self.inputs], dim=-1)
        return values.sign() * values.abs().sqrt()

    def _scaled(self, differences: Tensor) -> Tensor:
        # Divided by their size, but not shifted by their mean: no difference must stay 0.
        scale = torch.rsqrt(self._own["mean_square"] + 1e-12)
        scale = torch.where(self._own["mean_square"] > 0.0, scale, 1.0)
        return (differences * scale).clamp(-_CLIP, _CLIP)

    def _follow_scale(self, differences: Tensor) -> None:
        mean_square = differences.square().mean(0)
        if distributed.is_initialized():
            distributed.all_reduce(mean_square)
            mean_square /= distributed.get_world_size()
        # The first rollout counts fully, and all others as much as `memory` says.
        share = torch.where(self._own["rollouts"] > 0.0, 1.0 - self._config.memory, 1.0)
        self._own["mean_square"].lerp_(mean_square, share)
        self._own["rollouts"].add_(1.0)

    def _judge(self, scaled: Tensor) -> Tensor:
        """Return the discriminator's output `(...)` for `(..., inputs)`."""
        hidden, layers = scaled, len(self._parameters) // 2
        for layer in range(layers):
            weight, bias = self._parameters[2 * layer : 2 * layer + 2]
            hidden = functional.linear(hidden, weight, bias)
            hidden = hidden if layer == layers - 1 else torch.relu(hidden)
        return hidden.squeeze(-1)

    @torch.enable_grad()
    def _update(self, negative: Tensor) -> None:
        negative.requires_grad_()
        judged = self._judge(negative)
        (slopes,) = torch.autograd.grad(judged.sum(), negative, create_graph=True)
        loss = functional.softplus(judged).mean() + self._config.gradient_penalty * slopes.square().sum(-1).mean()
        loss = loss + functional.softplus(-self._judge(torch.zeros_like(negative[0])))
        gradients = list(torch.autograd.grad(loss, self._parameters))
        if distributed.is_initialized():
            for gradient in gradients:
                distributed.all_reduce(gradient)
                gradient /= distributed.get_world_size()
        finite = torch.stack([gradient.isfinite().all() for gradient in gradients]).all()
        numbers = range(len(self._parameters))
        # The function and not the class, which imports torch's compiler; see `FlatAdam`, which PPO uses.
        adamw(
            [self._own[f"parameter.{number}"] for number in numbers],
            gradients,
            [self._own[f"exp_avg.{number}"] for number in numbers],
            [self._own[f"exp_avg_sq.{number}"] for number in numbers],
            [],
            list(self._own["step"].unbind()),
            fused=True,
            capturable=negative.is_cuda,
            found_inf=1.0 - finite.float(),
            amsgrad=False,
            beta1=_BETAS[0],
            beta2=_BETAS[1],
            lr=self._config.learning_rate,
            weight_decay=0.0,
            eps=_EPS,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return copies of parameters, optimizer, scales and randomness, to continue bit by bit from here."""
        return {name: tensor.clone() for name, tensor in self._own.items()} | {"random": self._generator.get_state()}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`; raise StateError if it does not fit."""
        tensors = {name: tensor for name, tensor in state.items() if name != "random"}
        counts = (0.0, MAX_COUNT)
        ranges = {"mean_square": (0.0, FINITE[1]), "rollouts": counts, "step": counts}
        advice = "use the same rewards.style and world"
        load_tensors(tensors, self._own, "the discriminator", ranges=ranges, advice=advice)
        load_generator(self._generator, state, "the discriminator")
