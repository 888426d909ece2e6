"""Every diagnosis on a run that really has the illness, made by a config that causes it; healthy runs come out clean.

No table is written by hand: each run is trained here, in the smallest world in which it falls ill.
"""

import functools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ludus.reports.doctor import DIAGNOSES, Examination, Finding, examine
from ludus.reports.run_data import read_run
from ludus.rewards import terms
from ludus.rewards.plugins import load_plugin
from ludus.training import BaseCallback, Counters, Iteration, TrainConfig, Trainer
from ludus.training.loggers import make_loggers
from ludus.training.run_folder import changed_config, describe_run, read_run_config

pytestmark = pytest.mark.train

Examine = Callable[[str], tuple[Path, Examination]]
Settings = dict[str, Any]

PLUGIN = """
import torch
from ludus.rewards import StepInfo, reward_term

KEPT = []
CALLS = [0]

@reward_term("duel")
def leaking(info: StepInfo) -> torch.Tensor:
    KEPT.append(torch.ones(2_000_000))  # 8 MB that are never let go
    return info.events["wins"]

@reward_term("duel")
def nothing(info: StepInfo) -> torch.Tensor:
    return (info.events["wins"] > 2.0).float()  # nobody wins a match twice

@reward_term("duel")
def broken(info: StepInfo) -> torch.Tensor:
    CALLS[0] += 1
    return info.events["reward"] * (float("nan") if CALLS[0] == 7 else 1.0)
"""
STRATEGY = {"layers": 1, "heads": 2, "width": 8, "feedforward": 8, "window": 5, "latent": 4, "pooling": 4}
SLOW_FOR_S = 3.5


def settings(world: str, games: int, steps: int, iterations: int, /, **changes: Any) -> Settings:
    """Settings of a tiny run; `ppo` and `world` among the changes are laid over them, everything else replaces."""
    base: Settings = {
        "world": {"name": world, "num_envs": games, "settings": {}},
        "policy": {"net_arch": {"pi": [16], "vf": [16]}},
        "ppo": {
            "n_steps": steps,
            "batch_size": games * steps // 4,
            "n_epochs": 2,
            "learning_rate": 3e-3,
            "sequence_length": 5,
        },
        "total_env_steps": games * steps * iterations,
        "monitoring": {"console": "off", "tensorboard": False, "curves": False, "strategy_every_iterations": 2},
    }
    return base | {name: base[name] | part if name in ("ppo", "world") else part for name, part in changes.items()}


def duel(iterations: int = 20, **changes: Any) -> Settings:
    return settings("duel", 32, 20, iterations, **{"opponents": {"rock": 1, "cycle": 1}, **changes})


def encoder(iterations: int = 10, **changes: Any) -> Settings:
    return duel(iterations, **{"policy": {"strategy": STRATEGY}, **changes})


def self_play(iterations: int, league: Settings, **changes: Any) -> Settings:
    """Matches of a single round, in which whoever knows the opponent's move wins."""
    world, ppo = {"settings": {"rounds": 1}}, {"learning_rate": 1e-2, "batch_size": 64, "ent_coef": 0.05}
    return settings("duel", 128, 2, iterations, world=world, ppo=ppo, opponents={"self": 1}, league=league, **changes)


def brawl(step_limit: int, weights: Settings, gamma: float) -> Settings:
    world, ppo = {"settings": {"step_limit": step_limit, "stocks": 1}}, {"learning_rate": 1e-2, "n_epochs": 4}
    opponents, rewards = {"constant": 1}, {"weights": weights}
    return settings("brawl", 64, 16, 60, world=world, ppo=ppo | {"gamma": gamma}, opponents=opponents, rewards=rewards)


NEVER = {"points": [[0, 0.0], [1_000_000, 0.0], [2_000_000, 1.0]]}
GROWS = {"points": [[0, 1.0], [640 * 20, 300.0]]}
RISING = {"kind": "linear", "start": 0.01, "end": 1.0}
OFTEN = {"sampler": "recent", "recent_share": 0.8, "recent_window": 1, "snapshot_every_env_steps": 256 * 4}
SELDOM = {"recent_share": 1.0, "recent_window": 1, "snapshot_every_env_steps": 256 * 20}

