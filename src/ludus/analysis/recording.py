"""Record an agent's features and actions over time while it plays every style side by side."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.analysis.actions import ActionRecord, ActionRecorder
from ludus.analysis.analysed_policy import AnalysedPolicy, Features, untrained_twin
from ludus.core.errors import ConfigError
from ludus.core.files import EXPORT_SUFFIX
from ludus.envs.base import BatchedEnv, Observations
from ludus.envs.world_parts import current_styles
from ludus.evaluation.matches import Progress, no_actions, play_steps
from ludus.evaluation.players import AgentPlayer, BatchActor, find_players, seat_in_batch
from ludus.policies.policy import Policy

Floats = NDArray[np.float32]

HIDDEN_STYLE = "style"  # state metric by which a world without bots reveals its opponents' hidden styles
HIDDEN_STYLES = 3  # games per match of a plan in such a world: it draws about that many styles
_CLIPPED = 12
_CHECK_EVERY = 32  # frames between checks whether any match is still being played


@dataclass(frozen=True, slots=True)
class Recording:
    """Features of an agent over time, in many matches.

    There are features of the agent, `trained`, those of the same networks with fresh parameters, `untrained`, and the
    `observation` of that frame. Clips are the first frames of one match per style.
    """

    styles: tuple[str, ...]
    labels: NDArray[np.int64]  # `(matches,)` index of each match's style
    times_s: NDArray[np.float64]  # `(samples,)` seconds since the start of the match
    valid: NDArray[np.bool_]  # `(samples, matches)`, whether the match was still being played
    features: dict[str, Floats]  # `(samples, matches, size)` of each kind
    styles_now: NDArray[np.int64]  # `(samples, matches)` index into the world's bots of the style of a switching bot
    clips: dict[str, Tensor]  # observations, one `(frames, clips, ...)` tensor per entry
    clip_labels: NDArray[np.int64]  # `(clips,)` their styles
    clip_frames: NDArray[np.int64]  # `(clips,)` how many frames of each clip belong to the match
    actions: ActionRecord | None = None  # what the agent did and would have done; None without controls


@dataclass(frozen=True, slots=True)
class Plan:
    """What to record."""

    styles: tuple[str, ...]  # bots and agents to play; none in a world that reveals its opponents' hidden styles
    matches: int  # matches per style
    seconds: float  # how much of the start of every match
    every_s: float  # seconds between samples; at least every frame
    clip_s: float = 0.0  # seconds of the clips
    features: Features = "latent"  # which features of the policy
    controls: bool = True  # whether features of untrained networks, observations and actions are recorded too
    seed: int = 0  # seed of games and actions


def record(policy: Policy, env: BatchedEnv, plan: Plan, progress: Progress = lambda _: None) -> Recording:
    """Play the first seconds of all matches at once and record them; actions of the policy are sampled.

    There are as many games as the plan has matches, on the device of the policy. `progress` is called with the fraction
    done.

    Raises:
        ConfigError: The policy has no such features, or the world has no styles.
    """
    return _Recorder(policy, env, plan).play(progress)


class _Recorder:
    """Seats and plays the players; lists grow by one entry per sample."""

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
        self._frame = 0
        self._playing = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
        self._ignored = no_actions(env)  # what others than the players would do
        self._clipped_frames = torch.zeros(len(self._clip_games), dtype=torch.int64, device=env.device)

    def _seat(self) -> None:
        env, plan = self._env, self._plan
        teams = torch.tensor(env.spec.teams, device=env.device)
        games = torch.arange(env.num_envs, device=env.device)
        sides = torch.tensor(sorted(set(env.spec.teams)), device=env.device)
        self._has_bots = len(sides) > 1
        if not self._has_bots and HIDDEN_STYLE not in env.spec.state_metrics:
            raise ConfigError(
                f"{env.spec.id} has neither opponents nor a state metric {HIDDEN_STYLE!r} with hidden styles; analyse "
                "an agent of a world with opponents"
            )
        own = teams == sides[games % plan.matches % len(sides)].unsqueeze(1)
        self._labels = games // plan.matches
        self._agent = AgentPlayer(env, own, self._policy, seed=plan.seed)
        self._twin_player = None
        if self._twin is not None:
            self._twin_player = AgentPlayer(env, own, self._twin, deterministic=True)
        self._actions = ActionRecorder(env, own, self._policy) if plan.controls else None
        if self._actions is not None and self._has_bots:
            self._actions.learn_styles(self._labels)
        self._others: list[BatchActor] = []
        if self._has_bots:
            seating = torch.where(own, -1, self._labels.unsqueeze(1))
            players = find_players(plan.styles, env)
            self._others = seat_in_batch(
                env, players, seating, lambda index: plan.seed + 1 + index, deterministic=False
            )
        # The first seat of either team stands for the agent and for its opponent.
        rows_of_own = own.flatten().nonzero().squeeze(1)
        game_of_row = rows_of_own.div(env.spec.seats, rounding_mode="floor")
        self._leads = torch.ones_like(game_of_row, dtype=torch.bool)
        self._leads[1:] = game_of_row[1:] != game_of_row[:-1]
        self._lead_rows = rows_of_own[self._leads]
        self._opponent_seats = ~own & ((~own).cumsum(1) == 1)
        # Hidden styles are known only later, so a dozen games are clipped, and one per style is kept.
        clipped = torch.arange(len(plan.styles)) * plan.matches if self._has_bots else torch.arange(_CLIPPED)
        self._clip_games = clipped[clipped < env.num_envs].to(env.device)

    def play(self, progress: Progress) -> Recording:
        observations = self._env.reset(seed=self._plan.seed)
        played = play_steps(self._env, [self._agent, *self._others], observations, self._decided)
        for _, result in itertools.islice(played, self._frames):
            if self._hidden is None and not self._has_bots:
                self._hidden = result.state_metrics[HIDDEN_STYLE][:, 0].to(torch.int64).clone()
                if self._actions is not None:
                    self._actions.learn_styles(self._hidden)
            self._playing = self._playing & ~result.ended
            if self._frame % _CHECK_EVERY == 0:
                progress(self._frame / self._frames)
                if not bool(self._playing.any()):
                    break
        progress(1.0)
        return self._finish()

    def _decided(self, observations: Observations, actions: Tensor) -> None:
        """Note a frame in which everyone has decided."""
        frame, sample, is_first = self._frame, self._frame % self._every == 0, self._frame == 0
        if self._twin_player is not None:
            self._twin_player.act(observations, self._ignored, first=is_first)
        if self._actions is not None:
            self._actions.note(observations, actions, self._ignored, self._playing, first=is_first, sample=sample)
        if sample:
            self._note(frame, observations, self._playing)
        if frame < self._clip_frames:
            self._clip(observations)
            self._clipped_frames += self._playing[self._clip_games]
        self._frame += 1

    def _note(self, frame: int, observations: Observations, playing: Tensor) -> None:
        noted = {"valid": playing, "trained": self._policy.seen[self._leads].float()}
        if self._twin is not None:
            noted["untrained"] = self._twin.seen[self._leads].float()
            rows = [tensor.flatten(0, 1)[self._lead_rows].flatten(1).float() for tensor in observations.values()]
            noted["observation"] = torch.cat(rows, dim=1)
        noted["styles_now"] = current_styles(self._env, self._opponent_seats) if self._has_bots else self._labels
        for name, tensor in noted.items():
            self._notes.setdefault(name, []).append(tensor.cpu().clone())
        self._times.append(frame)

    def _clip(self, observations: Observations) -> None:
        rows = self._lead_rows[self._clip_games]
        for name, tensor in observations.items():
            self._clips.setdefault(name, []).append(tensor.flatten(0, 1)[rows].clone())

    def _finish(self) -> Recording:
        stacked = {name: torch.stack(tensors).numpy() for name, tensors in self._notes.items()}
        labels = self._labels if self._hidden is None else self._hidden
        kinds = [name for name in ("trained", "untrained", "observation") if name in stacked]
        clip_labels, kept = np.unique(labels[self._clip_games].cpu().numpy(), return_index=True)
        names = titles(self._plan.styles) or tuple(f"style {index}" for index in range(int(labels.max()) + 1))
        times_s = np.array(self._times) / self._env.spec.rate_hz
        features: dict[str, Floats] = {name: stacked[name].astype(np.float32) for name in kinds}
        clips = {name: torch.stack(frames)[:, torch.from_numpy(kept)] for name, frames in self._clips.items()}
        seen = (labels.cpu().numpy(), times_s, stacked["valid"], features, stacked["styles_now"])
        done = None if self._actions is None else self._actions.finish()
        return Recording(names, *seen, clips, clip_labels, self._clipped_frames.cpu().numpy()[kept], done)


def titles(players: Sequence[str]) -> tuple[str, ...]:
    """Return what to call players in tables and pictures: of agents that are files, the names of the files alone."""
    short = tuple(Path(player).stem if player.endswith(EXPORT_SUFFIX) else player for player in players)
    return short if len(set(short)) == len(short) else tuple(players)
