"""Diagnoses of costs, from `resources.csv`: where the time goes and whether memory grows."""

from collections.abc import Iterator, Mapping

import numpy as np

from ludus.core.tables import Numbers, Table
from ludus.reports.doctor.finding import Change, Finding, Unknown, Verdict, finite
from ludus.reports.run_data import RunData

SHORTEST_S = 3.0  # shorter runs mostly compile kernels and fill caches
BEARABLE_S = 60.0  # a run that takes no longer needs no advice
PARTS = ("simulation", "inference", "opponents", "update", "other", "evaluation", "checkpoints", "logging")
EVALUATION_SHARE = 0.3
CHECKPOINTS_SHARE = 0.15
LOGGING_SHARE = 0.15
UPDATE_SHARE = 0.7
COLLECT_SHARE = 0.6
OPPONENTS_SHARE = 0.5
FEW_GAMES = 64
MANY_MINIBATCHES = 64  # per epoch
MANY_EPOCHS = 5
IDLE_GPU = 0.3

GROWTH_MIB = 64.0  # in the last half of a session
GROWTH_SHARE = 0.05
STEADY = 0.9  # correlation of memory with time
FEWEST_ROWS = 10


def slow(data: RunData) -> Verdict:
    """Time that a setting could save."""
    table = data.resources
    if not len(table):
        return Unknown("no resources.csv (monitoring.resources=true writes it)")
    seconds = {part: float(np.nansum(table.numbers(f"{part}_s"))) for part in PARTS}
    total_s = sum(seconds.values())
    if total_s < SHORTEST_S:
        return Unknown(f"less than {SHORTEST_S:g} s were measured")
    steps = _steps_done(table.numbers("env_steps"))
    if steps == 0.0:
        return Unknown("no finished iteration")
    speed = steps / total_s
    whole_s = float(data.setting("total_env_steps", 0)) / speed
    if whole_s < BEARABLE_S:
        return []
    shares = {part: part_s / total_s for part, part_s in seconds.items()}
    advice = list(_advice(data, shares))
    if not advice:
        return []
    listed = ", ".join(f"{part} {share:.0%}" for part, share in sorted(shares.items(), key=lambda item: -item[1]))
    evidence = (
        f"of {total_s:.0f} s: {listed} (resources.csv)",
        f"{speed:,.0f} env steps per second, so {whole_s / 60.0:,.0f} minutes for the whole run",
    )
    remedy = "; ".join(text for text, _ in advice)
    return [Finding("it is slower than necessary", evidence, remedy, tuple(change for _, change in advice))]


