"""The skills for bots in Python: in game units, as the kernels' own, and good enough to stay on the stage."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.envs.bot_roster import BotRoster
from ludus.envs.bots import BotObservation, as_bot
from ludus.envs.registry import make_env
from ludus.worlds.brawl import skills
from ludus.worlds.brawl.rules import KEYS, Key, Mask, State

pytestmark = pytest.mark.train

Bot = Callable[[BotObservation, Any], tuple[Tensor, Any]]
GAMES = 64


def played(bots: list[str | Bot], frames: int, games: int = GAMES) -> tuple[Tensor, dict[str, Tensor]]:
    """Plays bots against each other; returns the keys `(frames, games, seats, keys)` and the sums of all events."""
    with make_env("brawl", games, seed=4, config={"stocks": 99}) as env:
        roster = BotRoster(env, [bot if isinstance(bot, str) else as_bot(bot) for bot in bots])
        assignment = torch.tensor([[0, 1]] * games, dtype=torch.int32)
        actions, keys = torch.zeros((games, 2, KEYS), dtype=torch.int8), []
        sums: dict[str, Tensor] = {name: torch.zeros(2) for name in env.spec.events}
        observations = env.reset(seed=4)
        roster.begin(torch.ones(games, dtype=torch.bool))
        for _ in range(frames):
            roster.act(observations, assignment, actions)
            keys.append(actions.clone())
            result = env.step(actions)
            roster.begin(result.ended)
            observations = result.observations
            for name, values in result.events.items():
                sums[name] += values.sum(0)
    return torch.stack(keys), sums


def looked_at(frames: int, bots: list[str], rules: str = "standard") -> tuple[list[BotObservation], list[Tensor]]:
    """What a bot in Python sees while others play, and the world's own state metrics of the same moments."""
    seen: list[BotObservation] = []
    with make_env("brawl", GAMES, seed=1, config={"rules": rules}) as env:

        def watch(observation: BotObservation, state: None) -> tuple[Tensor, None]:
            seen.append(observation)
            return torch.zeros((len(observation.frame), KEYS), dtype=torch.int8), state

        players, watchers = BotRoster(env, bots), BotRoster(env, [as_bot(watch)])
        actions, spare = (torch.zeros((GAMES, 2, KEYS), dtype=torch.int8) for _ in range(2))
        everyone = torch.zeros((GAMES, 2), dtype=torch.int32)
        observations, metrics = env.reset(), []
        for _ in range(frames):
            watchers.act(observations, everyone, spare)
            players.act(observations, everyone, actions)
            result = env.step(actions)
            metrics.append(
                torch.stack([result.state_metrics[name].flatten() for name in ("x", "y", "distance", "state")])
            )
            observations = result.observations
    return seen, metrics


def test_positions_and_offsets_are_in_units_of_the_game() -> None:
    seen, metrics = looked_at(30, ["aggressive"])
    for observation, (x, y, _, _) in zip(seen[1:], metrics[:-1], strict=True):
        own_x, own_y = skills.position(observation)
        assert torch.allclose(own_x.abs(), x.abs(), atol=1e-3)
        assert torch.allclose(own_y, y, atol=1e-3)
        dx, dy = skills.offset(observation)
        others = own_x.view(-1, 2).flip(1).flatten()
        assert torch.allclose(dx, -others - own_x, atol=1e-3)  # the other side sees the stage mirrored
        assert torch.allclose(dy, own_y.view(-1, 2).flip(1).flatten() - own_y, atol=1e-3)


def based_safe(observation: BotObservation, state: None) -> tuple[Tensor, None]:
    """The bot `based-safe` without its weapon's reach, written with skills."""
    x, (dx, dy) = skills.position(observation)[0], skills.offset(observation)
    waits = skills.is_in(observation, State.KO, opponent=True) | skills.is_in(observation, State.STUN, opponent=True)
    action = skills.travel_to(observation, torch.where(waits, x, x + dx))
    action[..., Key.JUMP] |= (skills.grounded(observation) & (dy < -0.5)).to(torch.int8)
    action[..., Key.LIGHT] |= (dx * dx + dy * dy < 4.0).to(torch.int8)
    return action, state


