"""City as a batched environment."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError
from ludus.envs.base import (
    BatchedEnv,
    EnvRequest,
    EnvSpec,
    Observations,
    Places,
    StepResult,
    check_snapshot,
    resolve_device,
)
from ludus.envs.city.bots import CityBots, bot_names
from ludus.envs.city.config import EMBEDDED, CityConfig
from ludus.envs.city.embedded_table import WAIT_S, EmbeddedTable
from ludus.envs.city.following import make_following, observed_advice
from ludus.envs.city.observation import Observer
from ludus.envs.city.screen_table import MOST_GAMES, ScreenTable
from ludus.envs.city.table import CityTable
from ludus.envs.city.tracker import Tracker
from ludus.envs.city.worker_table import WorkerTable, worker_count
from ludus.envs.settings import read_settings

VERSION = 1
_OWN, _TABLE = "city-v1/", "city-v1/table/"


class CityEnv(BatchedEnv):
    """A city builder, played through its screen: clicks and keys go in, pictures and readings come out.

    The game is our own (`game: embedded`, many games side by side, no screen) or a real one with a profile, each on a
    virtual screen of its own. One seat, the mayor. A decision is carried out at once, then `wait_s` of the game's clock
    pass: ten days of the embedded game.

    ## Actions
    `MultiDiscrete([kinds, cells])`: a kind of action by its number in `table.catalogue`, and a cell of the map that is
    seen, row by row from the upper left (`EnvSpec.action_places`). Kinds come in the groups of the setting `actions`:

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

    Numbers outside the space count as the nearest inside. The cell of `random_click` stands for a place of the whole
    window. Exploring never clicks on menus that end the city or change its speed.

    ## Observations
    The entries of the setting `observe`, and `mask`:

    | entry | shape | what it holds |
    |---|---|---|
    | `map` | `(rows * cell_pixels, columns * cell_pixels, 3)` uint8 | the map, cut out of the picture |
    | `frame` | `(height, width, 3 * stack)` uint8 | the whole window, downscaled |
    | `readings` | `(4 * fields,)` float32 | blocks `values`, `readable`, `confidence`, `age`, a number for each field |
    | `menu` | float32 from 0 to 1 | what is open, elements that are known, what became of the last decision |
    | `mask` | `(kinds + cells,)` bool | kinds that the funds that were read and open dialogs allow; all cells |
    | `advice` | `(kinds + 2,)` float32 | with a guide: how much each kind is advised, its confidence, its age |

    Values: money and people as a signed logarithm (22,000 are 1), percentages and demand in hundredths, the date as
    decades since the episode's first day. What cannot be read is 0, and its block `readable` says so.

    ## Events and measures
    Differences of readings from one decision to the next (people who came and left, funds, happiness, traffic),
    milestones that are reached for the first time, placements confirmed and refused, elements discovered, the share of
    unreadable fields, trouble with a real game, bankruptcy; at the end of an episode where the city stood; and which
    group of kinds was played. Measures are the last readable values of the figures, and whether they are readable now.
    Menus that are open for the first time (`new_menus`), goals and guides add events and measures of their own.

    ## Start
    New land by seed, game and episode, with a street and a wind turbine unless the rules say otherwise.

    ## End
    `terminated` when the game ends by its own rules: the city is bankrupt. `truncated` after `steps` decisions, and
    when a real game was lost.
    """

    def __init__(self, request: EnvRequest) -> None:
        self.config = read_settings(CityConfig, request.config, f"city-v{VERSION}")
        self.device = resolve_device(request.device, f"city-v{VERSION}", ("cpu",))
        self.num_games, self.seed, self.first_game = request.num_games, request.seed, request.first_game
        self.table = make_table(self.config, request)
        try:
            self._prepare()
            self._restart(np.ones(self.num_games, np.bool_), self.seed)
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Makes everything that follows and shows the games."""
        following = make_following(self.config, self.table)
        self.counsel, self.tracker = following.counsel, Tracker(self.table, following.extras)
        self._observer = Observer(self.config, self.table, observed_advice(self.config, self.counsel))
        self.spec = city_spec(self.config, self.table, self._observer, self.tracker)
        self._most_choice = np.array([len(self.table.catalogue), self.table.catalogue.cells]) - 1
        self.episode = np.full(self.num_games, -1)
        self.town_middles = np.full((self.num_games, 2), -1)  # what scripted players remember of a city
        self._final = {name: tensor.clone() for name, tensor in self._observer.observations.items()}
        self._has_played = False

    def reset(self, games: Tensor | None = None, *, seed: int | None = None) -> Observations:
        """Starts new episodes; see `BatchedEnv.reset`."""
        if games is not None and seed is not None:
            raise ActionError("reset takes a seed only for all games at once; leave `games` out")
        if games is None and seed is None and not self._has_played:  # the first episode is there already
            self._has_played = True
            return self._observer.observations
        self._has_played = True
        if seed is not None:
            if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
                raise ConfigError(f"seed must be a whole number from 0 to 2**64 - 1, got {seed!r}")
            self.seed = seed
        return self._restart(self._mask(games), seed)

    def _advance(self, actions: Tensor) -> StepResult:
        self._has_played = True
        decisions = np.clip(actions[:, 0].numpy().astype(np.int64), 0, self._most_choice)
        sight = self.table.play(decisions)
        self.tracker.follow(sight, decisions[:, 0])
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
        return StepResult(observations, terminated, truncated, self._final, self.tracker.events, self.tracker.measures)

    def _restart(self, games: NDArray[np.bool_], seed: int | None) -> Observations:
        if seed is not None:
            self.episode[:] = -1
        if games.any():
            self.episode[games] += 1
            self.town_middles[games] = -1
            sight = self.table.begin(None if seed is not None else games, seed=seed)
            self.tracker.begin(sight, games)
            self._observer.write(sight, self.tracker, games)
        return self._observer.observations

    def _mask(self, games: Tensor | None) -> NDArray[np.bool_]:
        if games is None:
            return np.ones(self.num_games, np.bool_)
        if not isinstance(games, Tensor) or games.shape != (self.num_games,) or games.dtype != torch.bool:
            raise ActionError(f"reset takes a bool mask of shape ({self.num_games},), got {games!r}")
        return games.numpy().copy()

    def snapshot(self) -> dict[str, Tensor]:
        """Returns the whole state as tensors that later steps do not touch."""
        own = {name: tensor.clone() for name, tensor in self._own_state().items()}
        return own | {f"{_TABLE}{name}": tensor for name, tensor in self.table.snapshot().items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> Observations:
        """Takes the state of `snapshot`; see `BatchedEnv.restore`."""
        check_snapshot(snapshot, self.snapshot(), self.spec.id)
        sight = self.table.restore(
            {name.removeprefix(_TABLE): tensor for name, tensor in snapshot.items() if name.startswith(_TABLE)}
        )
        for name, tensor in self._own_state().items():
            tensor.copy_(snapshot[name])
        low, high = snapshot[f"{_OWN}seed"].tolist()
        self.seed = low | high << 32
        self._has_played = True
        return self._observer.write(sight, self.tracker, is_new=False)

    def _own_state(self) -> dict[str, Tensor]:
        halves = [self.seed & 0xFFFFFFFF, self.seed >> 32]  # seeds may be larger than int64
        whole = {"seed": torch.tensor(halves), "episode": torch.from_numpy(self.episode)}
        whole |= {"town_middles": torch.from_numpy(self.town_middles)}
        whole |= self.tracker.state() | self._observer.state()
        return {f"{_OWN}{name}": tensor for name, tensor in whole.items()}

    def mask(self) -> Tensor:
        """Returns what is allowed now, `(games, 1, choices)` bool."""
        return self._observer.observations["mask"]

    def bots(self, names: Sequence[str]) -> CityBots:
        """Makes scripted players."""
        return CityBots(self, names)

    def render(self, game: int = 0) -> NDArray[np.uint8]:
        """Returns the picture of a game's window."""
        return self.table.picture(game)

    def close(self) -> None:
        """Ends the games; may be called twice."""
        self.table.close()


def make_table(config: CityConfig, request: EnvRequest) -> CityTable:
    """Makes the games: on real screens, in worker processes or in this process."""
    if config.game != EMBEDDED:
        return ScreenTable(config, request)
    workers = worker_count(config, request.num_games)
    return WorkerTable(config, request, workers) if workers else EmbeddedTable(config, request)


def city_spec(config: CityConfig, table: CityTable, observer: Observer, tracker: Tracker) -> EnvSpec:
    """Describes a City environment with these settings."""
    catalogue = table.catalogue
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
        max_games=None if config.game == EMBEDDED else MOST_GAMES,
        snapshots=config.game == EMBEDDED,
        events=tracker.event_names,
        measures=tracker.measure_names,
        bots=bot_names(table),
        blocks={name: blocks for name, blocks in observer.blocks.items() if name in config.observe},
        device_types=("cpu",),
        action_mask="mask",
        action_uses=tuple((bool(uses),) for uses in catalogue.uses_cell),
        exploratory_kinds=catalogue.exploratory,
        kind_names=catalogue.names,
        action_places=Places("map", catalogue.rows, catalogue.columns) if has_places else None,
    )


def make(request: EnvRequest) -> CityEnv:
    """Makes a batch of `city-v1`."""
    return CityEnv(request)
