"""Checks of who plays, what is rewarded and how it is evaluated, in every stage of a run, before it starts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.curriculum.config import DemotionConfig, PromotionConfig, StageConfig
from ludus.envs.base import BatchedEnv, EnvSpec
from ludus.envs.behaviour import behaviour_of
from ludus.envs.fitting import check_fits
from ludus.envs.registry import make_env
from ludus.envs.trials import choose_trials, laid_over
from ludus.evaluation.contenders import find_contenders, is_bot
from ludus.evaluation.tally import row_numbers
from ludus.league.payoffs import MIRROR_KIND, SELF_KIND
from ludus.league.seating import check_teams
from ludus.training.config import EvaluationConfig, TrainConfig
from ludus.training.layouts import stage_label, stages_with_own_games
from ludus.training.workbench import make_rewards


def check_players(env: BatchedEnv, config: TrainConfig) -> str:
    """Finds everyone who plays and everything that is rewarded, stage by stage, and says so in a line.

    Raises:
        LudusError: A name, a setting or a rule cannot be used; the message says in which stage.
    """
    stages = config.stages()
    if stages:
        check_teams(env.spec)
    for stage in stages:
        where = f" in stage {stage.name!r}" if config.curriculum else ""
        _check_opponents(env, stage, where)
        _check_rules(env.spec, stage)
        try:
            make_rewards(env.spec, config.model_copy(update={"curriculum": (stage,), "opponents": None}))
        except UnknownNameError as error:
            raise UnknownNameError(f"{error.kind}{where}", error.name, error.valid) from error
    terms = make_rewards(env.spec, config).names
    if config.evaluation is not None:
        _check_evaluation(env, config.evaluation, config.world.name)
    names = dict.fromkeys(name for stage in stages for name, weight in stage.opponents.items() if weight)
    _check_recognition(env.spec, config, [name for name in names if name not in (SELF_KIND, MIRROR_KIND)])
    who = f"opponents {', '.join(names)}" if names else "the learner plays every seat"
    within = f" in {len(stages)} stages" if config.curriculum else ""
    return f"players and rewards: {who}{within}, reward terms {', '.join(terms)}"


def check_evaluated_games(spec: EnvSpec, config: TrainConfig) -> None:
    """Makes a game of everything that is evaluated; no other games of the world are open then.

    Raises:
        LudusError: The settings of a trial, a mode or all evaluations cannot be used; the message says which.
    """
    world = config.world
    for what, settings in _evaluated(spec, config):
        try:
            with make_env(world.name, 1, world.device, config=settings or None) as env:
                other = env.spec
        except ConfigError as error:
            raise ConfigError(f"{what}: {error}") from error
        check_fits(spec, other, what)


def _evaluated(spec: EnvSpec, config: TrainConfig) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Gives all settings in which the agent is evaluated and that no stage has, and what they are called."""
    evaluation = config.evaluation
    if evaluation is None:
        return
    if len(set(spec.teams)) == 1:
        for name, settings in choose_trials(config.world.name, evaluation.trials).items():
            yield f"trial {name!r}", laid_over(config.judged_settings(0), settings)
    for name, settings in config.judged_modes().items():
        yield f"mode {name!r} of evaluation.modes", settings
    if evaluation.settings and not evaluation.modes:
        for stage in stages_with_own_games(config):
            where = f" in {stage_label(config, stage)}" if config.curriculum else ""
            yield f"evaluation.settings{where}", config.judged_settings(stage)


def _check_evaluation(env: BatchedEnv, evaluation: EvaluationConfig, world: str) -> None:
    if evaluation.opponents is not None:
        find_contenders(evaluation.opponents, env)
    if len(set(env.spec.teams)) == 1:
        trials = choose_trials(world, evaluation.trials)
        if trials and evaluation.modes:
            raise ConfigError(
                f"evaluation.modes names {', '.join(evaluation.modes)}, but {env.spec.id} is evaluated in its trials "
                f"{', '.join(trials)}; use evaluation.trials, [] for none"
            )
    elif evaluation.trials:
        raise ConfigError(
            f"evaluation.trials names {', '.join(evaluation.trials)}, but {env.spec.id} is played against opponents; "
            "use evaluation.opponents"
        )
    valid = row_numbers(env.spec, behaviour_of(env.spec.id)) if evaluation.numbers() else ()
    for name in evaluation.numbers():
        if name not in valid:
            raise UnknownNameError("number of an evaluation", name, valid)


def _check_opponents(env: BatchedEnv, stage: StageConfig, where: str) -> None:
    others = (SELF_KIND, MIRROR_KIND)
    bots = [name for name in stage.opponents if name not in others]
    for name in bots:
        if not is_bot(name, env):
            raise UnknownNameError(f"opponent{where}", name, (*env.spec.bots, *others))
    if bots:
        env.bots(bots)  # knows best whether their settings are right


def _check_recognition(spec: EnvSpec, config: TrainConfig, bots: Sequence[str]) -> None:
    strategy = config.policy.strategy
    if strategy is not None and strategy.recognise and not bots:
        raise ConfigError(
            f"policy.strategy.recognise is {strategy.recognise:g}, but no bot ever plays who could be recognised; set "
            f"it to 0, or name bots of {spec.id} under opponents: {', '.join(spec.bots) or 'it has none'}"
        )


def _check_rules(spec: EnvSpec, stage: StageConfig) -> None:
    """Refuses rules of a curriculum that could never be fulfilled."""
    for name, rule in (("promotion", stage.promotion), ("demotion", stage.demotion)):
        if rule is None:
            continue
        playing = [opponent for opponent, weight in stage.opponents.items() if weight and opponent != MIRROR_KIND]
        absent = [opponent for opponent in rule.against or () if opponent not in playing]
        if absent:
            raise ConfigError(
                f"stage {stage.name!r}: its {name} counts matches against {', '.join(absent)}, who does not play in "
                f"it; valid: {', '.join(playing) or 'nobody'}"
            )
        asked = _asked(rule)
        if asked and not playing:
            raise ConfigError(
                f"stage {stage.name!r}: its {name} asks for {asked}, but games of {MIRROR_KIND!r} are no "
                "matches; give somebody else a share, or use after_env_steps"
            )
        if asked and "wins" not in spec.events:
            raise ConfigError(
                f"stage {stage.name!r}: its {name} asks for {asked}, but {spec.id} has no event 'wins'; "
                "use after_env_steps"
            )


def _asked(rule: PromotionConfig | DemotionConfig) -> str:
    if rule.win_rate is not None:
        return "a win rate"
    return "a rating" if isinstance(rule, PromotionConfig) and rule.rating is not None else ""
