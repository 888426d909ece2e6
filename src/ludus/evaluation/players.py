"""Players: bots, agents by path or name, people at the keyboard, and the actors that play their seats in a batch."""

import logging
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.native_mlp import NativeMlp, supports
from ludus.algorithms.ppo.optimizer import FlatAdam
from ludus.core.errors import AgentError, ConfigError, UnsupportedError, brief, did_you_mean
from ludus.core.files import EXPORT_SUFFIX, suggest_run
from ludus.core.text import short_text
from ludus.envs.base import BatchedEnv, Observations, StepResult
from ludus.envs.bot_roster import BotRoster
from ludus.envs.bots import PythonBot, as_bot, bot_names, is_bot
from ludus.envs.display import PolicyOutput, display_of
from ludus.envs.families import family_of
from ludus.envs.registry import check_name_from_file, is_registered
from ludus.envs.world import registered_envs
from ludus.evaluation.display import playable
from ludus.policies.agent import CHECKPOINTS_FOLDER, Agent, build_policy
from ludus.policies.cost import USUAL_LIMITS, Allowance, LoadLimits, clocks, taken_s
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy, RecurrentState, Step, kind_shares
from ludus.policies.shipped import agent_names, find_agent_path
from ludus.rollout.inference import InferenceBackend, make_inference

logger = logging.getLogger(__name__)

_AGENT_PATHS = "the folder of a run or a checkpoint, or a file of `ludus export`"


class Actor(Protocol):
    """Plays some seats of the games of a batch."""

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        """Write the actions of its own seats.

        Args:
            observations: One `(games, seats, ...)` tensor per entry.
            actions: `(games, seats, ...)`; the other seats are left unchanged.
            first: Whether this is the first step of a match, at which recurrent state is reset.
        """


class NamedActor(Actor, Protocol):
    """Plays one seat of every game of a batch.

    Attributes:
        name: Display name.
    """

    name: str


class BatchActor(Actor, Protocol):
    """An actor that can drop games that are over."""

    @property
    def fault(self) -> "Fault | None":
        """What it did that ends games as its loss, if it did."""

    def keep(self, games: Tensor) -> None:
        """Keep playing only the games of this mask `(games,)`; the others cost nothing from now on."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an agent loses games.

    Attributes:
        reason: In a sentence that names it.
        seats: `(games, seats)` bool, seats that lose; they stay so for the rest of a batch.
    """

    reason: str
    seats: Tensor


class BotActor:
    """Bots, any of them in any seat."""

    fault = None

    def __init__(self, env: BatchedEnv, bots: Sequence[str | PythonBot], assignment: Tensor) -> None:
        """Seat the bots.

        Args:
            env: The games.
            bots: The bots.
            assignment: `(games, seats)` int32, index into `bots`, or -1 for a seat that no bot plays.
        """
        self._bots, self._assignment = BotRoster(env, bots), assignment
        self._everyone = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        """Write the bots' actions; see `Actor.act`."""
        if first:
            self._bots.begin(self._everyone)
        self._bots.act(observations, self._assignment, actions)

    def keep(self, games: Tensor) -> None:
        """Drop the other games; see `BatchActor.keep`."""
        self._assignment = torch.where(games.unsqueeze(1), self._assignment, -1)


class BotPlayer:
    """A scripted player of the world, in the same seat of every game."""

    def __init__(self, env: BatchedEnv, seat: int, bot: str | PythonBot) -> None:
        self.name = bot if isinstance(bot, str) else bot.name
        self._actor = BotActor(env, [bot], one_seat(env, seat).int() - 1)

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        """Write the bot's actions; see `Actor.act`."""
        self._actor.act(observations, actions, first=first)


