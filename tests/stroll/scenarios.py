"""In which weather a walker is put to the test."""

from collections.abc import Mapping
from typing import Any

SCENARIOS: Mapping[str, Mapping[str, Any]] = {
    "calm": {},
    "wind": {"weather": {"wind": 0.5}},
    "storm": {"weather": {"wind": 0.5, "gusts": 0.2}, "step_limit": 10},
}
