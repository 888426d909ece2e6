"""`ludus analyze` for real, on a small agent with a strategy encoder that was trained for a moment."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.training.config import TrainConfig
from ludus.training.loop import train

pytestmark = pytest.mark.train

Run = Callable[..., tuple[int, str, str]]
TINY = {
    "layers": 1,
    "heads": 2,
    "width": 16,
    "feedforward": 16,
    "window": 5,
    "latent": 4,
    "pooling": 8,
    "predict_actions": 0.1,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("runs") / "duel"
    config = {
        "world": {"name": "duel", "num_envs": 8, "device": "cpu"},
        "total_env_steps": 512,
        "opponents": {"rock": 1, "cycle": 1},
        "policy": {"strategy": TINY, "recurrent": {"size": 16}},
        "ppo": {"n_steps": 16, "batch_size": 64, "n_epochs": 1, "sequence_length": 16},
    }
    train(TrainConfig.model_validate(config), folder)
    return folder


def test_the_table_and_the_files(run: Run, trained: Path) -> None:
    code, out, err = run("analyze", trained, "--matches", 6, "--device", "cpu")
    assert code == 0, err
    assert out.isascii()
    lines = out.splitlines()
    assert lines[0].startswith("probe of")
    assert [line.split("  ")[0] for line in lines[1:5]] == [
        "agent's latent", "same, untrained", "current frame", "chance"
    ]  # fmt: skip
    assert "33.3" in lines[4]
    assert any(line.startswith("mean ") for line in lines)
    assert lines[-1].startswith("[OK] 8 pictures and analysis.json in ")
    assert "[WARN] no drift" in err
    assert "analysis: 100 %" in err
    document = json.loads((trained / "analysis" / "analysis.json").read_text())
    assert all(Path(picture).is_file() for picture in document["pictures"])
    assert document["ablation"]["matches"] == 6
    assert lines[-1].endswith("analysis.html")
    page = (trained / "analysis" / "analysis.html").read_text()
    assert document["verdict"][0]["question"] in page
    assert any(line.startswith(document["verdict"][0]["question"]) for line in lines)


def test_json_of_the_memory_in_a_folder_of_choice(run: Run, trained: Path, tmp_path: Path) -> None:
    options = ("--matches", 4, "--features", "memory", "--no-ablation", "--against", "rock", "--against", "cycle")
    code, out, err = run("analyze", trained, *options, "--out", tmp_path / "deep" / "er", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert (document["features"], document["styles"], document["ablation"]) == ("memory", ["rock", "cycle"], None)
    assert (tmp_path / "deep" / "er" / "memory_pca.png").is_file()
    assert (tmp_path / "deep" / "er" / "analysis.html").is_file()


def test_an_agent_without_encoder_is_told_what_to_do(run: Run, make_agent: Callable[[str], Path]) -> None:
    code, _, err = run("analyze", make_agent("duel"))
    assert code == 2
    assert "[ERROR]" in err
    assert "policy.strategy" in err
    assert "policy.strategy or policy.recurrent" in err


def test_a_folder_that_cannot_be_made(run: Run, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = run("analyze", trained, "--matches", 3, "--no-ablation", "--out", tmp_path / "file")
    assert code == 2
    assert f"folder {tmp_path / 'file'} could not be written: File exists" in err


def test_a_checkpoint_is_left_as_it_is(
    run: Run, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint = trained / "checkpoints" / "final"
    before = sorted(checkpoint.iterdir())
    code, _, err = run("analyze", checkpoint, "--matches", 3, "--no-ablation")
    assert code == 0, err
    assert sorted(checkpoint.iterdir()) == before
    assert (tmp_path / "analysis" / "analysis.json").is_file()
