"""An optional library that is not there is named, with the command that installs it."""

import importlib
import sys

import pytest

from ludus.core.errors import MissingDependencyError


@pytest.mark.parametrize(
    ("adapter", "library", "extra"),
    [("pettingzoo_env", "pettingzoo", "pettingzoo"), ("sb3", "stable_baselines3", "sb3")],
)
def test_a_missing_library_is_named(adapter: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name == library or name.startswith(f"{library}."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"ludus.envs.adapters.{adapter}", raising=False)
    with pytest.raises(MissingDependencyError, match=rf'pip install -e ".*\[{extra}\]"'):
        importlib.import_module(f"ludus.envs.adapters.{adapter}")
