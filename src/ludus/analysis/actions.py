"""Record what an agent does, and what it would do on the same observations if it took its opponent for another."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.analysis.analysed_policy import AnalysedPolicy, CounterfactualPolicy
from ludus.envs.base import BatchedEnv, EnvSpec, Observations
from ludus.envs.world_parts import styles_of
from ludus.evaluation.players import AgentPlayer
from ludus.nn.distributions import ActionHead
from ludus.nn.heads import MaskedCategoricalHead

Floats = NDArray[np.float32]

AS_IS = "as is"
ZEROED, OTHER_STYLE, SAME_STYLE = "zeroed", "other style", "same style"
CONDITIONS = (ZEROED, OTHER_STYLE, SAME_STYLE)
"""Features zeroed, of a match against another style and, as a control, of another match against the same style."""


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """What an agent did in every match, and what it would have done with other features."""

    names: tuple[str, ...]  # of the columns: keys, choices, or numbers of a continuous action
    factors: tuple[int, ...]  # decision that each column belongs to: choices of one decision add up to 1
    are_shares: bool  # whether columns are probabilities of discrete actions; else expected continuous actions
    rates: Floats  # `(matches, columns)` mean over all frames of what it did
    # `(samples, matches, columns)` probabilities or expected actions under `AS_IS` and each of `CONDITIONS`.
    expected: Mapping[str, Floats]
    usable: Mapping[str, NDArray[np.bool_]]  # `(samples, matches)` under each of `CONDITIONS`


class ActionColumns:
    """Columns that describe actions: what was done as 0 or 1, and what an action distribution expects."""

    def __init__(self, spec: EnvSpec, head: ActionHead) -> None:
        space, given = spec.action_space, spec.actions.names or styles_of(spec.id).action_names
        self._head = head
        self.are_shares = not isinstance(space, spaces.Box)
        if isinstance(space, spaces.MultiDiscrete):
            counts = tuple(map(int, space.nvec))
            # Factors that do not always count, and the cells of a grid, say little without the kind of the action.
            counts = counts[:1] if isinstance(head, MaskedCategoricalHead) else counts
            self._counts, single = counts, len(counts) == 1
            columns = [(factor, choice) for factor, count in enumerate(counts) for choice in range(count)]
            whole = _names(given, len(counts) if not single else counts[0], "factor" if not single else "action")
            self.names = tuple(whole[choice] if single else f"{whole[factor]} {choice}" for factor, choice in columns)
            self.factors = tuple(factor for factor, _ in columns)
        elif isinstance(space, spaces.Discrete):
            self._counts = (int(space.n),)
            self.names, self.factors = _names(given, int(space.n), "action"), (0,) * int(space.n)
        else:
            size = int(np.prod(space.shape or (1,)))
            self._counts = ()
            self.names, self.factors = _names(given, size, "key" if self.are_shares else "action"), tuple(range(size))

    def played(self, actions: Tensor) -> Tensor:
        """Map actions `(rows, ...)` to columns `(rows, columns)`."""
        if not self._counts:
            return actions.flatten(1).float()
        rows = actions.reshape(len(actions), -1).long()
        parts = [torch.nn.functional.one_hot(rows[:, i], count) for i, count in enumerate(self._counts)]
        return torch.cat(parts, dim=1).float()

    def expected(self, parameters: Tensor) -> Tensor:
        """Map the parameters of action distributions `(rows, parameters)` to columns `(rows, columns)`."""
        if self._counts:
            parts = torch.split(parameters[:, : sum(self._counts)], list(self._counts), dim=1)
            return torch.cat([torch.softmax(part, 1) for part in parts], dim=1)
        if self.are_shares:
            return torch.sigmoid(parameters)
        return self._head.mode(parameters).flatten(1).float()


def _names(given: tuple[str, ...], count: int, kind: str) -> tuple[str, ...]:
    return given if len(given) == count else tuple(f"{kind} {index}" for index in range(count))


class ActionRecorder:
    """Follows an agent through its matches; see `ActionRecord`."""

    def __init__(self, env: BatchedEnv, own: Tensor, policy: AnalysedPolicy) -> None:
        """Seat the agent's counterfactuals.

        Args:
            env: The games.
            own: `(games, seats)` bool, seats of the agent.
            policy: The agent.
        """
        self._columns = ActionColumns(env.spec, policy.head)
        self._policy, self._playing = policy, torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
        games = torch.arange(env.num_envs, device=env.device)
        self._rows = _Rows(own)
        self._donors = {OTHER_STYLE: games.roll(1), SAME_STYLE: games.roll(1)}  # until the styles are known
        self._sources = {name: self._rows.taken_from(donors) for name, donors in self._donors.items()}
        changes = {
            ZEROED: torch.zeros_like,
            OTHER_STYLE: lambda features: features[self._sources[OTHER_STYLE]],
            SAME_STYLE: lambda features: features[self._sources[SAME_STYLE]],
        }
        self._policies = {name: CounterfactualPolicy(policy, change) for name, change in changes.items()}
        self._players = {name: AgentPlayer(env, own, each, deterministic=True) for name, each in self._policies.items()}
        # A latent that goes through a recurrent network has to be changed in every frame.
        self._every_frame = policy.features == "latent" and policy.memory.recurrent is not None
        self._done: Tensor | None = None
        self._frames = torch.zeros(env.num_envs, device=env.device)
        self._expected: dict[str, list[Tensor]] = {name: [] for name in (AS_IS, *CONDITIONS)}
        self._usable: dict[str, list[Tensor]] = {name: [] for name in CONDITIONS}

    def learn_styles(self, labels: Tensor) -> None:
        """Take the style of each game, `(games,)` int64."""
        self._donors = dict(zip((OTHER_STYLE, SAME_STYLE), find_donors(labels), strict=True))
        self._sources = {name: self._rows.taken_from(donors) for name, donors in self._donors.items()}

    def note(
        self,
        observations: Observations,
        actions: Tensor,
        ignored: Tensor,
        playing: Tensor,
        *,
        first: bool,
        sample: bool,
    ) -> None:
        """Note one frame after the agent has acted on it.

        Args:
            observations: What all seats saw.
            actions: What all seats do, `(games, seats, ...)`.
            ignored: Like `actions`; what the counterfactuals would do is written there.
            playing: `(games,)` bool, games that are not over.
            first: Whether it is the first frame.
            sample: Whether the frame is a sample of the recording.
        """
        done = self._columns.played(actions.flatten(0, 1)[self._rows.leads]) * playing.unsqueeze(1)
        self._done = done if self._done is None else self._done + done
        self._frames += playing
        if sample or self._every_frame:
            for player in self._players.values():
                player.act(observations, ignored, first=first)
        if not sample:
            return
        for name, policy in {AS_IS: self._policy, **self._policies}.items():
            expected = self._columns.expected(policy.distribution[self._rows.is_lead])
            self._expected[name].append(expected.cpu())
        for name in CONDITIONS:
            donors = self._donors.get(name)
            usable = playing if donors is None else playing & playing[donors]
            self._usable[name].append(usable.cpu())

    def finish(self) -> ActionRecord:
        """Return what was recorded."""
        assert self._done is not None  # noqa: S101 - for the type checker
        rates = self._done / self._frames.clamp(min=1.0).unsqueeze(1)
        return ActionRecord(
            self._columns.names,
            self._columns.factors,
            self._columns.are_shares,
            rates.cpu().numpy(),
            {name: torch.stack(parts).numpy() for name, parts in self._expected.items()},
            {name: torch.stack(parts).numpy() for name, parts in self._usable.items()},
        )


class _Rows:
    """Rows of an agent that plays the seats `(games, seats)` of a mask; the first row of each game stands for it."""

    def __init__(self, own: Tensor) -> None:
        seats = own.flatten().nonzero().squeeze(1)
        self._games = seats.div(own.shape[1], rounding_mode="floor")
        self._counts = own.sum(1)
        self._starts = self._counts.cumsum(0) - self._counts
        self._order = torch.arange(len(seats), device=own.device) - self._starts[self._games]
        self.is_lead = self._order == 0
        self.leads = seats[self.is_lead]

    def taken_from(self, donors: Tensor) -> Tensor:
        """Return the row from which each row takes its features, when each game takes them from its donor."""
        donor = donors[self._games]
        return self._starts[donor] + self._order % self._counts[donor]


def find_donors(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each match one against another style, and another one against the same style, both `(matches,)`.

    Donors are spread evenly over the other styles. A style that is alone, or has one match, is its own donor.
    """
    known = labels.tolist()
    matches: dict[int, list[int]] = {}
    for match, label in enumerate(known):
        matches.setdefault(label, []).append(match)
    other, same = list(range(len(known))), list(range(len(known)))
    for label, own in matches.items():
        others = [found for each, found in sorted(matches.items()) if each != label]
        for place, match in enumerate(own):
            same[match] = own[(place + 1) % len(own)]
            if others:
                found = others[place % len(others)]
                other[match] = found[place // len(others) % len(found)]
    return torch.tensor(other, device=labels.device), torch.tensor(same, device=labels.device)
