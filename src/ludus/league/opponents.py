"""The learner's opponents: who plays the seats of the other teams, drawn anew for every game and episode."""

import logging
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from ludus.algorithms.ppo.graphs import GraphedCall
from ludus.algorithms.ppo.seats import Rows
from ludus.core.errors import ConfigError, StateError, UnknownNameError
from ludus.core.random import uniform
from ludus.envs.base import BatchedEnv, Observations, StepResult
from ludus.league.config import LeagueConfig
from ludus.league.mix import Mix, mirrored_games
from ludus.league.payoffs import MIRROR_KIND, SELF_KIND, Payoffs
from ludus.league.pool import Snapshot, SnapshotPool
from ludus.league.seating import Seating
from ludus.league.selves import PastSelves
from ludus.policies.memory import part_of, with_prefix
from ludus.policies.policy import Policy

logger = logging.getLogger(__name__)

START_NAME = "start"  # of the snapshot that plays where there are neither bots nor other snapshots
_STREAM_OPPONENT = 0xB075


class LeagueOpponents:
    """Plays the seats that the learner does not; see `ludus.algorithms.ppo.seats.Opponents`.

    The learner plays all seats of one team of every game (see `Seating`), one opponent all the others. The opponent is
    drawn when an episode starts, from streams keyed by (seed, game, episode): by the shares of the mix, and one of the
    past selves, which have the name `self` in it, by the chances that `refresh` gave them. Until there is a snapshot
    the bots share what is due to past selves; without bots the learner as it is now becomes the first snapshot.

    The share of `mirror` is a fixed part of the games: in the first so many the learner plays all seats.

    Attributes:
        opponents: `(games,)` int64, index into `names` of the present opponent of each game, -1 where the learner plays
            all seats; changed in place.
        pool: The snapshots; None where the mix never has past selves.
    """

    def __init__(
        self,
        env: BatchedEnv,
        policy: Policy,
        weights: Mapping[str, float],
        config: LeagueConfig,
        seed: int,
        *,
        cuda_graphs: bool = True,
        heir_of: "LeagueOpponents | None" = None,
    ) -> None:
        """Seats everyone for the first episodes.

        Args:
            env: The games.
            policy: The learner.
            weights: Share of each bot, of past selves as `self`, and of games that the learner plays alone as `mirror`:
                any numbers from 0 on, not all 0. Only those named here can be in a later mix.
            config: Of the league.
            seed: Of the draws and of the opponents' noise.
            cuda_graphs: Whether work on a CUDA device becomes CUDA graphs.
            heir_of: Who played in the games before these, and plays no more: its snapshots and their chances go on.

        Raises:
            ConfigError: The world's teams or the weights do not allow it.
            UnknownNameError: The world has no such bot.
            UnsupportedError: The policy's snapshots cannot play together.
        """
        self._seating = Seating(env, seed, mirrored_games(weights, env.num_games))
        self._policy, self._config, self._seed = policy, config, seed
        self._bot_names = tuple(name for name in weights if name not in (SELF_KIND, MIRROR_KIND))
        self._bots = env.bots(self._bot_names) if self._bot_names else None
        self._selves: PastSelves | None = None
        self.pool: SnapshotPool | None = None
        if SELF_KIND in weights:
            self.pool = heir_of.pool if heir_of is not None else None
            self.pool = self.pool or SnapshotPool(policy, config.keep)
            seats, games = self._seating.other_index, self._seating.other_games
            self._selves = PastSelves(env, self.pool, seats, games, seed=seed, cuda_graphs=cuda_graphs)
        self._rows: Rows | None = None
        self._cuda_graphs = cuda_graphs
        self._graph: GraphedCall | None = None
        met = env.num_games - self._seating.mirrored
        self._mix = Mix(self._bot_names, self.pool, config, live=config.live_for(met), seed=seed)
        if heir_of is not None:
            self._mix.load_state(part_of(heir_of.state(), "mix"))
        self._meets = self._seating.all_games >= self._seating.mirrored
        self._thresholds = torch.zeros(len(self.names), device=env.device)
        self.opponents = torch.zeros_like(self._seating.episodes)
        classes = [_class_of(name, env.spec.bots) for name in self._bot_names]
        # By index into `names`; -1, where the learner plays all seats, finds the last one.
        others = [-1] * (len(self.names) - len(classes) + 1)
        self._classes = torch.tensor([*classes, *others], dtype=torch.int64, device=env.device)
        self._assignment = torch.full_like(self._seating.learner, -1, dtype=torch.int32)
        self.set_mix(weights)
        self._begin(self._seating.all_games, torch.ones_like(self.opponents, dtype=torch.bool))

    @property
    def names(self) -> tuple[str, ...]:
        """The opponents by index: the bots, and then the snapshot in every slot, empty where there is none."""
        return (*self._bot_names, *(self.pool.names() if self.pool else ()))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each of `names`: a bot's own name, or `self`."""
        return (*self._bot_names, *(SELF_KIND,) * self._mix.slots)

    @property
    def learner(self) -> Tensor:
        """`(games, seats)` bool, the learner's seats."""
        return self._seating.learner

    @property
    def mirrored(self) -> int:
        """Games in which the learner plays all seats."""
        return self._seating.mirrored

    @property
    def sides(self) -> tuple[str, ...]:
        """The learner's side in each game, such as `2v1`; empty where it plays all seats."""
        return self._seating.sides

    @property
    def episodes(self) -> Tensor:
        """`(games,)` int64, the number of each game's episode."""
        return self._seating.episodes

    def attach(self, rows: Rows) -> None:
        """Takes the learner's rows, which are moved to other seats when a game has ended."""
        self._rows, self._graph = rows, None
        self._move_rows()

    def act(self, observations: Observations, actions: Tensor) -> None:
        """Writes the opponents' actions."""
        if self._bots is not None:
            self._bots.act(self._assignment, actions)
        if self._selves is not None:
            self._selves.act(observations, actions)

    def bots_met(self) -> Tensor:
        """Returns the bot that plays in each game now, `(games,)` int64: index into `EnvSpec.bots`, -1 for none.

        A bot with settings of its own, such as `aggressive:delay=8`, counts as the one without.
        """
        return self._classes[self.opponents]

    def after_step(self, result: StepResult) -> None:
        """Seats everyone anew in games that ended; on the host only steps with such games cost anything."""
        ended = result.ended
        if ended.device.type == "cpu":
            games = ended.nonzero().squeeze(1)
            if games.numel() > 0:
                self._seating.episodes += ended
                self._begin(games, ended)
        elif self._cuda_graphs:
            if self._graph is None:  # recorded with no game that ended, it changes nothing
                self._graph = GraphedCall(self._end, torch.zeros_like(ended), ())
            self._graph(ended)
        else:
            self._end(ended)

    def _end(self, ended: Tensor) -> None:
        self._seating.episodes += ended
        self._begin(self._seating.all_games, ended)

    def _begin(self, games: Tensor, ended: Tensor) -> None:
        """Seats everyone in `games` `(any,)` int64, and draws the opponents of those among them that `ended`."""
        self._seating.seat(games)
        chances = uniform(self._seating.hashes(games, _STREAM_OPPONENT))
        drawn = torch.searchsorted(self._thresholds, chances, right=True)
        starts = ended.index_select(0, games)
        present = torch.where(starts, drawn, self.opponents.index_select(0, games))
        present = torch.where(self._meets.index_select(0, games), present, -1)
        self.opponents.index_copy_(0, games, present)
        bots = torch.where(present < len(self._bot_names), present, -1)
        assignment = torch.where(self.learner.index_select(0, games), -1, bots.unsqueeze(1))
        self._assignment.index_copy_(0, games, assignment.to(torch.int32))
        if self._selves is not None:
            self._selves.seat(games, (present - len(self._bot_names)).clamp(min=-1), starts)
        self._move_rows()

    def _move_rows(self) -> None:
        if self._rows is not None:
            self._rows.index.copy_(self._seating.learner_index)

    def set_mix(self, weights: Mapping[str, float]) -> None:
        """Sets the share of each opponent for episodes that start from now on; those not named get none.

        That of `mirror` was taken when the games were made: here it is left out of account.

        Raises:
            ConfigError: The weights are no shares.
            UnknownNameError: An opponent was not among those given at the start.
        """
        if self._meets_anyone:
            self._mix.set({name: weight for name, weight in weights.items() if name != MIRROR_KIND})
            self._cut()

    @property
    def _meets_anyone(self) -> bool:
        return self.mirrored < len(self.episodes)

    def refresh(self, payoffs: Payoffs) -> None:
        """Gives every snapshot its chance, by the config's sampler, for episodes that start from now on.

        Of many snapshots a part is live at a time, so that their groups of games are not too small, and another one
        when every game has ended about once: those that are live no more should have stopped playing by then. In the
        long run each gets its chance. It waits for the device.
        """
        self._mix.refresh(payoffs, int(self.episodes.sum()) // self.episodes.numel())
        self._cut()

    def wants_snapshot(self, payoffs: Payoffs) -> bool:
        """Says whether the learner may become a snapshot now.

        Where only better ones do, it must have won more than it lost against the newest, or not have met it.
        """
        if self.pool is None:
            return False
        if self._config.add == "all" or self.pool.is_empty:
            return True
        score = payoffs.recent(opponent=self.pool.snapshots[-1].name).score
        return score is None or score > 0.5

    def playing(self) -> frozenset[str]:
        """Returns the names of the snapshots that running games play against; it waits for the device."""
        names = self.names
        return frozenset(names[i] for i in set(self.opponents.tolist()) if i >= len(self._bot_names)) - {""}

    def add_snapshot(
        self,
        name: str,
        env_steps: int,
        policy_state: Mapping[str, Tensor],
        *,
        slot: int | None = None,
        also_playing: Collection[str] = (),
    ) -> str | None:
        """Takes a snapshot of the learner; call `refresh` afterwards to let it play, unless it is the first.

        Args:
            name: Its name.
            env_steps: Steps that it had learned from.
            policy_state: What `Policy.state` gave.
            slot: Where it goes, to give back what a document names; None takes a free one or the oldest's.
            also_playing: Snapshots that the games of other processes play against, which must stay too.

        Returns:
            The name of the snapshot that left, or None; the new one's own name if every older one is playing: then it
            was not taken.

        Raises:
            ConfigError: There are no past selves in this league, or one of this name.
            StateError: The state is one of another architecture.
        """
        if self.pool is None:
            raise ConfigError(f"snapshot {name!r} cannot play: {SELF_KIND!r} is not among {', '.join(self.names)}")
        busy = self.playing() | {*also_playing}
        in_use = {snapshot.slot for snapshot in self.pool.snapshots if snapshot.name in busy}
        evicted = self.pool.add(name, env_steps, policy_state, in_use, slot)
        if evicted != name:
            self._mix.clear(self.pool.find(name).slot)
            self._cut()
        return evicted

    def remove(self, name: str) -> None:
        """Takes a snapshot out at once; games that it was playing go on against others.

        Raises:
            UnknownNameError: There is none of this name.
        """
        if self.pool is None:
            raise UnknownNameError("snapshot", name, ["none in this league"])
        self._mix.clear(self.pool.remove(name).slot)
        self._cut()
        self._replace_missing()

    def document(self) -> dict[str, Any]:
        """Returns the names of the snapshots and their slots, as JSON, to go with `state`."""
        snapshots = self.pool.snapshots if self.pool else ()
        return {"snapshots": [{"name": s.name, "env_steps": s.env_steps, "slot": s.slot} for s in snapshots]}

    def load_document(self, document: Mapping[str, Any]) -> tuple[Snapshot, ...]:
        """Drops the snapshots that a document does not name, and returns those it names that are not here.

        Give these back by `add_snapshot` with their slots, and then call `load_state`.

        Raises:
            StateError: It is no such document.
        """
        try:
            wanted = [Snapshot(str(s["name"]), int(s["env_steps"]), int(s["slot"])) for s in document["snapshots"]]
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"this is no document of a league: {error}; use what `document` gave") from error
        for snapshot in self.pool.snapshots if self.pool else ():
            if self.pool and snapshot not in wanted:
                self.pool.remove(snapshot.name)
        return tuple(snapshot for snapshot in wanted if not self.pool or snapshot not in self.pool.snapshots)

    def state(self) -> dict[str, Tensor]:
        """Returns copies of what the future depends on beside the snapshots."""
        tensors = {"episodes": self.episodes, "opponents": self.opponents} | with_prefix("mix", self._mix.state())
        if self._selves is not None:
            tensors |= with_prefix("selves", self._selves.state())
        return {name: tensor.clone() for name, tensor in tensors.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes what `state` gave; games against a snapshot that was not given back go on against others.

        Raises:
            StateError: It does not fit the games, the policy or the opponents.
        """
        own = self.state()
        wrong = sorted(set(state) ^ set(own) or {name for name in own if state[name].shape != own[name].shape})
        if wrong:
            raise StateError(
                f"the opponents' state does not fit: {', '.join(wrong[:5])}; "
                f"use the same {len(self.episodes)} games, policy config and opponents"
            )
        self.episodes.copy_(state["episodes"])
        self.opponents.copy_(state["opponents"])
        self._mix.load_state(part_of(state, "mix"))
        self._cut()
        self._begin(self._seating.all_games, torch.zeros_like(self.opponents, dtype=torch.bool))
        if self._selves is not None:
            self._selves.load_state(part_of(state, "selves"))
        self._replace_missing()

    def restart(self) -> None:
        """Begins the next episode of every game."""
        self._end(torch.ones_like(self.opponents, dtype=torch.bool))

    def _replace_missing(self) -> None:
        """Draws other opponents for running games whose snapshot is gone."""
        if self._selves is None:
            return
        present = torch.tensor([bool(name) for name in self.names], device=self.opponents.device)
        missing = (self.opponents >= 0) & ~present.index_select(0, self.opponents.clamp(min=0))
        self._selves.forget(missing)
        self._begin(self._seating.all_games, missing)

    def _cut(self) -> None:
        """Lets the draws follow the mix; takes a first snapshot where nobody else could play."""
        if not self._meets_anyone:
            return
        if self.pool is not None and self._mix.has_nobody:
            logger.info("[OK] no bots among the opponents: the learner as it is now is its first opponent")
            self.pool.add(START_NAME, 0, self._policy.state(), ())
        self._thresholds.copy_(self._mix.thresholds())


def _class_of(name: str, bots: tuple[str, ...]) -> int:
    """Returns the place among `bots` of one that may carry settings; -1 for a stranger."""
    plain = name.partition(":")[0]
    return bots.index(plain) if plain in bots else -1
