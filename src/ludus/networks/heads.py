"""Chooses the action head that fits an action space."""

from gymnasium import spaces

from ludus.core.errors import UnsupportedError
from ludus.envs.choices import Choices
from ludus.networks.choices import ChoiceHead
from ludus.networks.distributions import (
    ActionHead,
    BernoulliHead,
    CategoricalHead,
    MultiCategoricalHead,
    check_plain,
)
from ludus.networks.gaussian import GaussianHead, StateDependentGaussianHead
from ludus.networks.places import PlaceHead
from ludus.networks.squashed import Squash, SquashedHead


def make_head(
    space: spaces.Space[object],
    latent: int,
    *,
    log_std: float = 0.0,
    state_dependent: bool = False,
    squash: Squash | None = None,
    choices: Choices | None = None,
    place_size: int = 0,
    place_hidden: int = 0,
) -> ActionHead:
    """Makes the head for one seat's actions.

    Args:
        space: The action space of one seat.
        latent: Features that the head is fed.
        log_std: First log standard deviation of continuous actions.
        state_dependent: Whether continuous actions explore as a function of the state.
        squash: How actions are squashed into their bounds, which only continuous ones can be; None does not.
        choices: Of a Discrete or MultiDiscrete space, for a head that knows masks and factors that do not always count;
            None makes a plain one.
        place_size: Features of each place that actions can be aimed at; 0 if places are not seen one by one.
        place_hidden: Hidden features of a place in the head.

    Raises:
        UnsupportedError: The space has no head, or no bounds to squash actions into.
    """
    check_plain(space)
    if squash is not None:
        if not isinstance(space, spaces.Box):
            raise UnsupportedError(f"only continuous actions (Box) can be squashed, not {space}; use algorithm ppo")
        return SquashedHead(latent, space, squash)
    if choices is not None and place_size:
        return PlaceHead(latent, choices, place_size, place_hidden)
    if choices is not None:
        return ChoiceHead(latent, choices)
    if isinstance(space, spaces.Discrete):
        return CategoricalHead(latent, int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return MultiCategoricalHead(latent, space.nvec.tolist())
    if isinstance(space, spaces.MultiBinary):
        return BernoulliHead(latent, int(space.shape[0]))
    head = StateDependentGaussianHead if state_dependent else GaussianHead
    return head(latent, int((space.shape or (0,))[0]), log_std)
