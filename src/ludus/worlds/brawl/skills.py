"""What every bot of Brawl needs, for bots in Python: get back to the stage, travel, judge distances, punish.

All functions take the observation of a bot (`ludus.envs.bots.BotObservation`) and work on any number of rows at once.
Distances are in units of the game (a body is one unit high, y grows downward), from the own side: the own start lies
on the left. The kernels' versions of these skills are in `ludus.worlds.brawl.kernels.bot_styles`.
"""

import torch
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.envs.bots import BotObservation
from ludus.worlds.brawl import rules
from ludus.worlds.brawl.observation import SHOWN_STATES
from ludus.worlds.brawl.rules import KEYS, Key, State

KEY_NAMES = tuple(key.name.lower() for key in Key)
SAFE_OUTER = 6.6  # do not walk farther out than this
_LEDGE = 0.9  # jump this far from the edge to cross the gap
_NEAR_GOAL = 0.3


def hold(observation: BotObservation, **held: Tensor | bool) -> Tensor:
    """Return an action that holds keys: `hold(observation, right=far, light=near)`.

    Args:
        observation: What the bot sees; it gives the number of rows.
        held: For each key (`up`, `left`, `down`, `right`, `jump`, `pickup`, `dodge`, `light`, `heavy`, `taunt`), the
            rows that hold it: `(rows,)` bool, or one bool for all.

    Returns:
        `(rows, 10)` int8.

    Raises:
        UnknownNameError: There is no such key.
    """
    like = observation.world.clock
    action = torch.zeros((*like.shape, KEYS), dtype=torch.int8, device=like.device)
    for name, rows in held.items():
        if name not in KEY_NAMES:
            raise UnknownNameError("key", name, KEY_NAMES)
        action[..., KEY_NAMES.index(name)] = torch.as_tensor(rows, device=like.device).to(torch.int8)
    return action


def choose(rows: Tensor, action: Tensor, otherwise: Tensor) -> Tensor:
    """Return one action where `rows` `(rows,)` is set, and another elsewhere."""
    return torch.where(rows.unsqueeze(-1), action, otherwise)


def position(observation: BotObservation) -> tuple[Tensor, Tensor]:
    """Return the own x and y."""
    return observation.self.x * rules.KILL_X, observation.self.y * rules.KILL_Y


def offset(observation: BotObservation) -> tuple[Tensor, Tensor]:
    """Return the way to the opponent: its x and y minus the own."""
    return observation.world.opponent_dx * rules.KILL_X, observation.world.opponent_dy * rules.KILL_Y


def grounded(observation: BotObservation) -> Tensor:
    """Return who stands on the ground or on the platform."""
    return torch.gt(observation.self.on_ground + observation.self.on_platform, 0)


def is_in(observation: BotObservation, state: State, *, opponent: bool = False) -> Tensor:
    """Return whose fighter, or whose opponent, is in a state such as `State.STUN`."""
    fighter = observation.opponent if opponent else observation.self
    if state == State.CLASH:
        shown = [getattr(fighter, f"state_{other.name.lower()}") for other in SHOWN_STATES]
        return torch.stack(shown).sum(0) == 0
    return torch.gt(getattr(fighter, f"state_{state.name.lower()}"), 0)


def in_range(observation: BotObservation, wide: float = 1.7, tall: float = 1.1) -> Tensor:
    """Return whose opponent is within a distance and can be fought; the defaults fit a light attack with bare hands."""
    dx, dy = offset(observation)
    return (dx.abs() < wide) & (dy.abs() < tall) & ~is_in(observation, State.KO, opponent=True)


def threatened(observation: BotObservation) -> Tensor:
    """Return whose opponent is in an attack that is about to hit."""
    return is_in(observation, State.ATTACK, opponent=True) & torch.eq(observation.opponent.phase_recovery, 0)


def can_punish(observation: BotObservation) -> Tensor:
    """Return whose opponent cannot answer now: it recovers from an attack, or is stunned."""
    recovers = is_in(observation, State.ATTACK, opponent=True) & torch.gt(observation.opponent.phase_recovery, 0)
    return recovers | is_in(observation, State.STUN, opponent=True)


