"""Write videos with imageio-ffmpeg; a file gets its name only when it is complete.

imageio-ffmpeg neither reports why ffmpeg failed nor whether it did. So ffmpeg writes among the system's temporary
files, the frames in its result are counted, and we copy it to its place ourselves: a full or read-only disk is then an
error of ours, with the path and the reason.
"""

import contextlib
import math
import subprocess
from collections.abc import Generator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, MissingDependencyError, VideoError
from ludus.core.files import temporary_folder, write_chunks_atomic

FORMATS = (".mp4", ".gif")
GIF_RATE_HZ = 15.0
GIF_WIDTH = 640
_CHUNK_BYTES = 1 << 20
_H264 = ("-preset", "veryfast", "-crf", "20", "-movflags", "+faststart")
_EVEN = "pad=ceil(iw/2)*2:ceil(ih/2)*2"  # H.264 halves the colour resolution
_LOSSLESS = ("-preset", "ultrafast", "-qp", "0")
# One palette for all frames, which needs a first pass over them; dithered only where a frame changes.
_GIF = (
    "split[a][b];[a]palettegen=stats_mode=diff:max_colors=128[p];"
    "[b][p]paletteuse=dither=bayer:bayer_scale=4:diff_mode=rectangle"
)


def check_video_path(path: Path | str) -> Path:
    """Return the path if a video can be written there.

    Raises:
        ConfigError: The suffix is not one of `FORMATS`, or the folder does not exist.
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"video {target} must end in one of {', '.join(FORMATS)}, got {target.suffix or 'no suffix'!r}"
        )
    if not target.parent.is_dir():
        raise ConfigError(f"folder {target.parent} of video {target.name} does not exist; make it first")
    return target


class VideoWriter:
    """Writes frames to an mp4 (H.264) or a gif (at most 640 pixels wide and 15 frames per second).

    Use it in a `with` block: at its end the file is complete and gets its name; if the block fails, nothing stays.
    """

    def __init__(self, path: Path | str, size: tuple[int, int], rate_hz: float) -> None:
        """Start ffmpeg.

        Args:
            path: Name of the file; its suffix selects the format.
            size: Width and height of the frames in pixels.
            rate_hz: Frames per second.

        Raises:
            ConfigError: The suffix or the folder is wrong.
            MissingDependencyError: imageio-ffmpeg, which ships ffmpeg, is not installed.
            VideoError: ffmpeg cannot be started.
        """
        self.path, self.size, self.frames = check_video_path(path), size, 0
        self._given = 0
        self._is_gif = self.path.suffix.lower() == ".gif"
        self._every = math.ceil(rate_hz / GIF_RATE_HZ) if self._is_gif else 1  # every second frame, every third: evenly
        with contextlib.ExitStack() as stack:
            self._folder = stack.enter_context(temporary_folder("ludus-video-"))
            self._frames_file = self._folder / "frames.mp4"
            self._writer = self._start(rate_hz / self._every)
            self._cleanup = stack.pop_all()

    def write(self, frame: NDArray[np.uint8]) -> None:
        """Add a frame `(height, width, 3)`.

        Raises:
            VideoError: It has another shape or type, or ffmpeg has failed.
        """
        if frame.shape != (self.size[1], self.size[0], 3) or frame.dtype != np.uint8:
            raise VideoError(
                f"frame of video {self.path.name} must be ({self.size[1]}, {self.size[0]}, 3) uint8, "
                f"got {frame.shape} {frame.dtype}"
            )
        if self._writer is None:
            raise VideoError(f"video {self.path} is closed already")
        self._given += 1
        if (self._given - 1) % self._every:
            return
        try:
            self._writer.send(np.ascontiguousarray(frame))
        except OSError as error:
            raise VideoError(
                f"video {self.path} could not be written: ffmpeg ended after {self.frames} frames"
            ) from error
        self.frames += 1

    def close(self) -> None:
        """Complete the file and give it its name.

        Raises:
            VideoError: No frame was written, or ffmpeg has failed; no file stays.
            StoreError: The file cannot be written.
        """
        try:
            self._finish()
        finally:
            self.abort()

    def abort(self) -> None:
        """Stop ffmpeg and remove everything that has no final name; does nothing after `close`."""
        if self._writer is not None:
            with contextlib.suppress(SystemExit, StopIteration):
                self._writer.throw(SystemExit)  # which kills ffmpeg instead of waiting for it
        self._writer = None
        self._cleanup.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _start(self, rate_hz: float) -> Generator[None, Any, None] | None:
        try:
            from imageio_ffmpeg import write_frames
        except ImportError as error:
            raise MissingDependencyError("imageio-ffmpeg", "window", "writing a video") from error
        start = partial(
            write_frames,
            self._frames_file,
            self.size,
            fps=rate_hz,
            quality=None,
            macro_block_size=1,
            ffmpeg_log_level="quiet",
        )
        try:
            if self._is_gif:
                # The palette needs all frames; a lossless video keeps them on disk instead of in memory.
                scale = f"scale='min({GIF_WIDTH},iw)':-2:flags=area"
                writer = start(codec="libx264rgb", pix_fmt_out="rgb24", output_params=["-vf", scale, *_LOSSLESS])
            else:
                writer = start(codec="libx264", output_params=["-vf", _EVEN, *_H264])
            writer.send(None)
        except (OSError, RuntimeError) as error:
            raise VideoError(f"ffmpeg could not be started: {error}; set IMAGEIO_FFMPEG_EXE to its path") from error
        started: Generator[None, Any, None] = writer
        return started

    def _finish(self) -> None:
        if self._writer is None:
            raise VideoError(f"video {self.path} is closed already")
        if self.frames == 0:
            raise VideoError(f"video {self.path} has no frame")
        self._writer.close()
        self._writer = None
        self._check_frames()
        result = self._write_gif() if self._is_gif else self._frames_file
        with result.open("rb") as stream:
            write_chunks_atomic(self.path, iter(partial(stream.read, _CHUNK_BYTES), b""))

    def _check_frames(self) -> None:
        from imageio_ffmpeg import count_frames_and_secs

        try:
            written, _ = count_frames_and_secs(self._frames_file)
        except RuntimeError as error:
            raise VideoError(f"video {self.path} could not be written: ffmpeg failed") from error
        if written != self.frames:
            raise VideoError(f"video {self.path} could not be written: ffmpeg kept {written} of {self.frames} frames")

    def _write_gif(self) -> Path:
        from imageio_ffmpeg import get_ffmpeg_exe

        result = self._folder / "result.gif"
        arguments = [
            "-y",
            "-nostdin",
            "-loglevel",
            "error",
            "-i",
            self._frames_file,
            "-lavfi",
            _GIF,
            "-loop",
            "0",
            result,
        ]
        done = subprocess.run(  # noqa: S603 - our own argument list, no shell
            [get_ffmpeg_exe(), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        if done.returncode != 0:
            raise VideoError(f"video {self.path} could not be written: ffmpeg: {done.stderr.strip()[:400]}")
        return result
