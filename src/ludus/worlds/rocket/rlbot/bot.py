"""Play as a bot of RLBot v5, offline; `python bot.py --self-test` only replays recorded packets.

`--plugin FILE` loads the user's own network, for an agent that has one.

This file is copied into the folder of each bot and loads the agent from there. Everything else is in the package
`ludus`, so observations and actions are those of training.
"""

import argparse
import sys
import tomllib
from pathlib import Path
from typing import Any

import torch

from ludus.core.errors import LudusError, MissingDependencyError
from ludus.core.text import plain_text
from ludus.rewards.plugins import load_plugin
from ludus.worlds.rocket.rlbot.folder import check_folder, load_folder
from ludus.worlds.rocket.rlbot.packet import pad_order, read_packet, read_pads
from ludus.worlds.rocket.rlbot.pilot import AgentDecider, Pilot

FOLDER = Path(__file__).resolve().parent


def run_bot() -> None:
    """Connect to RLBot, which has started this program, and play until the match is over."""
    try:
        from rlbot.flat import ControllerState
        from rlbot.managers import Bot
    except ImportError:
        raise MissingDependencyError("rlbot 2", "rlbot", "playing in RLBot") from None
    torch.set_num_threads(1)  # leave the other cores to the game
    loaded = load_folder(FOLDER)

    class LudusBot(Bot):  # type: ignore[misc,unused-ignore]  # the package is optional
        """The agent of this folder in one car."""

        def initialize(self) -> None:
            """Take the car once the field is known."""
            decider = AgentDecider(loaded.agent, deterministic=loaded.settings.deterministic)
            self.pilot = Pilot(loaded.config, decider, self.index, pad_order(read_pads(self.field_info)))

        def get_output(self, packet: Any) -> Any:  # noqa: ANN401 - flat types of RLBot
            """Answer a packet."""
            return ControllerState(*self.pilot.controls(read_packet(packet)))

    settings = tomllib.loads((FOLDER / "bot.toml").read_text(encoding="utf-8"))["settings"]
    LudusBot(settings["agent_id"]).run(wants_match_communications=False, wants_ball_predictions=False)


def main() -> int:
    """Test the folder, then play unless only the test was asked for; return the exit code."""
    parser = argparse.ArgumentParser(description="Play as a bot of RLBot v5, offline.")
    parser.add_argument("--self-test", action="store_true", help="only replay recorded packets")
    parser.add_argument("--plugin", action="append", default=[], help="Python file or module with the agent's network")
    arguments = parser.parse_args()
    try:
        for plugin in arguments.plugin:
            load_plugin(plugin)
        tested = check_folder(FOLDER)
        sys.stdout.write(
            f"[OK] {tested.packets} packets replayed: {tested.decisions} observations equal "
            f"(to {tested.difference:.1g}), {tested.actions} actions equal\n"
        )
        if not arguments.self_test:
            run_bot()
    except LudusError as error:
        sys.stderr.write(plain_text(f"[ERROR] {error}\n"))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
