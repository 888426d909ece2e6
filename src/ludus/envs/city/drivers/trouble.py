"""What can go wrong with a game on a screen, and the record of what did."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

TroubleKind: TypeAlias = Literal["screen", "process", "window", "frozen", "over", "dialog", "layout"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is not as it should be.

    Attributes:
        kind: `screen`, `process` or `window` if that is gone, `frozen` if nothing moves any more, `over` if the city
            is over, `dialog` if a window lies over the picture, `layout` if a landmark is not to be seen.
        what: In words, for people.
    """

    kind: TroubleKind
    what: str

    @property
    def loses_city(self) -> bool:
        """Whether the city is lost with it, so that a new one must be begun."""
        return self.kind not in ("dialog", "layout")


@dataclass(frozen=True, slots=True)
class Incident:
    """A trouble that was met, and whether the same city went on after it."""

    trouble: Trouble
    city_went_on: bool
    seconds: float
