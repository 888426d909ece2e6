"""Choose how the weights of an agent are stored in a page: the fewest bytes that change nothing that matters.

What a format loses is measured on observations of real matches. Agents of up to `LOSSLESS_BYTES` keep float32: they
play, bit for bit, the matches that they play in Python.
"""

import itertools
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor

from ludus.envs.base import Observations
from ludus.envs.registry import make_env
from ludus.envs.world import find_world
from ludus.evaluation.matches import play_steps
from ludus.evaluation.players import AgentPlayer, BotActor, one_seat
from ludus.nn.distributions import BernoulliHead, GaussianHead
from ludus.policies.agent import Agent, build_policy
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy
from ludus.share.policy import FORMATS, Format, PackedPolicy, check_supported, pack_policy, with_matrices
from ludus.share.program import page_settings

LOSSLESS_BYTES = 1_000_000  # the largest agent whose weights stay as they are
MAX_CHANGED = 0.005  # share of decisions in which the most likely action may differ
MAX_PROBABILITY = 0.01  # by which the probability of a button or a choice may differ
_GAMES, _STEPS = 16, 256  # of the matches on whose observations a loss is measured
_SAME_ACTION = 0.01  # continuous actions that differ by less are the same


@dataclass(frozen=True, slots=True)
class Precision:
    """What a format of the matrices loses, compared with float32."""

    matrices: Format
    decisions: int  # on which it was measured; 0 where nothing can be lost
    changed: float = 0.0  # share of decisions whose most likely action differs
    probability: float = 0.0  # largest difference in the probability of a button or a choice


def pack_agent(agent: Agent, lossless_bytes: int = LOSSLESS_BYTES) -> PackedPolicy:
    """Pack an agent in the smallest format that changes nothing that matters; its description says what was lost.

    One of up to `lossless_bytes` keeps its weights as they are.

    Raises:
        UnsupportedError: The browser cannot play it.
    """
    check_supported(agent.policy)
    packed = pack_policy(agent.policy)
    precision = Precision("float32", 0)
    if len(packed.data) > lossless_bytes:
        precision = choose_precision(agent)
        packed = pack_policy(agent.policy, precision.matrices)
    return replace(packed, description=packed.description | {"precision": asdict(precision)})


def choose_precision(agent: Agent) -> Precision:
    """Return the smallest format whose loss is within `MAX_CHANGED` and `MAX_PROBABILITY`; float32 always is."""
    observations, episode_starts = play_matches(agent)
    for matrices in FORMATS:
        found = measure(agent.policy, matrices, observations, episode_starts)
        if found.changed <= MAX_CHANGED and found.probability <= MAX_PROBABILITY:
            return found
    return Precision("float32", 0)


@torch.no_grad()
def measure(policy: Policy, matrices: Format, observations: Observations, episode_starts: Tensor) -> Precision:
    """Compare a policy with itself in another format.

    Args:
        policy: The policy.
        matrices: The format of its matrices.
        observations: `(steps, rows, ...)` per entry.
        episode_starts: `(steps, rows)` bool, frames that are the first of an episode.
    """
    description = PolicyDescription.of(policy.spec, policy.config)
    other = build_policy(description, with_matrices(policy, matrices), policy.device).eval()
    rows = episode_starts.shape[1]
    own, reduced = (
        each.action_parameters(observations, each.initial(rows), episode_starts) for each in (policy, other)
    )
    modes = [policy.head.mode(each).reshape(*episode_starts.shape, -1) for each in (own, reduced)]
    if isinstance(policy.head, GaussianHead):
        return Precision(matrices, episode_starts.numel(), _share((modes[0] - modes[1]).abs().amax(-1) > _SAME_ACTION))
    shares = [_probabilities(policy, each) for each in (own, reduced)]
    changed = _share((modes[0] != modes[1]).any(-1))
    return Precision(matrices, episode_starts.numel(), changed, float((shares[0] - shares[1]).abs().max()))


def _share(mask: Tensor) -> float:
    return float(mask.float().mean())


def _probabilities(policy: Policy, parameters: Tensor) -> Tensor:
    """Return the probability of every button, or of every choice of each factor side by side."""
    if isinstance(policy.head, BernoulliHead):
        return torch.sigmoid(parameters)
    counts = list(policy.spec.choices.counts)
    return torch.cat([torch.softmax(part, -1) for part in torch.split(parameters, counts, -1)], -1)


def play_matches(agent: Agent) -> tuple[Observations, Tensor]:
    """Return what an agent sees in matches against the world's default opponent.

    Returns:
        Observations `(steps, games, ...)` per entry, and which of them are the first of an episode, `(steps, games)`.
    """
    world = find_world(agent.spec.id)
    with make_env(world.id, _GAMES, config=page_settings(world, agent.settings)) as env:
        learner = AgentPlayer(env, one_seat(env, 0), agent.policy)
        actors: list[AgentPlayer | BotActor] = [learner]
        if world.default_opponent is not None:
            actors.append(BotActor(env, [world.default_opponent], one_seat(env, 0).logical_not().int() - 1))
        seen: list[dict[str, Tensor]] = []

        def watch(observations: Observations, _: Tensor) -> None:
            seen.append({name: tensor[:, 0].clone() for name, tensor in observations.items()})

        for _ in itertools.islice(play_steps(env, actors, env.reset(), watch), _STEPS):
            pass
    episode_starts = torch.zeros((_STEPS, _GAMES), dtype=torch.bool)
    episode_starts[0] = True
    stacked = {name: torch.stack([frame[name] for frame in seen]) for name in seen[0]}
    return stacked, episode_starts