class AgentPlayer:
    """A policy with separate recurrent state for every seat that it plays; its normalization statistics are frozen.

    Attributes:
        name: Display name.
        show_policy: Called before every step with the action probabilities and value of its first seat, or None.
    """

    def __init__(
        self,
        env: BatchedEnv,
        seats: Tensor,
        policy: Policy,
        *,
        name: str = "agent",
        seed: int = 0,
        deterministic: bool = False,
        inference: InferenceBackend | None = None,
        may_lose: bool = False,
    ) -> None:
        """Seat the policy.

        Args:
            env: The games.
            seats: `(games, seats)` bool, which seats it plays; see `one_seat`.
            policy: The policy, on the device of the games.
            name: Display name.
            seed: Seed of the sampled actions.
            deterministic: Whether to take the most likely action instead of sampling.
            inference: Inference backend for sampled actions; the policy itself if None.
            may_lose: Whether a first decision that is NaN costs it the match, instead of raising an error.

        Raises:
            ConfigError: The policy is on another device than the games.
            AgentError: It comes from a file, and may not play so many seats at once.
        """
        if policy.device.type != env.device.type:
            raise ConfigError(f"the agent is on {policy.device}, the games are on {env.device}; load it there")
        self.name = name
        self.show_policy: Callable[[PolicyOutput], None] | None = None
        self._policy, self._inference, self._deterministic = policy, inference or policy, deterministic
        self._generator = torch.Generator(policy.device).manual_seed(seed)
        self._seats = env.spec.seats
        self._index = seats.flatten().nonzero().squeeze(1)
        self._memory: RecurrentState = {}
        self._noise: Tensor | None = None
        self._allowance, self._may_lose = policy.allowance, may_lose
        self._wrong = torch.zeros(seats.shape, dtype=torch.bool, device=seats.device)  # seats that decided NaN
        if self._allowance is not None and len(self._index) > max(self._allowance.most_seats, 1):
            raise AgentError(
                f"{name} is to play {len(self._index)} seats at once, but each of them takes so much that it may play "
                f"{self._allowance.most_seats}; play fewer games at once (--games, max_envs)"
            )

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        """Write the policy's actions; see `Actor.act`.

        Raises:
            AgentError: It comes from a file, and its first decision is NaN or infinity.
        """
        if not len(self._index) or (self._allowance is not None and self._allowance.overdue):  # nothing is asked of it
            return
        since = clocks()
        if first:
            self._wrong.zero_()
            self._memory, self._noise = self._policy.initial(len(self._index)), None
        rows = {name: tensor.flatten(0, 1).index_select(0, self._index) for name, tensor in observations.items()}
        episode_starts = torch.full(self._index.shape, first, dtype=torch.bool, device=self._index.device)
        if self.show_policy is not None:
            self.show_policy(self._policy_output(rows, episode_starts))
        noise = self._draw()
        if noise is None:
            step = self._policy.step(rows, self._memory, episode_starts)
        else:
            step = self._inference.step(rows, self._memory, episode_starts, noise)
        self._memory = step.memory
        chosen = self._policy.clip_actions(step.actions).to(actions.dtype)
        if self._allowance is not None:
            chosen = self._judged(self._allowance, step, chosen, first=first)
            if self._index.is_cpu:  # a GPU is still at work, for no longer than the limits on operations allow
                self._time(self._allowance, taken_s(since))
        actions.flatten(0, 1).index_copy_(0, self._index, chosen)

    def _judged(self, allowance: Allowance, step: Step, chosen: Tensor, *, first: bool) -> Tensor:
        """Return the actions, with zeros for those that are NaN or infinite; note whose they are."""
        finite = step.log_probs.isfinite()
        if chosen.is_floating_point():
            finite = finite & chosen.flatten(1).isfinite().all(1)
            chosen = torch.where(finite.view(-1, *(1,) * (chosen.dim() - 1)), chosen, 0.0)
        if first and not self._may_lose and not bool((finite & step.values.isfinite()).all()):
            raise AgentError(
                f"{self.name}: the first decision is NaN or Inf, though the weights are finite: they are far too "
                "large; train it again or use an earlier checkpoint"
            )
        self._wrong.view(-1)[self._index] |= ~finite
        return chosen

    def _time(self, allowance: Allowance, seconds: float) -> None:
        limit = allowance.decision_s(len(self._index))
        if seconds > limit:
            seats = len(self._index)
            allowance.overdue = f"took {seconds:.1f} s over a decision in {seats} seats; its limit is {limit:.1f} s"

    @property
    def fault(self) -> Fault | None:
        """What it did that ends games as its loss; asking waits for a GPU. None for a policy of this program."""
        if self._allowance is None:
            return None
        if self._allowance.overdue:
            seats = torch.zeros_like(self._wrong)
            seats.view(-1)[self._index] = True
            return Fault(f"{self.name} {self._allowance.overdue}", seats)
        if bool(self._wrong.any()):
            return Fault(f"{self.name} decided NaN or infinity", self._wrong)
        return None

    @property
    def is_overdue(self) -> bool:
        """Whether a decision of its policy took too long, so that it is not asked any more."""
        return self._allowance is not None and bool(self._allowance.overdue)

    def keep(self, games: Tensor) -> None:
        """Drop the other games; see `BatchActor.keep`."""
        kept = games[self._index.div(self._seats, rounding_mode="floor")]
        self._index = self._index[kept]
        self._memory = {name: tensor[kept] for name, tensor in self._memory.items()}
        self._noise = None

    def _policy_output(self, rows: Observations, episode_starts: Tensor) -> PolicyOutput:
        memory = {name: tensor.clone() for name, tensor in self._memory.items()}  # the step itself overwrites it
        one = {name: tensor.unsqueeze(0) for name, tensor in rows.items()}
        shares = kind_shares(self._policy, one, memory, episode_starts.unsqueeze(0), explores=False)
        return PolicyOutput(tuple(shares[0, 0].tolist()), float(self._policy.value(rows, memory, episode_starts)[0]))

    def _draw(self) -> Tensor | None:
        """Draw noise at every step, or once per match if the head holds its noise (gSDE)."""
        if not self._deterministic and (self._noise is None or not self._policy.head.hold_noise):
            self._noise = self._policy.draw_noise(1, len(self._index), self._generator)[0]
        return self._noise


