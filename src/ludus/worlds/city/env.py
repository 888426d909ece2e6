"""City as a batched environment."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError, SnapshotError
from ludus.core.state import FINITE, MAX_COUNT, Range, check_range
from ludus.envs.base import (
    ActionGrid,
    ActionKinds,
    BatchedEnv,
    EnvRequest,
    EnvSpec,
    Observations,
    StepResult,
    check_snapshot,
    resolve_device,
)
from ludus.envs.settings import read_settings
from ludus.worlds.city.backend import CityBackend
from ludus.worlds.city.bots import CityBots, bot_names
from ludus.worlds.city.config import EMBEDDED, CityConfig
from ludus.worlds.city.embedded_backend import WAIT_S, EmbeddedBackend
from ludus.worlds.city.guide import GuideTracker, make_guide
from ludus.worlds.city.observation import Observer
from ludus.worlds.city.screen_backend import MOST_GAMES, ScreenBackend
from ludus.worlds.city.tracker import Extra, Goals, Novelty, Sites, Tracker
from ludus.worlds.city.worker_backend import WorkerBackend, worker_count

VERSION = 1
_OWN, _BACKEND = "city-v1/", "city-v1/table/"


class CityEnv(BatchedEnv):
    """A city builder, played through its screen: clicks and keys go in, pictures and readings come out.

    The game is our own (`game: embedded`, many games side by side, no screen) or a real one with a profile, each on a
    separate virtual screen. One seat, the mayor. A decision is carried out at once, then `wait_s` of the game's clock
    pass: ten days of the embedded game.

    ## Actions
    `MultiDiscrete([kinds, cells])`: a kind of action by its number in `backend.catalogue`, and a cell of the visible
    map, row by row from the upper left (`EnvSpec.actions.places`). Kinds come in the groups of the setting `actions`:

    | group | kinds | cell |
    |---|---|---|
    | | `wait`, number 0 | |
    | `build` | one for each tool that builds, such as `road` or `residential` | yes |
    | `street` | `street_across`, `street_down`: a road of four cells | yes |
    | `bulldoze` | `bulldoze` | yes |
    | `tax`, `funding` | `tax_up`, `tax_down`; of the departments, such as `safety_down` | |
    | `menu` | commands of the menus, such as `menu.overlays.power`; none that ends a city or changes its speed | |
    | `camera` | `camera_left` ... `camera_down`, where the map is larger than the view | |
    | `explore` | `explore_menu`, `click_element`, `random_click`, `observe`, `escape`, `scroll_down`, `scroll_up` | |

    Numbers outside the space count as the nearest inside. The cell of `random_click` is a place of the whole window.
    Exploring never clicks on menus that end the city or change its speed.

    ## Observations
    The entries of the setting `observe`, and `mask`:

    | entry | shape | what it holds |
    |---|---|---|
    | `map` | `(rows * cell_pixels, columns * cell_pixels, 3)` uint8 | the map, cut out of the picture |
    | `frame` | `(height, width, 3)` uint8 | the whole window, downscaled |
    | `readings` | `(4 * fields,)` float32 | blocks `values`, `readable`, `confidence`, `age`, a number for each field |
    | `menu` | float32 from 0 to 1 | what is open, known elements, the outcome of the last decision |
    | `built` | float32 from 0 to 1 | what the player has built in this city, see below |
    | `mask` | `(kinds + cells,)` bool | kinds that the funds that were read and open dialogs allow; all cells |
    | `advice` | `(kinds + 2,)` float32 | with a guide: how much each kind is advised, its confidence, its age |

    Values: money and people as a signed logarithm (22,000 are 1), percentages and demand in hundredths, the date as
    decades since the episode's first day. Unreadable values are 0, and 0 in the block `readable`. Bots read
    them by name: `observation.values.funds`, `observation.open.overlays`, `observation.advice.road`; dots in names
    become `_`.

    `built` counts the player's own placements in this city that were not refused, of `all` kinds together and of every
    kind that builds. Blocks: `turn`, the share of the decisions that is used; `share`, the counts as shares of the
    decisions of an episode; `by_3` and `by_4`, their remainders modulo 3 and 4, one-hot, so that a policy without
    memory can keep to a cycle: `observation.by_4.homes.r1`.

    ## Events and metrics
    Differences of readings from one decision to the next (people who came and left, funds, happiness, traffic),
    milestones that are reached for the first time, placements confirmed and refused, elements discovered, the share of
    unreadable fields, trouble with a real game, bankruptcy; at the end of an episode where the city stood; and which
    group of kinds was played. Metrics are the last readable values of the figures, and whether they are readable now.
    Menus that are open for the first time (`new_menus`), goals and guides add their own events and metrics.

    ## Start
    New land by seed, game and episode, with a street and a wind turbine by default.

    ## End
    `terminated` when the game ends by its own rules: the city is bankrupt. `truncated` after `steps` decisions, and
    when a real game was lost.
    """

    def __init__(self, request: EnvRequest) -> None:
        self.config = read_settings(CityConfig, request.config, f"city-v{VERSION}")
        self.device = resolve_device(request.device, f"city-v{VERSION}", ("cpu",))
        self.num_envs, self.seed, self.first_game = request.num_envs, request.seed, request.first_game
        self.backend = make_backend(self.config, request)
        try:
            self._prepare()
            self._restart(np.ones(self.num_envs, np.bool_), self.seed)
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Make the tracker, the observer and the spec."""
        config, games, advice = self.config, self.num_envs, {}
        extras: list[Extra] = [Novelty(len(self.backend.menus), games)]
        if config.goals:
            extras.append(Goals(config.goals, games))
        self.sites: Sites | None = None
        if config.sites != "all" or config.once or "built" in config.observe or self.backend.plan is not None:
            self.sites = Sites(self.backend.catalogue, games)
            extras.append(self.sites)
        self.guide_tracker: GuideTracker | None = None
        if config.guide is not None:
            self.guide_tracker = GuideTracker(make_guide(config.guide), config.guide, self.backend)
            extras.append(self.guide_tracker)
            advice = {"advice": self.guide_tracker.advice} if config.guide.observed else {}
        self.tracker = Tracker(self.backend, extras)
        self._observer = Observer(config, self.backend, advice, self.sites)
        self.spec = city_spec(config, self.backend, self._observer, self.tracker)
        self._most_choice = np.array([len(self.backend.catalogue), self.backend.catalogue.cells]) - 1
        self.episode = np.full(games, -1)
        self.town_middles = np.full((games, 2), -1)  # what scripted players remember of a city
        self._final = {name: tensor.clone() for name, tensor in self._observer.observations.items()}
        self._has_played = False

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Start new episodes; see `BatchedEnv.reset`."""
        if games is not None and seed is not None:
            raise ActionError("reset takes a seed only for all games at once; leave `games` out")
        if games is None and seed is None and not self._has_played:  # the constructor has started the first episode
            self._has_played = True
            return self._observer.observations
        self._has_played = True
        if seed is not None:
            if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
                raise ConfigError(f"seed must be an integer from 0 to 2**64 - 1, got {seed!r}")
            self.seed = seed
        return self._restart(self._mask(games), seed)

    def _advance(self, actions: Tensor) -> StepResult:
        self._has_played = True
        decisions = np.clip(actions[:, 0].numpy().astype(np.int64), 0, self._most_choice)
        sight = self.backend.play(decisions)
        self.tracker.follow(sight, decisions[:, 0], decisions[:, 1])
        terminated = torch.from_numpy(sight.over.copy())
        at_limit = torch.from_numpy(self.tracker.step >= self.config.steps)
        truncated = (at_limit | torch.from_numpy(sight.lost)) & ~terminated
        ended = (terminated | truncated).numpy()
        self.tracker.end(ended)
        observations = self._observer.write(sight, self.tracker)
        if ended.any():
            chosen = torch.from_numpy(ended)
            for name, tensor in observations.items():
                self._final[name][chosen] = tensor[chosen]
            self._restart(ended, None)
        return StepResult(
            observations, terminated, truncated, self._final, self.tracker.events, self.tracker.state_metrics
        )

    def _restart(self, games: NDArray[np.bool_], seed: int | None) -> Observations:
        if seed is not None:
            self.episode[:] = -1
        if games.any():
            self.episode[games] += 1
            self.town_middles[games] = -1
            sight = self.backend.begin(None if seed is not None else games, seed=seed)
            self.tracker.begin(sight, games)
            self._observer.write(sight, self.tracker, games)
        return self._observer.observations

    def _mask(self, games: Tensor | None) -> NDArray[np.bool_]:
        if games is None:
            return np.ones(self.num_envs, np.bool_)
        if not isinstance(games, Tensor) or games.shape != (self.num_envs,) or games.dtype != torch.bool:
            raise ActionError(f"reset takes a bool mask of shape ({self.num_envs},), got {games!r}")
        return games.numpy().copy()

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state as a copy."""
        own = {name: tensor.clone() for name, tensor in self._own_state().items()}
        return own | {f"{_BACKEND}{name}": tensor for name, tensor in self.backend.snapshot().items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Restore the state returned by `snapshot()`; see `BatchedEnv.restore`."""
        check_snapshot(snapshot, self.snapshot(), self.spec.id, self._own_ranges())
        rules, middles = self.config.rules, snapshot[f"{_OWN}town_middles"]
        for name, values, size in zip(("column", "row"), middles.unbind(1), (rules.columns, rules.rows), strict=True):
            check_range(values, -1, size - 1, f"{_OWN}town_middles: a {name}", error=SnapshotError)
        sight = self.backend.restore(
            {name.removeprefix(_BACKEND): tensor for name, tensor in snapshot.items() if name.startswith(_BACKEND)}
        )
        for name, tensor in self._own_state().items():
            tensor.copy_(snapshot[name])
        low, high = snapshot[f"{_OWN}seed"].tolist()
        self.seed = low | high << 32
        self._has_played = True
        return self._observer.write(sight, self.tracker)

    def _own_state(self) -> dict[str, Tensor]:
        halves = [self.seed & 0xFFFFFFFF, self.seed >> 32]  # seeds may be larger than int64
        arrays = {"episode": self.episode, "town_middles": self.town_middles}
        whole = {"seed": torch.tensor(halves), **{name: torch.from_numpy(array) for name, array in arrays.items()}}
        whole |= self.tracker.state()
        return {f"{_OWN}{name}": tensor for name, tensor in whole.items()}

    def _own_ranges(self) -> dict[str, Range]:
        """Return the valid ranges of `_own_state`, apart from the towns' middles."""
        whole: dict[str, Range] = dict.fromkeys(("episode", "step", "milestones"), (0, MAX_COUNT))
        whole |= {"seed": (0, 2**32 - 1), "last_kind": (-1, len(self.backend.catalogue) - 1)}
        whole |= {} if self.sites is None else {"sites_built": (0, MAX_COUNT)}
        floats = {name: FINITE for name, tensor in self._own_state().items() if tensor.is_floating_point()}
        return floats | {f"{_OWN}{name}": limits for name, limits in whole.items()}

    def mask(self) -> Tensor:
        """Return what is allowed now, `(games, 1, choices)` bool."""
        return self._observer.observations["mask"]

    def bots(self, names: Sequence[str]) -> CityBots:
        """Make scripted players."""
        return CityBots(self, names)

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Return the picture of a game's window."""
        return self.backend.picture(game)

    def close(self) -> None:
        """Close the games; may be called twice."""
        self.backend.close()


def make_backend(config: CityConfig, request: EnvRequest) -> CityBackend:
    """Make the games: on real screens, in worker processes or in this process."""
    if config.game != EMBEDDED:
        return ScreenBackend(config, request)
    workers = worker_count(config, request.num_envs)
    return WorkerBackend(config, request, workers) if workers else EmbeddedBackend(config, request)


def city_spec(config: CityConfig, backend: CityBackend, observer: Observer, tracker: Tracker) -> EnvSpec:
    """Describe a City environment with these settings."""
    catalogue = backend.catalogue
    has_places = "map" in config.observe and bool(catalogue.uses_cell.any())
    return EnvSpec(
        name="city",
        version=VERSION,
        teams=(0,),
        observation_space=observer.spaces,
        action_space=spaces.MultiDiscrete([len(catalogue), catalogue.cells]),
        rate_hz=1.0 / (config.wait_s or WAIT_S),
        step_limit=config.steps,
        realtime=config.game != EMBEDDED,
        max_envs=None if config.game == EMBEDDED else MOST_GAMES,
        snapshots=config.game == EMBEDDED,
        events=tracker.event_names,
        state_metrics=tracker.measure_names,
        bots=bot_names(backend),
        blocks=observer.blocks,
        fields=observer.fields,
        device_types=("cpu",),
        actions=ActionKinds(
            mask="mask",
            uses=tuple((bool(uses),) for uses in catalogue.uses_cell),
            exploratory=catalogue.exploratory,
            places=ActionGrid("map", catalogue.rows, catalogue.columns) if has_places else None,
            names=catalogue.names,
        ),
    )