def test_skills_do_what_the_kernels_do() -> None:
    """The same bot twice, as a kernel and in Python, looks at the same games; jumps are timed otherwise."""
    wanted: list[Tensor] = []

    def shadow(observation: BotObservation, state: None) -> tuple[Tensor, None]:
        wanted.append(based_safe(observation, None)[0])
        return torch.zeros_like(wanted[-1]), state

    with make_env("brawl", GAMES, seed=2, config={"weapon_spawns": False}) as env:
        kernel, python = BotRoster(env, ["based-safe:delay=0,noise=0"]), BotRoster(env, [as_bot(shadow)])
        everyone, actions = torch.zeros((GAMES, 2), dtype=torch.int32), torch.zeros((GAMES, 2, KEYS), dtype=torch.int8)
        spare, observations, done = actions.clone(), env.reset(), []
        for _ in range(400):
            python.act(observations, everyone, spare)
            kernel.act(observations, everyone, actions)
            done.append(actions.flatten(0, 1).clone())
            observations = env.step(actions).observations
    python_keys, kernel_keys = torch.stack(wanted), torch.stack(done)
    acts = kernel_keys.any(-1)  # a stunned fighter's bot presses nothing
    for key in (Key.LEFT, Key.RIGHT, Key.LIGHT):
        same = (python_keys[..., key] == kernel_keys[..., key])[acts]
        assert float(same.float().mean()) > 0.99, key.name


def test_a_traveller_stays_on_the_stage_and_crosses_the_gap() -> None:
    def traveller(observation: BotObservation, state: None) -> tuple[Tensor, None]:
        goal = torch.where(observation.frame % 240 < 120, 4.5, -4.5)
        return skills.travel_to(observation, goal), state

    def walker(observation: BotObservation, state: None) -> tuple[Tensor, None]:
        right = observation.frame % 240 < 120
        return skills.hold(observation, right=right, left=~right), state

    games, crossings = 160, 4  # a frame of many games costs little more than one of few
    keys, sums = played([traveller, "constant"], 120 * crossings, games)
    assert bool(keys[:, :, 0, Key.JUMP].any())
    assert float(sums["falls"][0]) <= 0.02 * games * crossings  # nearly none is missed
    assert float(played([walker, "constant"], 120 * crossings, games)[1]["falls"][0]) > games


def test_recover_brings_fighters_back() -> None:
    def fights(observation: BotObservation, state: None) -> tuple[Tensor, None]:
        needed, rescue = skills.recover(observation)
        attack = skills.hold(observation, light=skills.in_range(observation))
        return skills.choose(needed, rescue, attack), state

    def gives_up(observation: BotObservation, state: None) -> tuple[Tensor, None]:
        return skills.hold(observation, light=skills.in_range(observation)), state

    lost = [float(played([bot, "aggressive"], 500, 256)[1]["knocked_out"][0]) for bot in (fights, gives_up)]
    assert lost[1] > 50.0
    assert lost[0] < 0.8 * lost[1]


def test_every_state_is_told_from_the_others() -> None:
    """A clash too, which observations show by zeros."""
    seen, metrics = looked_at(200, ["aggressive:delay=0"], "clash")
    found = torch.stack([values[3] for values in metrics[:-1]])
    for state in State:
        told = torch.stack([skills.is_in(observation, state) for observation in seen[1:]])
        assert torch.equal(told, found == state), state
    assert bool((found == State.CLASH).any())
    opponents = torch.stack([skills.is_in(observation, State.CLASH, opponent=True) for observation in seen[1:]])
    assert torch.equal(opponents, found == State.CLASH)  # both are in it


def test_punish_and_threat_see_the_phases_of_an_attack() -> None:
    seen, _ = looked_at(200, ["heavy-spammer:delay=0"])
    threatened = torch.stack([skills.threatened(observation) for observation in seen])
    open_now = torch.stack([skills.can_punish(observation) for observation in seen])
    assert bool(threatened.any())
    assert bool(open_now.any())
    assert not bool((threatened & open_now).any())
    stunned = torch.stack([skills.is_in(observation, State.STUN, opponent=True) for observation in seen])
    assert bool((open_now | ~stunned).all())


def test_hold_names_keys_and_refuses_others() -> None:
    seen, _ = looked_at(1, ["constant"])
    action = skills.hold(seen[0], right=True, light=skills.in_range(seen[0], 100.0, 100.0))
    assert action.shape == (2 * GAMES, KEYS)
    assert int((action.long() << torch.arange(KEYS)).sum(-1).unique()) == Mask.RIGHT | Mask.LIGHT  # type: ignore[no-untyped-call]
    with pytest.raises(UnknownNameError, match="rigth"):
        skills.hold(seen[0], rigth=True)
