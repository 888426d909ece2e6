"""Recording for strategy analysis: an agent plays every style side by side, and what it knows is noted over time."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import BatchedEnv, Observations, action_dtypes
from ludus.evaluation.first_matches import ShareDone
from ludus.evaluation.players import AgentPlayer, BotRoster
from ludus.evaluation.strategy_policy import AnalysedPolicy, Features, untrained_twin
from ludus.evaluation.strategy_switches import styles_now
from ludus.policies.policy import Policy

Floats = NDArray[np.float32]

HIDDEN_STYLE = "style"  # measure by which a world without bots tells its opponents' hidden styles
HIDDEN_STYLES = 3  # games for each match of a plan in such a world: it draws about that many styles
_CLIPPED = 12
_LOOK_EVERY = 32  # frames between questions whether anybody still plays


@dataclass(frozen=True, slots=True)
class Recording:
    """What an agent knew over time, in many matches.

    Attributes:
        styles: Names of the styles.
        labels: `(matches,)` index of each match's style.
        times_s: `(samples,)` seconds since the start of the match.
        valid: `(samples, matches)` bool, whether the match was still being played.
        features: For each kind, `(samples, matches, size)`: `trained` is the agent's, `untrained` that of the same
            networks with fresh parameters, `observation` what the agent saw in that very frame.
        styles_now: `(samples, matches)` index into the world's bots of the style that a switching bot followed.
        clips: Observations of the first frames of one match of each style, `(frames, clips, ...)` an entry.
        clip_labels: `(clips,)` their styles.
        clip_frames: `(clips,)` how many frames of each clip belong to the match.
    """

    styles: tuple[str, ...]
    labels: NDArray[np.int64]
    times_s: NDArray[np.float64]
    valid: NDArray[np.bool_]
    features: dict[str, Floats]
    styles_now: NDArray[np.int64]
    clips: dict[str, Tensor]
    clip_labels: NDArray[np.int64]
    clip_frames: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is recorded.

    Attributes:
        styles: Bots to play against; none in a world that tells the hidden styles of its opponents.
        matches: Against each.
        seconds: Of the beginning of every match.
        every_s: Seconds between samples; at least every frame.
        clip_s: Seconds of the clips.
        features: Which part of the policy.
        controls: Whether features of fresh networks and observations are recorded too.
        seed: Of games and actions.
    """

    styles: tuple[str, ...]
    matches: int
    seconds: float
    every_s: float
    clip_s: float = 0.0
    features: Features = "latent"
    controls: bool = True
    seed: int = 0


def record(policy: Policy, env: BatchedEnv, plan: Plan, progress: ShareDone = lambda _: None) -> Recording:
    """Plays the first seconds of all matches at once and records them.

    Args:
        policy: Who plays, on the device of the games; it draws its actions.
        env: As many games as the plan has matches.
        plan: What to record.
        progress: Is told the share that is done.

    Raises:
        ConfigError: The policy has no such part, or the world has no styles.
    """
    return _Recorder(policy, env, plan).play(progress)


