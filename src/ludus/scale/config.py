"""The configuration of a sweep: a run's configuration with search spaces in it, and the section `sweep`.

Everything is checked by the schema of runs before anything starts: both ends of a range and every choice, each with the
`file:line` at which it is written.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ludus.config import (
    Document,
    KeyPath,
    Node,
    as_document,
    dump_yaml,
    merge_layers,
    read_config,
    read_overrides,
    show_path,
    single,
)
from ludus.core.errors import ConfigError, ConfigFault, ConfigFileError, brief
from ludus.envs.registry import check_name_from_file
from ludus.scale.space import SWEEP, Code, Dimension, spaces_in, take_spaces, with_node
from ludus.scale.stored import check_stored
from ludus.training.config import TrainConfig
from ludus.training.destinations import withhold
from ludus.training.presets import read_run_layers, run_layers, world_of_file

SWEEP_FILE = "sweep.yaml"
SCORE = "score"  # the objective by which runs keep their best agent
PBT, ASHA = "pbt", "asha"

# Keys that decide what is compared, so they are the same in all trials.
_FIXED = {
    "seed": "every trial has the same seeds; set sweep.seeds",
    "world.name": "a sweep compares settings in one world",
    "evaluation": "trials are compared by the same evaluation",
    "extended_from": "only `ludus resume` writes it",
    "checkpoints": "it changes nothing that is learned",
    "guard": "it changes nothing that is learned",
    "monitoring": "it changes nothing that is learned",
}
_NEEDS_WHOLE_RUNS = ("total_env_steps",)  # trials of another length cannot be compared half-way
_NEEDS_NEW_RUNS = ("world", "policy", "algorithm", "total_env_steps")  # a checkpoint fits one world and one network
_FORKABLE = ("policy.exploration",)
_CHANGEABLE = ("trials", "max_hours", "max_hours_per_trial", "max_concurrent", "cpus_per_trial", "gpus_per_trial")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class AshaConfig(_Frozen):
    """Asynchronous successive halving: trials that fall behind are stopped at rungs.

    Attributes:
        grace_evaluations: Evaluations before a trial may be stopped; the first rung.
        reduction_factor: Every rung has so many times the evaluations of the one before, and one of so many trials
            continues.
    """

    grace_evaluations: int = Field(default=1, ge=1, le=1_000_000)
    reduction_factor: int = Field(default=3, ge=2, le=100)


class PbtConfig(_Frozen):
    """Population-based training: the worst trials continue from checkpoints of the best with changed settings.

    Attributes:
        every_evaluations: Evaluations between two exchanges.
        quantile: Share of the population that is replaced, and that is copied from.
        resample_probability: Probability of resampling a setting instead of scaling it by a factor.
    """

    every_evaluations: int = Field(default=1, ge=1, le=1_000_000)
    quantile: float = Field(default=0.25, gt=0.0, le=0.5)
    resample_probability: float = Field(default=0.25, ge=0.0, le=1.0)


class SweepConfig(_Frozen):
    """The section `sweep`: how to search.

    Attributes:
        trials: Settings to try; with `pbt` the size of the population.
        seeds: Runs per trial, with seeds from the run's `seed` on; a trial's value is their mean. They are trained in
            turns, as by `ludus train --seeds`, which needs the memory of all of them.
        search: `tpe` is Optuna's tree-structured Parzen estimator, `random` draws independently. Population-based
            training always begins at random.
        scheduler: `asha` stops trials that fall behind; `pbt` is population-based training; `none` trains every trial
            to its end.
        objective: Number of an evaluation: `score` is the run's own (see `evaluation.score`), anything else the mean of
            that column of `evaluation_results.csv`.
        opponents: Rows of the evaluation that the objective is averaged over, by opponent or scenario; None is all.
        direction: Whether a higher or a lower objective is better.
        asha: Settings of the scheduler `asha`.
        pbt: Settings of the scheduler `pbt`.
        max_hours: Wall time of the whole sweep, after which runs save and stop; None is no limit.
        max_hours_per_trial: Wall time of one trial, all seeds together, after which it is stopped; None is no limit.
        max_concurrent: Trials at the same time; None is as many as the machine has room for.
        cpus_per_trial: CPU cores that a trial occupies.
        gpus_per_trial: GPUs that a trial occupies, may be a fraction; None is 1 if the machine or cluster has a GPU.
        seed: Seed of the search itself.
    """

    removed_keys: ClassVar[Mapping[str, str]] = {"seeds_in_turns": "learner.md#sweeps"}

    trials: int = Field(default=16, ge=1, le=100_000)
    seeds: int = Field(default=2, ge=1, le=1_000)
    search: Literal["tpe", "random"] = "tpe"
    scheduler: Literal["asha", "pbt", "none"] = "asha"
    objective: str = Field(default=SCORE, min_length=1)
    opponents: tuple[str, ...] | None = Field(default=None, min_length=1)
    direction: Literal["maximize", "minimize"] = "maximize"
    asha: AshaConfig = AshaConfig()
    pbt: PbtConfig = PbtConfig()
    max_hours: float | None = Field(default=None, gt=0.0)
    max_hours_per_trial: float | None = Field(default=None, gt=0.0)
    max_concurrent: int | None = Field(default=None, ge=1)
    cpus_per_trial: float = Field(default=1.0, gt=0.0)
    gpus_per_trial: float | None = Field(default=None, ge=0.0)
    seed: int = Field(default=0, ge=0, lt=2**31)

    @model_validator(mode="after")
    def _gpus_can_be_shared(self) -> Self:
        gpus = self.gpus_per_trial
        if gpus is not None and gpus > 1.0 and not gpus.is_integer():
            raise ValueError(f"gpus_per_trial must be a share of one GPU or a whole number of them, got {gpus:g}")
        return self

    @property
    def is_population(self) -> bool:
        """Whether trials are forked from each other."""
        return self.scheduler == PBT

    @property
    def sign(self) -> float:
        """1 if a higher objective is better, else -1."""
        return 1.0 if self.direction == "maximize" else -1.0

    def next_decision(self, evaluations: int) -> int | None:
        """Return at how many evaluations the scheduler decides next about a trial; None if not before its end."""
        if self.is_population:
            every = self.pbt.every_evaluations
            return (evaluations // every + 1) * every
        if self.scheduler != ASHA:
            return None
        rung = self.asha.grace_evaluations
        while rung <= evaluations:
            rung *= self.asha.reduction_factor
        return rung


class _SweepSection(_Frozen):
    sweep: SweepConfig = SweepConfig()


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """A checked sweep.

    Attributes:
        config: The section `sweep`.
        base: The settings of a run with the first value of every search space.
        dimensions: The keys that are searched.
    """

    config: SweepConfig
    base: TrainConfig
    dimensions: tuple[Dimension, ...]

    def trial_config(self, values: Mapping[str, Any]) -> TrainConfig:
        """Return the settings of a trial from its values by name.

        Raises:
            ConfigFileError: The values do not fit together.
        """
        root = as_document(self.base.to_json(), "the sweep").root
        for dimension in self.dimensions:
            shown = f"trial: {dimension.name}={brief(values[dimension.name])}"
            root = with_node(root, dimension.path, as_document(values[dimension.name], shown).root)
        return read_run_layers(self.base.world.name, [Document(root)])[0]

    def decode(self, point: Mapping[str, Code]) -> dict[str, Any]:
        """Return the values of codes, both by name."""
        return {each.name: each.decode(point[each.name]) for each in self.dimensions}

    def encode(self, values: Mapping[str, Any]) -> dict[str, Code] | None:
        """Return the codes of values, both by name; None if they are not in the spaces."""
        codes = {each.name: each.encode(values.get(each.name)) for each in self.dimensions}
        found = {name: code for name, code in codes.items() if code is not None}
        return found if found.keys() == values.keys() and len(found) == len(codes) else None

    def to_yaml(self) -> str:
        """Return the sweep as one file that extends nothing."""
        root = as_document(self.base.to_json(), SWEEP_FILE).root
        for dimension in self.dimensions:
            space = as_document(dimension.space.model_dump(mode="json"), SWEEP_FILE).root
            root = with_node(root, dimension.path, space)
        section = as_document(self.config.model_dump(mode="json"), SWEEP_FILE).root
        return dump_yaml(with_node(root, (SWEEP,), section).plain())

    def changed(self, overrides: Sequence[str]) -> "SweepPlan":
        """Return the plan with changes that do not affect its finished trials, such as `sweep.trials=32`.

        Raises:
            ConfigFileError: A change has a fault, or would make trials incomparable.
        """
        layers = read_overrides(overrides)
        refused = [
            ConfigFault(str(layer.root.origin), _first_key(layer.root), "cannot change in a sweep that has begun",
                        hint=f"valid: {', '.join(f'{SWEEP}.{name}' for name in _CHANGEABLE)}")
            for layer in layers
            if not layer.faults and not {*_keys(layer.root)} <= {(SWEEP, name) for name in _CHANGEABLE}
        ]  # fmt: skip
        if refused:
            raise ConfigFileError(refused)
        before = as_document({SWEEP: self.config.model_dump(mode="json")}, SWEEP_FILE)
        return replace(self, config=read_config(_SweepSection, [before, *layers]).sweep)


def load_sweep(file: Path, overrides: Sequence[str] = ()) -> SweepPlan:
    """Read the configuration of a sweep and everything that it extends.

    Args:
        file: A configuration that names its world.
        overrides: `key.path=value` each; a value may be a search space.

    Raises:
        ConfigFileError: Files or overrides have faults; all of them are listed.
        ConfigError: The file does not name its world, or nothing is searched.
        UnknownNameError: There is no such world.
    """
    try:
        world = world_of_file(file)
    except ConfigFileError:
        raise
    except ConfigError:
        raise ConfigError(f"{file} does not name its world; add world.name, such as: world: {{name: brawl}}") from None
    check_name_from_file(world, f"{file}: world.name")
    layers = [take_spaces(layer) for layer in run_layers(world, None, file, overrides)]
    config, faults = _read_section(layers)
    written = tuple(fault for layer in layers for fault in layer.faults)
    if not all(layer.readable for layer in layers):
        raise ConfigFileError([*faults, *written])
    root = merge_layers([each.root.without(SWEEP) for each in layers if each.root.content is not None], TrainConfig)
    found = [*spaces_in(root)]
    for dimension, values in found:
        root = with_node(root, dimension.path, values[0])
    try:
        base = read_run_layers(world, [Document(root, written)])[0]
    except ConfigFileError as error:
        raise ConfigFileError([*faults, *error.faults]) from None
    if config is None:
        raise ConfigFileError(faults)
    plan = SweepPlan(config, base, tuple(dimension for dimension, _ in found))
    faults = [*_check_keys(plan), *_check_values(plan, {dimension.path: values for dimension, values in found})]
    if faults:
        raise ConfigFileError(faults)
    if not found:
        raise ConfigError(
            f"{file} has nothing to search: give a key a search space, such as "
            "ppo.learning_rate: {sweep: log_uniform, low: 1e-4, high: 3e-3}"
        )
    if base.evaluation is None:
        raise ConfigError(f"{file} has no evaluation, by which trials are compared; set evaluation.every_env_steps")
    if base.evaluation.sooner is not None:
        raise ConfigError(f"{file}: evaluation.sooner would evaluate trials at different times; set it to null")
    return plan


def read_sweep(folder: Path) -> SweepPlan:
    """Read the sweep of a sweep folder.

    Raises:
        ConfigError: The folder holds no sweep, or its file was changed into something that is none.
    """
    if not (folder / SWEEP_FILE).is_file():
        raise ConfigError(f"{folder} holds no sweep: it has no {SWEEP_FILE}; start one with: ludus sweep CONFIG")
    check_stored(folder / SWEEP_FILE)
    plan = load_sweep(folder / SWEEP_FILE)
    plan.base.check_stored(folder / SWEEP_FILE)
    return replace(plan, base=withhold(plan.base))


def _read_section(layers: Sequence[Document]) -> tuple[SweepConfig | None, list[ConfigFault]]:
    nodes = [layer.root.child(SWEEP) for layer in layers]
    documents = [Document(single((SWEEP,), node)) for node in nodes if node is not None]
    try:
        return read_config(_SweepSection, documents).sweep, []
    except ConfigFileError as error:
        return None, list(error.faults)


def _check_keys(plan: SweepPlan) -> Iterator[ConfigFault]:
    """Find keys that cannot be searched, in general or by this scheduler."""
    for dimension in plan.dimensions:
        name, scheduler = dimension.name, plan.config.scheduler
        fixed = next((reason for key, reason in _FIXED.items() if _is_below(name, key)), "")
        reason = f"cannot be searched: {fixed}" if fixed else ""
        if plan.config.is_population and _is_any_below(name, _NEEDS_NEW_RUNS) and not _is_any_below(name, _FORKABLE):
            reason = (
                f"cannot be changed by {scheduler}: a checkpoint of the world and network that it began with continues"
            )
        elif scheduler == ASHA and _is_any_below(name, _NEEDS_WHOLE_RUNS):
            reason = "cannot be searched by asha, which compares trials half-way; set sweep.scheduler: none"
        if reason:
            yield ConfigFault(dimension.place, name, reason)


def _check_values(plan: SweepPlan, values: Mapping[KeyPath, Sequence[Node]]) -> list[ConfigFault]:
    """Find values that the schema of runs refuses, each in the place of the first one."""
    root = as_document(plan.base.to_json(), SWEEP_FILE).root
    faults: dict[tuple[str, str], ConfigFault] = {}
    for path, (_, *others) in values.items():  # the first values are those of the plan
        for node in others:
            try:
                read_run_layers(plan.base.world.name, [Document(with_node(root, path, node))])
            except ConfigFileError as error:
                # A fault between this key and others is reported at the section, which this document has no place for.
                found = [
                    replace(fault, place=str(node.origin)) if fault.place == SWEEP_FILE else fault
                    for fault in error.faults
                ]
                faults |= {(fault.place, fault.key): fault for fault in found}
    return list(faults.values())


def _is_below(name: str, key: str) -> bool:
    return f"{name}.".startswith(f"{key}.")


def _is_any_below(name: str, keys: Sequence[str]) -> bool:
    return any(_is_below(name, key) for key in keys)


def _keys(root: Node) -> Iterator[tuple[str, ...]]:
    """Yield the first two keys of everything in a document."""
    for key, node in root.content.items() if isinstance(root.content, dict) else ():
        for below in node.content if isinstance(node.content, dict) else ("",):
            yield key, str(below)


def _first_key(root: Node) -> str:
    return show_path(next(_keys(root), ()))
