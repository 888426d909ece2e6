"""The texts of a bot's folder: RLBot's configuration files and a README for people."""

import json
from collections.abc import Mapping
from string import Template

AGENT_FILE = "agent.ludus"
ENTRY_FILE = "bot.py"
RECORDING_FILE = "recording.json"
PLAYER_FILE = "player.json"
BOT_TOML = "bot.toml"
LOADOUT_TOML = "loadout.toml"
README = "README.md"

_OCTANE = 23  # the car that the simulator has

_BOT = Template("""\
# A bot for RLBot v5; see $readme.

[settings]
agent_id = $agent_id
name = $name
loadout_file = "$loadout"
run_command = "python $entry"
run_command_linux = "python3 $entry"

[details]
description = $description
fun_fact = "It learned in a simulator made from published numbers, with nothing of the game in it."
developer = "Ludus"
language = "Python"
tags = $tags
""")

_LOADOUT = Template("""\
# The car that the agent learned with: an Octane.

[blue_loadout]
car_id = $octane

[orange_loadout]
car_id = $octane
""")

_README = Template("""\
# $name

An agent of Ludus for car soccer, as a bot for [RLBot v5](https://rlbot.org).

**For offline play only.** RLBot starts the game in a mode of its own, without online matches, and this bot talks to
RLBot alone. Nothing here attaches to the game or to an online match, and nothing may be made to.

## Install

Python 3.11 or 3.12, in an environment of its own (`python -m venv venv`, then activate it):

    pip install "ludus[rlbot]"

or, beside a Ludus that is installed already, `pip install "rlbot>=2.0.0b50"`. This folder was made with Ludus $version.
If that environment is not the one that RLBot finds as `python`, write its path into `run_command` (Windows) or
`run_command_linux` of `$bot_toml`, such as `./venv/bin/python $entry`.

## Test

    python $entry --self-test

replays recorded packets to the agent and compares every observation, action and control with those of the simulator in
which they were recorded; neither the game nor the package `rlbot` is needed. The bot does so at every start, and does
not play if anything differs.

## Play

Add `$bot_toml` in RLBot's GUI (or as `config_file` of a car in a match file) and start a match: soccar on a standard
map, default mutators, up to three cars a team.

The agent draws its actions, as in training and in `ludus eval`. With `"deterministic": true` in `$player` it takes the
most likely ones.

## What is in the folder

| file | what it is |
|---|---|
| `$bot_toml`, `$loadout` | what RLBot reads |
| `$entry` | what RLBot starts |
| `$agent` | the agent: weights (safetensors) with a SHA-256; nothing in it can run |
| `$player` | how it plays |
| `$recording` | packets for the self-test |

## What it learned with

| setting | value |
|---|---|
$settings
""")


def bot_toml(name: str, agent_id: str, tags: list[str], trained_in: str) -> str:
    """Returns RLBot's configuration of the bot."""
    return _BOT.substitute(
        name=_quoted(name),
        agent_id=_quoted(agent_id),
        tags=json.dumps(tags),
        description=_quoted(f"Trained with Ludus in {trained_in}; for offline play."),
        loadout=LOADOUT_TOML,
        entry=ENTRY_FILE,
        readme=README,
    )


def loadout_toml() -> str:
    """Returns RLBot's configuration of the car."""
    return _LOADOUT.substitute(octane=_OCTANE)


def readme(name: str, version: str, settings: Mapping[str, object]) -> str:
    """Returns what people read; `settings` are those of the world that the agent was trained in."""
    rows = "\n".join(f"| `{key}` | {value} |" for key, value in settings.items())
    return _README.substitute(
        name=name,
        version=version,
        settings=rows,
        bot_toml=BOT_TOML,
        loadout=LOADOUT_TOML,
        entry=ENTRY_FILE,
        agent=AGENT_FILE,
        player=PLAYER_FILE,
        recording=RECORDING_FILE,
    )


def _quoted(text: str) -> str:
    """A string of TOML: in plain ASCII it is one of JSON."""
    return json.dumps(text)
