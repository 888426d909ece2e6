"""Writing videos: frames go through a pipe into ffmpeg; a file gets its name only when it is complete."""

import math
import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, MissingDependencyError, VideoError
from ludus.core.files import discard_temporary, sync_folder, temporary_path

FORMATS = (".mp4", ".gif")
GIF_RATE_HZ = 15.0
GIF_WIDTH = 640
_CLOSE_TIMEOUT_S = 300.0


def check_video_path(path: Path | str) -> Path:
    """Returns the path if a video can be written there.

    Raises:
        ConfigError: The ending is none of `FORMATS`, or the folder does not exist.
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"video {target} must end in one of {', '.join(FORMATS)}, got {target.suffix or 'no ending'!r}"
        )
    if not target.parent.is_dir():
        raise ConfigError(f"folder {target.parent} of video {target.name} does not exist; make it first")
    return target


class VideoWriter:
    """Writes frames to an mp4 (H.264) or a gif (palette of its own, at most 640 pixels wide and 15 frames a second).

    Use it in a `with` block: at its end the file is complete and gets its name; if the block fails, nothing stays.
    """

    def __init__(self, path: Path | str, size: tuple[int, int], rate_hz: float) -> None:
        """Starts ffmpeg.

        Args:
            path: Name of the file; its ending chooses the format.
            size: Width and height of the frames in pixels.
            rate_hz: Frames a second.

        Raises:
            ConfigError: The ending or the folder is wrong.
            MissingDependencyError: imageio-ffmpeg, which brings ffmpeg, is not installed.
        """
        self.path, self.size, self.frames = check_video_path(path), size, 0
        self._program = _find_ffmpeg()
        self._is_gif = self.path.suffix.lower() == ".gif"
        self._temporary = [temporary_path(self.path)]
        if self._is_gif:
            # The palette needs all frames before the first can be written; a small lossless video keeps them on disk
            # instead of in memory.
            self._temporary += [temporary_path(self.path.with_suffix(end)) for end in (".mp4", ".png")]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as ffmpeg, which writes to it
        self._process = self._start(rate_hz)

    def write(self, frame: NDArray[np.uint8]) -> None:
        """Adds a frame `(height, width, 3)`.

        Raises:
            VideoError: It has another shape or type, or ffmpeg has failed.
        """
        if frame.shape != (self.size[1], self.size[0], 3) or frame.dtype != np.uint8:
            raise VideoError(
                f"frame of video {self.path.name} must be ({self.size[1]}, {self.size[0]}, 3) uint8, "
                f"got {frame.shape} {frame.dtype}"
            )
        if self._process.stdin is None or self._process.stdin.closed:
            raise VideoError(f"video {self.path} is closed already")
        try:
            self._process.stdin.write(np.ascontiguousarray(frame).data)
        except OSError as error:
            raise self._failure() from error
        self.frames += 1

    def close(self) -> None:
        """Completes the file and gives it its name.

        Raises:
            VideoError: No frame was written, or ffmpeg has failed; no file stays.
        """
        try:
            self._finish()
        finally:
            self.abort()

    def abort(self) -> None:
        """Ends ffmpeg and removes everything that has no final name; does nothing after `close`."""
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except OSError:  # what was buffered cannot be written: ffmpeg is gone
                self._process.kill()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._errors.close()
        for path in self._temporary:
            discard_temporary(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _start(self, rate_hz: float) -> "subprocess.Popen[bytes]":
        width, height = self.size
        source = [
            "-f",
            "rawvideo",
            "-pix_fmt",
            "rgb24",
            "-s",
            f"{width}x{height}",
            "-r",
            f"{rate_hz:g}",
            "-i",
            "pipe:0",
        ]
        if self._is_gif:
            slower = rate_hz / math.ceil(rate_hz / GIF_RATE_HZ)  # every second frame, every third: evenly
            scale = f"fps={slower:g},scale='min({GIF_WIDTH},iw)':-2:flags=area"
            sink = ["-vf", scale, "-c:v", "libx264rgb", "-qp", "0", "-preset", "ultrafast", _file(self._temporary[1])]
        else:
            even = "pad=ceil(iw/2)*2:ceil(ih/2)*2"  # H.264 halves the colour resolution
            coding = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p"]
            sink = ["-vf", even, *coding, "-movflags", "+faststart", "-f", "mp4", _file(self._temporary[0])]
        try:
            # A session of its own: Ctrl-C must reach us alone, so that we can clean up.
            return subprocess.Popen(  # noqa: S603 - our own argument list, no shell
                [self._program, "-y", "-loglevel", "error", *source, "-an", *sink],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise VideoError(f"ffmpeg could not be started: {self._program}: {error.strerror}") from error

    def _finish(self) -> None:
        if self._process.stdin is None or self._process.stdin.closed:
            raise VideoError(f"video {self.path} is closed already")
        if self.frames == 0:
            raise VideoError(f"video {self.path} has no frame")
        try:
            self._process.stdin.close()
            code = self._process.wait(_CLOSE_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._failure() from error
        if code != 0:
            raise self._failure()
        if self._is_gif:
            self._write_gif()
        try:
            _sync(self._temporary[0])
            self._temporary[0].replace(self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            raise VideoError(f"video {self.path} cannot be written: {error.strerror}") from error

    def _write_gif(self) -> None:
        result, frames, palette = self._temporary
        self._convert(
            ["-i", _file(frames), "-vf", "palettegen=stats_mode=diff:max_colors=128", "-update", "1", _file(palette)]
        )
        use = "paletteuse=dither=bayer:bayer_scale=4:diff_mode=rectangle"
        self._convert(
            ["-i", _file(frames), "-i", _file(palette), "-lavfi", use, "-loop", "0", "-f", "gif", _file(result)]
        )

    def _convert(self, arguments: list[str]) -> None:
        done = subprocess.run(  # noqa: S603 - our own argument list, no shell
            [self._program, "-y", "-nostdin", "-loglevel", "error", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,
            check=False,
        )
        if done.returncode != 0:
            raise self._failure()

    def _failure(self) -> VideoError:
        self._errors.seek(0)
        said = self._errors.read(4000).decode("utf-8", "replace").strip().replace("\n", "; ")
        return VideoError(f"video {self.path} cannot be written: ffmpeg says: {said or 'nothing'}")


def _find_ffmpeg() -> str:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise MissingDependencyError("imageio-ffmpeg", "window", "writing a video") from error
    try:
        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except RuntimeError as error:
        raise VideoError(f"no ffmpeg was found: {error}; set IMAGEIO_FFMPEG_EXE to its path") from error


def _file(path: Path) -> str:
    """Spells a path for ffmpeg so that a colon in it does not name a protocol."""
    return f"file:{path}"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
