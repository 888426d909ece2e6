"""Tests of video writing, with the file read back by ffmpeg itself."""

import re
import subprocess
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, VideoError
from ludus.evaluation.video import VideoWriter


def frame(step: int, size: tuple[int, int] = (64, 48)) -> NDArray[np.uint8]:
    """A grey picture with a red left half, the brighter the later."""
    picture = np.full((size[1], size[0], 3), 20 * step, np.uint8)
    picture[:, : size[0] // 2] = (200, 30, 30)
    return picture


def probe(path: Path) -> str:
    """What ffmpeg says about a file after reading all of it."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-i", str(path), "-f", "null", "-"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def decode(path: Path, size: tuple[int, int]) -> NDArray[np.uint8]:
    """All frames of a file, `(frames, height, width, 3)`."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", "-i", str(path)]
    command += ["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, size[1], size[0], 3)


def encoders() -> list[psutil.Process]:
    """The running ffmpeg processes of this one."""
    ffmpeg = Path(imageio_ffmpeg.get_ffmpeg_exe()).name[:15]  # as much of a name as Linux keeps
    children = psutil.Process().children()  # others may run too, such as a tracker of shared memory
    return [child for child in children if child.status() != psutil.STATUS_ZOMBIE and child.name()[:15] == ffmpeg]


def test_an_mp4_has_every_frame_in_its_size_rate_and_colours(tmp_path: Path) -> None:
    path = tmp_path / "odd: name, with 100%.mp4"
    with VideoWriter(path, (64, 48), 30.0) as video:
        for step in range(10):
            video.write(frame(step))
    assert video.frames == 10
    report = probe(path)
    assert "h264" in report
    assert "yuv420p" in report
    assert "64x48" in report
    assert "30 fps" in report
    frames = decode(path, (64, 48))
    assert frames.shape[0] == 10
    for step in (0, 9):
        assert np.abs(frames[step, 24, 12].astype(int) - [200, 30, 30]).max() < 12
        assert np.abs(frames[step, 24, 52].astype(int) - 20 * step).max() < 12
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_odd_sizes_are_padded(tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "odd.mp4", (63, 47), 30.0) as video:
        video.write(frame(3, (63, 47)))
    assert "64x48" in probe(tmp_path / "odd.mp4")


def test_a_gif_is_smaller_slower_and_has_the_right_colours(tmp_path: Path) -> None:
    path = tmp_path / "short.gif"
    with VideoWriter(path, (1280, 720), 30.0) as video:
        for step in range(12):
            video.write(frame(step, (1280, 720)))
    assert path.read_bytes()[:6] == b"GIF89a"
    report = probe(path)
    assert "640x360" in report
    assert re.search(r"frame=\s*6\b", report)  # half of 12
    assert video.frames == 6
    frames = decode(path, (640, 360))
    assert np.abs(frames[0, 180, 100].astype(int) - [200, 30, 30]).max() < 12
    assert [file.name for file in tmp_path.iterdir()] == ["short.gif"]


@pytest.mark.parametrize(("rate_hz", "given", "kept"), [(30.0, 21, 11), (60.0, 21, 6), (40.0, 20, 7), (15.0, 5, 5)])
def test_a_gif_counts_the_frames_in_the_file(tmp_path: Path, rate_hz: float, given: int, kept: int) -> None:
    with VideoWriter(tmp_path / "short.gif", (64, 48), rate_hz) as video:
        for step in range(given):
            video.write(frame(step % 10))
    assert video.frames == kept
    assert len(decode(tmp_path / "short.gif", (64, 48))) == kept


def test_a_small_gif_keeps_its_size(tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "small.gif", (64, 48), 10.0) as video:
        for step in range(3):
            video.write(frame(step))
    assert "64x48" in probe(tmp_path / "small.gif")


@pytest.mark.parametrize("name", ["fails.mp4", "fails.gif"])
def test_a_failing_block_leaves_nothing_and_keeps_the_old_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"the old one")
    video = VideoWriter(tmp_path / name, (64, 48), 30.0)

    def fail() -> None:
        with video:
            video.write(frame(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"the old one"
    psutil.wait_procs(encoders(), timeout=60)  # it is killed, which takes a moment
    assert encoders() == []


def test_until_it_is_complete_the_file_has_another_name(tmp_path: Path) -> None:
    path = tmp_path / "whole.mp4"
    with VideoWriter(path, (64, 48), 30.0) as video:
        video.write(frame(1))
        assert not path.exists()
    assert path.exists()


def test_when_ffmpeg_dies_the_error_says_so_and_nothing_stays(tmp_path: Path) -> None:
    def write_on() -> None:
        with VideoWriter(tmp_path / "dies.mp4", (640, 480), 30.0) as video:
            (process,) = encoders()
            process.kill()
            for step in range(1000):
                video.write(frame(step % 10, (640, 480)))

    with pytest.raises(VideoError, match=r"dies\.mp4"):
        write_on()
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_is_not_ffmpeg_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(tmp_path / "missing"))
    with pytest.raises(VideoError, match="IMAGEIO_FFMPEG_EXE"):
        VideoWriter(tmp_path / "none.mp4", (64, 48), 30.0)


def test_wrong_frames_names_and_uses_are_typed_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.mp4, \.gif, got '\.avi'"):
        VideoWriter(tmp_path / "a.avi", (64, 48), 30.0)
    with pytest.raises(ConfigError, match="missing"):
        VideoWriter(tmp_path / "missing" / "a.mp4", (64, 48), 30.0)
    with pytest.raises(VideoError, match=r"empty\.mp4"):
        VideoWriter(tmp_path / "empty.mp4", (64, 48), 30.0).close()
    video = VideoWriter(tmp_path / "a.mp4", (64, 48), 30.0)
    with pytest.raises(VideoError, match=r"\(48, 64, 3\).*\(10, 64, 3\)"):
        video.write(np.zeros((10, 64, 3), np.uint8))
    with pytest.raises(VideoError, match="float64"):
        video.write(np.zeros((48, 64, 3)))  # type: ignore[arg-type]
    video.write(frame(1))
    video.close()
    with pytest.raises(VideoError, match=r"a\.mp4"):
        video.write(frame(1))
    assert [file.name for file in tmp_path.iterdir()] == ["a.mp4"]
