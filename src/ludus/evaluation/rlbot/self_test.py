"""Replays the packets of a recording to an agent, and compares what it sees and chooses with what was recorded."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ludus.core.errors import ReplayDivergedError
from ludus.envs.rocket.config import RocketConfig
from ludus.envs.rocket.decoder import Controls
from ludus.envs.rocket.observation import LAYOUTS
from ludus.envs.rocket.rlbot.flat import pad_order
from ludus.envs.rocket.rlbot.pilot import Decision, Pilot
from ludus.envs.rocket.rlbot.scribe import FIELD
from ludus.evaluation.rlbot.deciding import ACTION_TOLERANCE, AgentDecider
from ludus.evaluation.rlbot.recording import Choice, Scene
from ludus.policies.agent import Agent

# Angles of packets have 32 bits, and a rotation is computed from them by the host's own sine and cosine.
OBSERVATION_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What was compared, and found equal.

    Attributes:
        packets: Packets that were replayed, to each of the watched players.
        decisions: Observations that were compared.
        actions: Of these, how many actions were: those that were no near draw.
        difference: Largest difference of a value of an observation.
    """

    packets: int
    decisions: int
    actions: int
    difference: float


def run_self_test(agent: Agent, config: RocketConfig, scenes: Sequence[Scene]) -> SelfTest:
    """Replays all scenes to an agent.

    Raises:
        ReplayDivergedError: An observation, an action or controls came out otherwise, or nothing could be compared.
    """
    packets, decisions, actions, difference = 0, 0, 0, 0.0
    for scene in scenes:
        for index in sorted({choice.index for choice in scene.choices}):
            expected = [choice for choice in scene.choices if choice.index == index]
            made, held = _replay(agent, config, scene, index)
            difference = max(difference, _compare(config, scene, expected, made))
            if scene.driven:
                _compare_controls(config, scene, expected, held)
            packets, decisions = packets + len(scene.packets), decisions + len(made)
            actions += sum(choice.clear for choice in expected)
    if not actions:
        raise ReplayDivergedError("the recording holds no clear action to compare; export the agent again")
    return SelfTest(packets, decisions, actions, difference)


def _replay(agent: Agent, config: RocketConfig, scene: Scene, index: int) -> tuple[list[Decision], list[Controls]]:
    """Returns the decisions of one player, and the controls that answer each packet."""
    pilot = Pilot(config, AgentDecider(agent, deterministic=True), index, pad_order(FIELD), latency_ticks=0)
    made, held = list[Decision](), list[Controls]()
    for packet in scene.packets:
        held.append(pilot.controls(packet))
        made += [pilot.decision] if pilot.decision is not None else []
    return made, held


def _compare_controls(config: RocketConfig, scene: Scene, expected: Sequence[Choice], held: Sequence[Controls]) -> None:
    """What a driver holds must be in the packets that follow, unless it was decided by a near draw."""
    unclear = {choice.frame for choice in expected if not choice.clear}
    for controls, packet in zip(held, scene.packets[1:], strict=False):
        pressed = packet.players[expected[0].index].last_input
        decided = range(packet.frame_num - 2 * config.ticks, packet.frame_num)  # with the longest input delay
        same = np.allclose(np.array(controls, float), np.array(pressed, float), rtol=0.0, atol=ACTION_TOLERANCE)
        if not same and unclear.isdisjoint(decided):
            raise ReplayDivergedError(
                f"scene {scene.name!r}, frame {packet.frame_num}, player {expected[0].index}: the controls are "
                f"{controls}, but {pressed} were recorded; actions are decoded or held otherwise than in training"
            )


def _compare(config: RocketConfig, scene: Scene, expected: Sequence[Choice], made: Sequence[Decision]) -> float:
    """Returns the largest difference of the observations, if all is equal."""
    frames, recorded_frames = [each.frame for each in made], [each.frame for each in expected]
    if frames != recorded_frames:
        raise ReplayDivergedError(
            f"scene {scene.name!r}: decisions at the frames {frames} instead of {recorded_frames}; "
            "time is counted otherwise than in training"
        )
    names, most = [field.name for field in LAYOUTS[config.observation].fields], 0.0
    for decision, choice in zip(made, expected, strict=True):
        place = f"scene {scene.name!r}, frame {choice.frame}, player {choice.index}"
        recorded = np.array(choice.observation, np.float32)
        if recorded.shape != decision.observation.shape:
            raise ReplayDivergedError(f"{place}: {len(decision.observation)} values, but {len(recorded)} were recorded")
        differences = np.nan_to_num(np.abs(decision.observation - recorded), nan=np.inf)
        worst = int(differences.argmax())
        if differences[worst] > OBSERVATION_TOLERANCE:
            raise ReplayDivergedError(
                f"{place}: {names[worst]} is {decision.observation[worst]:.6g}, but {recorded[worst]:.6g} was "
                "recorded; the observation is not that of training: install the ludus that made this folder"
            )
        action = np.atleast_1d(decision.action).astype(float)
        close = action.shape == (len(choice.action),) and np.abs(action - choice.action).max() <= ACTION_TOLERANCE
        if choice.clear and not close:
            raise ReplayDivergedError(
                f"{place}: the action is {action.tolist()}, but {list(choice.action)} was recorded; "
                "the agent is not the one that was exported"
            )
        most = max(most, float(differences[worst]))
    return most
