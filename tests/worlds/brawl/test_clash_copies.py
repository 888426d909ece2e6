"""Copies of an agent that favour a choice in clashes, of `benchmarks/clash.py`."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from benchmarks import clash
from torch import Tensor

import ludus
from ludus.policies.config import NetArch, PolicyConfig
from ludus.policies.policy import Policy
from ludus.worlds.brawl.observation import FIELDS, SHOWN_STATES
from ludus.worlds.brawl.rules import Choice, State

MakePolicy = Callable[..., Policy]
SaveAgent = Callable[[Policy, Path], Path]
MakeCopy = Callable[[clash.Guesser], Policy]
COLUMN = {field.name: index for index, field in enumerate(FIELDS)}
STATES = slice(clash.FIRST_STATE, clash.FIRST_STATE + clash.STATES)


def logits(policy: Policy, views: Tensor) -> Tensor:
    return policy.action_parameters({"vector": views}, policy.initial(len(views)), torch.zeros(len(views)))


def shares(policy: Policy, views: Tensor) -> list[float]:
    """Probabilities of strike, guard and throw in the first view."""
    light, heavy = torch.sigmoid(logits(policy, views))[0, [clash.KEYS.index("light"), clash.KEYS.index("heavy")]]
    return [float(light * (1 - heavy)), float((1 - light) * (1 - heavy)), float(heavy)]


def seen(
    state: State = State.CLASH, *, stocks: tuple[int, int] = (3, 3), damage: tuple[float, float] = (0, 0)
) -> Tensor:
    views = torch.randn(1, 156, generator=torch.Generator().manual_seed(0))
    views[:, STATES] = 0.0
    if state != State.CLASH:
        views[:, clash.FIRST_STATE + state] = 1.0
    for who, left, taken in zip(("self", "opponent"), stocks, damage, strict=True):
        views[:, COLUMN[f"{who}.stocks"]], views[:, COLUMN[f"{who}.damage"]] = left / 3.0, taken / 200.0
    return views


@pytest.fixture
def run(tmp_path: Path, fresh: MakePolicy, save_agent: SaveAgent) -> Path:
    config = PolicyConfig(net_arch=NetArch(pi=(8, 16), vf=(8,)), activation="relu", canonical=True)
    return save_agent(fresh("brawl", config), tmp_path / "run")


@pytest.fixture
def make_copy(run: Path, tmp_path: Path) -> MakeCopy:
    base = ludus.export_agent(run, tmp_path / "base-0.ludus").path

    def make(guesser: clash.Guesser) -> Policy:
        clash.guessing(base, tmp_path / "copy.ludus", guesser, 0.9)
        return ludus.load_agent(tmp_path / "copy.ludus").policy

    return make


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize(
    ("stocks", "damage", "ahead"),
    [
        ((3, 3), (0, 0), False),
        ((3, 3), (0, 20), True),
        ((3, 3), (20, 0), False),
        ((2, 3), (0, 150), False),
        ((3, 2), (150, 0), True),
    ],
)
@torch.no_grad()
def test_a_copy_favours_one_choice_ahead_and_one_otherwise(
    make_copy: MakeCopy, side: float, stocks: tuple[int, int], damage: tuple[float, float], ahead: bool
) -> None:
    views = seen(stocks=stocks, damage=damage)
    views[:, COLUMN["world.high_side"]] = side
    for guesser in clash.GUESSERS.values():
        favourite = guesser.ahead if ahead else guesser.otherwise
        expected = [1 / 3] * 3 if favourite is None else [0.9 if choice == favourite else 0.05 for choice in Choice]
        assert shares(make_copy(guesser), views) == pytest.approx(expected, abs=1e-4)


@torch.no_grad()
def test_a_copy_without_favourites_draws_evenly(make_copy: MakeCopy) -> None:
    copy = make_copy(clash.Guesser())
    for damage in ((0, 0), (0, 90), (90, 0), (0, 10)):
        assert shares(copy, seen(damage=damage)) == pytest.approx([1 / 3] * 3, abs=1e-4)


@torch.no_grad()
def test_an_answer_beats_the_favourite_of_either_situation(make_copy: MakeCopy) -> None:
    """The answer sees the lead of the opponent as its own lag."""
    for guesser in clash.GUESSERS.values():
        answer = make_copy(guesser.answer)
        for damage, favourite in (((60, 0), guesser.ahead), ((0, 60), guesser.otherwise), ((0, 0), guesser.otherwise)):
            drawn = shares(answer, seen(damage=damage))
            if favourite is None:
                assert drawn == pytest.approx([1 / 3] * 3, abs=1e-4)  # nothing beats that
            else:
                chosen = Choice(int(torch.tensor(drawn).argmax()))
                assert (chosen - favourite) % 3 == 1  # guard beats strike, throw beats guard, strike beats throw


@torch.no_grad()
def test_a_copy_plays_as_the_original_outside_clashes(run: Path, make_copy: MakeCopy) -> None:
    copy, original = make_copy(clash.GUESSERS["throw_strike"]), ludus.load_agent(run).policy
    for state in SHOWN_STATES:
        views = seen(state, damage=(0, 50))
        torch.testing.assert_close(logits(copy, views), logits(original, views))


def test_seen_and_unseen_guessers_favour_every_choice_equally_often() -> None:
    assert set(clash.UNSEEN_GUESSERS) <= set(clash.GUESSERS)
    for are_seen, place in itertools.product((True, False), ("ahead", "otherwise")):
        favourites = [
            getattr(guesser, place)
            for name, guesser in clash.GUESSERS.items()
            if clash.is_seen(f"{name}-0") is are_seen
        ]
        assert len({favourites.count(choice) for choice in Choice}) == 1


def test_only_relu_networks_can_be_copied(tmp_path: Path, fresh: MakePolicy, save_agent: SaveAgent) -> None:
    run = save_agent(fresh("brawl", PolicyConfig(net_arch=NetArch(pi=(8, 8), vf=(8,)))), tmp_path / "run")
    with pytest.raises(ValueError, match="ReLU"):
        clash.guessing(run, tmp_path / "copy.ludus", clash.GUESSERS["strike_strike"], 0.9)
