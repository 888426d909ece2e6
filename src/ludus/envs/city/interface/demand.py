"""The three bars of demand: where they are, and how long a bar is for a demand; drawn and read by the same rules."""

from dataclasses import dataclass

from ludus.envs.city.interface.boxes import Box

BARS = ("demand_homes", "demand_shops", "demand_industry")
_EDGE = 2  # pixels that a bar stays away from the end of its field


@dataclass(frozen=True, slots=True)
class DemandPlaces:
    """Where the bars of a field are.

    Attributes:
        middle: Column from which bars go, to the right for more and to the left for less; a line is drawn over it.
        half: Length of a full bar in pixels.
        thick: From one bar to the next.
        tops: First row of each bar.
    """

    middle: int
    half: int
    thick: int
    tops: tuple[int, int, int]

    @property
    def height(self) -> int:
        """Rows of a bar."""
        return max(self.thick - 1, 1)

    def length(self, demand: int) -> int:
        """Returns the length of the bar of a demand from -100 to 100."""
        return abs(demand) * self.half // 100

    def said(self, length: int, *, more: bool) -> float:
        """Returns the demand that a bar of a length says: the middle of what it can be; 0 for the shortest ones.

        The first pixel of a bar to the right is under the line in the middle, so a bar of one pixel is none.
        """
        if length < (2 if more else 1):
            return 0.0
        size = min((length + 0.5) * 100.0 / self.half, 100.0)
        return size if more else -size

    def shown(self, demand: int) -> float:
        """Returns what the bar of a demand says."""
        return self.said(self.length(demand), more=demand >= 0)


def demand_places(box: Box) -> DemandPlaces:
    """Returns where the bars are in the field of demand."""
    thick = (box.height - 4) // 3
    top = box.top + (box.height - 3 * thick) // 2
    return DemandPlaces(box.left + box.width // 2, box.width // 2 - _EDGE, thick, (top, top + thick, top + 2 * thick))
