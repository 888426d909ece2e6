"""`ludus.evaluate`: the evaluation of an agent, or of the path of one, for programs and notebooks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ludus.evaluation import duels
from ludus.evaluation.contenders import load_agent
from ludus.evaluation.duels import MOST_GAMES, Evaluation
from ludus.policies.agent import Agent


def evaluate(
    agent: str | Path | Agent,
    opponents: Sequence[str | Path] | str | Path | None = None,
    *,
    trials: Sequence[str] | None = None,
    modes: Mapping[str, Mapping[str, Any]] | None = None,
    matches: int = 400,
    seed: int = 0,
    device: str | torch.device | None = None,
    config: Mapping[str, Any] | None = None,
    deterministic: bool = False,
    max_games: int = MOST_GAMES,
) -> Evaluation:
    """Plays an agent against opponents, or in trials, and returns how it did; equal seeds give equal numbers on a CPU.

    Args:
        agent: A loaded agent, the folder of a run, whose best agent is meant, or of a checkpoint, or a file of
            `ludus export`.
        opponents: Bots of the world and paths of agents, or a single one; every bot of the world if None.
        trials: Names of trials, in a world of one team that has some; all of them if None, and none but the settings as
            they are if empty.
        modes: Named settings in the place of the others', such as `{"2v2": {"blue": 2, "orange": 2}}`; all matches
            are played in each of them.
        matches: Against each opponent in each mode; episodes in each trial.
        seed: Of everything.
        device: Where to play; for a path `cpu` if None, for a loaded agent where it is.
        config: Settings of the world; those that the agent was trained with if None.
        deterministic: Whether agents take their most likely action instead of drawing one.
        max_games: Most games in a batch; more matches are played in several batches.

    Raises:
        ConfigError: There is no such agent or opponent, or a number is out of range.
        UnknownNameError: A trial is unknown.
        CheckpointError: A file of an agent is damaged, hostile or no agent's.
        StateError: An opponent is for another world.
    """
    loaded = agent if isinstance(agent, Agent) else load_agent(agent, "cpu" if device is None else device)
    named = [opponents] if isinstance(opponents, str | Path) else opponents
    return duels.evaluate(
        loaded,
        None if named is None else [str(name) for name in named],
        trials=trials,
        modes=modes,
        matches=matches,
        seed=seed,
        device=device,
        config=config,
        deterministic=deterministic,
        max_games=max_games,
    )
