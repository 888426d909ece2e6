"""The page in a real browser: every section is drawn, nothing is complained of or loaded, charts and replays answer."""

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ludus.evaluation.trajectory import replay_view_of
from ludus.reports.page.document import read_groups, write_report

MakeRun = Callable[..., Path]
SECTIONS = ["overview", "notices", "learning", "evaluation", "replays", "rewards", "ratings", "behaviour", "optimiser",
            "strategy", "times", "settings", "origins"]  # fmt: skip
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
_ITEMS = {"0": [], "5": [[100, 85, 2]]}
_HITS = {"3": [[0, 100, 50, 150, 50, 30]]}


def _brawl_strip(title: str, frames: int = 60) -> dict[str, Any]:
    """A match in which the left player walks to the right, a hundredth of a unit a frame."""
    still = [0] * (frames - 1)
    columns = {
        f"{name}{seat}": [start, *still]
        for seat in (0, 1)
        for name, start in {"y": 200, "facing": 1, "state": 1, "damage": 20 * seat, "stocks": 3, "weapon": seat,
                            "safe": seat}.items()
    }  # fmt: skip
    columns |= {"x0": [-300] + [1] * (frames - 1), "x1": [300, *still], "platform_x": [93, *still]}
    columns["platform_y"] = [7, *still]
    return {"world": "brawl", "title": title, "result": "left wins", "players": [title, "right"], "rate_hz": 30.0,
            "scale": 100, "columns": columns, "hits": _HITS, "items": _ITEMS, "weapons": ["fists", "spear", "hammer"],
            "mirrored": False}  # fmt: skip


def _walker_strip(frames: int = 30) -> dict[str, Any]:
    points = ["hip", "neck", "head", *(f"{side}_{part}" for side in ("right", "left")
              for part in ("thigh", "knee", "ankle", "heel", "ball"))]  # fmt: skip
    names = [f"{who}{point}_{axis}" for who in ("", "ghost_") for point in points for axis in "xz"]
    columns = {name: [90] + [1] * (frames - 1) for name in [*names, "desired"]}
    return {"world": "mimic", "title": "walk", "result": "30 steps", "players": ["walker"], "rate_hz": 25.0,
            "scale": 100, "columns": columns, "height": 175}  # fmt: skip


def _rocket_strip(frames: int = 30) -> dict[str, Any]:
    """A match in which blue drives along the field and the ball rolls ahead of it."""
    still = [0] * (frames - 1)
    columns = {"ball_x": [0, *still], "ball_y": [300] + [60] * (frames - 1), "ball_z": [93, *still],
               "blue": [0, *still], "orange": [1, *still], "clock": [3000] + [-1] * (frames - 1)}  # fmt: skip
    for seat, (y, speed, turn) in enumerate(((-900, 60, 71), (2500, 0, -71))):
        start = {"x": 0, "z": 17, "qx": 0, "qy": 0, "qz": turn, "qw": 71, "boost": 40, "doing": 1 - seat}
        columns |= {f"{name}{seat}": [value, *still] for name, value in start.items()}
        columns[f"y{seat}"] = [y] + [speed] * (frames - 1)
    return {"world": "rocket", "title": "soccer", "result": "orange wins", "players": ["one", "two"], "rate_hz": 15.0,
            "scale": 100, "columns": columns, "teams": [0, 1], "pads": [[0, 1024, 0], [3584, 0, 1]]}  # fmt: skip


