"""What people are shown of City: the pointer's way by hand, and pictures in which everything is where it belongs."""

from pathlib import Path

import numpy as np
import pytest
import torch
from city_world import World  # type: ignore[import-not-found,unused-ignore]  # beside this file
from PIL import Image as PictureFile

from ludus.core.errors import UnsupportedError
from ludus.envs.display import Image, PolicyOutput
from ludus.envs.pygame_tools import Picture, new_surface
from ludus.evaluation.frame_rates import frame_schedule
from ludus.evaluation.live_match import LiveMatch
from ludus.evaluation.playback import film_match
from ludus.evaluation.players import AgentPlayer, one_seat
from ludus.policies.config import NetArch, PolicyConfig
from ludus.policies.policy import Policy
from ludus.worlds.city.actions import CONFIRMED, REFUSED
from ludus.worlds.city.backend import Seen, day_text
from ludus.worlds.city.demo import ACTING, BAD, GOOD, POINTER, CityPainter, Marks, Panel, Shown, Track
from ludus.worlds.city.display import DISPLAY
from ludus.worlds.city.drivers.driver import Click, Drag, Key, Point, Region, Wait

HERE, THERE = Point(0.2, 0.4), Point(0.6, 0.8)


def has(picture: Image, color: tuple[int, int, int]) -> bool:
    return bool((picture == np.array(color, np.uint8)).all(axis=-1).any())


def test_the_pointer_goes_from_stop_to_stop() -> None:
    track = Track(Point(0.0, 0.0), (Key("Escape"), Click(HERE), Click(THERE), Wait(1.0)))
    assert track.keys == ("Escape",)
    assert [stop.share for stop in track.stops] == pytest.approx([ACTING / 2, ACTING])
    assert track.at(0.0) == Point(0.0, 0.0)
    middle = track.at(ACTING / 4)
    assert (middle.x, middle.y) == pytest.approx((0.1, 0.2))
    assert track.at(ACTING / 2) == HERE
    assert track.at(1.0) == track.end == THERE
    assert [stop.at for stop in track.passed(0.5)] == [HERE]


def test_a_drag_is_pressed_once_and_held_to_its_end() -> None:
    stops = Track(HERE, (Drag(HERE, THERE),)).stops
    assert [(stop.at, stop.presses, stop.drags) for stop in stops] == [(HERE, True, False), (THERE, False, True)]


def test_without_gestures_the_pointer_rests() -> None:
    assert Track(HERE).at(0.7) == HERE
    assert Track(HERE, (Wait(1.0),)).end == HERE


def test_words_of_readings() -> None:
    def text(kind: str, value: float | None) -> str:
        return Seen("x", kind, value, 1.0, 0).text  # type: ignore[arg-type]

    assert text("money", -1234.0) == "-$1,234"
    assert text("percent", 42.0) == "42%"
    assert text("number", 12345.0) == "12,345"
    assert text("date", float((1901 * 12 + 8) * 30)) == "1 Sep 1901"
    assert text("number", None) == "unreadable"
    assert day_text(0) == "1 Jan 0"


SIZE, PANEL = (960, 720), 300


def _drawn(**changes: object) -> tuple[Image, Image]:
    """Draws what is shown of a grey screen: the screen with its marks, and the panel."""
    given = {"picture": np.full((SIZE[1], SIZE[0], 3), 90, np.uint8), "seen": (), "step": 1, "steps": 9} | changes
    shown = Shown(**given)  # type: ignore[arg-type]
    canvas = new_surface((SIZE[0] + PANEL, SIZE[1]))
    canvas.fill((90, 90, 90), (0, 0, *SIZE))
    Marks(SIZE, {"funds": Region(0.5, 0.0, 0.75, 0.1)}).draw(canvas, shown, 1.0)
    Panel(PANEL, SIZE[1], "agent").draw(canvas, SIZE[0], shown, 1.0)
    picture = Picture((SIZE[0] + PANEL, SIZE[1])).of(canvas)
    return picture[:, : SIZE[0]], picture[:, SIZE[0] :]


