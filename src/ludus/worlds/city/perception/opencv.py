"""OpenCV, imported where it is needed first."""

from typing import Any

from ludus.core.errors import MissingDependencyError


def opencv(purpose: str) -> Any:  # noqa: ANN401 - a module
    """Return the module cv2; raise MissingDependencyError, which names the purpose, if it is not installed."""
    try:
        import cv2
    except ImportError as error:
        raise MissingDependencyError("opencv-python-headless", "city", purpose) from error
    return cv2