@pytest.fixture
def page(make_run: MakeRun, tmp_path: Path) -> Path:
    """The report of two seeds, a run of another configuration with a hostile name in it, and four replays."""
    folders = [make_run("quick-0", seed=0), make_run("quick-1", seed=1)]
    folders.append(make_run("other", config=f"rewards: {json.dumps({HOSTILE: HOSTILE})}\n"))
    (folders[0] / "strategy_analysis.csv").write_text("iteration,env_steps,separation\n1,100,0.5\n2,200,0.75\n")
    (folders[0] / "analysis").mkdir()
    analysis = {"styles": ["rock", HOSTILE], "times_s": [1, 2], "chance": 0.5,
                "maps": {"frames": [[0, 1], [2, 3], [4, 5]], "frame_labels": [0, 1, 1], "neighbours": [[0, 0]] * 3,
                         "matches": [], "labels": []},
                "probes": {"trained": {"so_far": [{"estimate": 0.5},
                                                  {"estimate": 0.75, "low": 0.6, "high": 1}]}}}  # fmt: skip
    (folders[0] / "analysis" / "analysis.json").write_text(json.dumps(analysis))
    (folders[0] / "resources.csv").write_text(
        "iteration,env_steps,elapsed_s,resident_mib,update_s\n1,100,1,500,1\n2,200,2,510,1\n3,300,3,520,1\n"
    )
    strips = [_brawl_strip("first"), _walker_strip(), _brawl_strip(HOSTILE), _rocket_strip()]
    views = [replay_view_of(world) for world in ("brawl", "mimic", "rocket")]
    painters = [view.source() for view in views if view is not None]
    return write_report(read_groups(folders), tmp_path / "page.html", strips, painters=painters).file


def _is_clean(browser: Any) -> bool:
    browser.wait("document.documentElement.dataset.ready")
    assert browser.run("document.documentElement.dataset.problems || ''") == ""
    assert browser.complaints == []
    assert browser.requests == []
    assert "taken" not in browser.run("document.title")
    return True


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_every_section_is_drawn_without_a_complaint(browser: Any, page: Path, width: int, dark: bool) -> None:
    browser.open(page, width=width, dark=dark)
    assert _is_clean(browser)
    assert browser.run("[...document.querySelectorAll('section')].map(each => each.id)") == SECTIONS
    assert browser.run("[...document.querySelectorAll('section')].filter(each => each.children.length < 2).length") == 0
    assert browser.run("document.querySelectorAll('.missing').length") == 0
    charts = browser.run("[...document.querySelectorAll('[data-chart]')].map(each => each.dataset.chart)")
    wanted = {"episode_return", "entropy", "hits", "evaluation", "last-evaluation", "score", "rating", "throughput",
              "Where the time went", "separation", "latents", "probe", "replays"}  # fmt: skip
    assert wanted <= set(charts)
    assert sum(chart.startswith("Payoffs: ") for chart in charts) == 2
    assert sum(chart.startswith("Reward terms: ") for chart in charts) == 2
    # Nothing is wider than the screen, and every line has been drawn.
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("[...document.querySelectorAll('path.line')].every(each => each.getAttribute('d').length > 3)")
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) < 200) == dark


def test_what_a_run_says_is_shown_as_text(browser: Any, page: Path) -> None:
    browser.open(page)
    assert _is_clean(browser)
    assert browser.run("document.querySelectorAll('script').length") == 2
    assert browser.run("document.querySelectorAll('img').length") == 0
    shown = browser.run("document.querySelector('#settings').textContent")
    assert HOSTILE in shown
    assert "What differs" in shown
    assert HOSTILE in browser.run("document.querySelector('#replays').textContent")


def test_a_chart_answers_the_mouse_and_its_names_switch_lines(browser: Any, page: Path) -> None:
    browser.open(page)
    assert _is_clean(browser)
    chart = "document.querySelector('[data-chart=episode_return]')"
    browser.run(f"{chart}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    box = browser.run(f"(({{left, right, top, bottom}}) => [left, right, top, bottom])"
                      f"({chart}.querySelector('svg').getBoundingClientRect())")  # fmt: skip
    browser.move(box[1] - 15, (box[2] + box[3]) / 2)  # the right end: 800 steps, where seeds have 7 and 8
    browser.wait(f"!{chart}.querySelector('.tip').hidden")
    said = browser.run(f"{chart}.querySelector('.tip').textContent")
    assert "800 steps" in said
    assert "quick (2 seeds)7.5 (7 to 8)" in said
    assert "other7" in said
    assert browser.run("document.querySelectorAll('.hair').length") > 3  # the other charts show the same place
    assert browser.run(f"{chart}.querySelectorAll('path.line').length") == 2
    browser.run(f"{chart}.querySelector('.legend button').click()")
    assert browser.run(f"{chart}.querySelectorAll('path.line').length") == 1
    before = browser.run("document.querySelector('[data-chart=entropy] path.line').getAttribute('d')")
    browser.run("document.querySelector('[data-chart=entropy] .small').click()")  # a logarithmic scale
    assert browser.run("document.querySelector('[data-chart=entropy] path.line').getAttribute('d')") != before
    browser.run("document.querySelector('#bands').click()")
    assert browser.run("document.querySelectorAll('path.band').length") == 0
    assert browser.complaints == []


