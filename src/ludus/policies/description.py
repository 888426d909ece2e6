"""A policy as JSON: its world's spaces and its settings, enough to build it again without the world."""

import json
from collections.abc import Mapping
from dataclasses import astuple
from math import prod
from typing import Annotated, Any, Literal, Self

import numpy as np
from gymnasium import spaces
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from ludus.core.errors import ConfigError, UnsupportedError, brief
from ludus.core.schedules import Name
from ludus.envs.base import ActionGrid, ActionKinds, EnvSpec, Mirror, Reflection
from ludus.policies.config import MAX_SETTINGS, PolicyConfig
from ludus.rewards.plugins import plugins_needed

_Size = Annotated[int, Field(ge=1, le=1_000_000)]
# Numbers of one space: a picture of 2,048 x 2,048 in four colours; Gymnasium keeps arrays of that shape.
_MAX_ELEMENTS = 1 << 24
_MAX_ENTRIES = 1_000
_MAX_ROWS = 100_000  # kinds of action
_MAX_AXES = 16
_MAX_SEATS = 1_000
_BOUNDS = {"uint8": (0, 255), "int8": (-128, 127), "bool": (0, 1)}  # of observations, which are not clipped


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")  # JSON has no infinity


class SpaceDescription(_Frozen):
    """One space."""

    kind: Literal["box", "discrete", "multi_discrete", "multi_binary"]  # which space
    shape: tuple[_Size, ...] = Field(default=(), max_length=_MAX_AXES)  # of a box or of buttons
    dtype: Literal["float32", "float64", "uint8", "int8", "bool"] = "float32"  # of a box
    counts: tuple[_Size, ...] = Field(default=(), max_length=_MAX_ROWS)  # alternatives of each choice
    # Lower bounds of a continuous action, one an axis; empty for observations, which are not clipped.
    low: tuple[float, ...] = Field(default=(), max_length=_MAX_ROWS)
    high: tuple[float, ...] = Field(default=(), max_length=_MAX_ROWS)  # upper bounds likewise

    @model_validator(mode="after")
    def _fits(self) -> Self:
        elements = max(prod(self.shape), sum(self.counts))
        if elements > _MAX_ELEMENTS:
            raise ValueError(f"a space of {elements:.3g} numbers; at most {_MAX_ELEMENTS} are allowed")
        wanted = {"box": (0, len(self.shape)), "discrete": (1, 0), "multi_binary": (0, max(len(self.shape), 1))}
        choices, axes = wanted.get(self.kind, (max(len(self.counts), 1), 0))
        if (len(self.counts), len(self.shape)) != (choices, axes):
            raise ValueError(f"{self.kind} with {len(self.counts)} counts and {len(self.shape)} axes is no space")
        if (self.low or self.high) and not len(self.low) == len(self.high) == elements:
            raise ValueError(f"{len(self.low)} lower and {len(self.high)} upper bounds of {elements} numbers")
        return self

    @classmethod
    def of(cls, space: spaces.Space[Any], *, bounds: bool = False) -> Self:
        """Describe a space; `bounds` keeps those of a box."""
        if isinstance(space, spaces.Discrete):
            return cls(kind="discrete", counts=(int(space.n),))
        if isinstance(space, spaces.MultiDiscrete):
            return cls(kind="multi_discrete", counts=tuple(space.nvec.tolist()))
        if isinstance(space, spaces.MultiBinary):
            return cls(kind="multi_binary", shape=space.shape)
        if isinstance(space, spaces.Box):
            form = {"kind": "box", "shape": space.shape, "dtype": str(space.dtype)}
            edges = {"low": space.low.tolist(), "high": space.high.tolist()} if bounds else {}
            return cls.model_validate(form | edges)
        raise UnsupportedError(f"space {space} cannot be described; valid: Box, Discrete, MultiDiscrete, MultiBinary")

    def space(self) -> spaces.Space[Any]:
        """Build the space."""
        if self.kind == "discrete":
            return spaces.Discrete(self.counts[0])
        if self.kind == "multi_discrete":
            return spaces.MultiDiscrete(list(self.counts))
        if self.kind == "multi_binary":
            return spaces.MultiBinary(self.shape[0])
        kind = np.dtype(self.dtype).type
        if self.low:
            return spaces.Box(np.array(self.low, kind), np.array(self.high, kind), dtype=kind)
        low, high = _BOUNDS.get(self.dtype, (-np.inf, np.inf))
        return spaces.Box(low, high, self.shape, dtype=kind)


