"""The settings of a training run: the world, the policy, PPO, the budget, checkpoints, rewards and opponents."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ludus.algorithms.off_policy.config import OffPolicyConfig, playing_policy, refused_settings
from ludus.algorithms.ppo.config import PpoConfig
from ludus.core.errors import ConfigError, ConfigMismatchError
from ludus.core.files import JSON
from ludus.curriculum.config import StageConfig, check_stages
from ludus.curriculum.steering_config import SteeringConfig
from ludus.envs.overrides import with_overrides
from ludus.league.config import LeagueConfig
from ludus.policies.config import PolicyConfig
from ludus.rewards.weights import RewardConfig
from ludus.training.sinks.config import MonitoringConfig

MEAN_WIN_RATE, LOWEST_WIN_RATE = "mean_win_rate", "lowest_win_rate"  # scores that are no number of a row


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class WorldConfig(_Frozen):
    """Which games are played.

    Attributes:
        name: Registered world, such as `brawl` or `gym:CartPole-v1`.
        num_games: Games in the batch.
        device: Where games, policy and learner live; `auto` is a CUDA device if there is one that the world can use.
        settings: The world's own settings.
    """

    name: str
    num_games: int = Field(default=64, ge=1)
    device: str = "auto"
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


class PlateauConfig(_Frozen):
    """What happens when evaluations no longer get better.

    Attributes:
        evaluations: That many in a row without a new best score are a plateau.
        improvement: A score must exceed the best one by this to count as better.
        action: `warn` says so once for each plateau; `stop` ends the run with the checkpoint `interrupted`.
    """

    evaluations: int = Field(default=10, ge=1)
    improvement: float = Field(default=0.0, ge=0.0)
    action: Literal["warn", "stop"] = "warn"


class GuardConfig(_Frozen):
    """What a run watches for; a limit that is None is not watched.

    Attributes:
        max_faults_in_a_row: Numbers that are not finite, without a good iteration between them, after which it stops.
        memory_gib: Resident memory of the process, with the processes that it started, at which it saves and stops;
            None is nine tenths of the machine's.
        folder_gib: Size of the run folder at which old checkpoints go; if that does not help, it saves and stops.
        free_disk_gib: Free space on the disk below which the same happens.
        plateau: What happens when evaluations no longer get better; None switches it off.
        every_s: Seconds between looks at memory and disk.
    """

    max_faults_in_a_row: int = Field(default=3, ge=1)
    memory_gib: float | None = Field(default=None, gt=0.0)
    folder_gib: float | None = Field(default=20.0, gt=0.0)
    free_disk_gib: float | None = Field(default=0.5, ge=0.0)
    plateau: PlateauConfig | None = PlateauConfig()
    every_s: float = Field(default=2.0, ge=0.0)


class SoonerConfig(_Frozen):
    """Evaluation more or less often, the better the agent is.

    Attributes:
        number: Which number of the first row decides.
        steps: `[bound, env steps]` each, bounds rising: once the number is at least the bound, evaluations are that far
            apart; the highest bound that is reached decides.
    """

    number: str
    steps: tuple[tuple[float, Annotated[int, Field(ge=1)]], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _bounds_rise(self) -> Self:
        bounds = [bound for bound, _ in self.steps]
        if sorted(set(bounds)) != bounds:
            raise ValueError(f"the bounds of steps must rise, got {', '.join(f'{bound:g}' for bound in bounds)}")
        return self


class EvaluationConfig(_Frozen):
    """Evaluation during training, on games of its own with seeds of its own.

    Attributes:
        every_env_steps: It is done whenever a multiple of this is passed, and at the end.
        opponents: Bots and agents to play against; None is every bot of the world.
        trials: In a world of one team that has trials: which of them; None is all. The first one decides over score,
            `sooner` and `converged`.
        settings: Settings of the world that are laid over those of the games that are learned in, for matches that are
            longer or begin otherwise. What is seen and done must be the same.
        modes: Named settings that are laid over the run's own and over `settings`, in each of which all matches are
            played, all run long; None plays in the games of the present stage, and then the best agent is chosen anew
            in every stage with games of its own.
        matches: Matches against each of them in each mode; episodes in each trial, or in a world without opponents.
        seed: Of its games, the same every time, so that numbers can be compared.
        deterministic: Whether the most likely actions are taken instead of drawn ones.
        score: By which the best agent is kept: `mean_win_rate` over all rows, or `lowest_win_rate`; in a world
            without winners both are the mean return, or else the mean length. Or any number of the rows, such as
            `damage_ratio`, whose mean it is.
        tolerance: A later agent takes the best one's place if its score is lower by no more than this: matches are a
            matter of chance, and past selves that are met in training, but not here, are beaten better and better.
        sooner: When it is done more or less often than that; None never.
        converged: Numbers of the first row and how high they must be at least, all in one evaluation, for the agent to
            count as converged; the env steps of the first such evaluation are noted as `steps_to_convergence`.
    """

    every_env_steps: int = Field(default=1_000_000, ge=1)
    opponents: tuple[str, ...] | None = None
    trials: tuple[str, ...] | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    modes: dict[Annotated[str, Field(min_length=1)], dict[str, Any]] | None = Field(default=None, min_length=1)
    matches: int = Field(default=50, ge=1)
    seed: int = Field(default=1_000_003, ge=0, lt=2**63)
    deterministic: bool = False
    score: str = Field(default=MEAN_WIN_RATE, min_length=1)
    tolerance: float = Field(default=0.0, ge=0.0)
    sooner: SoonerConfig | None = None
    converged: dict[str, float] | None = Field(default=None, min_length=1)

    def numbers(self) -> tuple[str, ...]:
        """Returns the numbers of rows that it names."""
        named = () if self.score in (MEAN_WIN_RATE, LOWEST_WIN_RATE) else (self.score,)
        sooner = () if self.sooner is None else (self.sooner.number,)
        return (*named, *sooner, *(self.converged or {}))


def _one_bot(raw: object) -> object:
    return {raw: 1.0} if isinstance(raw, str) else raw


Weight = Annotated[float, Field(ge=0.0)]


class TrainConfig(_Frozen):
    """Everything that decides the course of a run.

    Attributes:
        world: The games.
        total_env_steps: Budget in steps of learner seats; training ends with the iteration that reaches it.
        seed: Of everything random: first parameters, games, seats, opponents, exploration, minibatches.
        policy: The networks.
        algorithm: How the policy is learned: by PPO, or off-policy by SAC or TD3, for continuous actions in a world
            without opponents, with the optional Stable-Baselines3.
        ppo: Settings of PPO.
        off_policy: Settings of SAC and TD3.
        rewards: What is rewarded; without any term the world's set `dense`, or else its usual events.
        opponents: Who plays the seats that are not the learner's, as a name or a mapping of names to weights: bots,
            `self` for past selves, and `mirror` for games in which the learner plays every seat. In all others it plays
            one team. None lets the learner play every seat of every game.
        league: How past selves become opponents.
        curriculum: Stages with opponents, rewards and games of their own, in place of `opponents`; none by default.
        steering: What changes exploring and rewards by what the games show; None leaves both to their schedules.
        evaluation: When the agent is evaluated; None never.
        checkpoints: When to save.
        guard: What the run watches for.
        monitoring: What it shows and where it reports to.
    """

    world: WorldConfig
    total_env_steps: int = Field(default=1_000_000, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**63)
    policy: PolicyConfig = PolicyConfig()
    algorithm: Literal["ppo", "sac", "td3"] = "ppo"
    ppo: PpoConfig = PpoConfig()
    off_policy: OffPolicyConfig = OffPolicyConfig()
    rewards: RewardConfig = RewardConfig()
    opponents: Annotated[dict[str, Weight] | None, BeforeValidator(_one_bot)] = None
    league: LeagueConfig = LeagueConfig()
    curriculum: tuple[StageConfig, ...] = ()
    steering: SteeringConfig | None = None
    evaluation: EvaluationConfig | None = None
    checkpoints: CheckpointConfig = CheckpointConfig()
    guard: GuardConfig = GuardConfig()
    monitoring: MonitoringConfig = MonitoringConfig()

    @model_validator(mode="after")
    def _someone_plays(self) -> Self:
        if self.opponents is not None and not any(self.opponents.values()):
            raise ValueError("opponents needs a weight above 0; leave it out to let the learner play every seat")
        if self.curriculum and self.opponents is not None:
            raise ValueError("opponents are given by each stage of the curriculum; leave out one of the two")
        check_stages(self.curriculum)
        exploring = [stage.name for stage in self.curriculum if stage.exploration is not None]
        if exploring and self.policy.exploration is None:
            raise ValueError(
                f"stage {exploring[0]!r} has an exploration of its own, for which the policy has to be made: set "
                "policy.exploration, with frequency 0 if the other stages do not explore"
            )
        if self.steering is not None and self.policy.exploration is None:
            raise ValueError("steering changes how the policy explores, for which it has to: set policy.exploration")
        if self.ppo.mirror and (self.policy.recurrent is not None or self.policy.strategy is not None):
            raise ValueError(
                "ppo.mirror is for policies without memory; leave out policy.recurrent and policy.strategy"
            )
        return self

    @model_validator(mode="after")
    def _algorithm_can_do_it(self) -> Self:
        if self.policy.squash is not None:
            raise ValueError("policy.squash follows from the algorithm; leave it out")
        if self.algorithm == "ppo":
            return self
        others = {"opponents": self.opponents is not None, "curriculum": self.curriculum, "ppo.mirror": self.ppo.mirror}
        others["steering"] = self.steering is not None
        refused = [*refused_settings(self.policy), *(name for name, is_set in others.items() if is_set)]
        if refused:
            raise ValueError(
                f"algorithm {self.algorithm} cannot do {', '.join(refused)}; leave that out, or use algorithm ppo"
            )
        return self

    def playing_policy(self) -> PolicyConfig:
        """Returns the settings of the policy that plays and that checkpoints hold: of an off-policy run, the actor."""
        return self.policy if self.algorithm == "ppo" else playing_policy(self.policy, self.algorithm)

    def stages(self) -> tuple[StageConfig, ...]:
        """Returns the curriculum's stages; none if the learner plays every seat."""
        if self.curriculum or self.opponents is None:
            return self.curriculum
        return (StageConfig(name="all", opponents=self.opponents),)

    def at_stage(self, index: int) -> Self:
        """Returns the settings with the world and the exploration of a stage in the place of the run's own."""
        stages = self.stages()
        if not stages:
            return self
        own, exploration = stages[index].world, stages[index].exploration
        whole: dict[str, Any] = {}
        if own is not None:
            changes: dict[str, Any] = {"settings": with_overrides(self.world.name, self.world.settings, own.settings)}
            changes |= {} if own.num_games is None else {"num_games": own.num_games}
            whole["world"] = self.world.model_copy(update=changes)
        if exploration is not None:
            whole["policy"] = self.policy.model_copy(update={"exploration": exploration})
        return self.model_copy(update=whole) if whole else self

    @property
    def names_modes(self) -> bool:
        """Whether there can be several modes, so that numbers and rows say of which they are."""
        return any(stage.world is not None for stage in self.stages())

    def judged_settings(self, stage: int) -> dict[str, Any]:
        """Returns the world's settings in which the agent of a stage is evaluated: its games, as evaluations play."""
        over = {} if self.evaluation is None else self.evaluation.settings
        return with_overrides(self.world.name, self.at_stage(stage).world.settings, over)

    def judged_modes(self) -> dict[str, dict[str, Any]]:
        """Returns the settings of all modes in which the agent is evaluated, by name; none where there are no modes."""
        evaluation = self.evaluation
        if evaluation is None or evaluation.modes is None:
            return {}
        world = self.world
        return {
            name: with_overrides(world.name, world.settings, evaluation.settings, settings)
            for name, settings in evaluation.modes.items()
        }

    def to_json(self) -> JSON:
        """Returns the settings as JSON that `from_json` gives back equal.

        Raises:
            ConfigError: A setting of the world is nothing that JSON can hold.
        """
        document: JSON = self.model_dump(mode="json")
        if TrainConfig.model_validate(document) != self:
            stages = range(max(len(self.stages()), 1))
            given = [*map(self.judged_settings, stages), *self.judged_modes().values()]
            raise ConfigError(
                f"the settings of {self.world.name} must be JSON values, got {', '.join(map(repr, given))}"
            )
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


