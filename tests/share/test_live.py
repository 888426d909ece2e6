"""What worlds' browser scripts do again in JavaScript gives what Python gives: keys, the platform, blows, SHA-256."""

import hashlib
import json
import random
import shutil
import subprocess
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
import torch

from ludus.envs.display import BrowserGame
from ludus.envs.registry import make_env
from ludus.envs.world import find_world, resolve
from ludus.worlds.brawl.display import CONTROLS, keyboard_action, sees_mirrored
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.brawl.view import platform_position
from ludus.worlds.rocket.display import DRIVING, action_of, held_controls
from ludus.worlds.rocket.env import RocketEnv

# An engine that holds what a test says: fields of structs, and actions.
_STAND_IN = (
    "const engine = { actions: new Float32Array(20), field: (name, index, field) => fields[name][index][field] };"
)


def _game(world: str) -> BrowserGame:
    browser = find_world(world).browser
    assert browser is not None
    return resolve(browser)


def _node(world: str, body: str, given: Any) -> Any:
    """Return what a function body with `world` and `given` returns, after the world's scripts were read."""
    if shutil.which("node") is None:
        pytest.skip("needs node: apt-get install nodejs")
    game = _game(world)
    recorder = (files("ludus.share") / "assets" / "recorder.js").read_text(encoding="utf-8")
    scripts = f"const PAINTERS = {{}}, LIVE = {{}}, make = () => null;\n{recorder}\n{game.source()}"
    program = f"{scripts}\nconst world = LIVE.{world}, given = JSON.parse(require('fs').readFileSync(0));"
    program += f"\nconst found = (() => {{ {body} }})();\nconsole.log(JSON.stringify(found));"
    done = subprocess.run(["node", "-e", program], input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("actions", ["table", "continuous"])
def test_a_driver_presses_the_same_keys_in_a_page(actions: str) -> None:
    names = [name for keys in DRIVING for name in keys.names if "ctrl" not in name]
    drawn = random.Random(0)  # noqa: S311 - chooses keys
    held = [[name for name in names if drawn.random() < 0.35] for _ in range(300)]
    with make_env("rocket", config={"actions": actions}) as env:
        assert isinstance(env, RocketEnv)
        game = _game("rocket")
        data, config = game.data(env), env.config
    body = f"""return [0, 1].map((ground) => given.held.map((names) => {{
        const fields = {{ cars: [{{ on_ground: ground }}] }};
        {_STAND_IN}
        world.act(engine, 0, {{ held: new Set(names), stick: [0, 0] }}, given.data);
        return Array.from(engine.actions.slice(0, given.size));
    }}));"""
    size = 1 if actions == "table" else 8
    found = _node("rocket", body, {"held": held, "data": data, "size": size})
    for ground in (0, 1):
        expected = [action_of(held_controls(names), config, on_ground=bool(ground)).reshape(-1) for names in held]
        np.testing.assert_array_equal(np.array(found[ground]), torch.stack(expected).numpy().astype(np.float64))


def test_a_fighter_presses_the_same_keys_in_a_page() -> None:
    names = [control.name for control in CONTROLS]
    drawn = random.Random(1)  # noqa: S311 - chooses keys
    held = [[name for name in names if drawn.random() < 0.4] for _ in range(50)]
    body = f"""const fields = {{}}; {_STAND_IN}
    return [0, 1].map((seat) => given.held.map((names) => {{
        world.act(engine, seat, {{ held: new Set(names) }}, given.data);
        return Array.from(engine.actions.slice(10 * seat, 10 * seat + 10));
    }}));"""
    for seed in (1, 4):  # the first seat starts on the low and on the high ground
        with make_env("brawl", seed=seed) as env:
            assert isinstance(env, BrawlEnv)
            game = _game("brawl")
            found = _node("brawl", body, {"held": held, "data": game.data(env)})
            # The page shows a mirrored picture where the first seat would start on the right.
            is_mirrored = int(env.fields()["home"][0, 0]) > 0
            for seat in (0, 1):
                mirrored = sees_mirrored(env, 0, seat) != is_mirrored
                expected = torch.stack([keyboard_action(names, mirrored=mirrored) for names in held])
                np.testing.assert_array_equal(np.array(found[seat]), expected.numpy())


def test_a_picture_shows_platform_and_blows_where_they_are() -> None:
    frames: list[dict[str, Any]] = []
    with make_env("brawl", seed=3) as env:
        assert isinstance(env, BrawlEnv)
        game = _game("brawl")
        data, bots = game.data(env), env.bots(["aggressive", "heavy-spammer"])
        assignment, actions = torch.tensor([[0, 1]], dtype=torch.int32), torch.zeros((1, 2, 10), dtype=torch.int8)
        env.reset(seed=3)
        for _ in range(240):
            bots.act(assignment, actions)
            env.step(actions)
            view = env.view(0)
            players = [{name: values[0, seat].item() for name, values in env.fields().items()} for seat in (0, 1)]
            hits = [[[*hit.start, *hit.end, hit.radius] for hit in player.hits] for player in view.players]
            frames.append({"frame": view.frame, "players": players, "hits": hits})
    assert sum(bool(hits) for frame in frames for hits in frame["hits"]) > 10
    body = """return given.frames.map(({ frame, players }) => {
        const empty = { x: 0, y: 0, weapon: 0, life: 0, lock: 0 };
        const fields = { matches: [{ frame }], players, items: [empty, empty, empty, empty] };
        const engine = { field: (name, index, field) => fields[name][index][field] };
        // Where the first seat starts decides whether the picture is mirrored; here it is not.
        const state = world.read(engine, given.data, { mirrored: false, fighters: [null, null] });
        const fighters = state.fighters.map((f) => brawlBetween(f, f, 0, frame, given.data.arsenal));
        return fighters.map((f) => f.hits.map(({ start, end, radius }) => [...start, ...end, radius]));
    });"""
    found = _node("brawl", body, {"frames": frames, "data": data})
    for frame, hits in zip(frames, found, strict=True):
        for expected, got in zip(frame["hits"], hits, strict=True):
            np.testing.assert_allclose(np.array(got).reshape(-1, 5), np.array(expected).reshape(-1, 5), atol=1e-5)
    places = _node("brawl", "return given.map((frame) => world.platformAt(frame, 1));", list(range(0, 600, 7)))
    np.testing.assert_allclose(places, [platform_position(frame) for frame in range(0, 600, 7)], atol=1e-12)


def test_the_digest_is_sha_256() -> None:
    drawn = random.Random(2)  # noqa: S311 - chooses bytes
    texts = ["".join(chr(drawn.randrange(128)) for _ in range(size)) for size in (0, 1, 55, 56, 63, 64, 65, 119, 1000)]
    body = """return given.map((text) => {
        const sha = makeSha256(), bytes = new TextEncoder().encode(text);
        for (let at = 0; at < bytes.length; at += 17) { sha.add(bytes.subarray(at, at + 17)); sha.digest(); }
        return hexadecimal(sha.digest());
    });"""
    assert _node("brawl", body, texts) == [hashlib.sha256(text.encode()).hexdigest() for text in texts]