def test_another_number_of_the_evaluation_can_be_chosen(browser: Any, page: Path) -> None:
    browser.open(page)
    assert _is_clean(browser)
    choose = "document.querySelector('#evaluation select')"
    assert "Win rate at the last evaluation" in browser.run("document.querySelector('#evaluation').textContent")
    browser.run(f"{choose}.value = 'hits'; {choose}.dispatchEvent(new Event('change'))")
    assert "Hits at the last evaluation" in browser.run("document.querySelector('#evaluation').textContent")
    assert browser.complaints == []


def test_replays_play_pause_and_step(browser: Any, page: Path) -> None:
    browser.open(page)
    assert _is_clean(browser)
    frame = "Number(document.querySelector('.replay').dataset.frame)"
    picture = "document.querySelector('.replay canvas').toDataURL()"
    assert browser.run(frame) == 0
    first = browser.run(picture)
    browser.run("document.querySelector('.play').click()")
    browser.wait(f"{frame} > 5")
    browser.run("document.querySelector('.play').click()")
    stopped = browser.run(frame)
    assert browser.run(picture) != first
    browser.run("new Promise(done => setTimeout(done, 150))")
    assert browser.run(frame) == stopped
    slider = "document.querySelector('.replay input')"
    browser.run(f"{slider}.value = 40; {slider}.dispatchEvent(new Event('input'))")
    assert browser.run(frame) == 40
    browser.run("document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}))")
    assert browser.run(frame) == 41
    assert "1.4 of 2.0 s" in browser.run("document.querySelector('.clock').textContent")
    speed = "document.querySelector('.controls select')"
    browser.run(f"{speed}.value = '8'; {speed}.dispatchEvent(new Event('change'))")
    browser.run("document.querySelector('.play').click()")
    browser.wait("document.querySelector('.replay').dataset.playing === 'false'")  # it ends by itself
    assert browser.run(frame) == 59
    assert browser.complaints == []


def test_a_link_plays_a_replay_at_once(browser: Any, page: Path) -> None:
    browser.open(page, "replay-2")  # the walker
    assert _is_clean(browser)
    browser.wait("Number(document.querySelector('.replay').dataset.frame) > 3")
    assert "walk: 30 steps" in browser.run("document.querySelector('.result').textContent")
    assert browser.complaints == []


def test_a_rocket_match_is_drawn_and_its_car_moves(browser: Any, page: Path) -> None:
    browser.open(page, "replay-4")
    assert _is_clean(browser)
    browser.wait("Number(document.querySelector('.replay').dataset.frame) > 3")
    browser.run("document.querySelector('.play').click()")
    canvas, slider = "document.querySelector('.replay canvas')", "document.querySelector('.replay input')"
    # Mean column of the pixels below the board that have blue's colour, as a share of the width, and how many they are.
    seen = f"""(() => {{
        const {{ width, height }} = {canvas}, top = Math.round(0.2 * height), found = [];
        const copy = Object.assign(document.createElement('canvas'), {{ width, height }});
        const pen = copy.getContext('2d', {{ willReadFrequently: true }});
        pen.drawImage({canvas}, 0, 0);
        const pixels = pen.getImageData(0, top, width, height - top).data;
        for (let k = 0; k < pixels.length; k += 4)
            if (pixels[k] === 0x38 && pixels[k + 1] === 0x88 && pixels[k + 2] === 0xff) found.push((k / 4) % width);
        return [found.reduce((sum, x) => sum + x, 0) / found.length / width, found.length];
    }})()"""
    places = []
    for frame in (0, 20):
        browser.run(f"{slider}.value = {frame}; {slider}.dispatchEvent(new Event('input'))")
        place, pixels = browser.run(seen)
        assert pixels > 20
        places.append(place)
    assert places[0] < 0.5  # blue's half is on the left
    assert places[1] > places[0] + 0.05
    assert browser.complaints == []