_Sources = Annotated[tuple[Annotated[int, Field(ge=0, le=1_000_000)], ...], Field(max_length=_MAX_ROWS)]
_Signs = Annotated[tuple[float, ...], Field(max_length=_MAX_ROWS)]


class MirrorDescription(_Frozen):
    """The mirror of a world, each reflection as its sources and signs; see `Mirror`."""

    observations: dict[Name, tuple[_Sources, _Signs]] = Field(max_length=_MAX_ENTRIES)
    actions: tuple[_Sources, _Signs]
    side: tuple[Name, Annotated[int, Field(ge=0, le=1_000_000)]] | None

    @classmethod
    def of(cls, mirror: Mirror) -> Self:
        """Describe a mirror."""
        entries = {name: (reflection.source, reflection.sign) for name, reflection in mirror.observations.items()}
        return cls(observations=entries, actions=(mirror.actions.source, mirror.actions.sign), side=mirror.side)

    def mirror(self) -> Mirror:
        """Build the mirror."""
        entries = {name: Reflection(*parts) for name, parts in self.observations.items()}
        return Mirror(entries, Reflection(*self.actions), self.side)


class PolicyDescription(_Frozen):
    """What a checkpoint says of its policy."""

    world: Annotated[str, Field(pattern=r"^[ -~]{1,180}-v[0-9]{1,9}$")]  # versioned name of the world
    rate_hz: float = Field(gt=0.0, le=1e9)  # decisions a second of game time
    # Team of each seat.
    teams: Annotated[tuple[Annotated[int, Field(ge=0, le=_MAX_SEATS)], ...], Field(min_length=1, max_length=_MAX_SEATS)]
    # Entries of one seat's observation, in order.
    observation_space: tuple[tuple[Name, SpaceDescription], ...] = Field(max_length=_MAX_ENTRIES)
    action_space: SpaceDescription  # actions of one seat
    # Named ranges of observation entries.
    blocks: dict[Name, Annotated[dict[Name, tuple[int, int]], Field(max_length=_MAX_ENTRIES)]] = Field(
        max_length=_MAX_ENTRIES
    )
    config: PolicyConfig  # settings of the policy
    # Settings of the world that it was trained in, so that it can be evaluated in the same.
    settings: dict[str, Any] = Field(default_factory=dict)
    action_mask: Name | None = None  # observation entry that says which choices are allowed, or None; see `EnvSpec`
    # For each kind of action, which of the other factors count.
    action_uses: tuple[Annotated[tuple[bool, ...], Field(max_length=_MAX_ROWS)], ...] = Field(
        default=(), max_length=_MAX_ROWS
    )
    # Kinds of action that are there for exploring.
    exploratory_kinds: tuple[Annotated[int, Field(ge=0, le=1_000_000)], ...] = Field(default=(), max_length=_MAX_ROWS)
    # The observation entry, rows and columns of the grid that actions are aimed at, or None.
    action_places: tuple[Name, _Size, _Size] | None = None
    # The world's bots, where the policy learns to classify them, else none.
    bots: tuple[Name, ...] = Field(default=(), max_length=_MAX_ENTRIES)
    # Names of the user's own files and modules that its world and network need. They are shown where these are not
    # found, and never loaded because of this.
    plugins: tuple[Annotated[str, Field(max_length=255)], ...] = Field(default=(), max_length=_MAX_ENTRIES)
    # Names of the values of observation entries, where a user's own network may ask for them, else none.
    fields: dict[Name, Annotated[tuple[Name, ...], Field(max_length=_MAX_ROWS)]] = Field(
        default_factory=dict, max_length=_MAX_ENTRIES
    )
    # How its world looks in a mirror, where the policy turns mirrored views, else None.
    mirror: MirrorDescription | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Refuse what would not fit together before the policy plays: ranges outside an entry, and endless settings."""
        spaces_by_name = dict(self.observation_space)
        if len(spaces_by_name) < max(len(self.observation_space), 1):
            raise ValueError("observation_space must be at least one entry, each with a name of its own")
        for entry, ranges in self.blocks.items():
            size = (*spaces_by_name[entry].shape, 0)[-2:][0] if entry in spaces_by_name else 0
            wrong = next((name for name, (start, stop) in ranges.items() if not 0 <= start < stop <= size), None)
            if wrong is not None:
                raise ValueError(f"blocks: {brief(wrong)} of {brief(entry)} is no range of its {size} numbers")
        letters = len(json.dumps(self.settings, default=str))
        if letters > MAX_SETTINGS:
            raise ValueError(f"settings are {letters} letters as JSON; at most {MAX_SETTINGS} are allowed")
        return self

    @classmethod
    def of(cls, spec: EnvSpec, config: PolicyConfig, settings: Mapping[str, Any] | None = None) -> Self:
        """Describe a policy of a world; raise UnsupportedError if it has more, or longer names, than a file may."""
        sources = () if config.module is None else (config.module.rpartition(":")[0],)
        classifies = config.strategy is not None and config.strategy.classify > 0.0
        try:
            return cls(
                world=spec.id,
                rate_hz=spec.rate_hz,
                teams=spec.teams,
                observation_space=tuple((name, SpaceDescription.of(s)) for name, s in spec.observation_space.items()),
                action_space=SpaceDescription.of(spec.action_space, bounds=True),
                blocks={name: dict(ranges) for name, ranges in spec.blocks.items()},
                config=config,
                settings=dict(settings or {}),
                action_mask=spec.actions.mask,
                action_uses=spec.actions.uses,
                exploratory_kinds=spec.actions.exploratory,
                action_places=None if spec.actions.places is None else astuple(spec.actions.places),
                bots=spec.bots if classifies else (),
                plugins=tuple(dict.fromkeys((*plugins_needed(spec.id), *sources))),
                fields={name: tuple(names) for name, names in spec.fields.items()} if _reads_names(config) else {},
                mirror=MirrorDescription.of(spec.mirror) if config.canonical and spec.mirror is not None else None,
            )
        except ValidationError as error:
            place, what = _first_fault(error)
            raise UnsupportedError(f"a policy of {brief(spec.id)} cannot be stored: {place}: {what}") from None

    @classmethod
    def read(cls, document: object) -> Self:
        """Check a JSON value that came from a file; raise ConfigError if it is no description of a policy."""
        try:
            return cls.model_validate_json(document) if isinstance(document, str) else cls.model_validate(document)
        except ValidationError as error:
            place, what = _first_fault(error)
            raise ConfigError(
                f"the policy's description is wrong at {place}: {what}; it was made by another version"
            ) from None  # pydantic's own text repeats the value

    def spec(self) -> EnvSpec:
        """Build what a policy needs to know of its world."""
        name, _, version = self.world.rpartition("-v")
        return EnvSpec(
            name=name,
            version=int(version),
            teams=self.teams,
            observation_space=spaces.Dict({key: entry.space() for key, entry in self.observation_space}),
            action_space=self.action_space.space(),
            rate_hz=self.rate_hz,
            step_limit=None,
            bots=self.bots,
            blocks=self.blocks,
            fields=self.fields,
            actions=ActionKinds(
                mask=self.action_mask,
                uses=self.action_uses,
                exploratory=self.exploratory_kinds,
                places=None if self.action_places is None else ActionGrid(*self.action_places),
            ),
            mirror=None if self.mirror is None else self.mirror.mirror(),
        )


def _first_fault(error: ValidationError) -> tuple[str, str]:
    """Return where the first fault is, and what it is, without the value."""
    fault = error.errors(include_input=False, include_url=False)[0]
    return brief(".".join(map(str, fault["loc"])), 200).strip("'") or "value", fault["msg"][:500]


def _reads_names(config: PolicyConfig) -> bool:
    """Return whether a policy is built by the names of what it sees."""
    return config.module is not None or (config.strategy is not None and bool(config.strategy.events))