class KeyboardPlayer:
    """A person at the keyboard, in a batch of one game."""

    def __init__(self, env: BatchedEnv, seat: int, name: str = "you") -> None:
        """Seat the person.

        Raises:
            UnsupportedError: The world cannot be played with a keyboard.
        """
        maker = display_of(env.spec.id).keyboard
        if maker is None:
            raise UnsupportedError(
                f"{env.spec.id} cannot be played with a keyboard; valid: {', '.join(playable())}; "
                "watch an agent of it: ludus demo RUN"
            )
        self.name = name
        self._keyboard, self._seat = maker(env, seat), seat
        self._held: frozenset[str] = frozenset()

    def press(self, held: Collection[str]) -> None:
        """Set the names of the keys that are held from now on."""
        self._held = frozenset(held)

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        """Write the action of the held keys; see `Actor.act`."""
        actions[0, self._seat] = self._keyboard.action(self._held)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What an agent observes instead of the true state, for robustness tests.

    Attributes:
        delay_frames: Steps by which observations are delayed; until then the agent sees the first frame of the match.
        noise: Standard deviation of Gaussian noise on every continuous entry of an observation, in its own units:
            worlds scale observations to the order of 1.
    """

    delay_frames: int = 0
    noise: float = 0.0

    def __post_init__(self) -> None:
        if self.delay_frames < 0 or not 0.0 <= self.noise < float("inf"):
            raise ConfigError(
                f"delay_frames and noise must be 0 or more and finite, got {self.delay_frames} and {self.noise}"
            )


class PerturbedPlayer:
    """An actor whose observations are perturbed; see `Perturbation`."""

    def __init__(self, player: BatchActor, perturbation: Perturbation, seed: int, device: torch.device) -> None:
        """Wrap a player.

        Args:
            player: The player.
            perturbation: What is done to its observations.
            seed: Seed of the noise.
            device: Device of the games.
        """
        self._player, self._perturbation = player, perturbation
        self._generator = torch.Generator(device).manual_seed(seed)
        self._past: list[Observations] = []

    def act(self, observations: Observations, actions: Tensor, *, first: bool) -> None:
        """Let the player act on perturbed observations; see `Actor.act`."""
        seen = self._delayed(observations, first=first)
        if self._perturbation.noise > 0.0:
            seen = {name: self._noisy(tensor) for name, tensor in seen.items()}
        self._player.act(seen, actions, first=first)

    @property
    def fault(self) -> Fault | None:
        """That of the player; see `BatchActor.fault`."""
        return self._player.fault

    def keep(self, games: Tensor) -> None:
        """Drop the other games; see `BatchActor.keep`."""
        self._player.keep(games)

    def _delayed(self, observations: Observations, *, first: bool) -> Observations:
        delay = self._perturbation.delay_frames
        if delay == 0:
            return observations
        if first:
            self._past = []
        # The environment overwrites its tensors at the next step.
        self._past.append({name: tensor.clone() for name, tensor in observations.items()})
        return self._past.pop(0) if len(self._past) > delay else self._past[0]

    def _noisy(self, tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        drawn = torch.randn(tensor.shape, generator=self._generator, dtype=tensor.dtype, device=tensor.device)
        return tensor + self._perturbation.noise * drawn


def perturb(player: BatchActor, perturbation: Perturbation | None, seed: int, device: torch.device) -> BatchActor:
    """Return the player, wrapped in a `PerturbedPlayer` if there is something to perturb."""
    if perturbation is None or perturbation == Perturbation():
        return player
    return PerturbedPlayer(player, perturbation, seed, device)


@dataclass(frozen=True, slots=True)
class Player:
    """Someone who can take a seat.

    Attributes:
        name: As given by the user: a bot's name, or an agent's name or path.
        policy: The agent's policy; None for a bot.
        bot: A bot in Python that is not registered; without it, and without a policy, it is the bot of that name.
    """

    name: str
    policy: Policy | None = None
    bot: PythonBot | None = None

    def seat(
        self, env: BatchedEnv, seat: int, *, seed: int = 0, deterministic: bool = False
    ) -> AgentPlayer | BotPlayer:
        """Take the same seat in every game."""
        if self.policy is None:
            return BotPlayer(env, seat, self.bot or self.name)
        name, seats = short_name(self.name), one_seat(env, seat)
        return AgentPlayer(env, seats, self.policy, name=name, seed=seed, deterministic=deterministic)


Contender: TypeAlias = str | Path | Agent | Player | Callable[..., Any]
"""Who can play: a bot's name, an agent, its name or its path, or a function or class that is a bot."""


