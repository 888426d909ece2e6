"""The settings of what a run shows and where it reports to."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

ConsoleKind: TypeAlias = Literal["auto", "rich", "plain", "off"]
VariableName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _Frozen(BaseModel):
    # An address that was put in the place of a variable's name is refused, and must not be repeated in the error.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class WandbConfig(_Frozen):
    """Reporting to Weights & Biases; the key comes from the environment or from `wandb login`.

    Attributes:
        project: Where runs are gathered.
        mode: `offline` writes into the run folder and uses no network; `wandb sync` uploads it later.
            The variable WANDB_MODE can make an online run `offline` or `disabled`, never the other way.
        entity: User or team; None takes the account's usual one.
        tags: Labels of the run.
    """

    project: str = Field(default="ludus", min_length=1)
    mode: Literal["offline", "online"] = "offline"
    entity: str | None = None
    tags: tuple[str, ...] = ()


class WebhookConfig(_Frozen):
    """Messages to a chat, by a Discord-compatible webhook.

    Attributes:
        address_env: Name of the environment variable that holds the address. The address itself is a secret and
            has no place in a file.
        timeout_s: Time that one message may take.
    """

    address_env: VariableName = "LUDUS_WEBHOOK"
    timeout_s: float = Field(default=5.0, gt=0.0, le=60.0)


class MonitoringConfig(_Frozen):
    """What a run shows and where it reports to; nothing here changes what it learns.

    Attributes:
        console: `auto` is a live view on a terminal and plain lines elsewhere; `rich` and `plain` ask for one of
            them; `off` is silent.
        tensorboard: Whether curves are written for TensorBoard.
        wandb: Reporting to Weights & Biases; None switches it off.
        webhook: Messages to a chat; None switches them off.
        resources: Whether memory and times are written to `resources.csv`, for `ludus doctor`.
        curves: Whether `training_curves.png` is drawn at the end.
        strategy_every_iterations: Iterations between rows of `strategy_analysis.csv`, for policies with a strategy
            encoder.
    """

    console: ConsoleKind = "auto"
    tensorboard: bool = True
    wandb: WandbConfig | None = None
    webhook: WebhookConfig | None = None
    resources: bool = True
    curves: bool = True
    strategy_every_iterations: int = Field(default=10, ge=1)
