"""`ludus export`: an agent as one safe file, its step as ONNX, and a model card."""

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ludus.cli.console import print_json, print_ok
from ludus.cli.options import AgentName, AsJson, Plugin, latest_run, load_plugins
from ludus.core.errors import ConfigError

_CARD_SUFFIX = ".md"


def export(
    agent: AgentName = None,
    out: Annotated[Path | None, Option(help="File to write, ending in .ludus.", show_default="NAME.ludus")] = None,
    onnx: Annotated[Path | None, Option(help="Also write the policy's step as this .onnx file.")] = None,
    card: Annotated[Path | None, Option(help="Also write a model card in Markdown to this .md file.")] = None,
    plugin: Plugin = None,
    json: AsJson = False,
) -> None:
    """Export an agent to one self-contained file that every command accepts; it contains no code."""
    from ludus.core.files import EXPORT_SUFFIX, write_text_atomic
    from ludus.evaluation.players import load_agent, short_name
    from ludus.policies.export import export_agent
    from ludus.policies.shipped import find_agent_path

    options = load_plugins(plugin)
    if card is not None and card.suffix != _CARD_SUFFIX:
        raise ConfigError(f"the card {str(card)!r} must end in {_CARD_SUFFIX}; name it {card.stem}{_CARD_SUFFIX}")
    agent = agent or latest_run()
    loaded = load_agent(agent)
    name = short_name(agent).replace("/", "-")
    exported = export_agent(agent, out or Path(name + EXPORT_SUFFIX))
    target = exported.path
    written: dict[str, Any] = {"file": str(target), "bytes": exported.size_bytes, "sha256": exported.sha256}
    if onnx is not None:
        from ludus.policies.export import write_onnx

        write_onnx(loaded, onnx)
        written["onnx"] = str(onnx)
    if card is not None:
        from ludus.policies.description import PolicyDescription
        from ludus.reports.model_card import CardSubject, run_folder_of, write_model_card

        description = PolicyDescription.of(loaded.spec, loaded.policy.config, loaded.stored.values)
        said = description.model_dump(mode="json")
        size = sum(parameter.numel() for parameter in loaded.policy.parameters())
        subject = CardSubject(
            target.stem, str(target), exported.sha256, said, size, exported.checkpoint, exported.env_steps
        )
        write_text_atomic(card, write_model_card(subject, run_folder_of(find_agent_path(agent) or Path(agent))))
        written["card"] = str(card)
    if json:
        print_json(written)
        return
    print_ok(f"{target}: {exported.size_bytes:,} bytes, SHA-256 {exported.sha256}; try: ludus eval {target}{options}")
    for name in ("onnx", "card"):
        if name in written:
            print_ok(f"{name} written to {written[name]}")