def as_player(given: Contender) -> str | Player:
    """Return someone as a player: agents, and functions and classes that are bots; a name or a path stays text."""
    if isinstance(given, Player):
        return given
    if isinstance(given, Agent):
        return Player("agent", given.policy)
    if isinstance(given, str | Path):
        return str(given)
    bot = as_bot(given)
    return Player(bot.name, bot=bot)


def as_players(given: Sequence[Contender]) -> list[str | Player]:
    """Return several as players, like `as_player`; agents, functions and classes of one name are numbered from 1."""
    players = [as_player(each) for each in given]
    own = [
        player.name if isinstance(player, Player) and not isinstance(each, Player) else ""
        for each, player in zip(given, players, strict=True)
    ]
    for index, (name, player) in enumerate(zip(own, players, strict=True)):
        if isinstance(player, Player) and name and own.count(name) > 1:
            players[index] = replace(player, name=f"{name}-{own[: index + 1].count(name)}")
    return players


def seat_by_team(
    env: BatchedEnv, sides: Sequence[Player], *, seed: int = 0, deterministic: bool = False
) -> list[AgentPlayer | BotPlayer]:
    """Seat players, each in all seats of its team.

    Args:
        env: The games.
        sides: One player per team, in the order of the teams' first seats.
        seed: Seed of the first seat's sampled actions; each later seat adds 1.
        deterministic: Whether agents take the most likely action instead.

    Raises:
        ConfigError: There are more or fewer teams.
    """
    teams = list(dict.fromkeys(env.spec.teams))
    if len(sides) != len(teams):
        raise ConfigError(f"{env.spec.id} has {len(teams)} sides, got {len(sides)} players")
    seated = []
    for seat, team in enumerate(env.spec.teams):
        player = sides[teams.index(team)]
        seated.append(player.seat(env, seat, seed=seed + seat, deterministic=deterministic))
    return seated