def _advice(data: RunData, shares: Mapping[str, float]) -> Iterator[tuple[str, Change]]:
    yield from _advice_around(data, shares)
    games = int(data.setting("world.num_envs", 1))
    is_gym = str(data.setting("world.name", "")).startswith("gym:")
    collecting = shares["simulation"] + shares["inference"] + shares["opponents"]
    if collecting > COLLECT_SHARE and games < FEW_GAMES and not is_gym:
        text = f"a step of {games} games costs nearly as much as one of many: use more games"
        yield text, Change("world.num_envs", games, 8 * FEW_GAMES)
    use = finite(data.resources.numbers("gpu_use"))
    if len(use) and np.median(use) < IDLE_GPU and games >= FEW_GAMES:
        text = f"the GPU is busy {np.median(use):.0%} of the time: use more games"
        yield text, Change("world.num_envs", games, 4 * games)
    if shares["opponents"] > OPPONENTS_SHARE and "self" in (data.setting("opponents") or {}):
        live = int(data.setting("league.live", 32))
        text = "snapshots take half of the time: keep fewer of them live"
        yield text, Change("league.live", live, max(live // 4, 1))
    if shares["update"] > UPDATE_SHARE and not data.is_off_policy:
        yield from _advice_on_updates(data, games)


def _advice_around(data: RunData, shares: Mapping[str, float]) -> Iterator[tuple[str, Change]]:
    """Advise on work besides training."""
    if shares["evaluation"] > EVALUATION_SHARE:
        every = int(data.setting("evaluation.every_env_steps", 0))
        factor = int(np.ceil(shares["evaluation"] / (1.0 - shares["evaluation"]) / 0.1))
        yield "evaluate less often", Change("evaluation.every_env_steps", every, factor * every)
    if shares["checkpoints"] > CHECKPOINTS_SHARE:
        for name in ("every_env_steps", "every_iterations"):
            every = data.setting(f"checkpoints.{name}")
            if every:
                yield "save less often", Change(f"checkpoints.{name}", every, 10 * every)
    if shares["logging"] > LOGGING_SHARE:
        yield (
            "log less: TensorBoard files take time",
            Change("monitoring.tensorboard", data.setting("monitoring.tensorboard", True), False),
        )


def _advice_on_updates(data: RunData, games: int) -> Iterator[tuple[str, Change]]:
    steps, batch, epochs = (int(data.setting(f"ppo.{name}", 1)) for name in ("n_steps", "batch_size", "n_epochs"))
    rollout = steps * games
    if data.setting("ppo.n_minibatches") is None and rollout // max(batch, 1) > MANY_MINIBATCHES:
        text = f"{rollout // batch} minibatches per epoch are many: make them larger"
        yield text, Change("ppo.batch_size", batch, batch * max(rollout // batch // 16, 1))
    if epochs > MANY_EPOCHS:
        yield f"{epochs} epochs learn little more than 4", Change("ppo.n_epochs", epochs, 4)
    if not data.setting("ppo.native", True) and not data.setting("policy.recurrent"):
        yield "use the compiled updates", Change("ppo.native", False, True)


def memory_growth(data: RunData) -> Verdict:
    """Memory that grows steadily."""
    session = _last_session(data.resources)
    if not len(session):
        return Unknown("no resources.csv (monitoring.resources=true writes it)")
    # Half of the steps, not of the time: a machine that slept for an hour near the end has few rows in that half.
    elapsed_s, resident, steps = (session.numbers(name) for name in ("elapsed_s", "resident_mib", "env_steps"))
    late = steps >= 0.5 * (steps[0] + steps[-1])
    if late.sum() < FEWEST_ROWS:
        return Unknown(f"fewer than {FEWEST_ROWS} rows in the last half of resources.csv")
    if session.last("env_steps") < data.setting(f"{data.algorithm}.buffer_size", 0):
        return Unknown("the replay buffer is still filling")
    seconds, memory, steps = elapsed_s[late], resident[late], steps[late]
    growth_mib = float(memory[-1] - memory[0])
    if growth_mib < max(GROWTH_MIB, GROWTH_SHARE * float(memory[0])) or _correlation(steps, memory) < STEADY:
        return []
    rate = growth_mib / max(float(seconds[-1] - seconds[0]), 1e-9) * 60.0
    per_million = growth_mib / max(float(steps[-1] - steps[0]), 1.0) * 1e6
    evidence = (
        f"resident memory {memory[0]:,.0f} MiB in the middle of the session, {memory[-1]:,.0f} MiB at its end: "
        f"{rate:,.0f} MiB per minute, {per_million:,.0f} MiB per million env steps (resources.csv)",
    )
    limit = data.setting("guard.memory_gib")
    bound = round(2.0 * float(memory[-1]) / 1024.0, 2)
    changes = [] if limit is not None else [Change("guard.memory_gib", None, bound)]
    remedy = (
        "there is a leak: check plugins (a term that appends to a list), callbacks and your own worlds; until it is "
        "found, a limit lets the run save and stop before the system kills it"
    )
    return [Finding("its memory grows", evidence, remedy, tuple(changes))]


def _last_session(table: Table) -> Table:
    begins = np.flatnonzero(np.diff(table.numbers("elapsed_s")) < 0)
    first = int(begins[-1]) + 1 if len(begins) else 0
    return table.rows(np.arange(len(table)) >= first)


def _correlation(one: Numbers, other: Numbers) -> float:
    if one.std() == 0.0 or other.std() == 0.0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _steps_done(env_steps: Numbers) -> float:
    """Return the env steps of all sessions; a resumed one may repeat some."""
    gains = np.diff(env_steps, prepend=0.0)
    return float(gains[gains > 0].sum())
