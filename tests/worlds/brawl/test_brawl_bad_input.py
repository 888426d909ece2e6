"""Bad input: every wrong action, name, setting, mask, seed and snapshot gets a typed error that says what is valid."""

from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError, DeviceError, LudusError, SnapshotError, UnknownNameError
from ludus.envs.registry import make_env
from ludus.envs.warp_tools import struct_views
from ludus.worlds.brawl.kernels.structs import Item, Match, Player

if TYPE_CHECKING:
    from tests.worlds.brawl.conftest import MakeStage, Stage

GOOD = torch.zeros((1, 2, 10), dtype=torch.int8)


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        (torch.zeros((1, 2, 9), dtype=torch.int8), ("(1, 2, 9)", "(1, 2, 10)")),
        (torch.zeros((2, 2, 10), dtype=torch.int8), ("(2, 2, 10)", "(1, 2, 10)")),
        (torch.zeros((1, 10), dtype=torch.int8), ("(1, 10)",)),
        (torch.zeros((1, 2, 10)), ("torch.float32", "torch.int8", "torch.bool")),
        (torch.zeros((1, 2, 10), dtype=torch.int64), ("torch.int64", "torch.int8")),
        (torch.zeros((1, 2, 10), dtype=torch.int8, device="meta"), ("meta", "cpu")),
        (cast("Tensor", GOOD.tolist()), ("list", "torch.as_tensor")),
    ],
)
def test_wrong_actions(stage: "Stage", actions: Tensor, words: tuple[str, ...]) -> None:
    before = stage.env.snapshot()
    with pytest.raises(ActionError) as caught:
        stage.env.step(actions)
    assert all(word in str(caught.value) for word in words)
    assert all(torch.equal(tensor, before[name]) for name, tensor in stage.env.snapshot().items())


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.bool])
def test_every_valid_type_of_actions_means_the_same(stage: "Stage", dtype: torch.dtype) -> None:
    stage.env.step(stage.keys("right").to(dtype))
    assert stage.get(0, "x") == pytest.approx(-5.0 + 6.75 / 30)


def test_any_number_but_zero_is_a_pressed_key(stage: "Stage") -> None:
    stage.env.step(stage.keys("right") * 127)
    assert stage.get(0, "x") == pytest.approx(-5.0 + 6.75 / 30)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (torch.ones(2, dtype=torch.bool), ("(2,)", "(1,)")),
        (torch.ones(1), ("torch.float32", "bool")),
        (torch.ones((1, 1), dtype=torch.bool), ("(1, 1)",)),
        (torch.ones(1, dtype=torch.bool, device="meta"), ("meta", "cpu")),
        (cast("Tensor", [True]), ("list", "bool tensor")),
    ],
)
def test_wrong_masks(stage: "Stage", mask: Tensor, words: tuple[str, ...]) -> None:
    with pytest.raises(ActionError) as caught:
        stage.env.reset(mask)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "7", True])
def test_wrong_seeds(stage: "Stage", seed: Any) -> None:
    with pytest.raises(ConfigError, match="seed"):
        stage.env.reset(seed=seed)
    with pytest.raises(ConfigError, match="seed"):
        make_env("brawl", 1, seed=seed)


