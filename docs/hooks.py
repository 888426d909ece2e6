"""Hooks of MkDocs: add generated and playable pages, fill in generated tables, and lead links to examples to theirs."""

import gc
import logging
import posixpath
import re
import sys
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# As in commands: by default, Python looks for garbage after every 700 objects, a tenth of the time of a build.
gc.set_threshold(20_000, 10, 10)

ROOT = Path(__file__).parents[1]
for folder in (ROOT, ROOT / "src"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from docs.generate import REFERENCE_PAGES  # noqa: E402 - the folders above are where they are found
from docs.generate.api import api_page  # noqa: E402 - the folders above are where they are found
from docs.generate.cli import cli_page  # noqa: E402 - the folders above are where they are found
from docs.generate.configuration import configuration_page  # noqa: E402 - the folders above are where they are found
from docs.generate.examples import example_pages, page_of  # noqa: E402 - the folders above are where they are found
from docs.generate.worlds import DIRECTIVES, events_page  # noqa: E402 - the folders above are where they are found
from mkdocs.structure.files import File  # noqa: E402 - the folders above are where they are found

from ludus.share.page import share_agent  # noqa: E402 - the folders above are where they are found

PLAYABLE = ("champion", "walker")  # shipped agents whose pages of `ludus share` are part of the site
_DIRECTIVE = re.compile(r"^(?P<indent> *)<!-- generated:(?P<what>[a-z-]+) (?P<of>[a-z0-9-]+) -->$", re.MULTILINE)
_LINK = re.compile(r"\]\((?P<target>(?:\.\./)+(?P<path>examples/[^)#]*))(?P<anchor>#[^)]*)?\)")

logging.getLogger("ludus").setLevel(logging.ERROR)


def generated_pages() -> dict[str, str]:
    """Return every generated page by its path inside the site's source."""
    makers = (api_page, cli_page, configuration_page, events_page)
    return {path: make() for path, make in zip(REFERENCE_PAGES, makers, strict=True)} | example_pages()


def playable_pages() -> dict[str, str]:
    """Return the page of every playable agent by its path inside the site."""
    with TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.html" for name in PLAYABLE}
        return {f"live/{name}.html": share_agent(name, file).file.read_text() for name, file in files.items()}


def _generate(match: re.Match[str]) -> str:
    return textwrap.indent(DIRECTIVES[match["what"]](match["of"]), match["indent"])


def on_files(files: Any, config: Any) -> Any:  # noqa: ANN401 - MkDocs has no types of its own here
    """Add the generated and the playable pages to the site."""
    for path, text in (generated_pages() | playable_pages()).items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ANN401 - as above
    """Fill in generated tables, and turn links to files of `examples/` into links to their pages."""
    markdown = _DIRECTIVE.sub(_generate, markdown)
    folder = posixpath.dirname(page.file.src_uri) or "."

    def relink(match: re.Match[str]) -> str:
        return f"]({posixpath.relpath(page_of(match['path']), folder)}{match['anchor'] or ''})"

    return _LINK.sub(relink, markdown)