RUNS: dict[str, Callable[[], Settings]] = {
    "healthy": lambda: duel(evaluation={"every_env_steps": 6400, "matches": 20}),
    "healthy cues": lambda: settings("identity", 32, 16, 30),
    "healthy encoder": encoder,
    "still": lambda: duel(ppo={"learning_rate": 0.0}),
    "same reward": lambda: settings("endless", 32, 10, 5),
    "without memory": lambda: settings("rps", 256, 16, 20, ppo={"learning_rate": 1e-3}),
    "not finite": lambda: duel(rewards={"weights": {"broken": 1.0}}),
    "wild": lambda: settings(
        "point",
        64,
        16,
        80,
        world={"settings": {"step_limit": 16}},
        ppo={"n_epochs": 4, "learning_rate": RISING},
        seed=1,
    ),
    "huge rewards": lambda: duel(rewards={"weights": {"reward": 1e4}}),
    "tiny rewards": lambda: duel(rewards={"weights": {"reward": 1e-4}}),
    "weight never rises": lambda: duel(rewards={"weights": {"reward": 1.0, "draws": NEVER}}),
    "never happens": lambda: duel(opponents={"rock": 1}, rewards={"weights": {"reward": 1.0, "nothing": 1.0}}),
    "giant weight": lambda: duel(rewards={"weights": {"wins": 1.0, "losses": -1.0, "reward": 100.0}}),
    "no entropy": lambda: settings(
        "identity", 32, 16, 30, world={"settings": {"cues": 32}}, ppo={"ent_coef": -5.0, "learning_rate": 1e-2}
    ),
    "growing rewards": lambda: duel(rewards={"weights": {"reward": GROWS}}),
    "exploits itself": lambda: self_play(
        59, SELDOM, seed=1, evaluation={"every_env_steps": 10**6, "matches": 200, "opponents": ["random"]}
    ),
    "goes in circles": lambda: self_play(60, OFTEN, seed=2),
    "decayed encoder": lambda: encoder(ppo={"weight_decay": 300.0}),
    "nothing to recognise": lambda: encoder(
        ppo={"learning_rate": 1e-5}, opponents={"self": 1, "random": 1}, league={"snapshot_every_env_steps": 640}
    ),
    "paid for peace": lambda: brawl(60, {"attack_spam": -1.0}, gamma=0.8),
    "paid for falls": lambda: brawl(240, {"fall": 1.0, "danger": 1.0}, gamma=0.97),
    "few games": lambda: duel(10**6, world={"num_envs": 4}, ppo={"batch_size": 20}),
    "leaking": lambda: duel(40, rewards={"weights": {"leaking": 1.0, "reward": 1.0}}),
}


class StopAfter(BaseCallback):
    """Ends a run that would take hours."""

    def __init__(self, seconds: float) -> None:
        self._until_s = time.perf_counter() + seconds

    def on_iteration(self, iteration: Iteration) -> None:
        if time.perf_counter() > self._until_s:
            self.trainer.stop()


def train_in(folder: Path, config: TrainConfig) -> None:
    """Trains as the command line does, without its checks and signals."""
    describe_run(folder, config, Counters())
    stop = StopAfter(SLOW_FOR_S)
    loggers = make_loggers(config.monitoring, folder, total_env_steps=config.total_env_steps, title="test")
    callbacks: list[BaseCallback] = [*loggers, *([stop] if config.total_env_steps > 10**7 else [])]
    with Trainer(config, folder, callbacks) as trainer:
        trainer.run()


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A user's file with a term that leaks and one that breaks."""
    file = tmp_path_factory.mktemp("plugin") / "faulty.py"
    file.write_text(PLUGIN)
    before = set(terms.terms_of("duel"))
    load_plugin(file)
    yield
    for name in set(terms.terms_of("duel")) - before:
        del terms._TERMS["duel"][name]
    for name in [name for name in sys.modules if name.startswith("ludus_plugin_faulty")]:
        del sys.modules[name]  # and with it what the leak kept


@pytest.fixture(scope="session")
def examined(tmp_path_factory: pytest.TempPathFactory, plugin: None) -> Examine:  # noqa: ARG001
    """`examined("still")`: trains the run, once for all tests, and examines it."""

    @functools.cache
    def run(name: str) -> tuple[Path, Examination]:
        folder = tmp_path_factory.mktemp(name.replace(" ", "-"))
        train_in(folder, TrainConfig.model_validate(RUNS[name]()))
        return folder, examine(read_run(folder))

    return run


def finding_of(examination: Examination, diagnosis: str) -> Finding:
    found = [finding for name, finding in examination.findings if name == diagnosis]
    assert len(found) == 1, examination
    return found[0]


@pytest.mark.parametrize("name", ["healthy", "healthy cues", "healthy encoder"])
def test_healthy_runs_come_out_clean(name: str, examined: Examine) -> None:
    _, examination = examined(name)
    assert examination.findings == ()
    always = {"not-learning", "instability", "reward-scale", "zero-term", "entropy-collapse", "kl-spikes", "value-loss"}
    asked = always | ({"encoder-ignored"} if "encoder" in name else set())
    assert asked <= set(examination.healthy)
    assert set(examination.healthy) | set(examination.unknown) == set(DIAGNOSES)


