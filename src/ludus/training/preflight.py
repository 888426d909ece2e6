"""Checks before a run starts: run every part of it once at small size, so that a broken run fails within seconds."""

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ludus.core.errors import ConfigError, LudusError, UnknownNameError, VerificationError
from ludus.core.faults import let_pass
from ludus.core.files import temporary_folder
from ludus.core.text import blame
from ludus.curriculum.config import PhaseConfig
from ludus.envs.base import BatchedEnv, EnvSpec, check_fits
from ludus.envs.bot_roster import BotRoster
from ludus.envs.bots import FROM_PLUGIN, bot_names
from ludus.envs.check.contract_checks import spec_faults
from ludus.envs.registry import make_env
from ludus.envs.world_parts import choose_scenarios, merge_settings, metrics_of
from ludus.evaluation.players import find_players
from ludus.evaluation.results import metric_names
from ludus.league.payoffs import MIRROR_KIND, SELF_KIND
from ludus.league.seating import check_teams
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.shipped import agent_names
from ludus.store import save_checkpoint
from ludus.training import estimates
from ludus.training.adaptive_curriculum import check_adaptive_curriculum
from ludus.training.agent_opponents import agents_in, is_known_agent
from ludus.training.components import Components, PhaseStart, make_rewards
from ludus.training.config import TrainConfig
from ludus.training.estimates import GIB, MemoryEstimate, TimeEstimate
from ludus.training.loggers.progress import duration
from ludus.training.nan_guard import NanGuard
from ludus.training.preset_advice import faster_preset
from ludus.training.resolve import ResolvedRun, learner_rows, phase_label, phases_with_own_games, resolve

logger = logging.getLogger(__name__)


def verify(run: TrainConfig | ResolvedRun, env_steps: int = 0, folder: Path | None = None) -> Iterator[str]:
    """Check a run before it starts, or resumes at `env_steps` in `folder`; of several processes the first alone does.

    Yields:
        A line for each check that passed, as soon as it has.

    Raises:
        LudusError: A check failed; the message says which, why and what to do.
    """
    resolved = resolve(run)
    if not resolved.is_writer:
        return
    config, processes = resolved.own, resolved.process.count
    with _checking("making the world", "fix the environment or its settings"):
        env = _few_games(config.at_phase(0))
    with env:
        yield _check_world(env, config.at_phase(0))
        yield check_players(env, config, folder)
        spec = env.spec
    check_evaluated_games(spec, config)
    check_adaptive_curriculum(spec, config)
    needed: dict[int, MemoryEstimate] = {}
    for phase in phases_with_own_games(config):
        needed[phase] = yield from _check_games(config, phase, spec, processes, env_steps, folder)
    yield _check_memory(config, max(needed.values(), key=lambda estimate: estimate.total), processes)


def _check_games(
    config: TrainConfig, phase: int, first: EnvSpec, processes: int, env_steps: int, folder: Path | None
) -> Generator[str, None, MemoryEstimate]:
    """Check everything that is done in the games of a phase, and return the memory that they take.

    The settings are those of this process's part of the run, which has done `env_steps`. The phase is the first one, in
    which the world is `first`, or one with its own games.
    """
    spec, label = first, f"{phase_label(config, phase)}: " if phase else ""
    if phase:
        with _checking(f"making the world of {phase_label(config, phase)}", "fix the environment or its settings"):
            env = _few_games(config.at_phase(phase))
        with env:
            spec = env.spec
            check_fits(first, spec, phase_label(config, phase))
            yield label + _check_world(env, config.at_phase(phase))
    rows = learner_rows(config, spec, phase)
    yield label + config.method.check(config.hyperparameters, config.policy, spec, rows)
    with _checking("making a policy", "change the policy's settings"):
        least = estimates.estimate_policy(config, spec, phase)
    if least.total > estimates.memory_there(torch.device(config.learner_device), config.guard.memory_gib)[0]:
        _check_memory(config, least, processes)  # which refuses it
    with _checking("making a small copy of the run", "change the settings that the error names"):
        components = Components(estimates.small_copy(config, spec, phase), PhaseStart(stage=phase), folder)
    with components:
        with _checking("a short rollout", "fix the environment, the reward terms or the settings that the error names"):
            yield label + check_rollout(components)
        with _checking("a forward and backward pass", "change the policy's settings"):
            dry_run = config.method.dry_run(components.learner)
            yield from (label + line for line in dry_run.lines)
        with _checking("an update", f"change the settings of {config.algorithm}"):
            yield label + check_update(components, config.method.preflight_iterations)
        with _checking("saving and loading the agent", "free some space or check the disk"):
            yield label + check_checkpoint(components)
        memory = estimates.estimate_memory(config, components, dry_run)
        _check_memory(config, memory, processes)  # before anything larger is made
        if not phase:
            left = max(config.total_env_steps - env_steps, 0)
            with _checking("measuring the speed", "change the settings that the error names"):
                estimate = estimates.estimate_time(config, components, left, folder)
            yield _describe_time(config, estimate, left, processes)
            costs = components.opponents.bot_costs() if components.opponents is not None else {}
            for bot, (seconds, decisions) in costs.items():
                cost_us = 1e6 * seconds / max(decisions, 1)
                yield f"{bot}: {cost_us:,.0f} us per decision in Python, measured in {estimate.games} games"
        return memory


