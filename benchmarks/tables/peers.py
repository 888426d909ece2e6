"""Tables of `benchmarks/peers.py`: beside PufferLib, rlgym and loco-mujoco, on one core."""

from typing import Any

from benchmarks.tables.markdown import read_json, table

_NAMES = {"pufferlib": "PufferLib", "rlgym": "rlgym", "loco-mujoco": "loco-mujoco"}
_README = {
    "pufferlib_ppo": "PPO on CartPole-v1, 64x64, 10 epochs",
    "pufferlib_ppo_one_pass": "the same with one pass over the data",
    "pufferlib_vector": "8 CartPoles with random actions",
    "rlgym_planes": "rocket 1v1, 8 ticks per step (rlgym: plane walls)",
    "loco_mujoco_same_steps": "mimic, 13 joints, 10 physics steps per step",
}
_ALL = {
    "pufferlib_ppo": "PPO on 8 CartPoles, 64x64, 4,096 steps per iteration, batch 256, 10 epochs",
    "pufferlib_ppo_one_pass": "the same with 1 epoch",
    "pufferlib_vector": "8 CartPoles with random actions",
    "pufferlib_gymnasium": "one CartPole without either library, by version of Gymnasium",
    "rlgym_planes": "1v1 with random actions, 8 ticks per step, rlgym between plane walls",
    "rlgym_mesh": "the same, rlgym in a mesh of our arena",
    "loco_mujoco_same_steps": "mimic's `walker-13` in steps of 1 ms, `HumanoidTorque` without arms",
    "loco_mujoco": "mimic as it is by default, the same",
}


def readme() -> str:
    """Returns one line per comparison, for people who compare."""
    data = read_json("peers.json")
    lines = [
        [what, *_rates(data[name]), f"{data[name]['ratio']:.1f}", "`make results-peers`"]
        for name, what in _README.items()
        if name in data
    ]
    return table([f"on one core, {_processors(data)}", "Ludus, steps/s", "peer, steps/s", "ratio", "command"], lines)


def details() -> str:
    """Returns all comparisons with ranges, joints and physics steps."""
    data = read_json("peers.json")
    lines = []
    for name, what in _ALL.items():
        if name in data:
            row = data[name]
            sides = (row["ours"], row["theirs"])
            ranges = [f"{side['steps_per_s_low']:,.0f} - {side['steps_per_s_high']:,.0f}" for side in sides]
            ours, theirs = _rates(row)
            lines.append(
                [
                    what,
                    f"{ours} ({ranges[0]})",
                    f"{theirs} ({ranges[1]})",
                    f"{row['ratio']:.2f}",
                    ", ".join(str(side["joints"]) for side in sides if "joints" in side),
                    ", ".join(_physics_rate(side) for side in sides if "physics_steps" in side),
                ]
            )
    header = [f"one core, {_processors(data)}", "Ludus, steps/s", "peer, steps/s", "ratio"]
    return table([*header, "joints, ours and theirs", "physics steps/s, ours and theirs"], lines)


def _rates(row: dict[str, Any]) -> tuple[str, str]:
    """Returns both rates, that of the peer with its name and version."""
    peer, packages = row["peer"], row["theirs"]["packages"]
    # Two versions of a third library stand beside each other where the peer itself takes no part.
    name = f"{_NAMES[peer]} {packages[peer]}" if peer in packages else f"Gymnasium {packages['gymnasium']}"
    own = "" if peer in packages else f"Gymnasium {row['ours']['packages']['gymnasium']}: "
    return f"{own}{row['ours']['steps_per_s']:,.0f}", f"{name}: {row['theirs']['steps_per_s']:,.0f}"


def _physics_rate(side: dict[str, Any]) -> str:
    return f"{side['physics_steps'] * side['steps_per_s']:,.0f}"


def _processors(data: dict[str, dict[str, Any]]) -> str:
    """Returns the processors on which the comparisons were measured, without trademarks."""
    names = []
    for row in data.values():
        words = row["processor"].replace("(R)", "").replace("(TM)", "").split()
        names.append(" ".join(word for word in words if word not in ("GenuineIntel", "AuthenticAMD", "Processor")))
    return " or ".join(dict.fromkeys(names))
