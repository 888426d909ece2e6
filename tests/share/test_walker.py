"""The walker of a page: its physics agrees with MuJoCo, the agent walks in it as in Python, visitors push it."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from benchmarks.browser_parity import run_in_node
from benchmarks.browser_walker import differences, walk_in_page, walk_in_python
from mujoco import rollout
from tests.share.conftest import SMALL_WINDOW

from ludus.core.errors import UnsupportedError
from ludus.envs.registry import make_env
from ludus.policies.agent import Agent
from ludus.share.page import share_agent
from ludus.share.viewer import is_viewer, page_program
from ludus.worlds.mimic.browser import MEASURED, describe, describe_physics
from ludus.worlds.mimic.env import MimicEnv

pytestmark = pytest.mark.compile

CASES = 30
BODIES: dict[str, dict[str, Any]] = {
    "the default": {},
    "thirteen joints with torques on ice, by Euler": {
        "walker": "walker-13", "action": "torque", "friction": 0.2, "integrator": "Euler",
    },
    "a small, weak body with many iterations": {
        "height_m": 1.4, "mass_kg": 40.0, "strength": 0.5, "solver_iterations": 30, "physics_step_s": 0.0025,
    },
}  # fmt: skip
_DECIDE = """async (physics, cases) => {
  const body = new WalkerPhysics(physics);
  return cases.map(({ positions, velocities, controls, force }) => {
    body.set(positions, velocities);
    body.decide(controls, { body: 0, point: [0, 0, 0], force: [...force, 0] });
    const load = body.loads.reduce((sum, each) => sum + each, 0);
    return { state: [...body.positions, ...body.velocities], rows: body.rows, load };
  });
}"""


def _in_node(function: str, *given: object) -> Any:
    """Return what a function gives in node beside `physics.js`, which is no module there."""
    source = (files("ludus.worlds.mimic") / "physics.js").read_text(encoding="utf-8")
    return run_in_node(
        f"async (...given) => {{ const module = undefined; {source}\nreturn ({function})(...given); }}", *given
    )


def _mimic(**settings: Any) -> MimicEnv:
    env = make_env("mimic", 1, config=settings)
    assert isinstance(env, MimicEnv)
    return env


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("body", BODIES)
def test_a_decision_gives_the_state_that_mujoco_gives(body: str) -> None:
    """Feet in the ground, joints beyond their limits, saturated motors and pushes: all within rounding."""
    random = np.random.default_rng(5)
    with _mimic(**BODIES[body]) as env:
        physics, model, walker = describe_physics(env), env.walker.model, env.walker
        data, cases, expected, contacts = mujoco.MjData(model), [], [], 0
        size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        for number in range(CASES):
            env.reset(seed=number)
            start = env.snapshot()[f"mimic-v1/{walker.name}/physics"].numpy()
            assert start.shape == (1, size)
            positions, velocities = start[0, 1 : 1 + model.nq], start[0, 1 + model.nq :]
            positions[2] -= random.uniform(0.0, 0.02)
            positions[7:] += random.normal(0.0, 0.4 if number % 3 == 0 else 0.02, model.nu)
            velocities += random.normal(0.0, 0.5, model.nv)
            controls, force = random.uniform(-1.0, 1.0, model.nu), random.normal(0.0, 100.0, 2)
            substeps = int(physics["substeps"])  # type: ignore[arg-type]
            inputs = np.zeros((1, substeps, model.nu + model.nv))
            inputs[..., : model.nu], inputs[..., model.nu : model.nu + 2] = controls, force
            spec = int(mujoco.mjtState.mjSTATE_CTRL | mujoco.mjtState.mjSTATE_QFRC_APPLIED)
            states, _ = rollout.rollout(model, [data], start, inputs, control_spec=spec, nstep=substeps)
            expected.append(states[0, -1, 1:])
            contacts += data.ncon
            given = {"positions": positions, "velocities": velocities, "controls": controls, "force": force}
            cases.append({name: values.tolist() for name, values in given.items()})
    found = _in_node(_DECIDE, physics, cases)
    np.testing.assert_allclose([each["state"] for each in found], expected, rtol=0.0, atol=1e-9)
    assert contacts > CASES
    assert sum(each["rows"] for each in found) > 4 * CASES  # so that constraints were compared at all
    assert max(each["load"] for each in found) > 100.0


@pytest.fixture(scope="module")
def walker() -> Agent:
    pytest.importorskip("ziglang", reason="needs the extra web: pip install 'ludus-rl[web]'")
    return Agent.load("walker")


@pytest.mark.usefixtures("node")
def test_the_agent_walks_in_the_page_as_in_python(walker: Agent) -> None:
    settings = {"pushes": {"impulse_ns": 8.0, "every_s": 1.0}}
    walks = walk_in_python(walker, 3, 2.5, settings)
    assert len(set(walks.speeds)) == 3
    assert np.abs(walks.forces).max() > 50.0  # they were pushed
    assert walks.lengths == [250] * 3
    found = walk_in_page(walker, walks, 2.5, is_driven=False)
    assert [each["isFallen"] for each in found] == [False] * 3
    largest = differences(walks, found, walker.spec.rate_hz)["2"]
    assert largest["joints_deg"] < 0.01
    assert largest["hips_mm"] < 0.1
    assert [each["likeness"] for each in found] == pytest.approx(walks.likeness, abs=1e-4)
    ways = [each["positions"][-1][0] for each in found]
    assert ways == pytest.approx(2.5 * np.array(walks.speeds), abs=0.5)


@pytest.mark.usefixtures("node")
def test_other_actions_and_no_mirror_do_what_they_do_in_python() -> None:
    """Driven by the same actions, a walker whose settings are all others goes the same way."""
    import torch

    config = {"walker": "walker-13", "action": "torque", "mirror": False, "start_noise": 0.0,
              "starts": "fixed", "speed_change_s": 0.0, "lowest_height": 0.3, "largest_tilt_deg": 100.0}  # fmt: skip
    with _mimic(**config) as env:
        live = describe(env)
        seen = env.reset(seed=0)["vector"]
        phase = float(env.snapshot()["mimic-v1/walker-13/phase"])
        speed = float(env.snapshot()["mimic-v1/walker-13/desired"])
        actions = torch.from_numpy(np.random.default_rng(1).uniform(-1.5, 1.5, (12, 13)).astype(np.float32))
        steps = [env.step(action.view(1, 1, -1)).observations["vector"] for action in actions]
        observations = [each[0, 0].tolist() for each in (seen, *steps)]
    source = (files("ludus.worlds.mimic") / "walker.js").read_text(encoding="utf-8")
    function = f"""async (live, phase, speed, actions) => {{ {source}
      const table = require("zlib").inflateSync(Buffer.from(live.reference.table, "base64"));
      const engine = {{ observations: new Float32Array({len(observations[0])}) }}, seen = [];
      const walker = new LiveWalker(live, new Float32Array(new Uint8Array(table).buffer), engine);
      walker.desired = speed;
      walker.restart(phase);
      for (const action of [...actions, null]) {{
        seen.push(Array.from(engine.observations));
        if (action) walker.advance(action, null);
      }}
      return seen;
    }}"""
    found = _in_node(function, live, phase, speed, actions.tolist())
    np.testing.assert_allclose(found, observations, rtol=0.0, atol=2e-5)


def test_mimic_is_a_viewer_whose_engine_holds_the_policy_alone() -> None:
    assert is_viewer("mimic")
    assert not is_viewer("brawl")
    program = page_program("mimic", {"walker": "walker-13"})
    assert program.sources == {}
    assert program.settings == {"walker": "walker-13"}
    sizes = {buffer.name: len(buffer.data) for buffer in program.buffers}
    assert sizes["observations.vector"] == 4 * (14 + 2 * 13)
    assert sizes["actions"] == 4 * 13


def test_an_integrator_that_a_page_has_not_is_refused_by_name() -> None:
    with _mimic(integrator="RK4") as env, pytest.raises(UnsupportedError, match=r"RK4.*Euler, implicitfast"):
        describe_physics(env)


def test_a_body_of_the_users_own_is_refused() -> None:
    file = Path(__file__).parents[2] / "examples" / "own_body.xml"
    kinds = {"hip": "hip", "knee": "knee", "ankle": "ankle"}
    joints = {f"{side}_{kind}": f"{name}_{side}" for side in ("right", "left") for kind, name in kinds.items()}
    with (
        _mimic(body={"file": str(file), "joints": joints}) as env,
        pytest.raises(UnsupportedError, match="walker-8 and walker-13"),
    ):
        describe_physics(env)


def test_the_numbers_on_the_page_are_those_that_were_measured() -> None:
    file = Path(__file__).parents[2] / "docs" / "data" / "mimic_browser.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    for name in ("driven", "walking"):
        for moment, said in MEASURED[name].items():
            assert [found["pushed"][name][moment][key] <= said[key] for key in said] == [True] * len(said), moment
    assert MEASURED["walks"] == found["walks"] == found["undisturbed"]["upright_page"]
    assert found["pushed"]["same_length"] == found["walks"]


# --- the page in a real browser ---

STATE = "document.documentElement.dataset.state"
SECONDS = "Number(document.documentElement.dataset.seconds)"


def _speed(browser: Any, seconds: float) -> float:
    """Return the mean speed over so many seconds of the walk."""
    place = "(({ seconds, x }) => [Number(seconds), Number(x)])(document.documentElement.dataset)"
    begun, start = browser.run(place)
    browser.wait(f"{SECONDS} >= {begun + seconds} || {STATE} !== 'walking'")
    until, end = browser.run(place)
    assert browser.run(STATE) == "walking"
    return float((end - start) / (until - begun))


@pytest.fixture(scope="module")
def page(walker: Agent, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert walker.spec.id == "mimic-v1"
    shared = share_agent("walker", tmp_path_factory.mktemp("page") / "walker.html")
    assert shared.size_bytes < 500_000
    return shared.file


def _open(browser: Any, page: Path, fragment: str, **options: Any) -> None:
    browser.open(page, fragment, **SMALL_WINDOW | options)
    browser.wait("document.documentElement.dataset.ready === 'yes'")


def _is_clean(browser: Any) -> bool:
    assert browser.run("document.documentElement.dataset.problems || ''") == ""
    assert browser.complaints == []
    assert browser.requests == []
    return True


def test_it_walks_at_the_speed_that_is_asked_for_and_keeps_walking_when_pushed(browser: Any, page: Path) -> None:
    _open(browser, page, "speed=0.9&time=2")
    browser.wait(f"{SECONDS} > 1")
    assert _speed(browser, 2.2) == pytest.approx(0.9, abs=0.12)
    slider = "document.querySelector('input[aria-label^=\"desired speed\"]')"
    browser.run(f"{slider}.value = 1.3; {slider}.dispatchEvent(new Event('input'))")
    assert "1.30 m/s" in browser.run("document.querySelector('.wide-slider').textContent")
    browser.run("[...document.querySelectorAll('button')].find((each) => each.textContent === 'from its left').click()")
    browser.wait(f"{SECONDS} > 5.5")  # the reference changes its speed slowly
    assert _speed(browser, 2.2) == pytest.approx(1.3, abs=0.12)
    assert browser.run("document.documentElement.dataset.falls") == "0"
    about = browser.run("document.querySelector('#page').textContent")
    assert "MuJoCo" in about  # it says what it is
    assert _is_clean(browser)


def test_dragging_it_down_makes_it_fall_and_it_begins_again(browser: Any, page: Path) -> None:
    _open(browser, page, "speed=1.2&time=2", width=390, height=800)
    browser.wait(f"{SECONDS} > 0.5")
    box = browser.run(
        "(({ left, top, width, height }) => [left, top, width, height])"
        "(document.querySelector('.picture').getBoundingClientRect())"
    )
    grabbed = next(
        (x, y)
        for share in range(30, 62, 2)
        for x, y in [(box[0] + share / 100 * box[2], box[1] + 0.42 * box[3])]
        if _cursor(browser, x, y) == "grab"
    )
    browser.press(*grabbed)
    browser.move(grabbed[0] - 150, grabbed[1])
    browser.wait("Number(document.documentElement.dataset.falls) > 0")
    browser.let_go(grabbed[0] - 150, grabbed[1])
    assert "It fell after" in browser.run("document.querySelector('.banner').textContent")
    browser.wait(f"{STATE} === 'walking' && {SECONDS} > 0.3")
    assert _is_clean(browser)


def _cursor(browser: Any, x: float, y: float) -> str:
    browser.move(x, y)
    return str(browser.run("document.querySelector('.picture').style.cursor"))
