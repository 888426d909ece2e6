"""Whether games with other settings are the same for who plays: what is seen, done and told must not change."""

from collections.abc import Iterator

from ludus.core.errors import ConfigError
from ludus.envs.base import EnvSpec


def check_fits(spec: EnvSpec, other: EnvSpec, what: str) -> None:
    """Raises ConfigError, naming every difference, unless a policy of `spec` can play and be judged in `other`.

    Args:
        spec: The games that it was made for.
        other: Those that it shall play.
        what: Whose settings `other` has, such as `stage '2v2'`.
    """
    found = list(_differences(spec, other))
    if found:
        raise ConfigError(
            f"{what} changes what is seen or done in {spec.id}: {'; '.join(found)}; give it other settings"
        )


def _differences(spec: EnvSpec, other: EnvSpec) -> Iterator[str]:
    if spec.id != other.id:
        yield f"the world is {other.id}, not {spec.id}"
    before, after = spec.observation_space.spaces, other.observation_space.spaces
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield f"observation {name!r} is {after.get(name, 'missing')}, not {before.get(name, 'missing')}"
    if spec.action_space != other.action_space:
        yield f"the action space is {other.action_space}, not {spec.action_space}"
    for kind in ("events", "measures", "blocks"):
        if getattr(spec, kind) != getattr(other, kind):
            yield f"the {kind} are {', '.join(getattr(other, kind))}, not {', '.join(getattr(spec, kind))}"
    for name in ("action_mask", "action_uses", "exploratory_kinds", "action_places"):
        if getattr(spec, name) != getattr(other, name):
            yield f"{name} is {getattr(other, name)!r}, not {getattr(spec, name)!r}"
