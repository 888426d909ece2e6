"""The live page in a real browser: a run grows, is killed, disappears; choices stay; names stay text; matches play."""

import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import torch
from tests.watch.conftest import append, visit

from ludus.envs.registry import make_env
from ludus.policies.agent import agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.store import save_checkpoint
from ludus.watch.server import WatchServer

if TYPE_CHECKING:
    from tests.commands import Commands

pytestmark = pytest.mark.browser

MakeRun = Callable[..., Path]
Serve = Callable[..., WatchServer]
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'<\\script>"
RETURN = "document.querySelector('#learning [data-chart=episode_return]')"
# A run that is watched for seconds leaves the processor to others: the browser, the server, and other tests.
UNHURRIED = """
import time

import ludus


class Unhurried(ludus.BaseCallback):
    def on_iteration(self, iteration):
        time.sleep(0.05)
"""


def row(name: str) -> str:
    return f"document.querySelector('tr[data-run={json.dumps(name)}]')"


def is_clean(browser: Any) -> bool:
    assert browser.run("document.documentElement.dataset.problems || ''") == ""
    assert browser.complaints == []
    assert "taken" not in browser.run("document.title")
    return True


def test_a_run_is_seen_to_start_grow_and_die(browser: Any, serve: Serve, commands: "Commands", tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    server = serve(tmp_path / "runs")
    browser._call("Page.navigate", {"url": server.address})
    browser.wait("document.body?.textContent.includes('There is no run in this folder yet')")
    overrides = ("world.num_envs=4", "ppo.n_steps=8", "ppo.sequence_length=4", "ppo.batch_size=16", "ppo.n_epochs=1",
                 "total_env_steps=100_000_000", "monitoring.console=plain", "monitoring.curves=false",
                 "evaluation={every_env_steps: 320, matches: 4}", "opponents={random: 1.0}")  # fmt: skip
    (tmp_path / "unhurried.py").write_text(UNHURRIED)
    unhurried = ("--callback", f"{tmp_path / 'unhurried.py'}:Unhurried")
    run = commands.start("train", "duel", "--run-dir", tmp_path / "runs" / "mine", *overrides, *unhurried)
    browser.wait(f"{row('mine')}?.textContent.includes('running')")
    browser.wait(RETURN)
    browser.run(f"{RETURN}.scrollIntoView()")  # what nobody sees is not drawn again
    browser.wait(f"{RETURN}.querySelector('path.line').getAttribute('d').length > 20")
    browser.run(
        "window.before = document.querySelector('#learning [data-chart=episode_return] path.line')?.getAttribute('d')"
    )
    browser.run(f"window.chart = {RETURN}")
    browser.wait(f"{RETURN}.querySelector('path.line').getAttribute('d') !== window.before")
    assert browser.run(f"window.chart === {RETURN}")  # updated in place
    browser.wait(f"{row('mine')}.querySelector('.best').textContent")
    browser.run("document.querySelector('#log').scrollIntoView()")
    browser.wait("document.querySelector('#log pre')?.textContent.includes('training starts')")
    for section in ("evaluation", "ratings", "rewards", "times"):
        browser.run(f"document.querySelector('#{section}').scrollIntoView()")
        browser.wait(f"document.querySelector('#{section} [data-chart]')")
    assert "steps/s" in browser.run("document.querySelector('.runs thead').textContent")
    os.kill(run.pid, signal.SIGKILL)
    browser.wait(f"{row('mine')}.querySelector('.state').textContent === 'killed'")
    assert "1 killed" in browser.run("document.querySelector('.sub').textContent")
    browser.run("document.querySelector('#notices').scrollIntoView()")
    browser.wait("document.querySelector('#notices').textContent.includes('was killed')")
    shutil.rmtree(tmp_path / "runs" / "mine")
    browser.wait(
        "document.querySelector('.gone-notes').textContent === 'mine is gone: its folder was deleted or moved.'"
    )
    assert browser.run(f"{row('mine')} === null")
    assert is_clean(browser)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_several_runs_are_overlaid_in_stable_colours(
    browser: Any, make_run: MakeRun, serve: Serve, tmp_path: Path, width: int, dark: bool
) -> None:
    for seed in range(3):
        make_run(f"runs/quick-{seed}", seed=seed)
    other = make_run("runs/other", config="policy: {strategy: null}\nleague: {keep: 3}\n")
    (other / "resources.csv").write_text(
        "iteration,env_steps,elapsed_s,resident_mib,update_s\n1,100,1,500,1\n2,200,2,510,1\n3,300,3,520,1\n"
    )
    server = serve(tmp_path / "runs")
    ids = {run.name: run.id for run in _runs(server)}
    visit(browser, f"{server.address}#runs={ids['quick-1']}", width=width, dark=dark)
    lines = f"[...{RETURN}.querySelectorAll('path.line')].map(each => each.getAttribute('class'))"
    browser.wait(RETURN)
    browser.run(f"{RETURN}.scrollIntoView()")
    browser.wait(f"{lines}.length === 1")
    [first] = browser.run(lines)
    browser.run(f"{row('quick-2')}.querySelector('input').click()")
    browser.run(f"{row('other')}.querySelector('input').click()")
    browser.wait(f"{lines}.length === 3")
    assert browser.run(lines)[0] == first  # it keeps its colour
    assert len(set(browser.run(lines))) == 3
    assert browser.run("location.hash") == f"#runs={ids['quick-1']},{ids['quick-2']},{ids['other']}"
    assert browser.run("document.documentElement.scrollWidth") <= width
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) < 200) == dark
    browser.run("document.querySelector('#merged').click()")
    browser.wait(f"{lines}.length === 2 && {RETURN}.querySelector('path.band')")
    assert "quick (2 seeds)" in browser.run(f"{RETURN}.textContent")
    browser.run(f"{RETURN}.querySelector('.legend button').click()")  # hide the first line
    assert browser.run(f"{lines}.length") == 1
    append(tmp_path / "runs" / "other", 3, since=8)
    browser.run(f"{RETURN}.scrollIntoView()")
    browser.wait(f"[...{RETURN}.querySelectorAll('.tick')].some(each => each.textContent === '1000')")
    assert browser.run(f"{lines}.length") == 1  # what was switched off stays off
    slider = "document.querySelector('#smoothing')"
    browser.run(f"{slider}.value = 0.9; {slider}.dispatchEvent(new Event('input'))")
    browser.run(f"{row('other')}.querySelector('.plain-button').click()")  # alone
    browser.wait("document.querySelector('#learning') && document.querySelectorAll('.chosen').length === 1")
    browser.run("document.querySelector('#times').scrollIntoView()")
    browser.wait("document.querySelector('#times [data-chart=throughput]')")
    assert browser.run("document.querySelector('#strategy').hidden")
    browser.run("document.querySelector('.list-bar input').value = 'quick finished';"
                "document.querySelector('.list-bar input').dispatchEvent(new Event('input'))")  # fmt: skip
    assert browser.run("document.querySelectorAll('.runs tbody tr').length") == 3
    assert is_clean(browser)


