"""What a report's page needs to draw an episode of `nudge-v1`; `player.js` draws it."""

from ludus.core.files import JSON
from ludus.envs.base import BatchedEnv
from ludus.envs.display import ReplayView, encode_columns


class NudgeLog:
    """Where the marble is, frame by frame."""

    def __init__(self, env: BatchedEnv) -> None:
        self._env, self._rows = env, list[list[float]]()

    def record(self) -> None:
        """Record the marble's place."""
        self._rows.append([float(self._env.snapshot()["place"][0])])

    def content(self) -> dict[str, JSON]:
        """Return the column that the script draws."""
        return {"columns": encode_columns(["place"], self._rows)}


REPLAY_VIEW = ReplayView(NudgeLog, "nudge:player.js")
