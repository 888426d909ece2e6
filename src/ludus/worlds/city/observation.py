"""What an agent sees: pictures, readings with masks for what is unreadable, the state of menus, and what it built."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from ludus.envs.base import Observations
from ludus.worlds.city.actions import CONFIRMED, KIND_GROUPS, NOT_JUDGED, REFUSED
from ludus.worlds.city.backend import CityBackend, Sight
from ludus.worlds.city.config import CityConfig
from ludus.worlds.city.tracker import Sites, Tracker

MOST_AGE = 100  # decisions; older readings look alike
_LOG_SCALE = 10.0  # of log(1 + $): 22,000 are 1
_YEARS = 10.0  # that count 1
_BOUND = 4.0  # of a value; more than a game can show
_YEAR_DAYS = 360.0
# Remainders of counts that are shown one-hot: in them the phase of a cycle of 2, 3 or 4 is linear. In the count itself,
# which is a share of all decisions, a policy of a few thousand decisions does not learn to tell odd from even.
_CYCLES = (3, 4)
# Kinds that make sense while something covers the map; the rest needs it free.
_COVERED_KINDS = frozenset({"wait", "explore_menu", "click_element", "random_click", "observe", "escape"})


class Observer:
    """Computes observations, in its own buffers.

    Attributes:
        spaces: The space of one seat.
        blocks: Named ranges of the entries `readings`, `menu` and `built`, where they are observed.
        fields: Names of all values of those entries and of `advice`.
        observations: One `(games, 1, ...)` tensor per entry.
    """

    def __init__(
        self,
        config: CityConfig,
        backend: CityBackend,
        others: Mapping[str, NDArray[np.float32]] | None = None,
        sites: Sites | None = None,
    ) -> None:
        """Make buffers; `others` are further entries `(games, ...)` from 0 to 1, written elsewhere."""
        self._sites, self._once = sites, [backend.catalogue.number(name) for name in config.once]
        self._config, self._catalogue, self._menus = config, backend.catalogue, backend.menus
        self._builds = np.flatnonzero(backend.catalogue.group == KIND_GROUPS.index("build"))
        kinds = np.array([field.kind for field in backend.fields])
        self._is_log = np.isin(kinds, ("money", "number"))
        self._is_date = kinds == "date"
        self._closed_kinds = np.array([name not in _COVERED_KINDS for name in backend.catalogue.names])
        fields, sight, others = self._make_fields(backend), backend.sight, others or {}
        shapes: dict[str, tuple[int, ...]] = {
            "frame": (*sight.frame.shape[1:3], 3),
            "map": sight.map.shape[1:],
            **{name: (len(names),) for name, names in fields.items()},
        }
        shapes = {name: shapes[name] for name in shapes if name in config.observe}
        shapes["mask"] = (len(self._catalogue) + self._catalogue.cells,)
        whole = shapes | {name: array.shape[1:] for name, array in others.items()}
        self.spaces = spaces.Dict({name: _space(name, shape) for name, shape in whole.items()})
        self.fields = {name: names for name, names in fields.items() if name in whole}
        self.blocks = {name: _blocks(names) for name, names in self.fields.items() if name in shapes}
        self._arrays: dict[str, NDArray[Any]] = {
            name: np.zeros((backend.num_envs, *shape), self.spaces[name].dtype) for name, shape in shapes.items()
        }
        self.observations: Observations = {
            name: torch.from_numpy(array).unsqueeze(1) for name, array in {**self._arrays, **others}.items()
        }

    def write(self, sight: Sight, tracker: Tracker, games: NDArray[np.bool_] | None = None) -> Observations:
        """Write what is seen of all games, or of those of `games`, `(games,)`, and return all observations."""
        rows: NDArray[np.bool_] | slice = slice(None) if games is None else games
        arrays = self._arrays
        if "map" in arrays:
            arrays["map"][rows] = sight.map[rows]
        if "frame" in arrays:
            arrays["frame"][rows] = sight.frame[rows]
        if "readings" in arrays:
            arrays["readings"][rows] = self._readings(sight, tracker, rows)
        if "menu" in arrays:
            arrays["menu"][rows] = self._menu(sight, tracker, rows)
        if "built" in arrays and self._sites is not None:
            arrays["built"][rows] = self._built(self._sites.built[rows], tracker.step[rows])
        arrays["mask"][rows] = self._mask(sight, tracker, rows)
        return self.observations

    def _readings(self, sight: Sight, tracker: Tracker, rows: NDArray[np.bool_] | slice) -> NDArray[np.float64]:
        values, readable = sight.values[rows], sight.readable[rows]
        years = (values - tracker.first_day[rows, None]) / _YEAR_DAYS / _YEARS
        logs = np.sign(values) * np.log1p(np.abs(values)) / _LOG_SCALE
        scaled = np.where(self._is_log, logs, np.where(self._is_date, years, values / 100.0))
        scaled = np.clip(np.where(readable, scaled, 0.0), -_BOUND, _BOUND)
        age = np.minimum(sight.age[rows], MOST_AGE) / MOST_AGE
        return np.concatenate((scaled, readable, sight.confidence[rows], age), axis=1)

    def _menu(self, sight: Sight, tracker: Tracker, rows: NDArray[np.bool_] | slice) -> NDArray[np.float64]:
        menu, placed = sight.menu[rows], sight.placed[rows]
        parts = (
            (menu < 0)[:, None],
            menu[:, None] == np.arange(len(self._menus)),
            sight.dialog[rows][:, None],
            sight.window[rows][:, None],
            (sight.elements[rows] / self._config.menu_buffer)[:, None],
            placed[:, None] == np.array([CONFIRMED, REFUSED, NOT_JUDGED]),
            tracker.last_kind[rows][:, None] == np.arange(len(self._catalogue)),
        )
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def _built(self, built: NDArray[np.int64], step: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what was built, from counts `(games, kinds)` and the decisions so far, `(games,)`."""
        own = built[:, self._builds]
        counts = np.concatenate((own.sum(axis=1, keepdims=True), own), axis=1)
        shares = np.minimum(np.column_stack((step, counts)) / self._config.steps, 1.0)
        phases = [(counts[..., None] % cycle == np.arange(cycle)).reshape(len(counts), -1) for cycle in _CYCLES]
        return np.concatenate((shares, *phases), axis=1, dtype=np.float64)

    def _mask(self, sight: Sight, tracker: Tracker, rows: NDArray[np.bool_] | slice) -> NDArray[np.bool_]:
        """Mask what the funds do not allow, what needs the map while it is covered, and sites that are taken."""
        funds, is_readable = tracker.read(sight, "funds")
        too_dear = self._catalogue.least_cost > funds[rows][:, None] + self._catalogue.credit
        allowed = ~(too_dear & is_readable[rows][:, None])
        if not self._config.closes:
            covered = sight.dialog[rows] | (sight.menu[rows] >= 0) | sight.window[rows]
            allowed &= ~(covered[:, None] & self._closed_kinds)
        if self._sites is None:
            return np.concatenate((allowed, np.ones((len(allowed), self._catalogue.cells), np.bool_)), axis=1)
        allowed[:, self._once] &= ~self._sites.done[rows][:, self._once]
        return np.concatenate((allowed, self._sites.allowed(self._config.sites)[rows]), axis=1)

    def _make_fields(self, backend: CityBackend) -> dict[str, tuple[str, ...]]:
        kinds = [name.replace(".", "_") for name in self._catalogue.names]
        read = [field.name.replace(".", "_") for field in backend.fields]
        blocks = ("values", "readable", "confidence", "age")
        counted = ("all", *(kinds[number] for number in self._builds))
        return {
            "readings": tuple(f"{block}.{name}" for block in blocks for name in read),
            "menu": (
                "none",
                *(f"open.{name.replace('.', '_')}" for name in self._menus),
                *("dialog", "window", "elements"),
                *("placed.confirmed", "placed.refused", "placed.not_judged"),
                *(f"kind.{name}" for name in kinds),
            ),
            "built": (
                "turn",
                *(f"share.{name}" for name in counted),
                *(f"by_{cycle}.{name}.r{rest}" for cycle in _CYCLES for name in counted for rest in range(cycle)),
            ),
            "advice": tuple(f"advice.{name}" for name in (*kinds, "confidence", "age")),
        }


def _blocks(fields: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the number of the first value of each block, which begins their names, and the one behind its last."""
    heads = [name.partition(".")[0] for name in fields]
    return {head: (heads.index(head), heads.index(head) + heads.count(head)) for head in dict.fromkeys(heads)}


def _space(name: str, shape: tuple[int, ...]) -> spaces.Box:
    if len(shape) == 3:
        return spaces.Box(0, 255, shape, np.uint8)
    if name == "mask":
        return spaces.Box(0, 1, shape, np.bool_)  # type: ignore[arg-type]  # gymnasium's own types know no bool
    return spaces.Box(-_BOUND if name == "readings" else 0.0, _BOUND if name == "readings" else 1.0, shape, np.float32)
