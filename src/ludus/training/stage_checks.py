"""Checks of who plays and what is rewarded, in every stage of a run, before it starts."""

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.curriculum.config import StageConfig
from ludus.envs.base import BatchedEnv, EnvSpec
from ludus.evaluation.contenders import find_contenders, is_bot
from ludus.league.payoffs import SELF_KIND
from ludus.league.seating import Seating
from ludus.training.config import TrainConfig
from ludus.training.workbench import make_rewards


def check_players(env: BatchedEnv, config: TrainConfig) -> str:
    """Finds everyone who plays and everything that is rewarded, stage by stage, and says so in a line.

    Raises:
        LudusError: A name, a setting or a rule cannot be used; the message says in which stage.
    """
    stages = config.stages()
    if stages:
        Seating(env, config.seed)  # refuses worlds in which nobody else can play
    for stage in stages:
        where = f" in stage {stage.name!r}" if config.curriculum else ""
        _check_opponents(env, stage, where)
        _check_rules(env.spec, stage)
        try:
            make_rewards(env.spec, config.model_copy(update={"curriculum": (stage,), "opponents": None}))
        except UnknownNameError as error:
            raise UnknownNameError(f"{error.kind}{where}", error.name, error.valid) from error
    terms = make_rewards(env.spec, config).names
    if config.evaluation is not None and config.evaluation.opponents is not None:
        find_contenders(config.evaluation.opponents, env)
    names = dict.fromkeys(name for stage in stages for name, weight in stage.opponents.items() if weight)
    who = f"opponents {', '.join(names)}" if names else "the learner plays every seat"
    within = f" in {len(stages)} stages" if config.curriculum else ""
    return f"players and rewards: {who}{within}, reward terms {', '.join(terms)}"


def _check_opponents(env: BatchedEnv, stage: StageConfig, where: str) -> None:
    bots = [name for name in stage.opponents if name != SELF_KIND]
    for name in bots:
        if not is_bot(name, env):
            raise UnknownNameError(f"opponent{where}", name, (*env.spec.bots, SELF_KIND))
    if bots:
        env.bots(bots)  # knows best whether their settings are right


def _check_rules(spec: EnvSpec, stage: StageConfig) -> None:
    """Refuses rules of a curriculum that could never be fulfilled."""
    for name, rule in (("promotion", stage.promotion), ("demotion", stage.demotion)):
        if rule is None:
            continue
        playing = [opponent for opponent, weight in stage.opponents.items() if weight]
        absent = [opponent for opponent in rule.against or () if opponent not in playing]
        if absent:
            raise ConfigError(
                f"stage {stage.name!r}: its {name} counts matches against {', '.join(absent)}, who does not play in "
                f"it; valid: {', '.join(playing)}"
            )
        if rule.win_rate is not None and "wins" not in spec.events:
            raise ConfigError(
                f"stage {stage.name!r}: its {name} asks for a win rate, but {spec.id} has no event 'wins'; "
                "use after_env_steps"
            )
