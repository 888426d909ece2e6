"""`ludus play`: a person plays a world in a window; `ludus replay`: a recorded game is shown, filmed or checked."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ludus.cli.completion import complete_agent
from ludus.cli.console import ProgressLine, echo, print_ok
from ludus.cli.options import ONE_BOT, Fps, Names, Plugin, View, load_plugins
from ludus.core.errors import ConfigError
from ludus.core.files import make_folder

if TYPE_CHECKING:
    from ludus.evaluation.live_match import LiveMatch, Outcome
    from ludus.evaluation.players import KeyboardPlayer, Player
    from ludus.evaluation.rendering import RenderOptions


def play(
    world: Annotated[str, Argument(help="World to play.")],
    agent: Annotated[
        str | None,
        Argument(
            help="Agent to steer, in a world in which an agent moves the body (mimic): name, folder or file.",
            show_default="one of `ludus agents`",
            autocompletion=complete_agent,
        ),
    ] = None,
    against: Annotated[
        str | None,
        Option(
            help="Bot to play against, or name, folder or file of an agent.",
            show_default=ONE_BOT,
            autocompletion=complete_agent,
        ),
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="Seed of the match; random by default.")] = None,
    delay: Annotated[int | None, Option(min=0, help="Reaction delay of the bot in frames.")] = None,
    noise: Annotated[float | None, Option(min=0, max=1, help="Share of random keys of the bot.")] = None,
    mirrored: Annotated[bool, Option("--mirrored", help="Show the picture mirrored.")] = False,
    set_: Annotated[
        Names, Option("--set", help="World setting as key=value, such as mode=2v2; may be repeated.")
    ] = None,
    view: View = None,
    debug: Annotated[bool, Option("--debug", help="Draw hit and hurt capsules and state names.")] = False,
    record: Annotated[Path | None, Option(help="Write the last match to this replay file.")] = None,
    frames: Annotated[int | None, Option(min=1, help="Stop after this many frames.")] = None,
    host: Annotated[
        str | None,
        Option(help="Address to listen on, of a world that is played in a browser.", show_default="127.0.0.1"),
    ] = None,
    port: Annotated[
        int | None,
        Option(min=0, max=65535, help="Port likewise; 0 for any free one.", show_default="8733 or the next free one"),
    ] = None,
    no_browser: Annotated[bool, Option("--no-browser", help="Likewise, print the address alone.")] = False,
    plugin: Plugin = None,
) -> None:
    """Play a world in real time with WASD and Space; P pauses, R restarts, C turns the camera, Esc quits.

    `ludus play mimic` opens a page in which you set the walker's speed and direction and push it with the mouse.
    """
    load_plugins(plugin, world)
    chosen = secrets.randbelow(2**31) if seed is None else seed
    from ludus.envs.display import display_of
    from ludus.envs.registry import make_env
    from ludus.evaluation.live_match import LiveMatch
    from ludus.evaluation.players import KeyboardPlayer, seat_by_team
    from ludus.evaluation.rendering import RenderOptions

    display = display_of(world)
    own: dict[str, object] = {"AGENT": agent, "--host": host, "--port": port, "--no-browser": no_browser}
    if display.play is not None:
        options: dict[str, object] = {"--against": against, "--delay": delay, "--noise": noise, "--mirrored": mirrored}
        options |= {"--view": view, "--debug": debug, "--record": record, **own}
        display.play(seed=chosen, overrides=set_ or (), frames=frames, options=options)
        return
    given = [name for name, value in own.items() if value is not None and value is not False]
    if given:
        hint = f"; to play against {agent}, use --against {agent}" if agent else ""
        raise ConfigError(f"{', '.join(given)} means nothing in {world}, which is played in a window{hint}")
    words = [*(["mirrored=true"] if mirrored else []), *(set_ or ())]
    opponent, settings = _opponent(world, against, words, delay, noise)
    with make_env(world, seed=chosen, config=settings) as env:
        person = KeyboardPlayer(env, 0)
        others = seat_by_team(env, [opponent] * len(set(env.spec.teams)), seed=chosen)
        match = LiveMatch(env, (person, *others[1:]))
        width = max(len(key.name) for key in display.keys)
        for key in display.keys:
            echo(f"  {key.name.upper():{width}}  {key.meaning}")
        echo(f"  P pause, R new match, Esc quit; seed {chosen}")
        show_match(match, RenderOptions(debug, view or display.view or None), frames, person, display.key_lines)
        save_replay(match, record)


def show_match(
    match: "LiveMatch",
    render: "RenderOptions",
    frames: int | None,
    person: "KeyboardPlayer | None" = None,
    key_lines: Sequence[str] = (),
) -> None:
    """Play a match in a window, in which a person may take part, and print its outcome."""
    from ludus.evaluation.playback import play_in_window
    from ludus.evaluation.window import Window

    def tell(outcome: "Outcome") -> None:
        print_ok(outcome.describe(match.sides))

    with Window(f"Ludus: {' against '.join(match.sides)}") as window:
        play_in_window(match, person, window, key_lines=key_lines, frames=frames, render=render, on_outcome=tell)


def save_replay(match: "LiveMatch", file: Path | None) -> None:
    """Write the last match to a replay file, if one is named.

    Raises:
        ReplayDivergedError: The game does not go the same way again.
    """
    from ludus.envs.adapters.game_batch import GameBatch
    from ludus.envs.replay import verify_replay

    recorded = None if file is None else match.replay()
    if file is not None and recorded is not None:
        if isinstance(match.env, GameBatch):  # of another library: playing it again tells whether that works
            verify_replay(recorded)
        recorded.save(file)
        print_ok(f"replay of {recorded.steps} steps written to {file}")


def _opponent(
    world: str, against: str | None, words: list[str], delay: int | None, noise: float | None
) -> "tuple[Player, dict[str, Any]]":
    """Find who is played against, and the settings to play with: against an agent, those that it knows."""
    from ludus.envs.bots import is_bot
    from ludus.envs.display import display_of
    from ludus.envs.registry import make_env, world_id
    from ludus.evaluation.display import display_settings, shown_settings
    from ludus.evaluation.players import KeyboardPlayer, Player, find_player, load_agent
    from ludus.policies.shipped import find_agent_path

    display = display_of(world)
    settings = display_settings(world, {**shown_settings(world).values, **display.played}, words=words)
    with make_env(world, config=settings) as env:
        KeyboardPlayer(env, 0)  # raises if the world cannot be played by keyboard
        name = against or (display.bots or env.spec.bots)[0]
        if is_bot(name, env.spec) or find_agent_path(name) is None:
            return find_player(bot_with(name, delay, noise), env), settings
    if (delay, noise) != (None, None):
        raise ConfigError(f"--delay and --noise are for bots; leave them out to play against the agent {name}")
    agent = load_agent(name)
    agent.check_world_id(world_id(world))  # before its settings are used
    settings = display_settings(world, shown_settings(world, agent.stored), words=words)
    with make_env(world, config=settings) as env:
        agent.check_world(env.spec)
    return Player(name, agent.policy), settings


def bot_with(name: str, delay: int | None, noise: float | None) -> str:
    """Return a bot's name with settings added to it: `aggressive` and a delay give `aggressive:delay=8`."""
    settings = ",".join(f"{key}={value}" for key, value in (("delay", delay), ("noise", noise)) if value is not None)
    return f"{name}{',' if ':' in name else ':'}{settings}" if settings else name