def test_a_seed_is_for_all_games(stage: "Stage") -> None:
    with pytest.raises(ActionError, match="games"):
        stage.env.reset(torch.ones(1, dtype=torch.bool), seed=1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"step_limt": 100}, ("step_limt", "did you mean 'step_limit'", "weapon_spawns")),
        ({"step_limit": 29}, ("step_limit", "30", "29")),
        ({"step_limit": "long"}, ("step_limit", "long")),
        ({"step_limit": 100.5}, ("step_limit", "100.5")),
        ({"stocks": 0}, ("stocks", "0")),
        ({"stocks": 100}, ("stocks", "100")),
        ({"threads": 0}, ("threads", "0")),
        ({"reaction_frames": 8}, ("reaction_frames", "step_limit")),
        ({"weapon_spawns": "maybe"}, ("weapon_spawns", "maybe")),
        ({"fixed_weapons": ("fists",)}, ("fixed_weapons",)),
        ({"fixed_weapons": "hammer"}, ("fixed_weapons", "hammer")),
        ({"fixed_weapons": ("fists", "hamer")}, ("hamer", "did you mean 'hammer'", "fists, spear, hammer")),
        ({"move_table": 7}, ("move_table", "7")),
        ({"move_table": "nowhere.yaml"}, ("nowhere.yaml", "no such file")),
        ({"stocks": 0, "step_limit": 0}, ("stocks", "step_limit")),
    ],
)
def test_wrong_settings(settings: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises((ConfigError, UnknownNameError)) as caught:
        make_env("brawl", 1, config=settings)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_unknown_worlds_and_devices() -> None:
    with pytest.raises(UnknownNameError, match="brawl-v1"):
        make_env("brawll")
    with pytest.raises(UnknownNameError, match="brawl-v9"):
        make_env("brawl-v9")
    with pytest.raises(DeviceError, match="cpu, cuda"):
        make_env("brawl", 1, "tpu")
    with pytest.raises(DeviceError, match="cpu or cuda"):
        make_env("brawl", 1, "meta")


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("agressive", UnknownNameError, ("did you mean 'aggressive'", "switcher")),
        ("AGGRESSIVE", UnknownNameError, ("AGGRESSIVE", "constant, random")),
        ("", UnknownNameError, ("constant",)),
        ("based:delay=32", ConfigError, ("32", "0 to 31")),
        ("based:delay=2.5", ConfigError, ("2.5", "whole")),
        ("based:delay=-1", ConfigError, ("-1",)),
        ("based:noise=1.1", ConfigError, ("1.1", "0 to 1")),
        ("based:noise=nan", ConfigError, ("nan",)),
        ("based:nois=0.5", ConfigError, ("did you mean 'noise'", "delay=FRAMES")),
        ("based:noise", ConfigError, ("noise",)),
        ("based:delay=1,delay=2", ConfigError, ("delay", "twice")),
        ("based:script=x.yaml", ConfigError, ("clockwork",)),
        ("clockwork:script=nowhere.yaml", ConfigError, ("nowhere.yaml", "no such file")),
    ],
)
def test_wrong_bots(stage: "Stage", name: str, error: type[LudusError], words: tuple[str, ...]) -> None:
    with pytest.raises(error) as caught:
        stage.env.bots([name])
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("assignment", "actions", "words"),
    [
        (torch.zeros((1, 3), dtype=torch.int32), GOOD, ("assignment", "(1, 2)", "(1, 3)")),
        (torch.zeros((1, 2)), GOOD, ("assignment", "torch.float32", "torch.int32")),
        (torch.zeros((1, 2), dtype=torch.bool), GOOD, ("assignment", "torch.bool")),
        (torch.zeros((1, 2), dtype=torch.int32, device="meta"), GOOD, ("assignment", "meta", "cpu")),
        (torch.tensor([[0, 2]]), GOOD, ("bot 2", "0 to 1", "based, random")),
        (cast("Tensor", [[0, 0]]), GOOD, ("assignment", "list")),
        (torch.zeros((1, 2), dtype=torch.int32), GOOD[:, :1], ("actions", "(1, 1, 10)")),
        (torch.zeros((1, 2), dtype=torch.int32), GOOD.float(), ("actions", "torch.float32", "torch.int8")),
        (torch.zeros((1, 2), dtype=torch.int32), GOOD.to("meta"), ("actions", "meta")),
    ],
)
def test_wrong_assignments(stage: "Stage", assignment: Tensor, actions: Tensor, words: tuple[str, ...]) -> None:
    bots = stage.env.bots(["based", "random"])
    with pytest.raises(ActionError) as caught:
        bots.act(assignment, actions)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_game_that_does_not_exist(stage: "Stage") -> None:
    for game in (1, -1):
        with pytest.raises(ConfigError, match=f"game {game} does not exist; valid: 0 to 0"):
            stage.env.view(game)


@pytest.mark.parametrize("change", ["missing", "extra", "games", "type"])
def test_snapshots_of_another_shape(make_stage: "MakeStage", change: str) -> None:
    env = make_stage(3).env
    snapshot = env.snapshot()
    if change == "missing":
        del snapshot["items"]
    elif change == "extra":
        snapshot["cars"] = torch.zeros(3)
    elif change == "games":
        snapshot = make_stage(4).env.snapshot()
    else:
        snapshot["players"] = snapshot["players"].float()
    with pytest.raises(SnapshotError):
        env.restore(snapshot)


STRUCTS: dict[str, Any] = {"players": Player, "matches": Match, "items": Item}


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("players", "state", 13),
        ("players", "state", -1),
        ("players", "state", 9),  # attacking, but with no move
        ("players", "ground", 3),
        ("players", "weapon", 3),
        ("players", "weapon", -1),
        ("players", "move", 33),
        ("players", "move", -2),
        ("players", "stocks", 4),
        ("players", "stocks", 0),
        ("players", "facing", 0),
        ("players", "home", 1),  # both on one side
        ("players", "x", float("nan")),
        ("players", "damage", float("inf")),
        ("matches", "frame", -1),
        ("matches", "frame", 2700),
        ("items", "weapon", 3),
        ("items", "weapon", 0),
    ],
)
def test_snapshots_with_numbers_that_cannot_be(make_stage: "MakeStage", part: str, field: str, value: float) -> None:
    """Kernels use such numbers as places in arrays: they must never see them."""
    env = make_stage(3).env
    struct_views(env.items, Item)["life"][1, 0] = 100
    struct_views(env.items, Item)["weapon"][1, 0] = 1
    snapshot = env.snapshot()
    env.restore(snapshot)
    struct_views(snapshot[part], STRUCTS[part])[field][1] = value
    before = env.snapshot()
    with pytest.raises(SnapshotError, match="brawl"):
        env.restore(snapshot)
    assert all(torch.equal(tensor, before[name]) for name, tensor in env.snapshot().items())


def test_a_snapshot_of_other_settings_is_refused_where_it_does_not_fit(make_stage: "MakeStage") -> None:
    long, short = make_stage(step_limit=500), make_stage(step_limit=100)
    long.step(frames=150)
    with pytest.raises(SnapshotError, match=r"frame.*150.*0 to 99"):
        short.env.restore(long.env.snapshot())
