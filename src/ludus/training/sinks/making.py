"""Makes the sinks that a run's settings ask for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from ludus.training.callbacks import Callback
from ludus.training.sinks.config import MonitoringConfig
from ludus.training.sinks.guarded import guarded


def make_sinks(
    config: MonitoringConfig,
    run_folder: Path,
    *,
    total_env_steps: int,
    title: str,
    device: str = "cpu",
    settings: Mapping[str, Any] | None = None,
    stream: TextIO | None = None,
) -> list[Callback]:
    """Makes the sinks, each behind a guard: from here on none of them can stop the run.

    Args:
        config: Which ones.
        run_folder: Where files go.
        total_env_steps: The run's budget.
        title: What is trained, for people.
        device: Of the run, whose use and memory are shown if it is a GPU.
        settings: The run's settings, for W&B to show.
        stream: Where the console writes; None is the standard output.

    Raises:
        ConfigError: The webhook is switched on and the environment holds no address for it.
        MissingDependencyError: W&B is switched on and not installed.
    """
    # Each import only for who asked for it: TensorBoard and rich cost a start tenths of a second each.
    sinks: list[Callback] = []
    if config.console != "off":
        from ludus.training.sinks.console import make_console

        sinks.append(
            make_console(config.console, title=title, total_env_steps=total_env_steps, device=device, stream=stream)
        )
    if config.tensorboard:
        from ludus.training.sinks.tensorboard import TensorBoardSink

        sinks.append(TensorBoardSink(run_folder))
    if config.wandb is not None:
        from ludus.training.sinks.wandb import WandbSink

        sinks.append(WandbSink(config.wandb, run_folder, title=title, settings=settings))
    if config.webhook is not None:
        from ludus.training.sinks.webhook import WebhookSink

        sinks.append(WebhookSink.from_environment(config.webhook, title=title, total_env_steps=total_env_steps))
    if config.resources:
        from ludus.training.sinks.resources import ResourcesSink

        sinks.append(ResourcesSink(run_folder, device))
    if config.curves:
        from ludus.training.sinks.curves import CurvesSink

        sinks.append(CurvesSink(run_folder))
    return [guarded(sink) for sink in sinks]
