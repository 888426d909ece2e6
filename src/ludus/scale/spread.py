"""Tournaments and benchmarks whose batches are played by workers on Ray, with the results of one process.

A batch has its own seeds and does not depend on the others, so that the table is the same wherever each is played. A
batch whose worker is lost is played again by another one. Agents travel as the bytes of files of `ludus export`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ludus.core.errors import ConfigError, WorkerError
from ludus.core.files import EXPORT_SUFFIX, read_regular, temporary_folder
from ludus.envs.base import BatchedEnv
from ludus.envs.bots import is_bot
from ludus.evaluation.benchmark import SuiteBatch, play_batches
from ludus.evaluation.matches import MatchSchedule, Progress
from ludus.evaluation.players import Player, find_player
from ludus.evaluation.results import MatchResults
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.cost import USUAL_LIMITS
from ludus.rewards.plugins import load_plugin
from ludus.scale.cluster import ray_session, require_ray, worker_errors
from ludus.scale.league_workers import load_from_bytes
from ludus.store import DEFAULT_LIMITS, write_single_file

_RETRIES = 4  # of a batch whose worker was lost
_LOADED: dict[str, Agent] = {}  # agents of this worker by the key of their content
_MOST_LOADED = 1_000

File = tuple[str, Any]
"""A key, and the reference to the content of an agent's file in Ray's object store."""


@contextmanager
def spreading(address: str | None, what: str) -> Iterator[None]:
    """Open Ray for a command.

    Raises:
        MissingDependencyError: Ray is not installed.
        ConfigError: The cluster cannot be reached.
    """
    require_ray(what, libraries=("ray",))
    with ray_session(address):
        yield


@dataclass(frozen=True, slots=True)
class SpreadSchedule(MatchSchedule):
    """A `MatchSchedule` whose batches are played by workers.

    Attributes:
        files: File of each player; None for bots.
        plugins: Files and modules of the user's own that workers load.
    """

    files: tuple[File | None, ...] = ()
    plugins: tuple[str, ...] = ()

    def play_batches(
        self,
        pairs: Sequence[tuple[int, int]],
        matches: int,
        numbers: Sequence[int],
        *,
        round_number: int = 0,
        progress: Progress = lambda _: None,
    ) -> list[tuple[Tensor, Tensor]]:
        """Play batches, one task each; see `MatchSchedule.play_batches`."""
        task = _task(_play_matches, str(self.device))
        names = [player.name for player in self.players]
        options = (self.world, str(self.device), dict(self.config) if self.config else None)
        rules = (self.seed, self.deterministic, self.max_envs)
        references = [
            task.remote(options, rules, names, self.files, list(pairs), matches, number, round_number, self.plugins)
            for number in numbers
        ]
        both = _collect(references, progress)
        return [(torch.from_numpy(np.array(won)), torch.from_numpy(np.array(lost))) for won, lost in both]


def spread_schedule(schedule: MatchSchedule, plugins: Sequence[str] = ()) -> SpreadSchedule:
    """Return a schedule that plays the same matches on Ray, which must be open.

    Raises:
        ConfigError: A player is an object in Python, which workers cannot find.
    """
    for player in schedule.players:
        if player.bot is not None:
            raise ConfigError(f"bot {player.name} is an object in Python; register it in a plugin to play it on Ray")
    files = tuple(None if player.policy is None else _send(player) for player in schedule.players)
    return SpreadSchedule(
        schedule.world, schedule.players, schedule.device, schedule.config, schedule.seed, schedule.deterministic,
        schedule.max_envs, files, tuple(plugins),
    )  # fmt: skip


def _play_matches(
    options: tuple[str, str, dict[str, Any] | None],
    rules: tuple[int, bool, int],
    names: Sequence[str],
    files: Sequence[File | None],
    pairs: Sequence[tuple[int, int]],
    matches: int,
    number: int,
    round_number: int,
    plugins: Sequence[str],
) -> Any:  # noqa: ANN401 - two arrays
    """Play one batch of a tournament; runs in a worker."""
    (world, device, config), (seed, deterministic, max_envs) = options, rules

    def play() -> Any:  # noqa: ANN401
        players = [
            Player(name, None if file is None else _receive(file, device).policy)
            for name, file in zip(names, files, strict=True)
        ]
        schedule = MatchSchedule(world, players, device, config, seed, deterministic, max_envs)
        won, lost = schedule.play_batches(pairs, matches, [number], round_number=round_number)[0]
        return won.numpy(), lost.numpy()

    return _guarded(play, plugins)


def spread_benchmark(
    plugins: Sequence[str] = (),
) -> Callable[[Agent, Sequence[SuiteBatch], Progress], list[MatchResults]]:
    """Return what plays the batches of a suite on Ray, which must be open; see `run_benchmark`."""

    def play(agent: Agent, batches: Sequence[SuiteBatch], progress: Progress) -> list[MatchResults]:
        device = str(agent.device)
        task, player = _task(_play_suite, device), Player("agent", agent.policy)
        mine, settings = _send(player), agent.settings  # checked here: to a worker the agent is as a stranger's
        rows = [row.opponent for batch in batches for row in batch.part.rows.values() if row.opponent is not None]
        agents = [name for name in dict.fromkeys(rows) if not is_bot(name, agent.spec) and Path(name).exists()]
        others = {name: _send(Player(name, Agent.load(name).policy)) for name in agents}
        references = [task.remote(mine, settings, device, batch, others, tuple(plugins)) for batch in batches]
        return _collect(references, progress)

    return play


def _play_suite(
    mine: File,
    settings: Mapping[str, Any],
    device: str,
    batch: SuiteBatch,
    others: Mapping[str, File],
    plugins: Sequence[str],
) -> MatchResults:
    """Play one batch of a suite; runs in a worker."""

    def find(name: str, env: BatchedEnv) -> Player:
        if name not in others:
            return find_player(name, env)
        agent = _receive(others[name], device)
        agent.check_world(env.spec)
        return Player(name, agent.policy)

    def play() -> MatchResults:
        agent = Agent(_receive(mine, device).policy, settings=settings)
        return play_batches(agent, [batch], find=find)[0]

    found: MatchResults = _guarded(play, plugins)
    return found


def _guarded(play: Callable[[], Any], plugins: Sequence[str]) -> Any:  # noqa: ANN401
    """Play with the user's plugins."""
    with worker_errors():
        for plugin in plugins:
            load_plugin(plugin)
        return play()


