"""The settings of a training run: the world, the policy, PPO, the budget, checkpoints, rewards and opponents."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ludus.algorithms.ppo.config import PpoConfig
from ludus.core.errors import ConfigError, ConfigMismatchError
from ludus.core.files import JSON
from ludus.policies.config import PolicyConfig


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class WorldConfig(_Frozen):
    """Which games are played.

    Attributes:
        name: Registered world, such as `brawl` or `gym:CartPole-v1`.
        num_games: Games in the batch.
        device: Where games, policy and learner live.
        settings: The world's own settings.
    """

    name: str
    num_games: int = Field(default=64, ge=1)
    device: str = "cpu"
    settings: dict[str, Any] = Field(default_factory=dict)


class CheckpointConfig(_Frozen):
    """When checkpoints are saved, and how many stay; `init`, `best`, `final` and `interrupted` always stay.

    Attributes:
        every_env_steps: Saves whenever a multiple of this is passed; None switches it off.
        every_iterations: Saves after every so many iterations; None switches it off.
        keep: Periodic checkpoints that stay.
    """

    every_env_steps: int | None = Field(default=500_000, ge=1)
    every_iterations: int | None = Field(default=None, ge=1)
    keep: int = Field(default=3, ge=1)


class GuardConfig(_Frozen):
    """What happens when a number is not finite.

    Attributes:
        max_faults_in_a_row: Faults without a good iteration between them after which the run stops.
    """

    max_faults_in_a_row: int = Field(default=3, ge=1)


def _one_bot(raw: object) -> object:
    return {raw: 1.0} if isinstance(raw, str) else raw


Weight = Annotated[float, Field(gt=0.0)]


class TrainConfig(_Frozen):
    """Everything that decides the course of a run.

    Attributes:
        world: The games.
        total_env_steps: Budget in steps of learner seats; training ends with the iteration that reaches it.
        seed: Of everything random: first parameters, games, seats, opponents, exploration, minibatches.
        policy: The networks.
        ppo: The algorithm.
        rewards: Weight of each event of the world; None takes its `reward` event, or the world's usual weights.
        opponents: Bots in the seats that are not the learner's, as a name or a mapping of names to weights; the
            learner then plays one random seat of every game. None lets the learner play every seat.
        checkpoints: When to save.
        guard: What happens when a number is not finite.
    """

    world: WorldConfig
    total_env_steps: int = Field(default=1_000_000, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**63)
    policy: PolicyConfig = PolicyConfig()
    ppo: PpoConfig = PpoConfig()
    rewards: dict[str, float] | None = None
    opponents: Annotated[dict[str, Weight] | None, BeforeValidator(_one_bot)] = None
    checkpoints: CheckpointConfig = CheckpointConfig()
    guard: GuardConfig = GuardConfig()

    @model_validator(mode="after")
    def _someone_plays(self) -> Self:
        if self.opponents is not None and not self.opponents:
            raise ValueError("opponents must name at least one bot; leave it out to let the learner play every seat")
        return self

    def to_json(self) -> JSON:
        """Returns the settings as JSON that `from_json` gives back equal.

        Raises:
            ConfigError: A setting of the world is nothing that JSON can hold.
        """
        document: JSON = self.model_dump(mode="json")
        if TrainConfig.model_validate(document) != self:
            raise ConfigError(f"the settings of {self.world.name} must be JSON values, got {self.world.settings!r}")
        return document

    @classmethod
    def from_json(cls, document: JSON) -> Self:
        """Returns the settings that `to_json` was asked for.

        Raises:
            ConfigError: They are not valid settings.
        """
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
            raise ConfigError(f"stored settings cannot be used: {'; '.join(faults)}") from error


def check_same(began: JSON, asked: JSON) -> None:
    """Raises ConfigMismatchError with every difference if a run would go on with other settings than it began with."""
    old, new = _flat(began), _flat(asked)
    lines = [
        f"  {key}: {_shown(old, key)} -> {_shown(new, key)}"
        for key in sorted({*old, *new})
        if _shown(old, key) != _shown(new, key)
    ]
    if lines:
        raise ConfigMismatchError(
            "the run began with other settings (then -> now):\n" + "\n".join(lines) + "\n"
            "use the settings it began with, or start a new run in another folder"
        )


def _flat(document: JSON, prefix: str = "") -> Mapping[str, JSON]:
    if not isinstance(document, dict) or not document:
        return {prefix: document}
    flat: dict[str, JSON] = {}
    for key, value in document.items():
        flat |= _flat(value, f"{prefix}.{key}" if prefix else key)
    return flat


def _shown(flat: Mapping[str, JSON], key: str) -> str:
    return repr(flat[key]) if key in flat else "not set"
