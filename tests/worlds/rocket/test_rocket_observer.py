"""A game in plain numbers: the observer sees it, and the decoder acts in it, bit for bit as the environment does."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from ludus.core.errors import ActionError, ConfigError
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.rlbot.observer import Controls, Decoder, GameState, Observer
from ludus.worlds.rocket.rules import SETTERS

if TYPE_CHECKING:
    from tests.worlds.rocket.conftest import MakePitch


def state_of(env: RocketEnv, game: int = 0) -> GameState:
    return GameState.of(env.cars[game], env.balls[game], env.matches[game], env.pads[game])


@pytest.mark.parametrize("mode", ["1v2", "3v3"])
def test_the_observer_sees_what_the_environment_sees(make_pitch: "MakePitch", mode: str) -> None:
    scenes = dict.fromkeys(SETTERS, 1.0)
    pitch = make_pitch(4, mode=mode, setters=scenes, shuffle=False, episode="match", actions="table")
    env, observer = pitch.env, Observer()
    generator = torch.Generator().manual_seed(2)
    pitch.cars["demolished_s"][0, 0] = 2.0
    pitch.match["blue_goals"][1] = 3
    for _ in range(20):
        actions = torch.randint(90, (4, env.spec.seats), generator=generator)
        seen = env.step(actions).observations["vector"].numpy()
        for game in range(4):
            state = state_of(env, game)
            for seat in range(env.spec.seats):
                assert np.array_equal(observer.observe(state, seat), seen[game, seat])


def test_one_observer_sees_games_of_all_sizes(make_pitch: "MakePitch") -> None:
    observer = Observer()
    for mode in ("3v3", "1v1", "2v1"):
        env = make_pitch(mode=mode, shuffle=False).env
        assert np.array_equal(observer.observe(state_of(env), 1), env.reset()["vector"][0, 1].numpy())


def test_wrong_games_are_refused(make_pitch: "MakePitch") -> None:
    observer = Observer()
    state = state_of(make_pitch().env)
    blue, orange = state.cars
    with pytest.raises(ConfigError, match="3"):
        observer.observe(replace(state, cars=(orange, blue)), 0)
    with pytest.raises(ConfigError, match="3"):
        observer.observe(replace(state, cars=(blue,) * 4), 0)
    with pytest.raises(ConfigError, match=r"seat 2.*0 to 1"):
        observer.observe(state, 2)


@pytest.mark.parametrize("settings", [{"actions": "table"}, {"actions": "continuous"}])
def test_the_decoder_holds_what_the_environment_holds(make_pitch: "MakePitch", settings: dict[str, Any]) -> None:
    env = make_pitch(1, **settings).env
    decoder = Decoder(RocketConfig(**settings))
    env.spec.action_space.seed(3)
    for _ in range(30):
        actions = np.stack([np.asarray(env.spec.action_space.sample()) for _ in range(2)])
        env.step(torch.from_numpy(actions).unsqueeze(0))
        for seat in range(2):
            held = env._controls[0, seat].numpy()
            assert np.array_equal(np.array(decoder.decode(actions[seat]), np.float32), held)


def test_decoded_by_hand() -> None:
    assert Decoder(RocketConfig()).decode(23) == Controls(1.0, 1.0, 0.0, 1.0, 0.0, False, True, True)
    free = Decoder(RocketConfig(actions="continuous")).decode([0.25, 3.0, -0.5, 0.0, 0.0, 0.1, 0.0, -1.0])
    assert free == Controls(0.25, 1.0, -0.5, 0.0, 0.0, True, False, False)
    with pytest.raises(ActionError, match=r"Discrete\(90\).*shape \(2,\)"):
        Decoder(RocketConfig()).decode([1, 2])
