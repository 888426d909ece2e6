"""A user's defaults: where they are looked for, what they hold, and that no secret is taken from or shown of them."""

from pathlib import Path

import pytest

from ludus.config import UserDefaults, read_user_defaults, user_defaults_file
from ludus.core.errors import ConfigFileError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home."""
    for name in ("LUDUS_CONFIG", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(home: Path, text: str) -> Path:
    file = home / ".config" / "ludus" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def test_three_places_in_their_order(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_defaults_file() == home / ".config" / "ludus" / "config.yaml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert user_defaults_file() == home / ".config" / "ludus" / "config.yaml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/xdg")
    assert user_defaults_file() == Path("/xdg/ludus/config.yaml")
    monkeypatch.setenv("LUDUS_CONFIG", "mine.yaml")
    assert user_defaults_file() == Path("mine.yaml")
    monkeypatch.setenv("LUDUS_CONFIG", "")
    assert user_defaults_file() == Path("/xdg/ludus/config.yaml")


def test_the_file_is_optional_unless_it_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_user_defaults() == UserDefaults()
    monkeypatch.setenv("LUDUS_CONFIG", str(home / "gone.yaml"))
    with pytest.raises(ConfigFileError, match=r"gone\.yaml:1:1: .*LUDUS_CONFIG"):
        read_user_defaults()


def test_all_keys(home: Path) -> None:
    write(home, "name: Ada\ndevice: cuda\nruns_folder: ~/runs\nwebhook_env: MY_HOOK\nwandb_project: fights\n")
    assert read_user_defaults() == UserDefaults(
        name="Ada", device="cuda", runs_folder=home / "runs", webhook_env="MY_HOOK", wandb_project="fights"
    )


def test_faults_have_their_place(home: Path) -> None:
    file = write(home, "nmae: Ada\ndevice: 3\nruns_folder: ~nobody-of-this-name/runs\nname: ''\n")
    with pytest.raises(ConfigFileError) as caught:
        read_user_defaults()
    assert [str(fault) for fault in caught.value.faults] == [
        f"{file}:1:1: nmae: unknown key (got 'Ada'); did you mean 'name'? "
        "valid: name, device, runs_folder, webhook_env, wandb_project",
        f"{file}:2:9: device: should be text (got 3)",
        f"{file}:3:14: runs_folder: should be a folder whose home is known (got '~nobody-of-this-name/runs')",
        f"{file}:4:7: name: String should have at least 1 character (got '')",
    ]


@pytest.mark.parametrize("address", ["https://discord.com/api/webhooks/1/token", "discord.com/api/webhooks/1/token"])
def test_an_address_is_refused_with_the_reason_and_not_repeated(home: Path, address: str) -> None:
    write(home, f"webhook_env: {address}\n")
    with pytest.raises(ConfigFileError, match="webhook_env") as caught:
        read_user_defaults()
    assert ":1:14: webhook_env: " in str(caught.value)
    assert "token" not in str(caught.value)
    assert "(got" not in str(caught.value)