def _task(function: Callable[..., Any], device: str) -> Any:  # noqa: ANN401 - Ray's
    import ray

    return ray.remote(num_cpus=1, num_gpus=1 if device.startswith("cuda") else 0, max_retries=_RETRIES)(function)


def _collect(references: Sequence[Any], progress: Progress) -> list[Any]:
    """Return all results in their order; report how many there are."""
    import ray

    waiting = list(references)
    while waiting:
        _, waiting = ray.wait(waiting, num_returns=1)
        progress(1.0 - len(waiting) / len(references))
    try:
        found: list[Any] = ray.get(list(references))
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        raise WorkerError(str(cause) if isinstance(cause, WorkerError) else f"a worker was lost: {error}") from None
    return found


def _send(player: Player) -> File:
    """Put the file of an agent into Ray's object store."""
    import ray

    policy = player.policy
    assert policy is not None  # noqa: S101 - bots are not sent
    with temporary_folder("ludus-agent-") as folder:
        file = folder / f"agent{EXPORT_SUFFIX}"
        key = write_single_file(file, agent_checkpoint(policy.spec, policy.config, policy.state()))
        return key, ray.put(read_regular(file, limit=DEFAULT_LIMITS.total_bytes))


def _receive(file: File, device: str) -> Agent:
    import ray

    key, reference = file
    if f"{key} {device}" not in _LOADED:
        while len(_LOADED) >= _MOST_LOADED:
            del _LOADED[next(iter(_LOADED))]
        _LOADED[f"{key} {device}"] = load_from_bytes(ray.get(reference), device, limits=USUAL_LIMITS)
    return _LOADED[f"{key} {device}"]
