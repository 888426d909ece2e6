"""The program that tries a body of the user's own first: MuJoCo reads, compiles and steps it within limits.

MuJoCo's compiler allocates and computes whatever a file asks for, and some files end its process. This file is started
by its path and imports nothing of the package, so that it is up in half a second; what passes here is compiled again by
the process that needs it. Standard input is a line of JSON (`Trial`), then the assets one after another; the last line
of standard output is a JSON text: what is wrong with the body, or nothing.
"""

import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict

# Beyond what the process has when MuJoCo is loaded: a mesh takes 22 times the size of its STL file.
MEMORY_BYTES = 448 << 20
MEMORY_PER_ASSET_BYTE = 25
CPU_S = 10
# Names of an `MjModel`. A humanoid with hands has 50 degrees of freedom and some 200 geoms.
LARGEST = MappingProxyType({"nbody": 1_000, "ngeom": 2_000, "nv": 256, "nbuffer": 256 << 20, "narena": 128 << 20})
STEP_S = 1.0  # CPU time of one physics step; that of a walker takes 50 us
_LONGEST_FAULT = 300


class Trial(TypedDict):
    """What is tried."""

    path: list[str]  # where Python finds MuJoCo
    text: str  # MJCF
    assets: dict[str, int]  # sizes in bytes by name


def main() -> None:
    """Try the body that standard input describes and print its fault."""
    trial: Trial = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = trial["path"]
    import mujoco

    log = mujoco.MjLogConfig.get()
    log.logto_console = log.logto_file = False
    mujoco.MjLogConfig.set(log)
    _limit(memory_bytes(trial))
    assets = {name: sys.stdin.buffer.read(size) for name, size in trial["assets"].items()}
    # Its own line, because MuJoCo prints to standard output too.
    print("\n" + json.dumps(_fault(mujoco, trial["text"], assets)), flush=True)


def memory_bytes(trial: Trial) -> int:
    """Return how much memory a body may take."""
    return MEMORY_BYTES + MEMORY_PER_ASSET_BYTE * sum(trial["assets"].values())


def _limit(most_bytes: int) -> None:
    """Bound memory and CPU time as far as the platform can; the parent bounds the time everywhere."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        used = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (used + CPU_S, used + CPU_S))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        memory = pages * resource.getpagesize() + most_bytes
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _fault(mujoco: Any, text: str, assets: dict[str, bytes]) -> str:  # noqa: ANN401 - loaded from the parent's path
    what = "is no MJCF that MuJoCo can read"
    try:
        spec = mujoco.MjSpec.from_string(text, assets=assets)
        what = "cannot be compiled"
        model = spec.compile()
        for name, most in LARGEST.items():
            if (size := int(getattr(model, name))) > most:
                return f"is too large: its {name} is {size}; at most {most} is allowed"
        what = "cannot be simulated"
        data = mujoco.MjData(model)
        begun = time.process_time()
        mujoco.mj_step(model, data)
        if (taken := time.process_time() - begun) > STEP_S:
            return f"is too slow: a step of its physics takes {taken:.1f} s; at most {STEP_S:g} s is allowed"
    except MemoryError:
        return f"{what}: it takes too much memory"
    except Exception as error:  # whatever MuJoCo makes of it: ValueError, FatalError, RuntimeError without memory
        return f"{what}: {' '.join(str(error).split())[:_LONGEST_FAULT]}"
    return ""


if __name__ == "__main__":
    main()
