"""The settings of a training run: world, policy, algorithm, budget, checkpoints, rewards, opponents and monitoring."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from ludus.algorithms.algorithm import Algorithm, Feature, algorithms, find_algorithm, on_registration
from ludus.core.errors import ConfigError, ConfigMismatchError, UnknownNameError, brief
from ludus.core.files import JSON
from ludus.core.schedules import MAX_ENV_STEPS, MAX_ENVS, MAX_FACTOR, MAX_ITERATIONS, MAX_MATCHES
from ludus.curriculum.config import AdaptiveCurriculumConfig, PhaseConfig, check_phases
from ludus.envs.registry import with_overrides
from ludus.envs.stored import Outside, StoredSettings, outside_names
from ludus.league.config import LeagueConfig
from ludus.policies.config import PolicyConfig
from ludus.rewards.weights import RewardConfig

MEAN_WIN_RATE, LOWEST_WIN_RATE = "mean_win_rate", "lowest_win_rate"  # scores that are no number of a row

ConsoleKind: TypeAlias = Literal["auto", "rich", "plain", "off"]
VariableName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class WorldConfig(_Frozen):
    """Which games are played.

    Attributes:
        name: Registered world, such as `brawl` or `gym:CartPole-v1`.
        num_envs: Games in the batch.
        device: Device of the games; `auto` is CUDA if it is available and the world supports it. A world that does not
            is played on the CPU, and its tensors are copied to the learner's device.
        settings: The world's own settings.
    """

    name: str
    num_envs: int = Field(default=64, ge=1, le=MAX_ENVS)
    device: str = "auto"
    settings: dict[str, Any] = Field(default_factory=dict)


class CheckpointConfig(_Frozen):
    """When checkpoints are saved, and how many stay; `init`, `best`, `final` and `interrupted` always stay.

    Attributes:
        every_env_steps: Env steps between checkpoints; None switches this off.
        every_iterations: Iterations between checkpoints; None switches this off.
        keep: Number of periodic checkpoints to keep.
    """

    every_env_steps: int | None = Field(default=500_000, ge=1, le=MAX_ENV_STEPS)
    every_iterations: int | None = Field(default=None, ge=1, le=MAX_ITERATIONS)
    keep: int = Field(default=3, ge=1, le=1_000_000)


class PlateauConfig(_Frozen):
    """What happens when evaluations no longer get better.

    Attributes:
        evaluations: Evaluations in a row without a new best score that count as a plateau.
        improvement: Amount by which a score must exceed the best one to count as better.
        action: `warn` logs a warning once per plateau; `stop` ends the run with the checkpoint `interrupted`.
    """

    evaluations: int = Field(default=10, ge=1, le=1_000_000)
    improvement: float = Field(default=0.0, ge=0.0)
    action: Literal["warn", "stop"] = "warn"


class GuardConfig(_Frozen):
    """Limits that a run watches; None switches a limit off.

    Attributes:
        max_faults_in_a_row: Iterations in a row with NaN or Inf after which the run stops.
        memory_gib: Resident memory of the process and its children at which the run saves and stops; None is nine
            tenths of the machine's memory.
        folder_gib: Size of the run folder at which old checkpoints are deleted; if that does not help, the run saves
            and stops.
        free_disk_gib: Free disk space below which the same happens.
        plateau: What happens when evaluations stop improving; None switches it off.
        every_s: Seconds between checks of memory and disk.
    """

    max_faults_in_a_row: int = Field(default=3, ge=1, le=1_000_000)
    memory_gib: float | None = Field(default=None, gt=0.0)
    folder_gib: float | None = Field(default=20.0, gt=0.0)
    free_disk_gib: float | None = Field(default=0.5, ge=0.0)
    plateau: PlateauConfig | None = PlateauConfig()
    every_s: float = Field(default=2.0, ge=0.0, le=86_400.0)


class SoonerConfig(_Frozen):
    """Evaluation intervals that depend on how good the agent is.

    Attributes:
        number: Number of the first row that decides.
        steps: Pairs `[bound, env steps]` with rising bounds: once the number reaches a bound, evaluations are that many
            env steps apart; the highest bound that is reached counts.
    """

    number: str
    steps: tuple[tuple[float, Annotated[int, Field(ge=1, le=MAX_ENV_STEPS)]], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _bounds_rise(self) -> Self:
        bounds = [bound for bound, _ in self.steps]
        if sorted(set(bounds)) != bounds:
            raise ValueError(f"the bounds of steps must rise, got {', '.join(f'{bound:g}' for bound in bounds)}")
        return self


class EvaluationConfig(_Frozen):
    """Evaluation during training, on separate games with fixed seeds.

    On a GPU one that would take more than a tenth of the run's time is put off until it does not, except the last. On
    the CPU, and in a run of several processes, none is: there equal seeds give equal runs, however fast the machine is.

    Attributes:
        every_env_steps: Env steps between evaluations; there is one at the end too.
        opponents: Bots and agents to play against; None is every bot of the world.
        scenarios: Scenarios to play in a world of one team; None is all. The first one decides the score, `sooner` and
            `converged`.
        settings: World settings that override those of the training games, such as longer matches. Observations and
            actions must stay the same.
        modes: Named settings that override the run's own and `settings`; all matches are played in each of them. None
            plays the games of the current phase, and the best agent is then selected again in every phase with its own
            games.
        matches: Matches per opponent and mode; episodes per scenario, or in a world without opponents.
        seed: Seed of the evaluation games, the same every time, so that numbers can be compared.
        deterministic: Whether to take the most likely actions instead of sampling.
        score: Score of the best agent: `mean_win_rate` over all rows, `lowest_win_rate`, or the mean of any number of
            the rows, such as `damage_ratio`. In a world without winners the first two are the mean return, or else the
            mean length.
        tolerance: A later agent replaces the best one if its score is lower by no more than this: matches are noisy,
            and progress against past selves may not show here.
        sooner: Evaluation intervals that depend on how good the agent is; None keeps `every_env_steps`.
        converged: Numbers of the first row and their lower bounds. The env steps of the first evaluation that reaches
            all of them are recorded as `steps_to_convergence`.
    """

    removed_keys: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("few_matches", "max_share"), "learner.md#evaluating-less-often"),
        "best_of": "strategy.md#copies-that-guess-predictably-in-clashes",
    }

    every_env_steps: int = Field(default=1_000_000, ge=1, le=MAX_ENV_STEPS)
    opponents: tuple[str, ...] | None = None
    scenarios: tuple[str, ...] | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    modes: dict[Annotated[str, Field(min_length=1)], dict[str, Any]] | None = Field(default=None, min_length=1)
    matches: int = Field(default=50, ge=1, le=MAX_MATCHES)
    seed: int = Field(default=1_000_003, ge=0, lt=2**63)
    deterministic: bool = False
    score: str = Field(default=MEAN_WIN_RATE, min_length=1)
    tolerance: float = Field(default=0.0, ge=0.0)
    sooner: SoonerConfig | None = None
    converged: dict[str, float] | None = Field(default=None, min_length=1)

    def numbers(self) -> tuple[str, ...]:
        """Return the numbers of rows that it names."""
        named = () if self.score in (MEAN_WIN_RATE, LOWEST_WIN_RATE) else (self.score,)
        sooner = () if self.sooner is None else (self.sooner.number,)
        return (*named, *sooner, *(self.converged or {}))


class _Secretive(_Frozen):
    # An address that was put in the place of a variable's name is refused, and must not be repeated in the error.
    model_config = ConfigDict(hide_input_in_errors=True)


class WandbConfig(_Secretive):
    """Reporting to Weights & Biases; the key comes from the environment or from `wandb login`.

    Attributes:
        project: Name of the project.
        mode: `offline` writes into the run folder and uses no network; `wandb sync` uploads it later.
            The variable WANDB_MODE can make an online run `offline` or `disabled`, never the other way.
        entity: User or team; None is the account's default.
        tags: Tags of the run.
    """

    project: str = Field(default="ludus", min_length=1)
    mode: Literal["offline", "online"] = "offline"
    entity: str | None = None
    tags: tuple[str, ...] = ()


class WebhookConfig(_Secretive):
    """Messages to a chat, by a Discord-compatible webhook.

    Attributes:
        address_env: Name of the environment variable that holds the address. The address itself is a secret and
            has no place in a file.
        timeout_s: Timeout of one message in seconds.
    """

    address_env: VariableName = "LUDUS_WEBHOOK"
    timeout_s: float = Field(default=5.0, gt=0.0, le=60.0)


class MonitoringConfig(_Secretive):
    """What a run shows and where it reports to; nothing here changes what it learns.

    Attributes:
        console: `auto` is a live view on a terminal and plain lines elsewhere; `rich` and `plain` force one of them;
            `off` is silent.
        tensorboard: Whether to write TensorBoard event files; `auto` writes them if it is installed.
        wandb: Reporting to Weights & Biases; None switches it off.
        webhook: Messages to a chat; None switches them off.
        resources: Whether to write memory and times to `resources.csv`, for `ludus doctor`.
        curves: Whether to draw `training_curves.png` at the end.
        strategy_every_iterations: Iterations between rows of `strategy_analysis.csv`, for policies with a strategy
            encoder.
    """

    console: ConsoleKind = "auto"
    tensorboard: Literal["auto"] | bool = "auto"
    wandb: WandbConfig | None = None
    webhook: WebhookConfig | None = None
    resources: bool = True
    curves: bool = True
    strategy_every_iterations: int = Field(default=10, ge=1, le=MAX_ITERATIONS)


def _known_algorithm(name: str) -> str:
    try:
        return find_algorithm(name).name
    except UnknownNameError as error:
        raise ValueError(str(error)) from error


def _one_bot(raw: object) -> object:
    return {raw: 1.0} if isinstance(raw, str) else raw


Weight = Annotated[float, Field(ge=0.0, le=MAX_FACTOR)]


class TrainConfig(_Frozen):
    """Everything that decides the course of a run.

    Attributes:
        world: The games.
        total_env_steps: Budget in env steps (steps of learner seats); training ends with the iteration that reaches it.
        schedule_env_steps: Env steps over which schedules run, such as that of the learning rate, if the budget is
            smaller: a run that is cut short does not stop learning earlier. None lets them run over the budget.
        extended_from: Earlier budgets of the run; `ludus resume RUN total_env_steps=N` writes them.
        learner_device: Device of policy and learner. `auto` is the device of the games. Where they cannot use the GPU
            that `world.device` names, it is that GPU; if `world.device` is `auto` too, only if the network is large
            enough for it to pay off, which the run reports.
        seed: Seed of everything random: initial parameters, games, seats, opponents, exploration, minibatches.
        policy: The networks.
        algorithm: `ppo`; `sac` or `td3`, off-policy for continuous actions in a world without opponents, with the
            optional Stable-Baselines3; or one that was registered. Its settings are the section of its name.
        rewards: Reward terms and weights; without any, the world's default set.
        opponents: Who plays the seats that are not the learner's, as a name or a mapping of names to weights: bots,
            agents, `self` for past selves, and `mirror` for games in which the learner plays every seat. None lets the
            learner play every seat of every game.
        league: How past selves become opponents.
        curriculum: Phases with their own opponents, rewards and games, instead of `opponents`.
        adaptive_curriculum: Adapts exploration and rewards to the games; None leaves both to their schedules.
        evaluation: Evaluation during training; None for none.
        checkpoints: When to save.
        guard: Limits that the run watches.
        monitoring: What the run shows and where it reports to.
    """

    world: WorldConfig
    total_env_steps: int = Field(default=1_000_000, ge=1, le=MAX_ENV_STEPS)
    schedule_env_steps: int | None = Field(default=None, ge=1, le=MAX_ENV_STEPS)
    extended_from: tuple[Annotated[int, Field(ge=1)], ...] = ()
    learner_device: str = "auto"
    seed: int = Field(default=0, ge=0, lt=2**63)
    policy: PolicyConfig = PolicyConfig()
    algorithm: Annotated[str, AfterValidator(_known_algorithm)] = "ppo"
    rewards: RewardConfig = RewardConfig()
    opponents: Annotated[dict[str, Weight] | None, BeforeValidator(_one_bot)] = None
    league: LeagueConfig = LeagueConfig()
    curriculum: tuple[PhaseConfig, ...] = ()
    adaptive_curriculum: AdaptiveCurriculumConfig | None = None
    evaluation: EvaluationConfig | None = None
    checkpoints: CheckpointConfig = CheckpointConfig()
    guard: GuardConfig = GuardConfig()
    monitoring: MonitoringConfig = MonitoringConfig()

    def scheduled_env_steps(self, budget: int) -> int:
        """Return the env steps over which the schedules of a run with this budget go."""
        return max(budget, self.schedule_env_steps or 0)

    def progress(self, env_steps: int, budget: int) -> float:
        """Return how far the schedules of a run with this budget are after `env_steps`, 0 to 1."""
        return min(env_steps / self.scheduled_env_steps(budget), 1.0)

    @model_validator(mode="after")
    def _someone_plays(self) -> Self:
        if self.opponents is not None and not any(self.opponents.values()):
            raise ValueError("opponents needs a weight above 0; leave it out to let the learner play every seat")
        if self.curriculum and self.opponents is not None:
            raise ValueError("opponents are given by each phase of the curriculum; leave out one of the two")
        check_phases(self.curriculum)
        exploring = [phase.name for phase in self.curriculum if phase.exploration is not None]
        if exploring and self.policy.exploration is None:
            raise ValueError(
                f"phase {exploring[0]!r} has its own exploration, which the policy must support: set "
                "policy.exploration, with frequency 0 if the other phases do not explore"
            )
        if self.adaptive_curriculum is not None and self.policy.exploration is None:
            raise ValueError("adaptive_curriculum adapts the policy's exploration: set policy.exploration")
        return self

    @model_validator(mode="after")
    def _algorithm_can_do_it(self) -> Self:
        if self.policy.squash is not None:
            raise ValueError("policy.squash is set by the algorithm; leave it out")
        asked: dict[Feature, bool] = {
            "opponents": self.opponents is not None,
            "curriculum": bool(self.curriculum),
            "adaptive_curriculum": self.adaptive_curriculum is not None,
        }
        refused = [
            *self.method.refused(self.hyperparameters, self.policy),
            *(name for name, is_set in asked.items() if is_set and name not in self.method.features),
        ]
        if refused:
            raise ValueError(
                f"algorithm {self.algorithm} cannot do {', '.join(refused)}; leave that out, or use another algorithm"
            )
        return self

    @property
    def method(self) -> Algorithm[Any, Any]:
        """The algorithm, by its name."""
        return find_algorithm(self.algorithm)

    @property
    def hyperparameters(self) -> Any:  # noqa: ANN401 - the config model of the algorithm
        """The settings of the algorithm: the section of its name."""
        return getattr(self, self.algorithm)

    def with_hyperparameters(self, settings: BaseModel) -> Self:
        """Return a copy with other settings of the algorithm."""
        return self.model_copy(update={self.algorithm: settings})

    def playing_policy(self) -> PolicyConfig:
        """Return the settings of the policy that plays and that checkpoints hold: of SAC and TD3, the actor."""
        return self.method.policy_config(self.policy)

    def phases(self) -> tuple[PhaseConfig, ...]:
        """Return the curriculum's phases; none if the learner plays every seat."""
        if self.curriculum or self.opponents is None:
            return self.curriculum
        return (PhaseConfig(name="all", opponents=self.opponents),)

    def at_phase(self, index: int) -> Self:
        """Return the settings with the world and the exploration of a phase in the place of the run's own."""
        phases = self.phases()
        if not phases:
            return self
        own, exploration = phases[index].world, phases[index].exploration
        whole: dict[str, Any] = {}
        if own is not None:
            changes: dict[str, Any] = {"settings": with_overrides(self.world.name, self.world.settings, own.settings)}
            changes |= {} if own.num_envs is None else {"num_envs": own.num_envs}
            whole["world"] = self.world.model_copy(update=changes)
        if exploration is not None:
            whole["policy"] = self.policy.model_copy(update={"exploration": exploration})
        return self.model_copy(update=whole) if whole else self

    @property
    def names_modes(self) -> bool:
        """Whether there can be several modes, so that numbers and rows say of which they are."""
        return any(phase.world is not None for phase in self.phases())

    def judged_settings(self, phase: int) -> dict[str, Any]:
        """Return the world's settings in which the agent of a phase is evaluated: its games, as evaluations play."""
        over = {} if self.evaluation is None else self.evaluation.settings
        return with_overrides(self.world.name, self.at_phase(phase).world.settings, over)

    def judged_modes(self) -> dict[str, dict[str, Any]]:
        """Return the settings of all modes in which the agent is evaluated, by name; none where there are no modes."""
        evaluation = self.evaluation
        if evaluation is None or evaluation.modes is None:
            return {}
        world = self.world
        return {
            name: with_overrides(world.name, world.settings, evaluation.settings, settings)
            for name, settings in evaluation.modes.items()
        }

    def outside_names(self) -> Iterator[Outside]:
        """Yield what settings of the world, anywhere in the run, name outside; see `ludus.envs.stored`."""
        for settings in self._all_settings():
            yield from outside_names(self.world.name, settings)

    def check_stored(self, file: Path) -> None:
        """Raise ConfigError if the configuration of a run, sweep or league names what the user has not allowed."""
        for settings in self._all_settings():
            StoredSettings(settings, brief(str(file)), file).checked(self.world.name)

    def _all_settings(self) -> Iterator[Mapping[str, Any]]:
        yield self.world.settings
        yield {"module_kwargs": self.policy.module_kwargs}  # arguments of the user's own network
        yield from (phase.world.settings for phase in self.curriculum if phase.world is not None)
        if self.evaluation is not None:
            yield self.evaluation.settings
            yield from (self.evaluation.modes or {}).values()

    def to_json(self) -> dict[str, JSON]:
        """Return the settings as JSON that `from_json` gives back equal.

        Raises:
            ConfigError: A setting of the world is nothing that JSON can hold.
        """
        document: dict[str, JSON] = self.model_dump(mode="json", exclude=_unused_sections(self))
        again = TrainConfig.model_validate(document)
        if again.model_dump(exclude=_unused_sections(again)) != self.model_dump(exclude=_unused_sections(self)):
            phases = range(max(len(self.phases()), 1))
            given = [*map(self.judged_settings, phases), *self.judged_modes().values()]
            raise ConfigError(
                f"the settings of {self.world.name} must be JSON values, got {', '.join(map(repr, given))}"
            )
        return document

    @classmethod
    def from_json(cls, document: JSON) -> Self:
        """Return the settings that `to_json` was asked for.

        Raises:
            ConfigError: They are not valid settings.
        """
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
            raise ConfigError(f"stored settings cannot be used: {'; '.join(faults)}") from error


