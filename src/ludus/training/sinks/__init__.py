"""Sinks: what a run shows and where it reports to; console, TensorBoard, W&B, webhook, curves."""

from typing import TYPE_CHECKING

from ludus.core.lazy import lazy_names
from ludus.training.sinks.config import MonitoringConfig, WandbConfig, WebhookConfig
from ludus.training.sinks.guarded import Guarded, guarded
from ludus.training.sinks.making import make_sinks

if TYPE_CHECKING:
    from ludus.training.sinks.curves import draw_curves as draw_curves

__all__ = [
    "Guarded", "MonitoringConfig", "WandbConfig", "WebhookConfig", "draw_curves", "guarded", "make_sinks",
]  # fmt: skip

__getattr__ = lazy_names(__name__, {"draw_curves": "ludus.training.sinks.curves"})
