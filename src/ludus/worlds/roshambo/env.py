"""Roshambo as a batched environment."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
import warp as wp
from gymnasium import spaces
from torch import Tensor

from ludus.core.random import stream_hash
from ludus.envs import warp_tools
from ludus.envs.base import Bots, Columns, EnvRequest, EnvSpec, StepResult, packed
from ludus.envs.kernel_env import KernelEnv
from ludus.envs.settings import read_settings
from ludus.envs.warp_tools import struct_array, struct_views, struct_words
from ludus.worlds.roshambo.bots import BOT_NAMES, make_bots
from ludus.worlds.roshambo.config import RoshamboConfig
from ludus.worlds.roshambo.kernels import bots as bot_kernels
from ludus.worlds.roshambo.kernels import match as match_kernels
from ludus.worlds.roshambo.kernels.structs import Match, Memo, Rules, check_state
from ludus.worlds.roshambo.openspiel import FAMILY, OpenSpielProcesses
from ludus.worlds.roshambo.rules import EVENTS, OWN, RATE_HZ, SEATS, STATE_METRICS, THROWS, observation_fields

VERSION = 1


class RoshamboEnv(KernelEnv):
    """Repeated rock-paper-scissors: 1,000 throws per match, and every throw counts.

    A player who throws all three with equal chances cannot lose on average, and cannot win either. Points come from
    recognizing how the opponent chooses its throws without becoming predictable.

    ## Actions
    `Discrete(3)`: 0 rock, 1 paper, 2 scissors. Each beats the one before it; rock beats scissors.

    ## Observations
    `{"vector": (17,)}`, float32, from the seat's own side. The block `self` is (0, 2). The block `opponent` is (2, 17)
    and holds both throws, because an opponent is known by how it answers.

    | column | name | range | meaning |
    |---|---|---|---|
    | 0 | clock.progress | 0 ... 1 | throws played / throws |
    | 1 | clock.lead | -1 ... 1 | (throws won - throws lost) / throws |
    | 2-4 | last.own_* | 0 or 1 | own last throw, one-hot; zeros before the first |
    | 5-7 | last.opponent_* | 0 or 1 | the opponent's last throw, likewise |
    | 8-16 | last.*_* | 0 or 1 | both, own throw first, one-hot |

    With `last_throws` N above 1, the throw before it follows as 17-19 `last_2.own_*` and 20-22 `last_2.opponent_*`, and
    so on up to `last_N`; both blocks stay as they are, the second one longer. With `clock_period` N above 0, its last N
    columns are `clock.phase_*`, the number of the throw modulo N, one-hot: some players keep a rhythm.

    ## Events and state metrics
    Event `reward`: 1 for a throw won, -1 for a throw lost, 0 for a tie. A match has a score, but no winner: agents are
    judged by their mean return. State metric `lead`: throws won minus throws lost.

    ## Start and end
    No throws yet. `terminated` after the last throw: the clock is a rule of the game and part of the observation.

    ## Bots
    20 scripted players, see `kernels.bots`; their parameters are drawn for every match. `markov-2:noise=0.1` fixes
    the share of random throws. `openspiel:NAME` is one of the 43 bots that OpenSpiel has (extra `openspiel`).
    """

    def __init__(self, request: EnvRequest) -> None:
        self.config = read_settings(RoshamboConfig, request.config, f"roshambo-v{VERSION}")
        self._take_request(roshambo_spec(self.config), request)
        self.launcher = warp_tools.Launcher(self.device, self.config.threads)
        self.openspiel = OpenSpielProcesses(self)
        self.rules = self._make_rules()
        self._allocate()
        warp_tools.load_kernels(match_kernels, self.device, soon=(bot_kernels,))
        self._start()

    def bots(self, names: Sequence[str]) -> Bots:
        """Make scripted players; a name may carry settings, such as `frequency:noise=0.1` or `openspiel:greenberg`."""
        return make_bots(self, names)

    def fields(self) -> dict[str, Tensor]:
        """Return every field of `structs.Match` as a live view `(games,)`."""
        return struct_views(self.matches, Match)

    def close(self) -> None:
        """End the simulation threads and worker processes."""
        self.launcher.close()
        self.openspiel.close()

    def _state(self) -> dict[str, Tensor]:
        return {
            "matches": self.matches,
            "history": self.history,
            "bot_memory": self.bot_memory,
            "seed": self._seed,
        }

    def _check_state(self, snapshot: Mapping[str, Tensor]) -> None:
        check_state(snapshot, self.config.throws)

    def _forget_episodes(self) -> None:
        self.bot_memory.zero_()
        self.history.zero_()
        self.fields()["episode"].fill_(-1)

    def _make_rules(self) -> Rules:
        rules = Rules()
        throws = self.config.throws
        counts = {
            "throws": throws, "per_throw": 1.0 / throws, "last_throws": self.config.last_throws,
            "clock_period": self.config.clock_period, "first_game": self.first_game,
        }  # fmt: skip
        warp_tools.fill_struct(rules, {**counts, "seed_hash": stream_hash(self.seed)})
        return rules

    def _allocate(self) -> None:
        games = self.num_envs
        words = partial(torch.zeros, dtype=torch.int32, device=self.device)
        floats = partial(torch.zeros, dtype=torch.float32, device=self.device)
        flags = partial(torch.zeros, games, dtype=torch.bool, device=self.device)
        self.matches = words(games, struct_words(Match))
        self.bot_memory = words(games, SEATS, struct_words(Memo))
        # (games, throws) int8, `4 * seat 0 + seat 1` of every throw of the running match: one mask picks a seat.
        self.history = torch.zeros((games, self.config.throws), dtype=torch.int8, device=self.device)
        self._seed = torch.zeros((), dtype=torch.int64)
        self._actions = torch.zeros((games, SEATS), dtype=torch.int64, device=self.device)
        self._chosen = flags()
        size = len(observation_fields(self.config.last_throws, self.config.clock_period))
        self._observations = {"vector": floats(games, SEATS, size)}
        self._result = StepResult(
            observations=self._observations,
            terminated=flags(),
            truncated=flags(),
            final_observations={"vector": floats(games, SEATS, size)},
            events=Columns(floats(games, SEATS, len(EVENTS)), EVENTS),
            state_metrics=Columns(floats(games, SEATS, len(STATE_METRICS)), STATE_METRICS),
        )

    def state_arrays(self) -> list[object]:
        """Return matches and history as Warp arrays, the first arguments of most kernels."""
        return [struct_array(self.matches, Match), wp.from_torch(self.history)]

    def _prepare(self) -> None:
        state, result = self.state_arrays(), self._result
        out = wp.from_torch(self._observations["vector"])
        step = [
            *state,
            wp.from_torch(self._actions),
            self.rules,
            wp.from_torch(packed(result.events, EVENTS).view(-1, SEATS)),
            wp.from_torch(packed(result.state_metrics, STATE_METRICS).view(-1, SEATS)),
            wp.from_torch(result.terminated),
            wp.from_torch(result.final_observations["vector"]),
            out,
        ]
        observe = (match_kernels.observe_kernel, [*state, self.rules, out])
        restart = (match_kernels.restart_kernel, [state[0], wp.from_torch(self._chosen)])
        self._run_step = self.launcher.prepare(self.num_envs, (match_kernels.step_kernel, step), min_slice=4096)
        self._run_restart = self.launcher.prepare(self.num_envs, restart, observe)
        self._run_observe = self.launcher.prepare(self.num_envs, observe)


def roshambo_spec(config: RoshamboConfig) -> EnvSpec:
    """Describe a Roshambo environment with these settings."""
    fields = observation_fields(config.last_throws, config.clock_period)
    low = np.zeros(len(fields), dtype=np.float32)
    low[fields.index("clock.lead")] = -1.0
    return EnvSpec(
        name="roshambo",
        version=VERSION,
        teams=(0, 1),
        observation_space=spaces.Dict({"vector": spaces.Box(low, np.ones(len(fields), dtype=np.float32))}),
        action_space=spaces.Discrete(len(THROWS)),
        rate_hz=RATE_HZ,
        step_limit=config.throws,
        events=EVENTS,
        state_metrics=STATE_METRICS,
        bots=BOT_NAMES,
        bot_families=(FAMILY,),
        # An opponent is known by how it answers the own throws, so the block that strategy encoders read holds both.
        blocks={"vector": {"self": (0, OWN), "opponent": (OWN, len(fields))}},
        fields={"vector": fields},
        truncates=False,
    )
