"""The fixed camera: from stage units to pixels, with the whole kill box in sight."""

from dataclasses import dataclass

VIEW_WIDTH = 28.4  # units; the kill box is 28 wide
VIEW_HEIGHT = 16.0  # units; exactly the kill box


@dataclass(frozen=True, slots=True)
class Camera:
    """Shows the stage in a picture of `size` (width, height) pixels, centred, with square units."""

    size: tuple[int, int]

    @property
    def scale(self) -> float:
        """Pixels a unit."""
        return min(self.size[0] / VIEW_WIDTH, self.size[1] / VIEW_HEIGHT)

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Returns the pixel of a place on the stage."""
        scale = self.scale
        return self.size[0] / 2 + x * scale, self.size[1] / 2 + y * scale