# What may change when a run goes on: where it runs, what it shows and keeps; the course of learning stays the same.
_FREE = ("world.device", "checkpoints.", "guard.", "monitoring.")


def differences(began: JSON, asked: JSON) -> list[str]:
    """Returns `key: then -> now` for everything in which settings differ that decide the course of a run.

    Settings that did not exist yet when the run began count as their defaults, which change nothing.
    """
    old, new = _flat(_complete(began)), _flat(asked)
    return [
        f"{key}: {_shown(old, key)} -> {_shown(new, key)}"
        for key in sorted({*old, *new})
        if _shown(old, key) != _shown(new, key) and not f"{key}.".startswith(_FREE)
    ]


def check_same(began: JSON, asked: JSON) -> None:
    """Raises ConfigMismatchError with every difference if a run would go on with other settings than it began with."""
    lines = differences(began, asked)
    if lines:
        raise ConfigMismatchError(
            "the run began with other settings (then -> now):\n" + "\n".join(f"  {line}" for line in lines) + "\n"
            "use the settings it began with, or branch off a new run with --fork"
        )


def _complete(document: JSON) -> JSON:
    try:
        return TrainConfig.from_json(document).to_json()
    except ConfigError:
        return document  # what cannot be read any more differs in that


def _flat(document: JSON, prefix: str = "") -> Mapping[str, JSON]:
    if not isinstance(document, dict) or not document:
        return {prefix: document}
    flat: dict[str, JSON] = {}
    for key, value in document.items():
        flat |= _flat(value, f"{prefix}.{key}" if prefix else key)
    return flat


def _shown(flat: Mapping[str, JSON], key: str) -> str:
    return repr(flat[key]) if key in flat else "not set"
