"""`ludus export`: an agent as one safe file, as a bot for RLBot, its step as ONNX, and a model card."""

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ludus.cli.console import print_ok
from ludus.cli.options import AsJson
from ludus.core.errors import ConfigError

if TYPE_CHECKING:
    from ludus.evaluation.rlbot.folder import RlbotFolder

_CARD_SUFFIX = ".md"


def export(
    agent: Annotated[str, typer.Argument(help="Run folder, whose best agent is meant, checkpoint, or exported file.")],
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="With --rlbot: the folder to write. [NAME-rlbot]")
    ] = None,
    rlbot: Annotated[
        bool,
        typer.Option(
            "--rlbot",
            help="Write a folder for RLBot v5, for offline play, instead of the file; agents of rocket alone.",
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="File to write, ending in .ludus. [NAME.ludus]")] = None,
    onnx: Annotated[Path | None, typer.Option(help="Also write the policy's step as this .onnx file.")] = None,
    card: Annotated[Path | None, typer.Option(help="Also write a model card in Markdown to this .md file.")] = None,
    json: AsJson = False,
) -> None:
    """Write an agent to one self-contained file that every command takes as an agent; nothing in it can run."""
    from ludus.core.files import write_text_atomic
    from ludus.evaluation.contenders import load_agent, short_name
    from ludus.policies.export import EXPORT_SUFFIX, export_agent

    if card is not None and card.suffix != _CARD_SUFFIX:
        raise ConfigError(f"the card {str(card)!r} must end in {_CARD_SUFFIX}; name it {card.stem}{_CARD_SUFFIX}")
    if folder is not None and not rlbot:
        raise ConfigError(f"a folder, {str(folder)!r}, goes with --rlbot alone; name a file with --out")
    loaded = load_agent(agent)
    name = short_name(agent).replace("/", "-")
    bot = _export_bot(agent, folder or Path(f"{name}-rlbot")) if rlbot else None
    exported = bot.exported if bot and out is None else export_agent(agent, out or Path(name + EXPORT_SUFFIX))
    target = exported.path
    written: dict[str, Any] = {"file": str(target), "bytes": exported.size_bytes, "sha256": exported.sha256}
    if bot is not None:
        written["rlbot"] = {"folder": str(bot.path), "packets": bot.tested.packets, "actions": bot.tested.actions}
    if onnx is not None:
        from ludus.policies.onnx_file import write_onnx

        write_onnx(loaded, onnx)
        written["onnx"] = str(onnx)
    if card is not None:
        from ludus.policies.description import PolicyDescription
        from ludus.reports.model_card import CardSubject, run_folder_of, write_model_card

        description = PolicyDescription.of(loaded.spec, loaded.policy.config, loaded.settings)
        subject = CardSubject(
            title=target.stem,
            path=str(target),
            sha256=exported.sha256,
            description=json_format.loads(description.model_dump_json()),
            parameters=sum(parameter.numel() for parameter in loaded.policy.parameters()),
            checkpoint=exported.checkpoint,
            env_steps=exported.env_steps,
        )
        card.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomic(card, write_model_card(subject, run_folder_of(Path(agent))))
        written["card"] = str(card)
    if json:
        typer.echo(json_format.dumps(written, indent=2))
        return
    print_ok(f"{target}: {exported.size_bytes:,} bytes, SHA-256 {exported.sha256}; try: ludus eval {target}")
    if bot is not None:
        print_ok(
            f"{bot.path}: a bot for RLBot v5, offline; {bot.tested.packets} packets replayed, "
            f"{bot.tested.decisions} observations and {bot.tested.actions} actions equal; see {bot.path}/README.md"
        )
    for name in ("onnx", "card"):
        if name in written:
            print_ok(f"{name} written to {written[name]}")


def _export_bot(agent: str, folder: Path) -> "RlbotFolder":
    from ludus.evaluation.rlbot.folder import export_rlbot

    return export_rlbot(agent, folder)
