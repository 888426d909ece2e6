"""Agents whose weights are NaN, or so large that their decisions are: every command that plays one refuses it."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.store import load_checkpoint, save_checkpoint

Run = Callable[..., tuple[int, str, str]]
MakeAgent = Callable[..., Path]
COMMANDS: dict[str, tuple[object, ...]] = {
    "eval": ("eval", "AGENT", "--matches", 2, "--against", "constant"),
    "demo": ("demo", "AGENT", "--against", "constant"),
    "benchmark": ("benchmark", "AGENT", "--matches", 2),
    "tournament": ("tournament", "AGENT", "constant", "--matches", 2),
    "analyze": ("analyze", "AGENT", "--against", "constant,idle", "--matches", 4),
    "export": ("export", "AGENT", "--out", "agent.ludus"),
    "share": ("share", "AGENT", "--out", "page.html"),
    "play": ("play", "brawl", "--against", "AGENT"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("value", ["nan", "huge"])
def test_an_agent_that_is_nan_is_refused_with_an_exit_code(
    command: str, value: str, run: Run, make_agent: MakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command == "share" and importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs the extra `web`: pip install ziglang")
    folder = make_agent("brawl", step_limit=60) / "checkpoints" / "best"
    checkpoint = load_checkpoint(folder)
    for tensor in checkpoint.tensors["policy"].values():
        tensor.fill_(float("nan") if value == "nan" else 3e38)
    agent = tmp_path / "agent"
    save_checkpoint(agent, checkpoint)
    monkeypatch.chdir(tmp_path)
    code, _, error = run(*(agent if word == "AGENT" else word for word in COMMANDS[command]))
    assert code != 0
    assert "NaN" in error
