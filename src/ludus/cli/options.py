"""Options that several commands have in common, so that they are named, bounded and explained alike."""

from typing import Annotated

import typer

Seed = Annotated[int, typer.Option(min=0, help="Seed of all matches.")]
Device = Annotated[str, typer.Option(help="Device: auto, cpu, cuda or cuda:N.")]
Games = Annotated[int, typer.Option(min=1, help="Most games in one batch.")]
Deterministic = Annotated[
    bool, typer.Option("--deterministic", help="Agents take their most likely action instead of drawing one.")
]
View = Annotated[
    str | None,
    typer.Option(
        help="From where to look, where a world has several views; rocket: top, side, chase, ball, chase-2 ..."
    ),
]
Fps = Annotated[
    float, typer.Option(min=1, max=120, help="Pictures a second of a video, if the world can be drawn so often.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