def can_dodge(observation: BotObservation) -> Tensor:
    """Return who may dodge now."""
    return torch.eq(observation.self.dodge_cooldown, 0)


def risky(observation: BotObservation, direction: Tensor) -> Tensor:
    """Return for whom a step or a lunge in a direction (-1 left, +1 right) leads over an edge."""
    x = position(observation)[0]
    return torch.where(direction * x > 0, x.abs() > 5.6, x.abs() < 3.9)


def recover(observation: BotObservation, goal: Tensor | float = 0.0) -> tuple[Tensor, Tensor]:
    """Bring a falling fighter back to the stage.

    Args:
        observation: What the bot sees.
        goal: Where it wants to go (x), which decides the side to land on when it is over the gap.

    Returns:
        `(rows,)` bool, who has to recover; and what to do then, `(rows, 10)`.
    """
    high = observation.world.high_side
    x, y = position(observation)
    x = x * high  # as on the standard stage: the high ground is at positive x
    feet = y + rules.BODY_HALF_HEIGHT
    over_nothing = (x.abs() < rules.GROUND_INNER - 0.2) | (x.abs() > rules.GROUND_OUTER + 0.2)
    needed = ~grounded(observation) & (over_nothing | (feet > _top(x) + 0.2))
    jumps, recovery = observation.self.air_jumps * rules.AIR_JUMPS, observation.self.recovery_ready > 0
    can_reach_high = feet - 2.0 * jumps - 2.0 * recovery < rules.HIGH_TOP
    side = torch.where(x > 0, 1.0, -1.0)
    over_gap = torch.where(can_reach_high & ((goal * high > 0) | (x > 1.0)), 1.0, -1.0)
    side = torch.where(x.abs() < rules.GROUND_INNER, over_gap, side)
    is_inner = x.abs() < (rules.GROUND_INNER + rules.GROUND_OUTER) * 0.5
    target = side * torch.where(is_inner, rules.GROUND_INNER + 0.6, rules.GROUND_OUTER - 0.6)
    right = (target - x) * high > 0
    velocity = observation.self.vy * 20.0
    low, far = feet > _top(side) - 0.3, (target - x).abs() > 2.5
    rise = (velocity > -1.0) & (low | (far & (velocity > 4.0)))
    heavy = rise & (jumps == 0) & recovery & low
    return needed, hold(
        observation, left=~right, right=right, jump=rise & (jumps > 0) & _may_jump(observation), heavy=heavy
    )


def travel_to(observation: BotObservation, goal: Tensor | float) -> Tensor:
    """Walk to a place on the stage (x), jump the gap where it lies between, and recover after a fall."""
    high = observation.world.high_side
    x = position(observation)[0] * high
    here = torch.where(x > 0, 1.0, -1.0)
    target = torch.as_tensor(goal * high).clamp(-SAFE_OUTER, SAFE_OUTER)
    edge = here * (rules.GROUND_INNER + 0.5)  # over the gap: wait at the edge of this side
    target = torch.where(target.abs() < rules.GROUND_INNER + 0.3, edge, target)
    moves, right = (target - x).abs() >= _NEAR_GOAL, (target - x) * high > 0
    at_edge = (x.abs() < rules.GROUND_INNER + _LEDGE) | (observation.self.on_platform > 0)
    jump = moves & grounded(observation) & (target * here < 0) & at_edge & _may_jump(observation)
    walk = hold(observation, left=moves & ~right, right=moves & right, jump=jump)
    needed, rescue = recover(observation, goal)
    return choose(needed, rescue, walk)


def _top(x: Tensor) -> Tensor:
    return torch.where(x > 0, rules.HIGH_TOP, rules.LOW_TOP)


def _may_jump(observation: BotObservation) -> Tensor:
    """Return who may press jump: a key that is held down already does nothing."""
    return torch.eq(observation.self.jump_cooldown + observation.world.held_jump, 0)
