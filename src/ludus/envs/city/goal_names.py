"""Figures of a city that can be goals, and what is wrong with a goal that cannot be."""

AT_LEAST = ("population", "happiness", "funds", "balance", "land_value")  # the more the better
AT_MOST = ("traffic", "pollution")  # percent; the less the better
WORST = 100.0  # percent


def goal_fault(name: str, target: float) -> str | None:
    """Returns what is wrong with a goal; None if nothing is."""
    if name not in (*AT_LEAST, *AT_MOST):
        return f"goals are for {', '.join((*AT_LEAST, *AT_MOST))}, got {name!r}"
    if name in AT_MOST and not 0.0 <= target < WORST:
        return f"the goal of {name} is at most so many percent, from 0 to below {WORST:g}, got {target:g}"
    if name in AT_LEAST and target <= 0.0:
        return f"the goal of {name} must be above 0, got {target:g}"
    return None
