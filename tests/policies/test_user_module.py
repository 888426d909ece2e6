"""Names of users' networks: registered classes, plugins and imported modules, and nothing that a file could load."""

import runpy
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from ludus.core.errors import ConfigError
from ludus.policies import register_network
from ludus.policies.config import PolicyConfig
from ludus.policies.user_module import find_network
from ludus.rewards.plugins import load_plugin

SOURCE = """
from torch import nn

class Net(nn.Module):
    def __init__(self, spec):
        super().__init__()

    class Inner(nn.Module):
        def forward(self, observations):
            return observations

NotANet = 3
"""


def write(folder: Path, name: str = "mine.py") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(SOURCE, encoding="utf-8")
    return folder / name


class TopLevel(nn.Module):
    @torch.no_grad()
    def forward(self, observations: object) -> object:
        return observations


class Bare(TopLevel):
    pass


def test_a_class_is_named_by_its_file() -> None:
    assert register_network(TopLevel) == "test_user_module.py:TopLevel"
    assert register_network(TopLevel) == "test_user_module.py:TopLevel"  # as a cell that runs again
    assert find_network("test_user_module.py:TopLevel") is TopLevel
    assert register_network(Bare) == "test_user_module.py:Bare"


def test_a_class_of_a_script_is_named_by_the_script(tmp_path: Path) -> None:
    script = write(tmp_path, "train_mine.py")
    found = runpy.run_path(str(script), run_name="__main__")
    assert register_network(found["Net"]) == "train_mine.py:Net"
    assert find_network("train_mine.py:Net") is found["Net"]


def test_a_plugin_is_found_by_its_file_and_never_loaded_by_a_name(tmp_path: Path) -> None:
    file = write(tmp_path)
    with pytest.raises(ConfigError, match=r"'mine\.py:Net' is not loaded: pass --plugin mine\.py"):
        find_network("mine.py:Net")
    load_plugin(file)
    assert find_network("mine.py:Net").__name__ == "Net"
    assert find_network("mine.py:Net.Inner").__name__ == "Inner"
    with pytest.raises(ConfigError, match=r"no class 'Nett' .*did you mean 'Net'"):
        find_network("mine.py:Nett")
    with pytest.raises(ConfigError, match="no class 'NotANet'"):
        find_network("mine.py:NotANet")


def test_equal_names_of_two_files_are_told_apart(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        load_plugin(write(tmp_path / folder))
    with pytest.raises(ConfigError, match="in several files"):
        find_network("mine.py:Net")
    first, second = (runpy.run_path(str(tmp_path / folder / "mine.py"))["Net"] for folder in ("a", "b"))
    register_network(first)
    with pytest.raises(ConfigError, match=r"two networks are called 'mine\.py:Net'"):
        register_network(second)


@pytest.mark.parametrize("name", ["torch.nn:Linear", "ludus.policies.policy:Policy", "linear.py:Linear"])
def test_a_file_cannot_pick_classes_of_libraries(name: str) -> None:
    with pytest.raises(ConfigError, match="is not loaded"):
        find_network(name)


def test_what_could_not_be_found_again_is_refused() -> None:
    class Local(nn.Module):
        def forward(self, observations: object) -> object:
            return observations

    with pytest.raises(ConfigError, match="inside a function"):
        register_network(Local)
    with pytest.raises(ConfigError, match=r"derived from torch\.nn\.Module"):
        register_network(dict)  # type: ignore[arg-type]


def test_settings_keep_no_folders_and_no_values_beyond_json() -> None:
    assert PolicyConfig(module="nets/mine.py:Net").module == "mine.py:Net"
    assert PolicyConfig(module="C:\\nets\\mine.py:Net").module == "mine.py:Net"
    assert PolicyConfig(module="package.nets:Outer.Net").module == "package.nets:Outer.Net"
    for wrong in ("mine.py", "mine.py:", ":Net", "mine.py:Net()", "nets/:Net"):
        with pytest.raises(ValidationError, match=r"my_file\.py:MyNet"):
            PolicyConfig(module=wrong)
    assert PolicyConfig(module_kwargs={"sizes": (1, 2)}).module_kwargs == {"sizes": [1, 2]}
    with pytest.raises(ValidationError, match="JSON"):
        PolicyConfig(module_kwargs={"activation": nn.ReLU})
