"""The settings of a policy."""

import json
import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ludus.core.schedules import ConstantSchedule, ShareScheduleConfig, Widths
from ludus.nn.cnn import CnnConfig
from ludus.nn.distributions import Squash
from ludus.nn.heads import SpatialConfig
from ludus.nn.mlp import ActivationName
from ludus.nn.recurrent import RecurrentConfig
from ludus.nn.strategy import StrategyConfig
from ludus.policies.user_module import MODULE_PATTERN, find_network

MAX_SETTINGS = 2**20  # letters of settings as JSON


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class NetArch(_Frozen):
    """Hidden layers of the actor and of the critic.

    Attributes:
        pi: Widths of the actor's layers.
        vf: Widths of the critic's layers.
    """

    pi: Widths = (64, 64)
    vf: Widths = (64, 64)


class NormalizationConfig(_Frozen):
    """Normalization by running statistics.

    Attributes:
        observations: Whether to normalize vector observations; pictures are only scaled to 0..1.
        returns: Whether to divide rewards by the standard deviation of the discounted return.
        clip: Largest absolute value of a normalized number.
    """

    observations: bool = False
    returns: bool = False
    clip: float = Field(default=10.0, gt=0.0, le=1e6)


class ExplorationConfig(_Frozen):
    """How often other actions are played than the policy's own, while experience is collected.

    The learner knows the exact probability of every action under this mixture. Evaluations play without it.

    Attributes:
        frequency: Share of decisions that play an exploratory action: a number, or a schedule over training progress.
        random_frequency: Share of these that play any allowed action; the others play the kinds that the world names
            for exploring (`EnvSpec.actions.exploratory`), all kinds if it names none.
    """

    frequency: ShareScheduleConfig = ConstantSchedule(level=0.3)
    random_frequency: ShareScheduleConfig = ConstantSchedule(level=0.2)


def _without_folder(name: str) -> str:
    """Return the name of a network without the folder of its file: agents are loaded elsewhere, and folders tell."""
    if re.fullmatch(MODULE_PATTERN, name) is None:
        raise ValueError("must be my_file.py:MyNet or package.module:MyNet, a class of a plugin (--plugin my_file.py)")
    source, _, qualname = name.rpartition(":")
    return f"{PureWindowsPath(PurePosixPath(source).name).name}:{qualname}"


def _as_json(arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(arguments, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"must be values that JSON can hold: {error}") from error
    if len(text) > MAX_SETTINGS:
        raise ValueError(f"are {len(text)} letters as JSON; at most {MAX_SETTINGS} are allowed")
    return dict(json.loads(text))


class PolicyConfig(_Frozen):
    """What a policy is made of; every part but the two heads is optional.

    Attributes:
        net_arch: Hidden layers of actor and critic.
        activation: Activation of all hidden layers.
        encoder: Hidden layers of the encoder of each vector entry; none by default.
        cnn: The network for pictures.
        spatial: The spatial head for worlds whose actions aim at cells of a map (`EnvSpec.actions.places`); None treats
            the map as any other picture and chooses cells by their numbers.
        strategy: The opponent-strategy encoder; None for none.
        recurrent: The recurrent memory; None for none.
        orthogonal: Whether to initialize weights orthogonally with zero bias.
        log_std: Initial log standard deviation of continuous actions.
        state_dependent_exploration: Whether continuous actions use generalized state-dependent exploration (gSDE).
        squash: How continuous actions are squashed into their bounds: `stochastic` with a spread that depends on the
            state, `deterministic` without one. A run's `algorithm` sets it; None is the plain Gaussian of PPO.
        exploration: Exploratory actions while experience is collected, for Discrete and MultiDiscrete actions; None
            plays the policy's own actions only.
        sees_action_mask: Whether the networks see the mask of allowed actions, where the world has one.
        normalize: Normalization of observations and returns.
        canonical: Whether the networks see every view from the same side, for worlds whose mirror tells the side
            (`Mirror.side`) and MultiBinary actions: mirrored views are turned, and their actions turned back.
        module: The user's own network in the place of `encoder`, `cnn` and `spatial`: `my_file.py:MyNet`, a class of a
            plugin (`--plugin my_file.py`), or `package.module:MyNet`; see `docs/howto/own-network.md`. None takes
            Ludus's own.
        module_kwargs: Keyword arguments of that class, after the `EnvSpec`.
        dropout: Dropout probability of actor, critic, encoders and strategy transformer, in updates only.
        bfloat16: Whether to use bfloat16 autocast on a CUDA device, in all layers but the last of actor and critic;
            parameters stay float32, and so does everything on a CPU.
    """

    net_arch: NetArch = NetArch()
    activation: ActivationName = "tanh"
    encoder: Widths = ()
    cnn: CnnConfig = CnnConfig()
    spatial: SpatialConfig | None = SpatialConfig()
    strategy: StrategyConfig | None = None
    recurrent: RecurrentConfig | None = None
    orthogonal: bool = True
    log_std: float = Field(default=0.0, ge=-20.0, le=20.0)
    state_dependent_exploration: bool = False
    squash: Squash | None = None
    exploration: ExplorationConfig | None = None
    sees_action_mask: bool = False
    normalize: NormalizationConfig = NormalizationConfig()
    canonical: bool = False
    module: Annotated[str, Field(max_length=255), AfterValidator(_without_folder)] | None = None
    module_kwargs: Annotated[dict[str, Any], AfterValidator(_as_json)] = Field(default_factory=dict)
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    bfloat16: bool = False

    @property
    def latent_modulates(self) -> bool:
        """Whether the strategy latent also scales and shifts the hidden units of actor and critic.

        So it does where they see the current observation beside it; what an LSTM alone gives them has the latent in it.
        """
        return self.strategy is not None and (self.recurrent is None or self.recurrent.skip)

    @property
    def has_memory(self) -> bool:
        """Whether the policy remembers anything from step to step; ConfigError if its `module` is not loaded."""
        if self.strategy is not None or self.recurrent is not None:
            return True
        return self.module is not None and hasattr(find_network(self.module), "initial_state")
