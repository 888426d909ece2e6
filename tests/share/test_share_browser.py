"""The shared page in a real browser, opened from disk: people play, win, lose and take their replay along."""

import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.share.conftest import SHORT_MATCH, SMALL_WINDOW

from ludus.cli.main import main
from ludus.envs.replay import Replay, verify_replay
from ludus.share.page import share_agent
from ludus.store import load_checkpoint, save_checkpoint

pytestmark = pytest.mark.browser

STATE = "document.documentElement.dataset.state"
STEP = "Number(document.querySelector('.stage').dataset.step)"
_REPLAY_WAIT_S = 20.0
# A player that looks at the frame of every picture and presses keys by that clock; slowly, so that it is in time on any
# machine. Each row: from which frame, keys that go down, keys that go up, speed.
PLAYER = """(() => {
    const script = [[1, ['KeyD'], []], [9, ['Space'], []], [12, [], ['Space']], [26, [], ['KeyD'], 2],
                    [60, [], [], 0.25], [70, ['KeyD', 'KeyJ'], []], [72, [], ['KeyJ', 'KeyD']], [75, [], [], 8]];
    const press = (kind, code) => document.dispatchEvent(new KeyboardEvent(kind, { code }));
    const speeds = document.querySelector('select[aria-label=speed]');
    const look = () => {
        while (script.length && Number(document.querySelector('.stage').dataset.step) >= script[0][0]) {
            const [, down, up, speed] = script.shift();
            down.forEach((code) => press('keydown', code));
            up.forEach((code) => press('keyup', code));
            if (speed) { speeds.value = speed; speeds.dispatchEvent(new Event('change')); }
        }
        if (script.length) requestAnimationFrame(look);
    };
    look();
})()"""


def _open(browser: Any, page: Path, fragment: str, **options: Any) -> Any:
    browser.open(page, fragment, **SMALL_WINDOW | options)
    browser.wait("document.documentElement.dataset.ready === 'yes'")
    return browser


def _is_clean(browser: Any) -> bool:
    assert browser.run("document.documentElement.dataset.problems || ''") == ""
    assert browser.complaints == []
    assert browser.requests == []
    return True


def _click(browser: Any, label: str) -> None:
    browser.run(f"[...document.querySelectorAll('button')].find((each) => each.textContent === {label!r}).click()")


def _downloaded(browser: Any, folder: Path) -> Replay:
    """Press the button and read the file that the browser has saved."""
    browser.save_downloads(folder)
    _click(browser, "Download replay")
    deadline = time.monotonic() + _REPLAY_WAIT_S
    while not (found := [file for file in folder.iterdir() if file.suffix == ".replay"]):
        assert time.monotonic() < deadline, "nothing was downloaded"
        time.sleep(0.05)
    return Replay.load(found[0])


def test_it_opens_with_a_game_and_a_button_to_play(browser: Any, champion_page: Path) -> None:
    _open(browser, champion_page, "")
    assert _is_clean(browser)
    assert browser.run(STATE) == "menu"
    assert browser.run("document.querySelector('.menu h2').textContent") == "Play against champion"
    assert "J light" in browser.run("document.querySelector('.menu').textContent")  # what to press
    groups = "[...document.querySelector('.menu select').querySelectorAll('optgroup')]"
    assert browser.run(f"{groups}.map((each) => each.label)") == ["Agents", "Scripted bots"]
    assert browser.run(f"[...{groups}[0].children].map((each) => each.textContent)") == ["champion", "rookie"]
    browser.wait(f"{STEP} > 3")  # agents play behind the menu
    _click(browser, "Play")
    browser.wait(f"{STATE} === 'playing' && {STEP} > 3")
    assert browser.run("document.querySelector('.menu').hidden")
    assert _is_clean(browser)


def test_a_person_wins_against_a_bot_that_stands_still_and_the_replay_goes_as_recorded(
    browser: Any, seer_page: Path, tmp_path: Path
) -> None:
    # With this seed the first seat starts on the high ground: over the gap, then one lunge.
    _open(browser, seer_page, "seed=4&play&against=constant&speed=0.25")
    browser.run(PLAYER)
    browser.wait(f"{STATE} === 'over'")
    assert browser.run("document.documentElement.dataset.winner") == "0"
    assert browser.run("document.querySelector('.menu h2').textContent") == "You win"
    assert "stocks 3 : 3, damage 0 : 8" in browser.run("document.querySelector('.menu').textContent")
    replay = _downloaded(browser, tmp_path)
    assert (replay.world_id, replay.seed, replay.steps) == ("brawl-v1", 4, SHORT_MATCH)
    assert (replay.players, replay.config) == (("You", "constant"), {"step_limit": SHORT_MATCH})
    assert int(replay.actions[:, 0].sum()) > 20  # keys held, frame by frame
    assert int(replay.actions[:, 1].sum()) == 0
    verify_replay(replay)
    assert _is_clean(browser)


