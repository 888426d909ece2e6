"""Networks of users on the command line: `--plugin FILE` makes them known, and errors name the flag."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]
NETWORK = """
from torch import nn

class MyNet(nn.Module):
    def __init__(self, spec, width=8):
        super().__init__()
        self.layer = nn.Linear(sum(entry.shape[0] for entry in spec.observation_space.values()), width)

    def initial_state(self, rows):
        return {"sum": self.layer.weight.new_zeros(rows, self.layer.out_features)}

    def forward(self, observations, state):
        (vector,) = observations.values()
        total = 0.5 * state["sum"] + self.layer(vector)
        return total, {"sum": total}
"""
TINY = (
    "world.num_envs=4", "total_env_steps=128", "ppo.n_steps=16", "ppo.batch_size=32", "ppo.n_epochs=1",
    "monitoring.tensorboard=false", "monitoring.curves=false", "evaluation=null", "world.device=cpu",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nets").mkdir()
    Path("nets/my_net.py").write_text(NETWORK, encoding="utf-8")


def test_train_evaluate_and_export(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ("policy.module=nets/my_net.py:MyNet", "policy.module_kwargs={width: 5}")
    asked = ("train", "identity", "--run-dir", "mine", *module)
    code, _, error = run(*asked, *TINY)
    assert code == 2
    assert "--plugin my_net.py" in error
    assert not Path("mine").exists()
    plugin = ("--plugin", "nets/my_net.py")
    code, out, error = run(*asked, *plugin, *TINY)
    assert code == 0, error
    assert "network my_net.py:MyNet" in out
    assert run("eval", "mine", "--matches", 2, *plugin)[0] == 0
    code, out, _ = run("export", "mine", "--out", "mine.ludus", "--card", "mine.md", *plugin)
    assert code == 0
    assert "ludus eval mine.ludus --plugin nets/my_net.py" in out
    assert "network `my_net.py:MyNet`" in Path("mine.md").read_text(encoding="utf-8")
    monkeypatch.setattr("ludus.rewards.plugins._LOADED", {})
    monkeypatch.delitem(sys.modules, "my_net")
    code, _, error = run("eval", "mine.ludus", "--matches", 2)
    assert code == 2
    assert "'my_net.py:MyNet' is not loaded: pass --plugin my_net.py" in error
