"""The settings of a policy."""

from pydantic import BaseModel, ConfigDict, Field

from ludus.networks.cnn import CnnConfig
from ludus.networks.layers import ActivationName
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


class PolicyConfig(_Frozen):
    """What a policy is made of; every part but the two heads is optional.

    Attributes:
        net_arch: Hidden layers of actor and critic.
        activation: Activation of all hidden layers.
        encoder: Hidden layers that each vector entry of the observation passes first; none by default.
        cnn: The network for pictures.
        strategy: The opponent-strategy encoder, or None.
        recurrent: The recurrent memory, or None.
        orthogonal: Whether weights start orthogonal with zero bias.
        log_std: First log standard deviation of continuous actions.
        state_dependent_exploration: Whether continuous actions explore as a function of the state.
        squash: How continuous actions are squashed into their bounds: `stochastic` with a spread that depends on the
            state, `deterministic` without one. A run's `algorithm` sets it; None is the plain Gaussian of PPO.
        normalise: Running normalisation of observations and returns.
        bfloat16: Whether matrix products and caches on a CUDA device use bfloat16 (`torch.autocast`); parameters stay
            float32, and so does everything on a CPU.
    """

    net_arch: NetArch = NetArch()
    activation: ActivationName = "tanh"
    encoder: tuple[int, ...] = ()
    cnn: CnnConfig = CnnConfig()
    strategy: StrategyConfig | None = None
    recurrent: RecurrentConfig | None = None
    orthogonal: bool = True
    log_std: float = 0.0
    state_dependent_exploration: bool = False
    squash: Squash | None = None
    normalise: NormalisationConfig = NormalisationConfig()
    bfloat16: bool = False