def test_who_stands_still_loses_against_the_champion(
    browser: Any,
    champion_page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    _open(browser, champion_page, "seed=5&play&side=1&speed=8")
    browser.wait(f"{STATE} === 'over'")
    assert browser.run("document.documentElement.dataset.winner") == "0"  # the person has the second seat
    assert browser.run("document.querySelector('.menu h2').textContent") == "champion wins"
    replay = _downloaded(browser, tmp_path)
    assert replay.players == ("champion", "You")
    file = next(tmp_path.glob("*.replay"))
    monkeypatch.setattr(sys, "argv", ["ludus", "replay", str(file), "--verify"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert f"{file} goes as recorded: brawl-v1, champion against You, {replay.steps} steps" in capfd.readouterr().out
    assert _is_clean(browser)


def test_the_same_seed_gives_the_same_match_of_agents(browser: Any, champion_page: Path, tmp_path: Path) -> None:
    replays = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        _open(browser, champion_page, "seed=9&watch&against=agent-1&speed=8")
        browser.wait(f"{STEP} > 150")
        browser.run("document.dispatchEvent(new KeyboardEvent('keydown', { code: 'KeyP' }))")
        browser.wait(f"{STATE} === 'paused'")
        replays.append(_downloaded(browser, folder))
    assert replays[0].players == ("champion", "rookie")
    steps = min(replay.steps for replay in replays)
    assert replays[0].actions[:steps].equal(replays[1].actions[:steps])
    verify_replay(replays[0])


def test_the_game_keeps_its_pace_stops_and_slows_down(browser: Any, champion_page: Path) -> None:
    _open(browser, champion_page, "seed=4&watch&against=aggressive")
    browser.wait(f"{STEP} > 10")
    pace = f"""(async () => {{
        const from = [{STEP}, performance.now()];
        await new Promise((done) => setTimeout(done, 3000));
        return (({STEP} - from[0]) / (performance.now() - from[1])) * 1000;
    }})()"""
    assert 27.0 < browser.run(pace) < 33.0  # frames simulated per second of a world of 30 Hz
    speed = "document.querySelector('select[aria-label=speed]')"
    browser.run(f"{speed}.value = '0.25'; {speed}.dispatchEvent(new Event('change'))")
    assert 6.0 < browser.run(pace) < 9.0
    _click(browser, "Pause")
    assert browser.run(STATE) == "paused"
    stopped = browser.run(STEP)
    browser.run("new Promise((done) => setTimeout(done, 300))")
    assert browser.run(STEP) == stopped
    browser.run("document.dispatchEvent(new KeyboardEvent('keydown', { code: 'KeyP' }))")
    assert browser.run(STATE) == "playing"
    browser.run("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    browser.run("document.dispatchEvent(new Event('visibilitychange'))")  # somebody looks at another tab
    assert browser.run(STATE) == "paused"


def test_sides_opponents_and_rematches_can_be_chosen(browser: Any, champion_page: Path) -> None:
    _open(browser, champion_page, "seed=4&play&against=based")
    selects = "[...document.querySelectorAll('.players select')]"
    assert browser.run(f"{selects}.map((each) => each.value)") == ["you", "based"]
    browser.run("document.querySelector('[aria-label=\"switch sides\"]').click()")
    browser.wait(f"{selects}[0].value === 'based' && {STATE} === 'playing'")
    assert browser.run(f"{selects}[1].value") == "you"
    seed = browser.run("document.documentElement.dataset.seed")
    _click(browser, "Rematch")
    browser.wait(f"document.documentElement.dataset.seed !== '{seed}'")
    browser.run(f"{selects}[1].value = 'agent'; {selects}[1].dispatchEvent(new Event('change'))")
    browser.wait(f"{STEP} > 5")  # nobody of the two is a person: it is watched
    browser.run(f"{selects}[0].value = 'you'; {selects}[0].dispatchEvent(new Event('change'))")
    browser.wait(f"{selects}[0].value === 'you' && {STATE} === 'playing'")
    field = "document.querySelector('input[type=number]')"
    browser.run(f"{field}.value = '123'; {field}.dispatchEvent(new Event('change'))")
    browser.wait("document.documentElement.dataset.seed === '123'")
    assert _is_clean(browser)


def test_what_the_agent_sees_is_shown_while_it_plays(browser: Any, champion_page: Path) -> None:
    _open(browser, champion_page, "seed=4&play&speed=4")
    _click(browser, "What the agent sees")
    browser.wait("document.querySelectorAll('.mind .bar-row').length === 10")  # one row per key
    assert browser.run("document.querySelector('.mind h3').textContent") == "champion"
    bars = "[...document.querySelectorAll('.mind .bar')].map((each) => each.style.width).join()"
    first = browser.run(bars)
    browser.wait(f"{bars} !== {first!r}")
    shares = browser.run("[...document.querySelectorAll('.mind em')].map((each) => parseFloat(each.textContent))")
    assert all(0 <= share <= 100 for share in shares)
    assert _is_clean(browser)


def test_an_agent_with_an_encoder_says_whom_it_takes_its_opponent_for(browser: Any, seer_page: Path) -> None:
    _open(browser, seer_page, "seed=4&watch&against=aggressive")
    _click(browser, "What the agent sees")
    browser.wait("document.querySelectorAll('.mind .legend .key').length > 0")
    shown = browser.run("[...document.querySelectorAll('.mind .legend .key')].map((each) => each.textContent)")
    shares = [int(re.sub(r".* (\d+) %$", r"\1", each)) for each in shown]
    assert len(shown) == 8  # the most likely ones
    assert shares == sorted(shares, reverse=True)
    assert 40 <= sum(shares) <= 104
    assert not browser.run("document.querySelector('.mind-chart').hidden")
    assert _is_clean(browser)


def test_names_of_a_hostile_agent_are_text_on_the_page_and_in_its_replays(
    browser: Any, seer_page: Path, tmp_path: Path
) -> None:
    markup = "<img src=x onerror=document.title=1>"
    found: Any = load_checkpoint(seer_page.parent / "seer")
    found.documents["agent"]["bots"] = [f"{markup}{place}" for place in range(len(found.documents["agent"]["bots"]))]
    save_checkpoint(tmp_path / "agent", found, step=1, sequence=1)
    agent = (tmp_path / "agent").rename(tmp_path / f"{markup}\u202e\x1b]0;x\x07{'a' * 150}")
    page = share_agent(str(agent), tmp_path / "page.html").file
    _open(browser, page, "seed=9&watch&against=aggressive&speed=8")
    _click(browser, "What the agent sees")
    browser.wait("document.querySelectorAll('.mind .legend .key').length > 0")
    assert "onerror" in browser.run("document.querySelector('.mind .legend').textContent")
    assert "onerror" in browser.run("document.querySelector('h1').textContent")
    assert browser.run("document.querySelectorAll('img').length") == 0
    browser.wait(f"{STEP} > 60")
    browser.run("document.dispatchEvent(new KeyboardEvent('keydown', { code: 'KeyP' }))")
    browser.wait(f"{STATE} === 'paused'")
    folder = tmp_path / "replays"
    folder.mkdir()
    replay = _downloaded(browser, folder)
    assert len(replay.players[0]) == 80
    assert replay.players[0].isascii()
    assert replay.players[0].isprintable()
    verify_replay(replay)
    assert _is_clean(browser)


@pytest.mark.parametrize(("width", "height"), [(390, 780), (844, 390)])
def test_a_phone_has_a_stick_and_buttons_beside_the_picture(
    browser: Any, champion_page: Path, tmp_path: Path, width: int, height: int
) -> None:
    browser.emulate_touch(enabled=True)
    try:
        _open(browser, champion_page, "seed=4&play&against=constant", width=width, height=height)
        assert browser.run("document.documentElement.scrollWidth") <= width
        stage, stick, *buttons = browser.run("""['.stage', '.stick', '.pad-button'].flatMap((name) =>
            [...document.querySelectorAll(name)].map((each) => {
                const { left, top, right, bottom } = each.getBoundingClientRect();
                return [left, top, right, bottom];
            }))""")
        assert len(buttons) == 6
        for left, top, right, bottom in (stick, *buttons):
            assert min(right - left, bottom - top) >= 56  # large enough for a thumb
            assert (left >= 0, top >= 0, right <= width, bottom <= height) == (True,) * 4
            beside = right <= stage[0] or left >= stage[2] or top >= stage[3]
            assert beside  # nothing covers the fighters
        keys = browser.run("[...document.querySelectorAll('.pad-button')].map((each) => each.dataset.key)")
        left, top, right, bottom = buttons[keys.index("space")]
        browser.wait(f"{STEP} > 5")
        middle = (stick[1] + stick[3]) / 2
        browser.touch((stick[2] - 8, middle), ((left + right) / 2, (top + bottom) / 2))  # two fingers
        browser.wait(f"{STEP} > 12")
        browser.touch()
        browser.wait(f"{STEP} > 16")
        actions = _downloaded(browser, tmp_path).actions[:, 0].bool()
        assert bool((actions[:, 3] & actions[:, 4]).any())  # right and jump at once
        assert not bool(actions[-1].any())
        assert _is_clean(browser)
    finally:
        browser.emulate_touch(enabled=False)


def test_a_gamepad_plays_too(browser: Any, champion_page: Path, tmp_path: Path) -> None:
    buttons = "Array.from({ length: 17 }, () => ({ pressed: false, value: 0 }))"
    pad = f"window.pad = {{ connected: true, mapping: 'standard', axes: [0, 0, 0, 0], buttons: {buttons} }};"
    with browser.before_load(f"{pad} navigator.getGamepads = () => [null, window.pad];"):
        _open(browser, champion_page, "seed=4&play&against=constant")
        browser.wait(f"{STEP} > 5")
        browser.run("window.pad.axes[0] = -0.9, window.pad.buttons[2].pressed = true")  # left, and X
        browser.wait(f"{STEP} > 12")
        browser.run(
            "window.pad.axes[0] = 0, window.pad.buttons[2].pressed = false, window.pad.buttons[9].pressed = true"
        )
        browser.wait(f"{STATE} === 'paused'")  # Start
    actions = _downloaded(browser, tmp_path).actions[:, 0].bool()
    assert bool((actions[:, 1] & actions[:, 7]).any())  # left and a light attack
    assert not bool(actions[:, [0, 2, 3, 4, 5, 6, 8, 9]].any())
    assert _is_clean(browser)


def test_a_page_whose_browser_refuses_gamepads_plays(browser: Any, champion_page: Path) -> None:
    """As in a frame of another page, where Chromium throws."""
    refused = "navigator.getGamepads = () => { throw new DOMException('disallowed', 'SecurityError'); };"
    with browser.before_load(refused):
        _open(browser, champion_page, "seed=4&play&against=constant")
        browser.wait(f"{STEP} > 5")
    assert _is_clean(browser)


def test_rocket_is_played_filmed_and_replayed(browser: Any, rocket_page: Path, tmp_path: Path) -> None:
    _open(browser, rocket_page, "seed=3&play&against=idle")
    browser.hold("KeyW")
    browser.hold("ShiftLeft")
    browser.wait(f"{STEP} > 12")
    pictures = set()
    for _ in range(3):  # another camera each time
        browser.run("document.dispatchEvent(new KeyboardEvent('keydown', { code: 'KeyC' }))")
        browser.run("new Promise((done) => setTimeout(done, 150))")
        pictures.add(browser.run("document.querySelector('.picture').toDataURL()"))
    assert len(pictures) == 3
    browser.release("KeyW")
    browser.release("ShiftLeft")
    replay = _downloaded(browser, tmp_path)
    assert replay.config["episode"] == "match"
    assert len(set(replay.actions[:12, 0].tolist())) < 3  # it drove straight ahead
    verify_replay(replay)
    assert _is_clean(browser)


def test_an_old_browser_is_told_what_it_lacks(browser: Any, champion_page: Path) -> None:
    with browser.before_load("delete window.DecompressionStream"):
        browser.open(champion_page)
    browser.wait("document.documentElement.dataset.ready === 'no'")
    assert "no DecompressionStream" in browser.run("document.querySelector('[role=alert]').textContent")
    assert _is_clean(browser)


def test_a_page_that_was_changed_does_not_run(browser: Any, champion_page: Path, tmp_path: Path) -> None:
    page = tmp_path / "changed.html"
    page.write_text(champion_page.read_text().replace('"use strict";', '"use strict"; document.title = "taken";'))
    browser.open(page)
    assert browser.run("document.title") != "taken"
    assert browser.run("document.querySelectorAll('main > *').length") == 0
    assert any("Content Security Policy" in complaint for complaint in browser.complaints)
    browser.complaints.clear()