@contextmanager
def _checking(what: str, advice: str) -> Iterator[None]:
    """Turn any error into a typed one; errors that are typed already pass through."""
    try:
        yield
    except LudusError:
        raise
    except BaseException as error:  # whatever a world, a reward term or the device raises is what was looked for
        let_pass(error)
        raise VerificationError(f"{what} failed: {blame(error)}; {advice}") from error


def _few_games(config: TrainConfig) -> BatchedEnv:
    world, games = config.world, min(estimates.GAMES, config.world.num_envs)
    return make_env(
        world.name, games, config.learner_device, seed=config.seed, config=world.settings or None,
        games_device=world.device,
    )  # fmt: skip


def _check_world(env: BatchedEnv, config: TrainConfig) -> str:
    spec, asked = env.spec, config.world.num_envs
    if spec.max_envs is not None and asked > spec.max_envs:
        raise ConfigError(f"world.num_envs is {asked}, {spec.id} plays at most {spec.max_envs}; use fewer games")
    faults = list(spec_faults(spec))
    with _checking(f"starting games of {spec.id}", "fix the environment"):
        observations = env.reset()
    spaces = spec.observation_space.items()
    expected = {name: (env.num_envs, spec.seats, *(space.shape or ())) for name, space in spaces}
    got = {name: tuple(tensor.shape) for name, tensor in observations.items()}
    if got != expected:
        faults.append(f"observations are {got}, their spaces say {expected}")
    faults += [f"observation {name!r} has NaN or Inf" for name, tensor in observations.items()
               if tensor.is_floating_point() and not bool(tensor.isfinite().all())]  # fmt: skip
    if faults:
        raise VerificationError(f"{spec.id} breaks the contract: {'; '.join(faults)}; fix the environment")
    entries = ", ".join(f"{name} {shape[2:]}" for name, shape in expected.items())
    seats = f"{spec.seats} seat{'s' if spec.seats > 1 else ''}"
    return f"world: {spec.id} on {env.games_device}, {seats}, sees {entries}, acts by {spec.action_space}"


def _describe_time(config: TrainConfig, estimate: TimeEstimate, left: int, processes: int) -> str:
    """Say how long the env steps that are left will take; warn if that is very long."""
    step_s, device = estimate.step_s / processes, config.learner_device
    needed_s = left * step_s
    if needed_s > estimates.VERY_LONG_S:
        faster = "" if torch.device(device).type == "cuda" else "a GPU (world.device=cuda), "
        other = faster_preset(config, needed_s)
        smaller = "another preset (ludus config list)"
        smaller = smaller if other is None else f"--preset {other.name}, which takes about {duration(other.seconds)}"
        logger.warning(
            "[WARN] training takes about %s on %s; use %sfewer steps (total_env_steps) or %s",
            duration(needed_s), device, faster, smaller,
        )  # fmt: skip
    return (
        f"time: about {duration(needed_s)} for {left:,} env steps at {1.0 / step_s:,.0f} per second, measured "
        f"in {estimate.games} of {config.at_phase(0).world.num_envs:,} games; evaluations come on top"
    )


def _check_memory(config: TrainConfig, estimate: MemoryEstimate, processes: int) -> str:
    device = torch.device(config.learner_device)
    own = estimates.process_bytes(device)
    needed = (estimate.total + own) * (processes if device.type == "cpu" else 1)
    there, whose = estimates.memory_there(device, config.guard.memory_gib)
    parts = f"{estimate}{f', this process now {own / GIB:.2f} GiB' if own else ''}"
    if needed > there:
        raise VerificationError(
            f"the run needs about {needed / GIB:.2f} GiB and there are {there / GIB:.2f} GiB {whose} ({parts}); use "
            f"fewer games (world.num_envs), a smaller policy, {config.method.memory_advice}"
        )
    return f"memory: about {needed / GIB:.2f} GiB of the {there / GIB:.2f} GiB {whose} ({parts})"