def seat_in_batch(
    env: BatchedEnv,
    players: Sequence[Player],
    seating: Tensor,
    seed_of: Callable[[int], int],
    *,
    deterministic: bool,
    may_lose: bool = False,
) -> list[BatchActor]:
    """Seat players anywhere in a batch: one roster for all bots, one actor per agent that has a seat.

    Args:
        env: The games.
        players: All players.
        seating: `(games, seats)`, index into `players`, or -1 for a seat that none of them plays.
        seed_of: Returns the seed of an agent's sampled actions by its index.
        deterministic: Whether agents take the most likely action instead.
        may_lose: See `AgentPlayer`.
    """
    actors: list[BatchActor] = []
    bots = [index for index, player in enumerate(players) if player.policy is None]
    if bots:
        # The extra last entry is that of index -1.
        numbers = torch.full((len(players) + 1,), -1, dtype=torch.int32, device=env.device)
        numbers[bots] = torch.arange(len(bots), dtype=torch.int32, device=env.device)
        actors.append(BotActor(env, [players[index].bot or players[index].name for index in bots], numbers[seating]))
    for index, player in enumerate(players):
        seats = seating == index
        if player.policy is not None and bool(seats.any()):
            name, seed = short_name(player.name), seed_of(index)
            actors.append(
                seat_policy(env, seats, player.policy, seed, deterministic=deterministic, name=name, may_lose=may_lose)
            )
    return actors


def seat_policy(
    env: BatchedEnv,
    seats: Tensor,
    policy: Policy,
    seed: int,
    *,
    deterministic: bool,
    name: str = "agent",
    may_lose: bool = False,
) -> AgentPlayer:
    """Seat a policy in the seats of a mask `(games, seats)`, with the fastest inference backend; see `AgentPlayer`."""
    inference = None if deterministic else make_playing_inference(policy, int(seats.sum()))
    return AgentPlayer(
        env, seats, policy, name=name, seed=seed, deterministic=deterministic, inference=inference, may_lose=may_lose
    )


