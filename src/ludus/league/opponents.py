"""The learner's opponents: who plays the seats of the other teams, redrawn for every game and episode."""

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from ludus.core.errors import ConfigError, StateError, UnknownNameError, brief
from ludus.core.random import uniform
from ludus.core.state import MAX_COUNT, check_tensors, clone_tensors
from ludus.envs.base import BatchedEnv, Observations, StepResult
from ludus.envs.bot_roster import BotRoster
from ludus.league.agents import AgentOpponents
from ludus.league.config import LeagueConfig
from ludus.league.mix import OpponentMix, check_weights, mirrored_games
from ludus.league.payoffs import MIRROR_KIND, SELF_KIND, Payoffs
from ludus.league.seating import TeamAssignment
from ludus.league.snapshots import LeagueState, Snapshot, SnapshotOpponents, SnapshotPool
from ludus.policies.policy import Policy, part_of, with_prefix
from ludus.rollout.cuda_graphs import GraphedCall
from ludus.rollout.learner_batch import LearnerBatch

logger = logging.getLogger(__name__)

START_NAME = "start"  # of the snapshot that plays where there are neither bots nor other snapshots
_LONGEST_NAME = 64  # as of checkpoints
_STREAM_OPPONENT = 0xB075


class LeagueOpponents:
    """Plays the seats that the learner does not; see `ludus.rollout.learner_batch.Opponents`.

    The learner plays all seats of one team of every game (see `TeamAssignment`), one opponent all the others. The
    opponent is drawn when an episode starts, from streams keyed by (seed, game, episode): by the shares of the mix, and
    one of the snapshots, which have the name `self` in it, by the chances that `refresh` gave them. Until there is a
    snapshot the bots share what is due to snapshots; without bots the learner as it is now becomes the first snapshot.

    The share of `mirror` is a fixed part of the games: in the first so many the learner plays all seats.

    Attributes:
        opponents: `(games,)` int64, index into `names` of the present opponent of each game, -1 where the learner plays
            all seats; changed in place.
        pool: The snapshots; None where the mix never has snapshots.
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
        agents: Mapping[str, Policy] = MappingProxyType({}),
        carry_over_from: "LeagueOpponents | None" = None,
    ) -> None:
        """Seat everyone for the first episodes.

        Args:
            env: The games.
            policy: The learner.
            weights: Share of each bot and agent, of snapshots as `self`, and of games that the learner plays alone as
                `mirror`: any numbers from 0 on, not all 0. Only those named here can be in a later mix.
            config: Of the league.
            seed: Of the draws and of the opponents' noise.
            cuda_graphs: Whether work on a CUDA device becomes CUDA graphs.
            agents: Policies of the agents among the opponents, by name; all other names are those of bots.
            carry_over_from: Opponents of the games before these, whose snapshots and chances are carried over.

        Raises:
            ConfigError: The world's teams or the weights do not allow it.
            UnknownNameError: The world has no such bot.
            UnsupportedError: The policy's snapshots cannot play together.
        """
        self._seating = TeamAssignment(env, seed, mirrored_games(weights, env.num_envs))
        self._policy, self._config, self._seed = policy, config, seed
        self._bot_names = tuple(name for name in weights if name not in (SELF_KIND, MIRROR_KIND, *agents))
        self._fixed_names = (*self._bot_names, *agents)
        self._bots = BotRoster(env, self._bot_names) if self._bot_names else None
        others = self._seating.other_index, self._seating.other_games
        self._agents: AgentOpponents | None = None
        if agents:
            self._agents = AgentOpponents(env, agents, *others, seed=seed, cuda_graphs=cuda_graphs)
        self._selves: SnapshotOpponents | None = None
        self.pool: SnapshotPool | None = None
        if SELF_KIND in weights:
            self.pool = carry_over_from.pool if carry_over_from is not None else None
            self.pool = self.pool or SnapshotPool(policy, config.keep)
            self._selves = SnapshotOpponents(env, self.pool, *others, seed=seed, cuda_graphs=cuda_graphs)
        self._rows: LearnerBatch | None = None
        self._cuda_graphs = cuda_graphs
        self._graph: GraphedCall | None = None
        met = env.num_envs - self._seating.mirrored
        self._mix = OpponentMix(self._fixed_names, self.pool, config, live=config.live_for(met), seed=seed)
        if carry_over_from is not None:
            self._mix.load_state(part_of(carry_over_from.state(), "mix"))
        self._meets = self._seating.all_games >= self._seating.mirrored
        self._thresholds = torch.zeros(len(self.names), device=env.device)
        self.opponents = torch.zeros_like(self._seating.episodes)
        classes = [_class_of(name, env.spec.bots) for name in self._bot_names]
        # By index into `names`; -1, where the learner plays all seats, finds the last one.
        unknown = [-1] * (len(self.names) - len(classes) + 1)
        self._classes = torch.tensor([*classes, *unknown], dtype=torch.int64, device=env.device)
        self._assignment = torch.full_like(self._seating.learner, -1, dtype=torch.int32)
        self.set_mix(weights)
        everyone = torch.ones_like(self.opponents, dtype=torch.bool)
        self._begin(self._seating.all_games, everyone)

    @property
    def names(self) -> tuple[str, ...]:
        """The opponents by index: bots, agents, and then the snapshot in every slot, empty where there is none."""
        return (*self._fixed_names, *(self.pool.names() if self.pool else ()))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each of `names`: the own name of a bot or an agent, or `self`."""
        return (*self._fixed_names, *(SELF_KIND,) * self._mix.slots)

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

    def attach(self, rows: LearnerBatch) -> None:
        """Take the learner's rows, which are moved to other seats when a game has ended."""
        self._rows, self._graph = rows, None
        self._move_rows()

    def act(self, observations: Observations, actions: Tensor) -> None:
        """Write the opponents' actions."""
        if self._bots is not None:
            self._bots.act(observations, self._assignment, actions)
        if self._agents is not None:
            self._agents.act(observations, actions)
        if self._selves is not None:
            self._selves.act(observations, actions)

    def recording_key(self) -> object | None:
        """Return what a CUDA graph of `act` and `after_step` depends on; see `RecordableOpponents`."""
        bots_can = self._bots is None or self._bots.can_be_recorded
        if not self._cuda_graphs or not bots_can or not all(player.can_be_recorded for player in self._players()):
            return None
        return tuple(player.recording_key() for player in self._players())

    def generators(self) -> tuple[torch.Generator, ...]:
        """Return the generators that opponents draw from."""
        return tuple(player.generator for player in self._players())

    def _players(self) -> tuple[SnapshotOpponents, ...]:
        agents = () if self._agents is None else self._agents.players
        return agents if self._selves is None else (*agents, self._selves)

    def bot_costs(self) -> dict[str, tuple[float, int]]:
        """Return the seconds that each bot in Python took so far, and its decisions."""
        return {} if self._bots is None else self._bots.costs()

    def bots_met(self) -> Tensor:
        """Return the bot that plays in each game now, `(games,)` int64: index into `EnvSpec.bots`, -1 for none.

        A bot with its own settings, such as `aggressive:delay=8`, counts as the one without.
        """
        return self._classes[self.opponents]

    def after_step(self, result: StepResult) -> None:
        """Reseat everyone in games that ended; on the host only steps with such games cost anything."""
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
        """Seat everyone in `games` `(any,)` int64, and draw opponents for those that `ended` `(games,)` bool."""
        self._seating.seat(games)
        chances = uniform(self._seating.hashes(games, _STREAM_OPPONENT))
        drawn = torch.searchsorted(self._thresholds, chances, right=True)
        episode_starts = ended.index_select(0, games)
        present = torch.where(episode_starts, drawn, self.opponents.index_select(0, games))
        present = torch.where(self._meets.index_select(0, games), present, -1)
        self.opponents.index_copy_(0, games, present)
        of_bots = torch.where(present < len(self._bot_names), present, -1)
        assignment = torch.where(self.learner.index_select(0, games), -1, of_bots.unsqueeze(1))
        self._assignment.index_copy_(0, games, assignment.to(torch.int32))
        if self._bots is not None:
            self._bots.begin(ended)
        bots, fixed = len(self._bot_names), len(self._fixed_names)
        if self._agents is not None:
            self._agents.seat(games, torch.where(present < fixed, present - bots, -1).clamp(min=-1), episode_starts)
        if self._selves is not None:
            self._selves.seat(games, (present - fixed).clamp(min=-1), episode_starts)
        self._move_rows()

    def _move_rows(self) -> None:
        if self._rows is not None:
            self._rows.index.copy_(self._seating.learner_index)

    def set_mix(self, weights: Mapping[str, float]) -> None:
        """Set the share of each opponent for episodes that start from now on; those not named get none.

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
        """Give every snapshot its chance, by the config's sampler, for episodes that start from now on.

        Of many snapshots a part is live at a time, so that their groups of games are not too small, and another one
        when every game has ended about once: those that are live no more should have stopped playing by then. In
        the long run each gets its chance. It waits for the device.
        """
        self._mix.refresh(payoffs, int(self.episodes.sum()) // self.episodes.numel())
        self._cut()

    def assign(self, chances: Mapping[str, float]) -> None:
        """Give every snapshot the chance that someone else decided on, for episodes that start from now on.

        Those not named get none; if none has one, the newest plays.

        Raises:
            ConfigError: The config's sampler is another one than `assigned`, or a chance is no share.
            UnknownNameError: There is no such snapshot.
        """
        if self._config.sampler != "assigned" or self.pool is None:
            raise ConfigError(
                f"chances cannot be assigned: league.sampler is {self._config.sampler!r} and the opponents are "
                f"{', '.join(self.names)}; use 'assigned', and {SELF_KIND!r} among the opponents"
            )
        check_weights(chances)
        for name in chances:
            self.pool.find(name)
        self._mix.assign(chances)
        self._cut()

    def retire(self, keep: Collection[str]) -> int:
        """Remove the snapshots that are neither to be kept nor playing, and return how many more there is room for."""
        if self.pool is None:
            return 0
        kept = self.playing() | {*keep}
        for snapshot in self.pool.snapshots:
            if snapshot.name not in kept:
                self._mix.clear(self.pool.remove(snapshot.name).slot)
        return self.pool.stacked.slots - len(self.pool.snapshots)

    @property
    def takes_snapshots(self) -> bool:
        """Whether the learner becomes a snapshot now and then; never where opponents are assigned."""
        return self.pool is not None and self._config.sampler != "assigned"

    def playing(self) -> frozenset[str]:
        """Return the names of the snapshots that running games play against; it waits for the device."""
        names = self.names
        return frozenset(names[i] for i in set(self.opponents.tolist()) if i >= len(self._fixed_names)) - {""}

    def add_snapshot(
        self,
        name: str,
        env_steps: int,
        policy_state: Mapping[str, Tensor],
        *,
        slot: int | None = None,
        also_playing: Collection[str] = (),
    ) -> str | None:
        """Take a snapshot of the learner; call `refresh` afterwards to let it play, unless it is the first.

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
            ConfigError: There are no snapshots in this league, or one of this name.
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
        """Remove a snapshot at once; games that it was playing continue against others.

        Raises:
            UnknownNameError: There is none of this name.
        """
        if self.pool is None:
            raise UnknownNameError("snapshot", name, ["none in this league"])
        self._mix.clear(self.pool.remove(name).slot)
        self._cut()
        self._replace_missing()

    def document(self) -> dict[str, Any]:
        """Return the names of the snapshots and their slots, as JSON, to go with `state`."""
        return LeagueState(snapshots=list(self.pool.snapshots if self.pool else ())).model_dump()

    def load_document(self, document: object) -> tuple[Snapshot, ...]:
        """Drop the snapshots that a document does not name, and return those it names that are not here.

        Give these back by `add_snapshot` with their slots, and then call `load_state`.

        Raises:
            StateError: It is not such a document, or names a snapshot or a slot twice.
        """
        wanted = LeagueState.read(document, "course.league").snapshots
        for at, snapshot in enumerate(wanted):
            if len(snapshot.name) > _LONGEST_NAME:
                raise StateError(f"course.league.snapshots.{at}.name is {brief(snapshot.name)}, which is no name")
        for key in ("name", "slot"):  # each snapshot is read from the disk: 2,000 times the same one took 12 s
            for value, count in Counter(getattr(snapshot, key) for snapshot in wanted).most_common(1):
                if count > 1:
                    raise StateError(f"course.league.snapshots has the {key} {value!r} {count} times")
        for snapshot in self.pool.snapshots if self.pool else ():
            if self.pool and snapshot not in wanted:
                self.pool.remove(snapshot.name)
        return tuple(snapshot for snapshot in wanted if not self.pool or snapshot not in self.pool.snapshots)

    def state(self) -> dict[str, Tensor]:
        """Return copies of what the future depends on beside the snapshots."""
        bots = {} if self._bots is None else self._bots.state()
        return self._own_state() | with_prefix("bots", bots)

    def _own_state(self) -> dict[str, Tensor]:
        tensors = {"episodes": self.episodes, "opponents": self.opponents} | with_prefix("mix", self._mix.state())
        if self._agents is not None:
            tensors |= with_prefix("agents", self._agents.state())
        if self._selves is not None:
            tensors |= with_prefix("selves", self._selves.state())
        return clone_tensors(tensors)

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`; games against a snapshot that is not here get other opponents.

        Raises:
            StateError: It does not fit the games, the policy or the opponents.
        """
        ranges = {"episodes": (0, MAX_COUNT), "opponents": (-1, len(self.names) - 1)}
        advice = f"use the same {len(self.episodes)} games, policy config and opponents"
        bots = part_of(state, "bots")
        of_bots = with_prefix("bots", bots)  # checked by the roster: its form is known to the bots alone
        rest = {name: tensor for name, tensor in state.items() if name not in of_bots}
        check_tensors(rest, self._own_state(), "the opponents", ranges=ranges, advice=advice)
        self.episodes.copy_(state["episodes"])
        self.opponents.copy_(state["opponents"])
        self._mix.load_state(part_of(state, "mix"))
        self._cut()
        nobody = torch.zeros_like(self.opponents, dtype=torch.bool)
        self._begin(self._seating.all_games, nobody)
        if self._agents is not None:
            self._agents.load_state(part_of(state, "agents"))
        if self._selves is not None:
            self._selves.load_state(part_of(state, "selves"))
        if self._bots is not None:
            self._bots.load_state(bots)
        self._replace_missing()

    def restart(self) -> None:
        """Begin the next episode of every game."""
        self._end(torch.ones_like(self.opponents, dtype=torch.bool))

    def _replace_missing(self) -> None:
        """Draw other opponents for running games whose snapshot is gone."""
        if self._selves is None:
            return
        present = torch.tensor([bool(name) for name in self.names], device=self.opponents.device)
        missing = (self.opponents >= 0) & ~present.index_select(0, self.opponents.clamp(min=0))
        self._selves.forget(missing)
        self._begin(self._seating.all_games, missing)

    def _cut(self) -> None:
        """Let the draws follow the mix; take a first snapshot when there is no other opponent."""
        if not self._meets_anyone:
            return
        if self.pool is not None and self._mix.has_nobody:
            logger.info("[OK] no bots among the opponents: the learner as it is now is its first opponent")
            self.pool.add(START_NAME, 0, self._policy.state(), ())
        self._thresholds.copy_(self._mix.thresholds())


def _class_of(name: str, bots: tuple[str, ...]) -> int:
    """Return the index in `bots` of a bot that may carry settings; -1 for an unknown one."""
    plain = name.partition(":")[0]
    return bots.index(plain) if plain in bots else -1