def _runs(server: WatchServer) -> Any:
    server.catalogue.refresh(at_once=True)
    return server.catalogue.runs()


def test_what_runs_say_is_text(browser: Any, make_run: MakeRun, serve: Serve, tmp_path: Path) -> None:
    folder = make_run(f"runs/{HOSTILE}", config=f"rewards: {json.dumps({HOSTILE: HOSTILE})}\n")
    (folder / "run.log").write_text(f"2026-01-01 env_steps=0 [WARN] {HOSTILE}\n")
    run = json.loads((folder / "run.json").read_text())
    run["sessions"][0] |= {"machine": {"device": HOSTILE}, "end_reason": HOSTILE}
    (folder / "run.json").write_text(json.dumps(run | {"world": HOSTILE, "warnings": [HOSTILE]}))
    (folder / "evaluation_results.csv").write_text(
        "iteration,env_steps,opponent,matches,wins,draws,losses,win_rate,score\n"
        f'8,800,"{HOSTILE.replace(chr(34), chr(39))}",10,5,0,5,0.5,0.5\n'
    )
    server = serve(tmp_path / "runs")
    visit(browser, server.address)
    for section in ("log", "settings", "notices"):
        browser.run(f"document.querySelector('#{section}').scrollIntoView()")
        browser.wait(f"document.querySelector('#{section}').textContent.includes('<img src=x')")
    assert HOSTILE in browser.run("document.querySelector('.runs').textContent")
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.querySelectorAll('script').length") == 1
    assert is_clean(browser)
    # Even a script that got in would not run, and the page can reach no other server.
    script = "Object.assign(document.createElement('script'), {textContent: 'document.title = `taken`'})"
    browser.run(f"document.body.append({script})")
    refused = browser.run("fetch('http://localhost:1/').then(() => 'reached', () => 'refused')")
    assert refused == "refused"
    assert "taken" not in browser.run("document.title")
    assert any("Content Security Policy" in complaint for complaint in browser.complaints)


def test_the_page_comes_back_after_the_server_was_killed(
    browser: Any, make_run: MakeRun, commands: "Commands", tmp_path: Path
) -> None:
    folder = make_run("runs/a")
    first = commands.start("watch", tmp_path / "runs", "--port", 0, "--no-browser", "--no-matches")
    first.wait_until_it_says("http://")
    address = re.findall(r"http://\S+", first.said)[0]
    visit(browser, address)
    browser.wait("document.querySelector('.link').textContent === 'live'")
    os.kill(first.pid, signal.SIGKILL)
    browser.wait("document.querySelector('.link').textContent === 'no connection'")
    append(folder, 2, since=8)
    commands.start("watch", tmp_path / "runs", "--port", urlsplit(address).port, "--no-browser", "--no-matches")
    browser.wait("document.querySelector('.link').textContent === 'live'")
    browser.run(f"{RETURN}.scrollIntoView()")
    browser.wait(f"[...{RETURN}.querySelectorAll('.tick')].some(each => each.textContent === '1000')")


def test_the_newest_match_plays_in_the_page(browser: Any, make_run: MakeRun, serve: Serve, tmp_path: Path) -> None:
    folder = make_run("runs/a")
    (folder / "evaluation_results.csv").unlink()  # whose opponents are those of another world
    save_agent(folder / "checkpoints" / "best", seed=0)
    server = serve(tmp_path / "runs", match_command=[sys.executable, "-m", "ludus.cli.watch_matches"])
    visit(browser, server.address)
    browser.wait("document.querySelector('.match canvas')")
    assert "a at 0 steps against" in browser.run("document.querySelector('.match .result').textContent")
    browser.run("document.querySelector('#now').scrollIntoView()")
    browser.wait("Number(document.querySelector('.replay').dataset.frame) > 3")  # it plays by itself
    save_agent(folder / "checkpoints" / "step-000000000800", seed=1, step=800)
    browser.wait("document.querySelectorAll('.match .legend button').length === 2")
    assert "a at 800 steps" in browser.run("document.querySelector('.match .result').textContent")
    assert is_clean(browser)


def save_agent(folder: Path, *, seed: int, step: int = 0) -> None:
    """Saves an untrained agent of brawl, whose matches last two seconds."""
    settings = {"step_limit": 60}
    with make_env("brawl", config=settings) as env, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy = Policy(env.spec, PolicyConfig())
    save_checkpoint(folder, agent_checkpoint(policy.spec, policy.config, policy.state(), settings), step=step)