def check_rollout(components: Components) -> str:
    """Collect against the bots, and against a past self if there will be any.

    Raises:
        VerificationError: There is a NaN or Inf.
    """
    components.learner.collect()
    opponents, against = components.opponents, ""
    if opponents is not None and opponents.pool is not None:
        opponents.add_snapshot("verification", 0, components.policy.state())
        opponents.set_mix({SELF_KIND: 1.0})
        opponents.restart()
        components.learner.collect()
        against = ", one more against a past self"
    rollout = components.learner.rollout
    fault = NanGuard(components).rollout_fault()
    if fault is not None:
        raise VerificationError(
            f"NaN or Inf in the first rollout, first seen in the {fault}; fix the environment or the reward terms: "
            f"{', '.join(components.rewards.names)}"
        )
    components.trace.read()
    total = sum(components.trace.totals().values())
    return f"rollout: {rollout.steps} steps x {rollout.rows} rows, reward {total:.3g}{against}"


def check_update(components: Components, iterations: int) -> str:
    """Learn from the rollout of a copy as the run will, in so many iterations, and look for NaN or Inf.

    Raises:
        VerificationError: There is one.
    """
    guard, learner = NanGuard(components), components.learner
    for _ in range(iterations - 1):
        learner.update()
        guard.begin()
        learner.collect()
    if iterations == 1:
        guard.begin()
    learner.update()
    guard.look()
    metrics = learner.metrics()
    fault = guard.verdict(metrics)
    if fault is not None:
        raise VerificationError(f"NaN or Inf, first seen in the {fault}; fix the world or the rewards")
    components.trace.read()
    known = (name for name in ("policy_loss", "value_loss") if name in metrics)
    losses = (f"{name.replace('_', ' ')} {metrics[name]:.3g}" for name in known)
    return f"update: {', '.join(losses) or 'done'}"


def check_checkpoint(components: Components) -> str:
    """Save the agent to a temporary folder, load it and compare.

    Raises:
        VerificationError: It came back different.
        LudusError: It could not be saved or loaded.
    """
    policy, state = components.policy, components.policy.state()
    with temporary_folder("ludus-verify-") as folder:
        save_checkpoint(folder / "agent", agent_checkpoint(policy.spec, policy.config, state))
        size = sum(file.stat().st_size for file in (folder / "agent").iterdir())
        loaded = Agent.load(folder / "agent", policy.device, limits=None).policy.state()
    wrong = sorted(set(state) ^ set(loaded) or {name for name in state if not torch.equal(state[name], loaded[name])})
    if wrong:
        raise VerificationError(
            f"a saved agent came back with other numbers in {', '.join(wrong[:5])}; check the disk and the memory"
        )
    return f"checkpoint: {size / 1024.0**2:.2f} MiB saved, verified and loaded back equal"


def check_players(env: BatchedEnv, config: TrainConfig, folder: Path | None = None) -> str:
    """Resolve all players and reward terms, phase by phase, and return one line about them.

    Raises:
        LudusError: A name, a setting or a rule cannot be used; the message says in which phase.
    """
    phases = config.phases()
    if phases:
        check_teams(env.spec)
    for phase in phases:
        where = f" in phase {phase.name!r}" if config.curriculum else ""
        _check_opponents(env, phase, where, folder)
        _check_rules(env.spec, phase)
        try:
            make_rewards(env.spec, config.model_copy(update={"curriculum": (phase,), "opponents": None}))
        except UnknownNameError as error:
            raise UnknownNameError(f"{error.kind}{where}", error.name, error.valid) from error
    terms = make_rewards(env.spec, config).names
    if config.evaluation is not None:
        _check_evaluation(env, config)
    matches = config.world.settings.get("matches_per_episode", 1)
    if matches != 1 and not config.policy.has_memory:
        logger.warning(
            "[WARN] world.settings.matches_per_episode is %s, but the policy has no memory: sets only fix its "
            "opponent; set policy.recurrent or policy.strategy to let it adapt", matches,
        )  # fmt: skip
    names = dict.fromkeys(name for phase in phases for name, weight in phase.opponents.items() if weight)
    known = [name for name in names if name.partition(":")[0] in env.spec.bots]
    _check_opponent_classification(env.spec, config, known)
    who = f"opponents {', '.join(names)}" if names else "the learner plays every seat"
    within = f" in {len(phases)} phases" if config.curriculum else ""
    return f"players and rewards: {who}{within}, reward terms {', '.join(terms)}"