class _Recorder:
    """Seats, plays and takes notes; lists grow by one entry a sample."""

    def __init__(self, policy: Policy, env: BatchedEnv, plan: Plan) -> None:
        self._env, self._plan = env, plan
        self._policy = AnalysedPolicy(policy, plan.features)
        twin = untrained_twin(policy) if plan.controls else None
        self._twin = AnalysedPolicy(twin, plan.features) if twin is not None else None
        rate = env.spec.rate_hz
        self._every = max(1, round(plan.every_s * rate))
        self._frames = max(1, round(plan.seconds * rate))
        self._clip_frames = min(self._frames, round(plan.clip_s * rate))
        self._seat()
        self._notes: dict[str, list[Tensor]] = {}
        self._times: list[int] = []
        self._clips: dict[str, list[Tensor]] = {}
        self._hidden: Tensor | None = None

    def _seat(self) -> None:
        env, plan = self._env, self._plan
        teams = torch.tensor(env.spec.teams, device=env.device)
        games = torch.arange(env.num_games, device=env.device)
        sides = torch.tensor(sorted(set(env.spec.teams)), device=env.device)
        self._has_bots = len(sides) > 1
        if not self._has_bots and HIDDEN_STYLE not in env.spec.measures:
            raise ConfigError(
                f"{env.spec.id} has neither opponents nor a measure {HIDDEN_STYLE!r} that tells hidden styles: nothing "
                "is there to be recognised; analyse an agent of a world with opponents"
            )
        own = teams == sides[games % plan.matches % len(sides)].unsqueeze(1)
        self._agent = AgentPlayer(env, own, self._policy, seed=plan.seed)
        self._twin_player = None if self._twin is None else AgentPlayer(env, own, self._twin, deterministic=True)
        self._others: list[BotRoster] = []
        self._labels = games // plan.matches
        if self._has_bots:
            names = self._labels.to(torch.int32).unsqueeze(1)
            self._others = [BotRoster(env, plan.styles, torch.where(own, -1, names))]
        # One seat of each game stands for the agent, one for its opponent: the first of either team.
        rows_of_own = own.flatten().nonzero().squeeze(1)
        game_of_row = rows_of_own.div(env.spec.seats, rounding_mode="floor")
        self._leads = torch.ones_like(game_of_row, dtype=torch.bool)
        self._leads[1:] = game_of_row[1:] != game_of_row[:-1]
        self._lead_rows = rows_of_own[self._leads]
        self._opponent_seats = ~own & ((~own).cumsum(1) == 1)
        # Hidden styles show only later, so a dozen games are clipped, and one of each style is kept.
        clipped = torch.arange(len(plan.styles)) * plan.matches if self._has_bots else torch.arange(_CLIPPED)
        self._clip_games = clipped[clipped < env.num_games].to(env.device)

    def play(self, progress: ShareDone) -> Recording:
        env = self._env
        space = env.spec.action_space
        shape = (env.num_games, env.spec.seats, *(space.shape or ()))
        actions = torch.zeros(shape, dtype=action_dtypes(space)[0], device=env.device)
        ignored = actions.clone()
        observations = env.reset(seed=self._plan.seed)
        playing = torch.ones(env.num_games, dtype=torch.bool, device=env.device)
        clip_frames = torch.zeros(len(self._clip_games), dtype=torch.int64, device=env.device)
        for frame in range(self._frames):
            self._agent.act(observations, actions, first=frame == 0)
            if self._twin_player is not None:
                self._twin_player.act(observations, ignored, first=frame == 0)
            for other in self._others:
                other.act(observations, actions, first=frame == 0)
            if frame % self._every == 0:
                self._note(frame, observations, playing)
            if frame < self._clip_frames:
                self._clip(observations)
                clip_frames += playing[self._clip_games]
            result = env.step(actions)
            if self._hidden is None and not self._has_bots:
                self._hidden = result.measures[HIDDEN_STYLE][:, 0].to(torch.int64).clone()
            playing = playing & ~result.ended
            observations = result.observations
            if frame % _LOOK_EVERY == _LOOK_EVERY - 1:
                progress((frame + 1) / self._frames)
                if not bool(playing.any()):
                    break
        progress(1.0)
        return self._finish(clip_frames)

    def _note(self, frame: int, observations: Observations, playing: Tensor) -> None:
        noted = {"valid": playing, "trained": self._policy.seen[self._leads].float()}
        if self._twin is not None:
            noted["untrained"] = self._twin.seen[self._leads].float()
            rows = [tensor.flatten(0, 1)[self._lead_rows].flatten(1).float() for tensor in observations.values()]
            noted["observation"] = torch.cat(rows, dim=1)
        noted["styles_now"] = styles_now(self._env, self._opponent_seats) if self._has_bots else self._labels
        for name, tensor in noted.items():
            self._notes.setdefault(name, []).append(tensor.cpu().clone())
        self._times.append(frame)

    def _clip(self, observations: Observations) -> None:
        rows = self._lead_rows[self._clip_games]
        for name, tensor in observations.items():
            self._clips.setdefault(name, []).append(tensor.flatten(0, 1)[rows].clone())

    def _finish(self, clip_frames: Tensor) -> Recording:
        stacked = {name: torch.stack(tensors).numpy() for name, tensors in self._notes.items()}
        labels = self._labels if self._hidden is None else self._hidden
        kinds = [name for name in ("trained", "untrained", "observation") if name in stacked]
        clip_labels, kept = np.unique(labels[self._clip_games].cpu().numpy(), return_index=True)
        names = self._plan.styles or tuple(f"style {index}" for index in range(int(labels.max()) + 1))
        return Recording(
            styles=names,
            labels=labels.cpu().numpy(),
            times_s=np.array(self._times) / self._env.spec.rate_hz,
            valid=stacked["valid"],
            features={name: stacked[name].astype(np.float32) for name in kinds},
            styles_now=stacked["styles_now"],
            clips={name: torch.stack(frames)[:, torch.from_numpy(kept)] for name, frames in self._clips.items()},
            clip_labels=clip_labels,
            clip_frames=clip_frames.cpu().numpy()[kept],
        )