def games_at_once(policies: Iterable[Policy | None], seats: int, most: int) -> int:
    """Return how many games a batch may have, `most` or fewer, by what the agents among the players take."""
    allowed = [each.allowance.most_seats // seats for each in policies if each is not None and each.allowance]
    return max(1, min([most, *allowed]))


def with_losses(env: BatchedEnv, result: StepResult, actors: Iterable[BatchActor]) -> StepResult:
    """Return the result of a step in which games end as a loss of the agents that are at fault in them.

    Raises:
        AgentError: The world has no winners, so that there is nothing to lose.
    """
    faults = [fault for fault in (actor.fault for actor in actors) if fault is not None]
    if not faults:
        return result
    for fault in faults:
        if "wins" not in result.events:
            raise AgentError(f"{fault.reason}; {env.spec.id} has no winners, so that it cannot lose")
        _notice(f"{fault.reason}: it loses its matches")
    teams = torch.tensor(env.spec.teams, device=env.device)
    same = (teams.unsqueeze(0) == teams.unsqueeze(1)).float()
    loses = torch.stack([fault.seats for fault in faults]).any(0).float() @ same > 0.0  # its whole team loses
    over = loses.any(1)
    outcome = {"wins": (~loses).float(), "losses": loses.float()}
    events = {
        name: torch.where(over.unsqueeze(1), outcome[name].to(tensor.dtype), tensor) if name in outcome else tensor
        for name, tensor in result.events.items()
    }
    return replace(result, events=events, terminated=result.terminated | over)


@cache  # once per process and fault
def _notice(text: str) -> None:
    logger.warning("[WARN] %s", text)


def make_playing_inference(policy: Policy, rows: int) -> InferenceBackend:
    """Return the fastest inference backend for sampled actions: CUDA graphs, compiled CPU functions or plain calls.

    Args:
        policy: The policy as it is now; it does not change.
        rows: Rows of every step; on a CPU later steps may have fewer.
    """
    if not supports(policy):
        return make_inference(policy, rows, cuda_graphs=True)
    # The compiled functions move the parameters to their own memory, and a learner may hold this policy: give them a
    # copy.
    own = build_policy(PolicyDescription.of(policy.spec, policy.config), policy.state(), policy.device)
    config = PpoConfig()
    native = NativeMlp(own, FlatAdam(own, config), config)
    if policy.allowance is not None:  # compiles now what no decision may take the time for
        frame = {name: torch.zeros((1, *(space.shape or ()))) for name, space in policy.spec.observation_space.items()}
        native.value(frame, {}, torch.ones(1, dtype=torch.bool))
    return native


def find_player(name: str, env: BatchedEnv) -> Player:
    """Find a bot of the world, or load an agent onto the device of the games.

    Args:
        name: A bot such as `based` or `aggressive:delay=8`, the folder of a run (its best agent) or of a checkpoint,
            a file of `ludus export`, or a shipped agent such as `champion`. A bot takes precedence over a folder of the
            same name (`./based` is the folder), and both take precedence over a shipped agent.
        env: The games to play.

    Raises:
        ConfigError: There is neither a bot nor an agent of this name, or the bot's settings are wrong.
        CheckpointError: The folder holds no agent.
        StateError: The agent is for another world.
    """
    if is_bot(name, env.spec):
        BotRoster(env, [name])  # raises if the settings are wrong
        return Player(name)
    check_player_name(name, env)
    agent = Agent.load(name, env.device)
    agent.check_world(env.spec)
    return Player(name, agent.policy)


def find_players(names: Sequence[str | Player], env: BatchedEnv) -> tuple[Player, ...]:
    """Find several players, see `find_player`; those that are found already stay.

    Raises:
        ConfigError: A name is listed twice, or see `find_player`.
    """
    check_no_duplicates([each if isinstance(each, str) else each.name for each in names])
    return tuple(find_player(each, env) if isinstance(each, str) else each for each in names)


def check_player_name(name: str, env: BatchedEnv) -> None:
    """Raise ConfigError if a name is neither a bot of the world nor a file, a folder or a shipped agent."""
    if is_bot(name, env.spec) or find_agent_path(name) is not None:
        return
    bots, shipped = bot_names(env.spec), agent_names(env.spec.id)
    raise ConfigError(
        f"unknown player {brief(name, 200)}{did_you_mean(name.partition(':')[0], (*bots, *shipped))}: not a bot of "
        f"{env.spec.id}, and there is no folder or file {Path(name).absolute()}; valid: "
        f"{', '.join(bots) or 'no bots'}, {_list_shipped(shipped)}or {_AGENT_PATHS}"
        "; a bot of your own needs --plugin FILE"
    )


def _list_shipped(names: Sequence[str]) -> str:
    """Return shipped agents as a part of a list of what is valid; nothing if there are none."""
    return f"the shipped agents {', '.join(names)}, " if names else ""


def check_no_duplicates(names: Sequence[str]) -> None:
    """Raise ConfigError if a player is listed twice."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise ConfigError(f"listed more than once: {', '.join(twice)}; list every player once")


def load_agent(
    name: str | Path, device: str | torch.device = "cpu", *, limits: LoadLimits | None = USUAL_LIMITS
) -> Agent:
    """Load an agent; nothing in its files can run code, and every byte is verified.

    Args:
        name: The folder of a run (its best agent) or of a checkpoint, a file of `ludus export`, or the name of a
            shipped agent such as `champion`; a file or folder of that name takes precedence.
        device: Where to load it.
        limits: What it may cost; see `Agent.load`.

    Raises:
        ConfigError: There is no such agent, or making the agent's world would import a module.
        CheckpointError: It holds no agent.
        DeviceError: The device is not available.
    """
    if find_agent_path(name) is None:
        shipped = agent_names()
        raise ConfigError(
            f"unknown agent {brief(str(name), 200)}{did_you_mean(str(name), shipped)}: there is no folder or file "
            f"{Path(name).absolute()}; valid: {_list_shipped(shipped)}or {_AGENT_PATHS}{suggest_run(Path(name))}"
        )
    agent = Agent.load(name, device, limits=limits)
    check_name_from_file(agent.spec.id, "the agent's world")
    return agent


def load_playable_agent(name: str | Path, device: str | torch.device = "cpu") -> Agent:
    """Load an agent like `load_agent` to play in its own world.

    Raises:
        ConfigError: Its world is not registered; the error names the plugins with which it was trained.
    """
    agent = load_agent(name, device)
    check_registered(agent)
    return agent


def check_registered(agent: Agent) -> None:
    """Raise ConfigError if the agent's world is not registered, with the plugins that probably register it."""
    if is_registered(agent.spec.id):
        return
    name = agent.spec.id.rpartition("-v")[0]
    known = [world for world in registered_envs() if world.rpartition("-v")[0] == name]
    if known:
        raise ConfigError(
            f"the agent's world is {agent.spec.id}, but this version has {known[-1]}, whose rules differ; train the "
            "agent again, or use the version that trained it"
        )
    # Quoted, because people copy it into a shell, and a stranger's file says it.
    options = " ".join(f"--plugin {shlex.quote(short_text(name))}" for name in agent.plugins[:10])
    trained = (
        f"the agent was trained with {options}: pass that again"
        if options
        else (f"put it into a file that calls ludus.register_env({agent.spec.id!r}, ...) and pass --plugin FILE")
    )
    raise ConfigError(
        f"the agent's world {agent.spec.id!r} is not registered; {trained}, or in Python import what registers it"
    )


def find_world(name: str) -> tuple[str, Agent | None]:
    """Resolve a name that may be a world's or an agent's; return the world, and the agent if it is one.

    A world takes precedence over a folder of the same name (`./brawl` is the folder), and both take precedence over a
    shipped agent.

    Raises:
        ConfigError: There is neither a world nor an agent of this name.
        CheckpointError: The folder holds no agent.
    """
    worlds = registered_envs()
    names = {*worlds, *(world.rpartition("-v")[0] for world in worlds)}
    if name in names or family_of(name) is not None:
        return name, None
    if find_agent_path(name) is None:
        shipped = agent_names()
        raise ConfigError(
            f"unknown world or agent {brief(name, 200)}{did_you_mean(name, (*names, *shipped))}: there is no folder or "
            f"file {Path(name).absolute()}; valid: {', '.join(worlds)}, {_list_shipped(shipped)}or {_AGENT_PATHS}"
        )
    agent = load_playable_agent(name)
    return agent.spec.id, agent


def short_name(name: str) -> str:
    """Return the display name of a path: `runs/a/checkpoints/best` is `a/best`, `runs/a` and `a.ludus` are `a`."""
    parts = Path(name).absolute().parts
    if len(parts) > 3 and parts[-2] == CHECKPOINTS_FOLDER:
        return f"{parts[-3]}/{parts[-1]}"
    return parts[-1].removesuffix(EXPORT_SUFFIX)


def one_seat(env: BatchedEnv, seat: int) -> Tensor:
    """Return the mask `(games, seats)` of one seat of every game."""
    seats = torch.zeros((env.num_envs, env.spec.seats), dtype=torch.bool, device=env.device)
    seats[:, seat] = True
    return seats