def test_a_reading_is_framed_in_the_colour_of_its_confidence() -> None:
    for value, confidence, color in ((500.0, 1.0, GOOD), (None, 0.0, BAD)):
        screen, panel = _drawn(seen=(Seen("funds", "money", value, confidence, 0),))
        framed = np.argwhere((screen == np.array(color)).all(axis=-1))
        # Around the region, from column 480 to 720 and down to row 72, and not in it.
        assert framed[:, 1].min() >= 476
        assert framed[:, 1].max() <= 724
        assert framed[:, 0].max() <= 75
        assert (screen[5:68, 486:714] == 90).all()
        assert has(panel, color)


def test_the_pointer_is_where_it_clicked() -> None:
    screen, _ = _drawn(track=Track(Point(0.9, 0.9), (Click(Point(0.25, 0.5)),)))
    assert has(screen[360:390, 240:250], POINTER)
    assert (screen[:300, 400:] == 90).all()  # nothing else is touched


def test_verdicts_have_their_colours() -> None:
    for placed, color, other in ((CONFIRMED, GOOD, BAD), (REFUSED, BAD, GOOD)):
        _, panel = _drawn(kind="road", is_placement=True, placed=placed, probability=0.5)
        assert has(panel, color)
        assert not has(panel, other)


def test_what_exploring_found_is_told() -> None:
    assert has(_drawn(kind="explore_menu", found=3)[1], GOOD)
    assert not has(_drawn(kind="explore_menu", found=0)[1], GOOD)


def test_a_decision_of_the_embedded_game() -> None:
    world = World(actions=("build",), closes=True)
    painter = CityPainter(world.env, ("tester",))
    first = painter.paint()
    assert first.shape == (800, 1280 + 336, 3)
    names = world.backend.catalogue.names
    kinds = [0.25 / (len(names) - 1)] * len(names)
    kinds[names.index("road")] = 0.75
    painter.show_policy(PolicyOutput(tuple(kinds), 0.0))
    world.do("road", 5, 5)
    painter.on_step()
    shown = painter._now
    assert (shown.kind, shown.probability, shown.placed) == ("road", 0.75, CONFIRMED)
    assert shown.considered[0] == ("road", 0.75)
    places = world.backend._views[0].gestures
    assert [stop.at for stop in shown.track.stops] == [places.tools["road"][0].at, places.cells[5 * 20 + 5]]
    # The pointer acts on the screen as it was; the road comes with what became of it.
    at = shown.track.end
    row, column = round(at.y * 800), round(at.x * 1280)
    patch = (slice(row - 22, row - 16), slice(column - 14, column - 4))
    assert np.array_equal(painter.paint(0.1)[patch], first[patch])
    assert not np.array_equal(painter.paint(1.0)[patch], first[patch])
    world.do("wait")
    painter.on_step()
    assert painter._now.track.start == at  # the pointer stays where it was
    assert painter._now.probability is None  # nobody told


def test_the_stage_of_city() -> None:
    assert DISPLAY.painter is not None
    world = World()
    assert frame_schedule(world.env, 20.0) == (1, 12)  # a decision of ten days is shown for 0.6 s
    with pytest.raises(UnsupportedError, match="--debug"):
        DISPLAY.painter(world.env, (), debug=True)
    picture = DISPLAY.painter(world.env, (), debug=False).paint(0.5)
    assert picture.dtype == np.uint8
    assert torch.from_numpy(picture).float().std() > 10.0


def test_a_film_of_an_agent_tells_what_it_thinks(tmp_path: Path) -> None:
    world = World(actions=("build", "street"), closes=True)
    policy = Policy(world.env.spec, PolicyConfig(net_arch=NetArch(pi=(8,), vf=(8,))))
    player = AgentPlayer(world.env, one_seat(world.env, 0), policy, name="novice")
    match = LiveMatch(world.env, (player,))
    painter = CityPainter(world.env, match.names)
    match.send_policy_outputs(painter)
    match.step()
    painter.on_step()
    shown = painter._now
    assert shown.kind in world.backend.catalogue.names
    assert shown.probability == pytest.approx(dict(shown.considered).get(shown.kind, shown.probability))
    assert 0.0 < (shown.probability or 0.0) < 1.0
    assert sum(share for _, share in shown.considered) < 1.0
    film_match(match, tmp_path / "city.gif", frames=5, fps=4.0)
    with PictureFile.open(tmp_path / "city.gif") as film:
        assert film.size == (640, 316)  # films of this kind are small
        assert getattr(film, "n_frames", 1) > 1
