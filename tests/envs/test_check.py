"""The conformance kit: it passes worlds that keep the contract, and names what a broken world breaks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConformanceError, UnknownNameError
from ludus.envs.base import BatchedEnv, Bots, EnvRequest, Observations, StepResult
from ludus.envs.check import CHECKS, CheckOptions, EnvMaker, check_env, run_checks
from ludus.envs.tiny.base import State, TinyBots
from ludus.envs.tiny.single_player import PointEnv
from ludus.envs.tiny.two_player import DUEL_BOTS, DuelEnv

pytestmark = pytest.mark.train

OPTIONS = CheckOptions(num_envs=2, steps=8, end_steps=60)


def maker(factory: Callable[[EnvRequest], BatchedEnv], **config: Any) -> EnvMaker:
    def make(num_envs: int, seed: int, first_game: int, /) -> BatchedEnv:
        return factory(EnvRequest(num_envs, "cpu", seed, first_game, config))

    return make


class ShortPoint(PointEnv):
    """The world that most broken ones start from: continuous, random, truncated after 5 steps."""

    def __init__(self, request: EnvRequest) -> None:
        super().__init__(
            EnvRequest(request.num_envs, request.device, request.seed, request.first_game, {"step_limit": 5})
        )


@pytest.mark.parametrize(
    "name", ["identity-v1", "recall-v1", "rps-v1", "point-v1", "endless-v1", "duel-v1", "tug-v1", "dig-v1"]
)
def test_the_tiny_worlds_conform(name: str) -> None:
    report = check_env(name, replace(OPTIONS, random=name not in {"endless-v1", "duel-v1"}))
    assert not report.failed
    assert {"spec", "step", "restart", "batch", "snapshot"} <= set(report.passed)
    assert set(report.passed) | set(report.skipped) == set(CHECKS)


def test_a_long_game_skips_the_checks_of_ends_and_says_what_to_do() -> None:
    report = check_env(maker(PointEnv, step_limit=500), OPTIONS)
    assert "smaller step limit" in report.skipped["restart"]


# --- worlds that break one thing each ---


def with_spec(**changes: Any) -> type[ShortPoint]:
    class Changed(ShortPoint):
        def __init__(self, request: EnvRequest) -> None:
            super().__init__(request)
            self.spec = replace(self.spec, **changes)

    return Changed


WrongTeams = with_spec(teams=(1,))
WrongBlock = with_spec(blocks={"vector": {"opponent": (3, 9)}})
DoubleEventName = with_spec(events=("reward", "reward"))
OddObservationSpace = with_spec(observation_space=spaces.Dict({"vector": spaces.Discrete(3)}), mirror=None, fields={})


class WrongFirstGame(ShortPoint):
    def __init__(self, request: EnvRequest) -> None:
        super().__init__(request)
        self.first_game = 0


class Float64OnReset(ShortPoint):
    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        return {name: tensor.double() for name, tensor in super().reset(games, seed=seed).items()}


class MissingSeatsOnReset(ShortPoint):
    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        return {name: tensor[:, 0] for name, tensor in super().reset(games, seed=seed).items()}


class EditedSteps(ShortPoint):
    """Steps whose result passes through `edit`."""

    def edit(self, result: StepResult) -> StepResult:
        raise NotImplementedError

    def _advance(self, actions: Tensor) -> StepResult:
        return self.edit(super()._advance(actions))


class MissingEvent(EditedSteps):
    def edit(self, result: StepResult) -> StepResult:
        return replace(result, events={})


class ExtraMeasure(EditedSteps):
    def edit(self, result: StepResult) -> StepResult:
        return replace(result, state_metrics={**result.state_metrics, "height": result.state_metrics["distance"]})


class NanEvent(EditedSteps):
    def edit(self, result: StepResult) -> StepResult:
        return replace(result, events={"reward": result.events["reward"] * torch.nan})


class IntegerFlags(EditedSteps):
    def edit(self, result: StepResult) -> StepResult:
        return replace(result, terminated=result.terminated.to(torch.uint8))


class OutOfBounds(EditedSteps):
    def edit(self, result: StepResult) -> StepResult:
        return replace(result, observations={"vector": result.observations["vector"] * 50.0})


class InfiniteFinal(EditedSteps):
    def edit(self, result: StepResult) -> StepResult:
        return replace(result, final_observations={"vector": result.final_observations["vector"] + torch.inf})


class ForeignEntry(EditedSteps):
    def edit(self, result: StepResult) -> StepResult:
        return replace(result, observations={"state": result.observations["vector"]})


class BothFlags(EditedSteps):
    def edit(self, result: StepResult) -> StepResult:
        return replace(result, terminated=result.terminated | result.truncated)


class SaysNeverTruncated(ShortPoint):
    def __init__(self, request: EnvRequest) -> None:
        super().__init__(request)
        self.spec = replace(self.spec, truncates=False)


class Overlong(ShortPoint):
    def __init__(self, request: EnvRequest) -> None:
        super().__init__(request)
        self.spec = replace(self.spec, step_limit=4)

    def _advance(self, actions: Tensor) -> StepResult:
        declared, self.spec = self.spec, replace(self.spec, step_limit=5)
        result = super()._advance(actions)
        self.spec = declared
        return result


class NoRestartShown(EditedSteps):
    def edit(self, result: StepResult) -> StepResult:
        return replace(result, observations=result.final_observations)


class FinalFromNextEpisode(EditedSteps):
    def edit(self, result: StepResult) -> StepResult:
        return replace(result, final_observations=result.observations)


class ResetsEverything(ShortPoint):
    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        everyone = torch.ones_like(games) if games is not None else None
        return super().reset(everyone, seed=seed)


class DisturbsOthersLater(ShortPoint):
    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        observations = super().reset(games, seed=seed)
        if games is not None and bool(games.any()):
            self._counters["frame"] = self._counters["frame"] * 0
        return observations


class GlobalRandomness(ShortPoint):
    def _begin(self) -> State:
        return {name: torch.rand_like(tensor) * 0.5 for name, tensor in super()._begin().items()}


class ForgetsEpisodeCounters(ShortPoint):
    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        if seed is not None:
            self.seed = seed
        return super().reset(games)


class IgnoresSeed(ShortPoint):
    def _hash(self, streams: int) -> Tensor:
        kept, self.seed = self.seed, 0
        hashed = super()._hash(streams)
        self.seed = kept
        return hashed


class IgnoresGameIndex(ShortPoint):
    def _hash(self, streams: int) -> Tensor:
        kept, self._counters["game"] = self._counters["game"], self._counters["game"] * 0
        hashed = super()._hash(streams)
        self._counters["game"] = kept
        return hashed


class DependsOnBatchSize(ShortPoint):
    def _hash(self, streams: int) -> Tensor:
        return super()._hash(streams + self.num_envs)[:, self.num_envs :]


class WritesIntoActions(ShortPoint):
    def _advance(self, actions: Tensor) -> StepResult:
        result = super()._advance(actions)
        actions.mul_(0.5)
        return result


class WritesIntoMask(ShortPoint):
    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        observations = super().reset(games, seed=seed)
        if games is not None:
            games.zero_()
        return observations


class ForgetsVelocity(ShortPoint):
    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        observations = super().restore(snapshot)
        self._state["velocity"] = torch.zeros_like(self._state["velocity"])
        return observations


class SharesSnapshot(ShortPoint):
    def snapshot(self) -> dict[str, Tensor]:
        return self._whole_state()

    def _advance(self, actions: Tensor) -> StepResult:
        kept = self._counters["frame"]
        result = super()._advance(actions)
        self._counters["frame"] = kept.copy_(self._counters["frame"])
        return result


class TakesAnySnapshot(ShortPoint):
    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        whole = self.snapshot()
        return super().restore({name: snapshot.get(name, whole[name]) for name in whole})


class NoErrorWithoutSnapshots(ShortPoint):
    def __init__(self, request: EnvRequest) -> None:
        super().__init__(request)
        self.spec = replace(self.spec, snapshots=False)


class TakesAnyActions(ShortPoint):
    def step(self, actions: Tensor) -> StepResult:
        fitted = torch.zeros(self.num_envs, 1, 2)
        if isinstance(actions, Tensor) and actions.shape == fitted.shape and actions.device.type == "cpu":
            fitted = actions.to(torch.float32)
        return self._advance(fitted)


class BreaksOnOddActions(ShortPoint):
    def _check_actions(self, actions: Tensor) -> None:
        if actions.shape != (self.num_envs, 1, 2) or actions.dtype != torch.float32 or actions.is_meta:
            raise TypeError("odd")


class BotWritesEverywhere(TinyBots):
    def act(self, assignment: Tensor, actions: Tensor) -> None:
        super().act(assignment.clamp(min=0), actions)


class BotOutOfRange(TinyBots):
    def act(self, assignment: Tensor, actions: Tensor) -> None:
        actions[assignment >= 0] = 7


class DuelOfGreedyBots(DuelEnv):
    def bots(self, names: Sequence[str]) -> Bots:
        return BotWritesEverywhere(self, names)


class DuelOfOddBots(DuelEnv):
    def bots(self, names: Sequence[str]) -> Bots:
        return BotOutOfRange(self, names)


class DuelTakesAnyBot(DuelEnv):
    def bots(self, names: Sequence[str]) -> Bots:
        return super().bots([name if name in DUEL_BOTS else "rock" for name in names])


class DuelWithoutItsBot(DuelEnv):
    def bots(self, names: Sequence[str]) -> Bots:
        if tuple(names) == ("cycle",):
            raise UnknownNameError("bot", "cycle", ("rock",))
        return super().bots(names)


class DrawsInFloats(ShortPoint):
    def render(self, game: int = 0) -> NDArray[np.uint8]:
        return np.full((4, 4, 3), game, dtype=np.float32)


class DrawingPushes(ShortPoint):
    def render(self, game: int = 0) -> NDArray[np.uint8]:
        self._state["velocity"] = self._state["velocity"] + 0.1 * (game + 1)
        return np.zeros((4, 4, 3), dtype=np.uint8)


class ClosesOnce(ShortPoint):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


DUELS = (DuelOfGreedyBots, DuelOfOddBots, DuelTakesAnyBot, DuelWithoutItsBot)
ALSO: Mapping[object, set[str]] = {
    OddObservationSpace: {"reset", "step"},
    Float64OnReset: {"restart", "partial_reset"},
    OutOfBounds: {"restart", "partial_reset", "snapshot"},
    ForeignEntry: {"restart", "partial_reset", "snapshot", "final_observations"},
    NoRestartShown: {"final_observations"},
    GlobalRandomness: {"restart", "partial_reset", "snapshot", "batch", "actions"},
}


@pytest.mark.parametrize(
    ("world", "check", "fragment"),
    [
        (WrongTeams, "spec", "without gaps"),
        (WrongBlock, "spec", "'opponent'"),
        (WrongFirstGame, "spec", "first_game is 0"),
        (DoubleEventName, "spec", "twice"),
        (OddObservationSpace, "spec", "must be a Box"),
        (Float64OnReset, "reset", "float64"),
        (MissingSeatsOnReset, "reset", "shape"),
        (MissingEvent, "step", "declares"),
        (ExtraMeasure, "step", "height"),
        (NanEvent, "step", "NaN or Inf"),
        (IntegerFlags, "step", "terminated is torch.uint8"),
        (OutOfBounds, "step", "leaves its space"),
        (InfiniteFinal, "step", "final_observations"),
        (ForeignEntry, "step", "state"),
        (BothFlags, "ends", "both"),
        (SaysNeverTruncated, "ends", "spec.truncates is False"),
        (Overlong, "ends", "step_limit is 4"),
        (NoRestartShown, "restart", "first observation"),
        (FinalFromNextEpisode, "final_observations", "next episode"),
        (ResetsEverything, "partial_reset", "mask of no games"),
        (DisturbsOthersLater, "partial_reset", "future"),
        (GlobalRandomness, "equal_seeds", "same seed"),
        (ForgetsEpisodeCounters, "equal_seeds", "after some play"),
        (IgnoresSeed, "different_seeds", "give the same games"),
        (IgnoresGameIndex, "different_seeds", "alike"),
        (DependsOnBatchSize, "batch", "alone"),
        (WritesIntoActions, "inputs", "actions"),
        (WritesIntoMask, "inputs", "mask"),
        (ForgetsVelocity, "snapshot", "differently"),
        (SharesSnapshot, "snapshot", "write into the snapshot"),
        (TakesAnySnapshot, "foreign_snapshot", "accepts"),
        (NoErrorWithoutSnapshots, "foreign_snapshot", "UnsupportedError"),
        (TakesAnyActions, "actions", "accepted"),
        (BreaksOnOddActions, "actions", "not ActionError"),
        (DuelOfGreedyBots, "bots", "does not play"),
        (DuelOfOddBots, "bots", "outside"),
        (DuelTakesAnyBot, "bots", "accepted"),
        (DuelWithoutItsBot, "bots", "cycle"),
        (DrawsInFloats, "render", "float32"),
        (DrawingPushes, "render", "changed the games"),
        (ClosesOnce, "close", "second close"),
    ],
)
def test_each_breakage_is_caught_by_its_own_check(
    world: Callable[[EnvRequest], BatchedEnv], check: str, fragment: str
) -> None:
    report = run_checks(maker(world), replace(OPTIONS, random=world not in DUELS))
    assert fragment in " | ".join(report.failed.get(check, ()))
    # The kit does not cry wolf: nothing else fails, except where one breakage shows in several places.
    assert set(report.failed) - {check} <= ALSO.get(world, set())


def test_the_error_names_every_failed_check() -> None:
    with pytest.raises(ConformanceError) as caught:
        check_env(maker(NoRestartShown), OPTIONS)
    message = str(caught.value)
    assert message.startswith("point-v1 breaks the batched contract in 2 of 19 checks:")
    assert "\n- restart: " in message
    assert "\n- final_observations: " in message


def test_the_report_reads_as_lines() -> None:
    lines = str(run_checks(maker(ClosesOnce), OPTIONS)).splitlines()
    assert lines[0] == "point-v1: 15 passed, 3 skipped, 1 failed"
    assert "[OK] batch" in lines
    assert "[SKIP] render: the world cannot be drawn" in lines
    assert any(line.startswith("[ERROR] close: the second close() raises RuntimeError") for line in lines)