def replay(
    file: Annotated[Path, Argument(help="Replay file.")],
    video: Annotated[Path | None, Option(help="Write a video (.mp4 or .gif) instead of opening a window.")] = None,
    debug: Annotated[bool, Option("--debug", help="Draw hit and hurt capsules and state names.")] = False,
    view: View = None,
    fps: Fps = 30.0,
    verify: Annotated[bool, Option("--verify", help="Only check that the game goes as recorded.")] = False,
    move_table: Annotated[
        Path | None, Option(help="The move table, if the game was recorded with a custom one.")
    ] = None,
    plugin: Plugin = None,
) -> None:
    """Play a recorded game again, in a window or into a video, and verify it."""
    load_plugins(plugin)
    from ludus.envs.replay import Replay, verify_replay

    if verify and video is not None:
        raise ConfigError("--verify shows nothing; leave --video or --verify out")
    recorded = Replay.load(file)
    files = {} if move_table is None else {"move_table": move_table}
    players = (" against " if len(recorded.players) == 2 else ", ").join(recorded.players)
    said = f"{recorded.world_id}, {players or 'unnamed players'}, {recorded.steps} steps"
    if verify:
        progress = ProgressLine("steps", recorded.steps)
        verify_replay(recorded, files, progress)
        progress.close()
        print_ok(f"{file} goes as recorded: {said}")
    elif video is not None:
        from ludus.evaluation.playback import film_replay
        from ludus.evaluation.rendering import RenderOptions

        make_folder(video.parent)
        progress, render = ProgressLine("steps", recorded.steps), RenderOptions(debug, view)
        frames = film_replay(recorded, video, render=render, fps=fps, files=files, progress=progress)
        progress.close()
        print_ok(f"{frames} frames written to {video}: {said}")
    else:
        from ludus.evaluation.playback import show_replay
        from ludus.evaluation.rendering import RenderOptions
        from ludus.evaluation.window import Window

        with Window(f"Ludus: {file.name}") as window:
            whole = show_replay(recorded, window, render=RenderOptions(debug, view), files=files)
        print_ok(f"{file} {'goes as recorded' if whole else 'was closed before its end'}: {said}")
