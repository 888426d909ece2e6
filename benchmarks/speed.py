"""Runs `sim_speed.py` and `learn_speed.py` over the sizes of the tables in docs/, and stores the raw data there.

python benchmarks/speed.py sim --device cpu      # docs/data/brawl_sim_cpu.json
python benchmarks/speed.py sim --device cuda     # docs/data/brawl_sim_h200.json, by the name of the GPU
python benchmarks/speed.py sim --world mimic     # docs/data/mimic_sim_cpu.json, beside Walker2d-v5
python benchmarks/speed.py sim --world rocket    # docs/data/rocket_sim_cpu.json, beside RocketSim
python benchmarks/speed.py learn --device cpu    # docs/data/learn_cpu.json, beside Stable-Baselines3
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE.parent / "docs" / "data"
CPU_GAMES = {"brawl": (1024, 4096, 16384), "mimic": (256, 1024), "rocket": (64, 512, 4096)}
GPU_GAMES = (1024, 4096, 16384, 65536, 262144)


def main() -> None:
    """Measures and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("sim", "learn"))
    parser.add_argument("--world", choices=tuple(CPU_GAMES), default="brawl", help="of `sim`")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement of `sim`")
    parser.add_argument("--repeats", type=int, default=3, help="iterations of each kind of `learn`")
    parser.add_argument("--folder", type=Path, default=DATA)
    options = parser.parse_args()
    device = device_name(options.device)
    if options.what == "sim":
        measured: Any = sim(options.world, options.device, options.seconds)
        place = options.folder / f"{options.world}_sim_{slug(device)}.json"
    else:
        peers = [] if options.device == "cpu" else ["--no-peers"]
        measured = bench("learn_speed.py", "--device", options.device, "--repeats", str(options.repeats), *peers)
        place = options.folder / f"learn_{slug(device)}.json"
    for row in measured if isinstance(measured, list) else [measured]:
        row |= {"device": device, "processor": processor()}
    options.folder.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(measured, indent=1) + "\n")
    print(f"[OK] {place}")


def sim(world: str, device: str, seconds: float) -> list[dict[str, Any]]:
    """Measures the simulator by threads (on a CPU) and games."""
    threads: list[list[str]] = [[]]
    if device == "cpu":
        threads = [["--threads", str(count)] for count in dict.fromkeys((1, os.cpu_count() or 1))]
    sizes = CPU_GAMES[world] if device == "cpu" else GPU_GAMES
    return [
        bench("sim_speed.py", world, "--device", device, "--games", str(games), "--seconds", str(seconds), *words)
        for words in threads
        for games in sizes
    ]


def bench(script: str, *words: str) -> dict[str, Any]:
    """Returns what a script measures in a process of its own."""
    done = subprocess.run([sys.executable, str(HERE / script), *words], check=True, stdout=subprocess.PIPE, text=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def device_name(device: str) -> str:
    """Returns `cpu`, or the name of the GPU."""
    if device == "cpu":
        return device
    import torch

    return torch.cuda.get_device_name(device)


def slug(device: str) -> str:
    """Returns the part of a file's name that stands for a device."""
    return device.removeprefix("NVIDIA ").lower().replace(" ", "-")


def processor() -> str:
    """Returns the name of the processor."""
    lscpu = shutil.which("lscpu")
    if lscpu is None:
        return platform.processor() or platform.machine()
    said = subprocess.run([lscpu], check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
    names = (lines.get("Vendor ID", "").strip(), lines.get("Model name", "").strip())
    return " ".join(name for name in names if name)


if __name__ == "__main__":
    main()
