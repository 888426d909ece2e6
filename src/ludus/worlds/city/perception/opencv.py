"""OpenCV, imported where it is needed first."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import MissingDependencyError


def opencv(purpose: str) -> Any:  # noqa: ANN401 - a module
    """Return the module cv2; raise MissingDependencyError, which names the purpose, if it is not installed."""
    try:
        import cv2
    except ImportError as error:
        raise MissingDependencyError("opencv-python-headless", "city", purpose) from error
    return cv2


def png(picture: NDArray[np.uint8]) -> bytes:
    """Return a picture `(height, width, 3)` as a PNG file."""
    cv2 = opencv("writing pictures")
    _, content = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))  # raises if it cannot
    return bytes(content)