@pytest.mark.parametrize(
    ("name", "diagnosis", "says", "change"),
    [
        ("still", "not-learning", "updates", "ppo.learning_rate: 0 -> 0.0003"),
        ("without memory", "not-learning", "did not improve", "policy.recurrent: null -> {size: 64}"),
        ("same reward", "not-learning", "same return", "policy.normalize.observations: false -> true"),
        ("not finite", "instability", "NaN", "ppo.learning_rate: 0.003 -> 0.0009"),
        ("wild", "instability", "collapsed", "ppo.target_kl: null -> 0.02"),
        ("wild", "kl-spikes", "KL", "ppo.target_kl: null -> 0.02"),
        ("huge rewards", "reward-scale", "too large", "policy.normalize.returns: false -> true"),
        ("tiny rewards", "reward-scale", "too small", "policy.normalize.returns: false -> true"),
        ("weight never rises", "zero-term", "its weight never rose", None),
        ("never happens", "zero-term", "never happened", "rewards.weights.nothing: 1 -> 0"),
        ("giant weight", "dominating-term", "reward dominates", None),
        ("no entropy", "entropy-collapse", "entropy collapse", "ppo.ent_coef: -5 -> 0.01"),
        ("growing rewards", "value-loss", "explodes", "policy.normalize.returns: false -> true"),
        ("exploits itself", "self-play-overfit", "overfitted", "league.sampler: recent -> pfsp"),
        ("goes in circles", "forgetting", "loses to old snapshots", "league.sampler: recent -> pfsp"),
        ("decayed encoder", "encoder-ignored", "nearly 0", "ppo.weight_decay: 300 -> 0"),
        ("nothing to recognise", "encoder-ignored", "same for all", "policy.strategy.predict_actions: 0 -> 0.1"),
        ("paid for peace", "passive", "passive", "rewards.weights.attack_spam: -1 -> 0"),
        ("paid for falls", "falling-off", "falls off", "rewards.weights.fall: 1 -> -1"),
        ("few games", "slow", "slower", "world.num_envs: 4 -> 512"),
        ("leaking", "memory-growth", "grows", None),
    ],
)
def test_an_illness_is_found(name: str, diagnosis: str, says: str, change: str | None, examined: Examine) -> None:
    folder, examination = examined(name)
    finding = finding_of(examination, diagnosis)
    assert says in finding.what
    assert finding.evidence
    assert any(character.isdigit() for line in finding.evidence for character in line)
    lines = [each.line for each in finding.changes]
    assert lines
    assert change is None or change in lines
    began = read_run_config(folder)
    for each in finding.changes:  # what is to be pasted is a setting of this run, and changes it
        assert changed_config(began, [each.override]) != began


def test_every_diagnosis_has_a_run_that_is_ill() -> None:
    marks = test_an_illness_is_found.pytestmark  # type: ignore[attr-defined]
    assert {case[1] for case in marks[0].args[1]} == set(DIAGNOSES)


def test_evidence_has_the_numbers_of_the_files(examined: Examine) -> None:
    folder, examination = examined("weight never rises")
    finding = finding_of(examination, "zero-term")
    assert finding.what == "the reward term draws is always zero: its weight never rose"
    assert "0 up to env step 12,800 (config.yaml)" in finding.evidence[0]
    assert [each.override for each in finding.changes] == ["rewards.weights.draws=1"]
    assert read_run(folder).rewards.numbers("env_steps")[-1] == 12_800


def test_the_remedy_of_a_giant_weight_makes_all_others_as_large(examined: Examine) -> None:
    folder, examination = examined("giant weight")
    better = float(finding_of(examination, "dominating-term").changes[0].better)
    table = read_run(folder).rewards
    sizes = {name: abs(table.numbers(name)).sum() for name in ("wins", "losses", "reward")}
    assert sizes["reward"] * better / 100.0 == pytest.approx(sizes["wins"] + sizes["losses"], rel=1e-6)


def test_a_remedy_heals(examined: Examine, tmp_path: Path) -> None:
    folder, examination = examined("still")
    changes = [each.override for each in finding_of(examination, "not-learning").changes]
    train_in(tmp_path, changed_config(read_run_config(folder), [*changes, "total_env_steps=38400"]))
    assert "not-learning" not in dict(examine(read_run(tmp_path)).findings)
