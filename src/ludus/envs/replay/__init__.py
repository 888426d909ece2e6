"""Replays: small files from which any recorded game of any world can be played again, bit for bit."""

from ludus.envs.replay.file import Replay
from ludus.envs.replay.playback import replay_env, resimulate, verify_replay
from ludus.envs.replay.recorder import ReplayRecorder

__all__ = ["Replay", "ReplayRecorder", "replay_env", "resimulate", "verify_replay"]