def check_evaluated_games(spec: EnvSpec, config: TrainConfig) -> None:
    """Create a game for everything that is evaluated; no other games of the world are open then.

    Raises:
        LudusError: The settings of a scenario, a mode or all evaluations cannot be used; the message says which.
    """
    world = config.world
    for what, settings in _evaluated(spec, config):
        try:
            with make_env(world.name, 1, config.learner_device, config=settings or None) as env:
                other = env.spec
        except ConfigError as error:
            raise ConfigError(f"{what}: {error}") from error
        check_fits(spec, other, what)


def _evaluated(spec: EnvSpec, config: TrainConfig) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return all settings, with names, in which the agent is evaluated and that no phase has."""
    evaluation = config.evaluation
    if evaluation is None:
        return
    if len(set(spec.teams)) == 1:
        for name, settings in choose_scenarios(config.world.name, evaluation.scenarios).items():
            yield f"scenario {name!r}", merge_settings(config.judged_settings(0), settings)
    for name, settings in config.judged_modes().items():
        yield f"mode {name!r} of evaluation.modes", settings
    if evaluation.settings and not evaluation.modes:
        for phase in phases_with_own_games(config):
            where = f" in {phase_label(config, phase)}" if config.curriculum else ""
            yield f"evaluation.settings{where}", config.judged_settings(phase)


def _check_evaluation(env: BatchedEnv, config: TrainConfig) -> None:
    evaluation = config.evaluation
    assert evaluation is not None  # noqa: S101 - for the type checker
    if evaluation.opponents is not None:
        find_players(evaluation.opponents, env)
    if len(set(env.spec.teams)) == 1:
        scenarios = choose_scenarios(config.world.name, evaluation.scenarios)
        if scenarios and evaluation.modes:
            raise ConfigError(
                f"evaluation.modes names {', '.join(evaluation.modes)}, but {env.spec.id} is evaluated in its "
                f"scenarios {', '.join(scenarios)}; use evaluation.scenarios, [] for none"
            )
    elif evaluation.scenarios:
        raise ConfigError(
            f"evaluation.scenarios names {', '.join(evaluation.scenarios)}, but {env.spec.id} is played against "
            "opponents; use evaluation.opponents"
        )
    valid = metric_names(env.spec, metrics_of(env.spec.id)) if evaluation.numbers() else ()
    for name in evaluation.numbers():
        if name not in valid:
            raise UnknownNameError("number of an evaluation", name, valid)


def _check_opponents(env: BatchedEnv, phase: PhaseConfig, where: str, folder: Path | None) -> None:
    others = (SELF_KIND, MIRROR_KIND)
    agents = agents_in(phase, env.spec)
    for name in agents:
        if not is_known_agent(name, env.spec, folder):
            valid = (*bot_names(env.spec), *agent_names(env.spec.id), *others, FROM_PLUGIN)
            valid = (*valid, "or the folder or file of an agent")
            raise UnknownNameError(f"opponent{where}", name, valid)
    bots = [name for name in phase.opponents if name not in (*others, *agents)]
    if bots:
        BotRoster(env, bots)  # knows best whether their settings are right


def _check_opponent_classification(spec: EnvSpec, config: TrainConfig, bots: Sequence[str]) -> None:
    strategy = config.policy.strategy
    if strategy is not None and strategy.classify and not bots:
        raise ConfigError(
            f"policy.strategy.classify is {strategy.classify:g}, but no bot ever plays that could be classified; set "
            f"it to 0, or name bots of {spec.id} under opponents: {', '.join(spec.bots) or 'it has none'}"
        )


def _check_rules(spec: EnvSpec, phase: PhaseConfig) -> None:
    """Raise if a promotion rule can never be met."""
    rule = phase.promotion
    if rule is None:
        return
    playing = [opponent for opponent, weight in phase.opponents.items() if weight and opponent != MIRROR_KIND]
    absent = [opponent for opponent in rule.against or () if opponent not in playing]
    if absent:
        raise ConfigError(
            f"phase {phase.name!r}: its promotion counts matches against {', '.join(absent)}, who does not play in "
            f"it; valid: {', '.join(playing) or 'none'}"
        )
    asked = "a win rate" if rule.win_rate is not None else "a rating" if rule.rating is not None else ""
    if asked and not playing:
        raise ConfigError(
            f"phase {phase.name!r}: its promotion asks for {asked}, but games of {MIRROR_KIND!r} are no "
            "matches; give another opponent a share, or use after_env_steps"
        )
    if asked and "wins" not in spec.events:
        raise ConfigError(
            f"phase {phase.name!r}: its promotion asks for {asked}, but {spec.id} has no event 'wins'; "
            "use after_env_steps"
        )