def test_the_page_can_be_printed(browser: Any, page: Path) -> None:
    browser.open(page)
    assert _is_clean(browser)
    printed = browser.printed()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 50_000


@pytest.mark.parametrize(
    "kept", ["config.yaml", "metrics.jsonl", "evaluation_results.csv", "run.json", "opponents.csv"]
)
def test_a_run_of_which_one_file_is_left(browser: Any, make_run: MakeRun, tmp_path: Path, kept: str) -> None:
    folder = make_run("run")
    for file in folder.iterdir():
        if file.name != kept:
            file.unlink()
    browser.open(write_report(read_groups([folder]), tmp_path / "page.html").file)
    assert _is_clean(browser)
    assert browser.run("document.querySelectorAll('.missing').length") > 3
    assert "There is no strategy_analysis.csv" in browser.run("document.querySelector('#strategy').textContent")


def test_one_run_with_one_evaluation_and_many_terms(browser: Any, make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run("run", config="policy: {strategy: null}\nopponents: null\ncurriculum: []\n")
    terms = [f"term {letter}" for letter in "abcdefghijklmnopq"]
    rewards = f"iteration,env_steps,total,{','.join(terms)}\n1,100,17{',1' * 17}\n2,200,17{',1' * 17}\n"
    (folder / "reward_breakdown.csv").write_text(rewards)
    (folder / "evaluation_results.csv").write_text(
        "iteration,env_steps,opponent,matches,survival_s,score\n8,800,,4,15,0.5\n"
    )
    (folder / "opponents.csv").unlink()
    browser.open(write_report(read_groups([folder]), tmp_path / "page.html", notes=["a note"]).file)
    assert _is_clean(browser)
    for chart in ("score", "evaluation"):
        ticks = f"[...document.querySelectorAll('[data-chart={chart}] .tick[text-anchor=middle]')]"
        assert browser.run(f"{ticks}.map(each => each.textContent)") == ["800"]
    swatches = "[...document.querySelectorAll('#rewards .legend .swatch')]"
    colours = browser.run(f"{swatches}.map(each => getComputedStyle(each).backgroundColor)")
    assert len(set(colours)) == len(terms)
    text = browser.run("document.body.innerText")
    assert "seeds" not in text
    assert "by opponent" not in text
    assert "Survival time at the last evaluation" in text
    assert "a note" in browser.run("document.querySelector('#replays').textContent")
    left = [each for each in SECTIONS if each not in ("strategy", "ratings")]
    assert browser.run("[...document.querySelectorAll('section')].map(each => each.id)") == left
    assert browser.run("[...document.querySelectorAll('nav a')].map(each => each.hash.slice(1))") == left


def test_numbers_that_never_change_are_not_finite_or_few(browser: Any, make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run("run")
    odd = itertools.cycle([{"zero": 0, "same": 5, "minus": -3, "odd": 1e300, "tiny": 1e-12, "inf": math.inf},
                           {"zero": 0, "same": 5, "minus": -3, "odd": -1e300, "tiny": 2e-12, "once": 1}])  # fmt: skip
    lines = [json.dumps({"iteration": i, "env_steps": i * 100} | next(odd)) for i in range(1, 5)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    browser.open(write_report(read_groups([folder]), tmp_path / "page.html").file)
    assert _is_clean(browser)
    charts = browser.run("[...document.querySelectorAll('#optimiser [data-chart]')].map(each => each.dataset.chart)")
    assert charts == ["zero", "same", "minus", "odd", "tiny", "once"]
    browser.run("document.querySelectorAll('.small').forEach(each => each.click())")
    assert browser.complaints == []
