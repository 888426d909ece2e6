"""Guides: an optional second opinion of your own, such as a model that looks at the picture and says what to do next.

A guide is a class in a Python file that you name with `--plugin FILE`; nothing else ever loads one:

    from ludus.envs.city.guide import Advice, Scene, guide

    @guide("careful")
    class Careful:
        def advise(self, scene: Scene) -> Advice:
            funds = scene.readings["funds"].value
            return Advice({"wait": 1.0} if funds is not None and funds < 500 else {"residential": 1.0}, confidence=0.5)

It is asked if the settings say so (`world.settings.guide.name=careful`). It sees what the agent sees and no more, and
its advice is an observation that the agent may learn to follow or to ignore, and an event `guided` that may be rewarded
(`rewards.weights.guided`), with an account of its own. It never acts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.city.catalogue import ActionKind
from ludus.envs.city.drivers.driver import Frame
from ludus.envs.city.seen import Seen


@dataclass(frozen=True, slots=True)
class Scene:
    """What a guide is shown of one game.

    Attributes:
        picture: `(height, width, 3)` uint8, the window as it is.
        readings: What was read of it, by the name of the field.
        kinds: What can be done.
        step: Decisions of the present city.
        last_kind: What was done last; empty before the first decision.
    """

    picture: Frame
    readings: Mapping[str, Seen]
    kinds: tuple[ActionKind, ...]
    step: int
    last_kind: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a guide says.

    Attributes:
        weights: How much each kind of action is advised, 0 or more; kinds that are not named are not.
        hint: The same in words, for people.
        confidence: From 0 to 1; what is advised counts that much.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    hint: str = ""
    confidence: float = 1.0


class Guide(Protocol):
    """Advises. Its advice should follow from the scene alone, or a run that was cut off goes on with other advice."""

    def advise(self, scene: Scene) -> Advice:
        """Returns what it would do now."""


GuideMaker = Callable[[], Guide]
_M = TypeVar("_M", bound=GuideMaker)
_GUIDES: dict[str, GuideMaker] = {}


def guide(name: str) -> Callable[[_M], _M]:
    """Registers the class below it, or a function that makes a guide, under a name.

    Raises:
        ConfigError: There is a guide of this name already.
    """

    def register(maker: _M) -> _M:
        if name in _GUIDES:
            raise ConfigError(f"there is a guide {name!r} already; choose another name")
        _GUIDES[name] = maker
        return maker

    return register


def make_guide(name: str) -> Guide:
    """Makes the guide of a name.

    Raises:
        UnknownNameError: No plugin that was named has registered it.
    """
    if name not in _GUIDES:
        raise UnknownNameError("guide (load the file that has it with --plugin FILE)", name, tuple(_GUIDES))
    return _GUIDES[name]()