def _add_section(algorithm: Algorithm[Any, Any]) -> None:
    """Give `TrainConfig` the section of an algorithm."""
    TrainConfig.__pydantic_fields__[algorithm.name] = FieldInfo(annotation=algorithm.config, default=algorithm.config())
    TrainConfig.__annotations__[algorithm.name] = algorithm.config
    TrainConfig.model_rebuild(force=True)


def _unused_sections(config: TrainConfig) -> set[str]:
    """Return the sections of other algorithms that say nothing: a run must not need an algorithm it does not use."""
    # An algorithm that was registered since has no section in settings that were made before.
    others = {name: section for name, section in config if name in algorithms() and name != config.algorithm}
    return {name for name, section in others.items() if section == type(section)()}


on_registration(_add_section)

# What may change when a run is resumed: where it runs, in how many parts a minibatch is worked through, what it shows
# and keeps, but not how it learns.
_FREE = ("world.device", "learner_device", "ppo.n_accumulate.", "checkpoints.", "guard.", "monitoring.")
_MOST_CHANGES, _MOST_LETTERS = 100, 500  # that are listed, of a key or value: files of others may hold any number
_BUDGET = ("extended_from.", "total_env_steps.")


def differences(began: JSON, asked: JSON) -> list[str]:
    """Return `key: then -> now` for everything in which settings differ that decide the course of a run.

    Settings that did not exist yet when the run began count as their defaults, which change nothing. A budget that
    extends the one before it, see `TrainConfig.extended_from`, is no difference.
    """
    old, new = _flat(_complete(began)), _flat(asked)
    budgets, extended = _budgets(old), _budgets(new)
    free = (*_FREE, *(_BUDGET if extended[: len(budgets)] == budgets else ()))
    changed = [
        key for key in sorted({*old, *new}) if _shown(old, key) != _shown(new, key) and not f"{key}.".startswith(free)
    ]
    lines = [f"{_cut(key)}: {_cut(_shown(old, key))} -> {_cut(_shown(new, key))}" for key in changed[:_MOST_CHANGES]]
    return [*lines, f"and {len(changed) - _MOST_CHANGES:,} more"] if len(changed) > _MOST_CHANGES else lines


def check_same(began: JSON, asked: JSON) -> None:
    """Raise ConfigMismatchError with every difference if a run would resume with changed settings."""
    lines = differences(began, asked)
    if lines:
        listed = "".join(f"  {line}\n" for line in lines)
        if any(line.startswith("total_env_steps:") for line in lines):
            listed += "extend a run with: ludus resume RUN total_env_steps=N\n"
        raise ConfigMismatchError(
            f"the run began with other settings (then -> now):\n{listed}"
            "use the settings it began with, or branch off a new run with --fork"
        )


def _budgets(flat: Mapping[str, JSON]) -> list[JSON]:
    """Return all budgets of a run, the present one last."""
    before = flat.get("extended_from")
    return [*(before if isinstance(before, list) else ()), flat.get("total_env_steps")]


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


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}..."


def _shown(flat: Mapping[str, JSON], key: str) -> str:
    return repr(flat[key]) if key in flat else "not set"
