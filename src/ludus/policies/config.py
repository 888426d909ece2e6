"""The settings of a policy."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ludus.core.schedules import ConstantSchedule, ScheduleConfig
from ludus.networks.cnn import CnnConfig
from ludus.networks.layers import ActivationName
from ludus.networks.places import PlacesConfig
from ludus.networks.recurrent import RecurrentConfig
from ludus.networks.squashed import Squash
from ludus.networks.strategy import StrategyConfig


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NetArch(_Frozen):
    """Hidden layers of the actor (`pi`) and of the critic (`vf`)."""

    pi: tuple[int, ...] = (64, 64)
    vf: tuple[int, ...] = (64, 64)


class NormalisationConfig(_Frozen):
    """What is normalised by running statistics.

    Attributes:
        observations: Whether vector observations are; pictures are only scaled to 0..1.
        returns: Whether rewards are divided by the standard deviation of the discounted return.
        clip: Largest size of a normalised number.
    """

    observations: bool = False
    returns: bool = False
    clip: float = Field(default=10.0, gt=0.0, le=1e6)


class ExplorationConfig(_Frozen):
    """How often other actions are played than the policy's own, while experience is collected.

    The learner knows the exact probability of every action under this mixture. Evaluations play without it.

    Attributes:
        frequency: Share of the decisions in which an exploratory action is played: a number or a schedule over training
            progress.
        random_frequency: Share of these in which it is any action that is allowed; the others are of the kinds that the
            world names for exploring (`EnvSpec.exploratory_kinds`), all kinds if it names none.
    """

    frequency: ScheduleConfig = ConstantSchedule(level=0.3)
    random_frequency: ScheduleConfig = ConstantSchedule(level=0.2)

    @model_validator(mode="after")
    def _are_shares(self) -> Self:
        for name in ("frequency", "random_frequency"):
            ends = [
                getattr(self, name).value(progress) for progress in (0.0, 1.0)
            ]  # schedules go straight to their end
            if not all(0.0 <= end <= 1.0 for end in ends):
                raise ValueError(f"{name} must lie between 0 and 1 at all times, got {ends[0]:g} to {ends[1]:g}")
        return self


class PolicyConfig(_Frozen):
    """What a policy is made of; every part but the two heads is optional.

    Attributes:
        net_arch: Hidden layers of actor and critic.
        activation: Activation of all hidden layers.
        encoder: Hidden layers that each vector entry of the observation passes first; none by default.
        cnn: The network for pictures.
        places: The networks for a map whose cells actions are aimed at, in worlds that have one
            (`EnvSpec.action_places`); None sees it as any other picture and chooses cells by their numbers.
        strategy: The opponent-strategy encoder, or None.
        recurrent: The recurrent memory, or None.
        orthogonal: Whether weights start orthogonal with zero bias.
        log_std: First log standard deviation of continuous actions.
        state_dependent_exploration: Whether continuous actions explore as a function of the state.
        squash: How continuous actions are squashed into their bounds: `stochastic` with a spread that depends on the
            state, `deterministic` without one. A run's `algorithm` sets it; None is the plain Gaussian of PPO.
        exploration: Actions that are not the policy's own, now and then, where experience is collected; for Discrete
            and MultiDiscrete actions. None plays the policy's own alone.
        sees_action_mask: Whether the mask of allowed actions, where the world has one, is also fed to the networks.
        normalise: Running normalisation of observations and returns.
        bfloat16: Whether matrix products and caches on a CUDA device use bfloat16 (`torch.autocast`); parameters stay
            float32, and so does everything on a CPU.
    """

    net_arch: NetArch = NetArch()
    activation: ActivationName = "tanh"
    encoder: tuple[int, ...] = ()
    cnn: CnnConfig = CnnConfig()
    places: PlacesConfig | None = PlacesConfig()
    strategy: StrategyConfig | None = None
    recurrent: RecurrentConfig | None = None
    orthogonal: bool = True
    log_std: float = 0.0
    state_dependent_exploration: bool = False
    squash: Squash | None = None
    exploration: ExplorationConfig | None = None
    sees_action_mask: bool = False
    normalise: NormalisationConfig = NormalisationConfig()
    bfloat16: bool = False
