"""Checks of episodes: how games end, start anew within the step, and are reset one by one."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from ludus.envs.base import StepResult
from ludus.envs.check.probe import Frame, Probe, frame_difference, frame_of, host, observation_frame, record_difference
from ludus.envs.check.report import NotApplicableError

_ENOUGH_ENDS = 8  # so many final observations equal to first ones are no coincidence


def _ended(result: StepResult) -> NDArray[np.bool_]:
    return np.asarray(host(result.ended), dtype=np.bool_)


def check_ends(probe: Probe) -> Iterator[str]:
    """A game is terminated or truncated, never both, as the spec says, and no later than the step limit."""
    limit = probe.spec.step_limit
    with probe.open() as env:
        env.reset()
        lengths = np.zeros(env.num_games, dtype=np.int64)
        count = (
            probe.options.steps if limit is None else max(min(limit + 1, probe.options.end_steps), probe.options.steps)
        )
        for step, result in probe.play(env, 0, count):
            lengths += 1
            if bool((result.terminated & result.truncated).any()):
                yield f"a game is both terminated and truncated in step {step}"
                return
            if not probe.spec.truncates and bool(result.truncated.any()):
                yield f"a game is truncated in step {step}, but spec.truncates is False"
                return
            if limit is not None and int(lengths.max()) > limit:
                yield f"game {int(lengths.argmax())} runs for {int(lengths.max())} steps, spec.step_limit is {limit}"
                return
            lengths[_ended(result)] = 0


def check_restart(probe: Probe) -> Iterator[str]:
    """A game that ends starts anew within the step, exactly as `reset` by mask would have started it."""
    probe.need_repeatable()
    with probe.open() as env:
        env.reset()
        for step, result in probe.play(env, 0, probe.options.end_steps):
            if bool(result.ended.any()):
                last_step, ended, after = step, _ended(result), observation_frame(result.observations)
                break
        else:
            raise NotApplicableError(_no_end(probe))
    with probe.open() as env:
        env.reset()
        probe.record(env, 0, last_step)
        started = observation_frame(env.reset(torch.as_tensor(ended, device=env.device)))
    difference = frame_difference(after, started, np.flatnonzero(ended).tolist())
    if difference is not None:
        yield f"after an end, the step does not return the next episode's first observation: {difference}"


def check_final_observations(probe: Probe) -> Iterator[str]:
    """Final observations are the old episode's last ones, not the new episode's first ones."""
    ends, varies = 0, False
    with probe.open() as env:
        before = observation_frame(env.reset())
        for _, result in probe.play(env, 0, probe.options.end_steps):
            frame = frame_of(result)
            ended = _ended(result)
            varies = varies or _changed(before, frame, np.flatnonzero(~ended).tolist())
            for game in np.flatnonzero(ended).tolist():
                ends += 1
                if _final_differs(frame, game):
                    return
            if ends >= _ENOUGH_ENDS:
                break
            before = {name: frame[name] for name in before}
    if ends == 0:
        raise NotApplicableError(_no_end(probe))
    if not varies:
        raise NotApplicableError("observations never change, so first and last ones are alike")
    yield f"in all of {ends} ends, final_observations are those of the next episode's start"


def _changed(before: Frame, frame: Frame, games: list[int]) -> bool:
    return frame_difference(before, {name: frame[name] for name in before}, games) is not None


def _final_differs(frame: Frame, game: int) -> bool:
    names = [name for name in frame if name.startswith("observations")]
    return any(frame[f"final_{name}"][game].tobytes() != frame[name][game].tobytes() for name in names)


def check_partial_reset(probe: Probe) -> Iterator[str]:
    """`reset` with a mask leaves the other games untouched, now and later."""
    probe.need_repeatable()
    if probe.num_games < 2:
        raise NotApplicableError("the world has only one game")
    half = max(probe.options.steps // 2, 1)
    with probe.open() as env:
        before = observation_frame(env.reset())
        for frame in probe.record(env, 0, half):
            before = {name: frame[name] for name in before}
        undisturbed = probe.record(env, half, half)
    mask = np.arange(probe.num_games) % 2 == 0
    others = np.flatnonzero(~mask).tolist()
    with probe.open() as env:
        env.reset()
        probe.record(env, 0, half)
        nobody = torch.zeros(env.num_games, dtype=torch.bool, device=env.device)
        difference = frame_difference(before, observation_frame(env.reset(nobody)))
        if difference is not None:
            yield f"reset with a mask of no games changes something: {difference}"
        difference = frame_difference(
            before, observation_frame(env.reset(torch.as_tensor(mask, device=env.device))), others
        )
        if difference is not None:
            yield f"reset of other games changes an observation: {difference}"
        difference = record_difference(undisturbed, probe.record(env, half, half), others)
        if difference is not None:
            yield f"reset of other games changes a game's future: {difference}"


def _no_end(probe: Probe) -> str:
    return f"no game ended in {probe.options.end_steps} steps; make the world with a smaller step limit"
