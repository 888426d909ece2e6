"""Searchers and schedulers of Ray Tune, made from a sweep and told of the trials that it has already.

They see a trial as `value`, the objective, at a number of `evaluations`; parameters are codes, see `scale.space`.
"""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from ludus.scale.config import ASHA, PB2, SweepConfig
from ludus.scale.results import SweepResults, distribution_of
from ludus.scale.space import ChoiceSpace, Code, Dimension

EVALUATIONS, VALUE = "evaluations", "value"


def _mode(config: SweepConfig) -> str:
    return "max" if config.direction == "maximize" else "min"


def uses_tpe(config: SweepConfig) -> bool:
    """Return whether Optuna proposes the trials, one by one; otherwise all are drawn at once."""
    return config.search == "tpe" and not config.is_population


def make_searcher(results: SweepResults) -> tuple[Any, dict[str, Any]]:
    """Return Tune's searcher, which knows all earlier trials, and its search space."""
    plan, config = results.plan, results.plan.config
    waiting = [code for record in results.in_state("waiting") if (code := plan.encode(record.values)) is not None]
    if uses_tpe(config):
        return _tpe(results, waiting), {}
    from ray.tune.search import BasicVariantGenerator

    domains = {dimension.name: _domain(dimension) for dimension in plan.dimensions}
    # All points are drawn at once, from the first trial on: a resumed sweep draws the same.
    generator = np.random.RandomState(config.seed)
    drawn = [{name: _drawn(domain, generator) for name, domain in domains.items()} for _ in range(config.trials)]
    points = [*waiting, *drawn[len(results.trials) :]]
    most = 0 if config.is_population else config.max_concurrent or 0  # 0 is no limit
    return BasicVariantGenerator(points, max_concurrent=most, random_state=config.seed), domains


def _tpe(results: SweepResults, waiting: list[dict[str, Code]]) -> Any:  # noqa: ANN401 - Ray is optional
    import optuna
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    plan, config = results.plan, results.plan.config
    sampler = optuna.samplers.TPESampler(seed=config.seed + len(results.trials))
    searcher = OptunaSearch(
        {dimension.name: distribution_of(dimension) for dimension in plan.dimensions},
        metric=VALUE, mode=_mode(config), sampler=sampler, points_to_evaluate=waiting,
    )  # fmt: skip
    for record in results.in_state("finished", "stopped"):
        code = plan.encode(record.values)
        if code is not None and record.value is not None:
            searcher.add_evaluated_point(code, record.value.estimate)
    return searcher


def _without_waiting_for_the_lost(scheduler: Any) -> Any:  # noqa: ANN401 - classes of Ray, which is optional
    """Return a population scheduler that continues if the trial that all others are waiting for fails.

    Tune exchanges when the last trial reports. If that one's process is lost instead, no trial would ever run again:
    this exchange is skipped.
    """

    class Population(scheduler):  # type: ignore[misc] # Ray is not followed
        def choose_trial_to_run(self, tune_controller: Any) -> Any:  # noqa: ANN401
            chosen = super().choose_trial_to_run(tune_controller)
            states = {trial.status for trial in tune_controller.get_trials()}
            if chosen is None and "PAUSED" in states and "ERROR" in states and not states & {"RUNNING", "PENDING"}:
                self._next_perturbation_sync += self._perturbation_interval
                chosen = super().choose_trial_to_run(tune_controller)
            return chosen

    return Population


def make_scheduler(results: SweepResults) -> Any:  # noqa: ANN401 - Ray is optional
    """Return Tune's scheduler; successive halving compares new trials with those of earlier sessions."""
    from ray.tune import schedulers

    plan, config = results.plan, results.plan.config
    common: dict[str, Any] = {"time_attr": EVALUATIONS, "metric": VALUE, "mode": _mode(config)}
    if config.is_population:
        common |= {
            "perturbation_interval": config.pbt.every_evaluations,
            "quantile_fraction": config.pbt.quantile,
            "custom_explore_fn": lambda point: {
                each.name: each.space.clip(point[each.name]) for each in plan.dimensions
            },
            "log_config": False,
            # All wait for each other. Otherwise a trial that is thrown back to the time of a paused one may take its
            # turn again and again, for ever where there are fewer slots than trials.
            "synch": True,
            "require_attrs": False,
        }
        if config.scheduler == PB2:
            from ray.tune.schedulers import pb2

            bounds = {each.name: [float(end) for end in each.space.ends] for each in plan.dimensions}
            return _without_waiting_for_the_lost(pb2.PB2)(hyperparam_bounds=bounds, **common)
        mutations = {each.name: _mutation(each) for each in plan.dimensions}
        chance = config.pbt.resample_probability
        population = _without_waiting_for_the_lost(schedulers.PopulationBasedTraining)
        return population(hyperparam_mutations=mutations, resample_probability=chance, **common)
    if config.scheduler != ASHA:
        return schedulers.FIFOScheduler()
    evaluation = plan.base.evaluation
    assert evaluation is not None  # noqa: S101 - a sweep has one
    most = math.ceil(plan.base.total_env_steps / evaluation.every_env_steps) + 1
    grace = config.asha.grace_evaluations
    scheduler = schedulers.AsyncHyperBandScheduler(
        grace_period=grace, max_t=max(most, grace), reduction_factor=config.asha.reduction_factor, **common
    )
    for record in results.in_state("finished", "stopped"):  # so that later trials are compared with them
        earlier = SimpleNamespace(trial_id=record.name)
        scheduler.on_trial_add(None, earlier)
        for place in range(1, record.evaluations + 1):
            result = {EVALUATIONS: place, "training_iteration": place, VALUE: record.value_at(place).estimate}
            scheduler.on_trial_result(None, earlier, result)
        scheduler.on_trial_remove(None, earlier)
    return scheduler


def _domain(dimension: Dimension) -> Any:  # noqa: ANN401 - Ray is optional
    """Return a dimension as a domain of Tune, over codes."""
    from ray import tune

    space = dimension.space
    low, high = space.ends
    if isinstance(space, ChoiceSpace):
        return tune.choice(list(range(len(space.values))))
    if isinstance(low, int):
        return (tune.lograndint if space.is_log else tune.randint)(low, int(high) + 1)
    return (tune.loguniform if space.is_log else tune.uniform)(low, high)


def _drawn(domain: Any, generator: np.random.RandomState) -> Code:  # noqa: ANN401
    drawn = domain.sample(random_state=generator)
    value: Code = drawn.item() if isinstance(drawn, np.generic) else drawn
    return value


def _mutation(dimension: Dimension) -> Any:  # noqa: ANN401
    """Return how population-based training changes a key: choices to a neighbour, numbers by a factor."""
    is_choice = isinstance(dimension.space, ChoiceSpace)
    return list(range(len(dimension.space.values))) if is_choice else _domain(dimension)  # type: ignore[union-attr]
