"""Every block of Python in the README and in docs/ runs as it stands, every link to a file leads somewhere, and no
command installs somebody else's package."""

import ast
import re
from pathlib import Path

import pytest
from docs.generate import REFERENCE_PAGES

from ludus.core.errors import GameNotFoundError
from ludus.envs import bots

pytestmark = pytest.mark.package

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = {ROOT / "docs" / path for path in REFERENCE_PAGES}
BLOCKS = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.mark.parametrize("code", BLOCKS)
def test_a_block_of_code_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bots, "_REGISTERED", {})
    try:
        exec(compile(code, "page", "exec"), {"__name__": "page"})  # noqa: S102 - our own pages
    except GameNotFoundError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    paths = [(page.parent / link).resolve() for link in links if "://" not in link]
    missing = [path for path in paths if not path.exists() and path not in GENERATED]
    assert not missing


@pytest.mark.parametrize("folder", ["src", "docs", "examples", "benchmarks", "README.md", "CONTRIBUTING.md"])
def test_no_command_installs_the_unrelated_library_of_the_same_name(folder: str) -> None:
    root = ROOT / folder
    files = [root] if root.is_file() else [path for path in root.rglob("*") if path.suffix in (".py", ".md", ".html")]
    by_name = re.compile(r"""pip3? install[^\n`]*[ "']ludus(-rl)?(?![\w/-])""")
    found = [str(path.relative_to(ROOT)) for path in files if by_name.search(path.read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    ("page", "fewest"), [("concepts/architecture.md", 30), ("algorithms/ppo.md", 20), ("algorithms/sac-td3.md", 8)]
)
def test_pages_about_the_code_name_code_that_is_there(page: str, fewest: int) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    source = ROOT / "src" / "ludus"
    named = set(re.findall(r"`((?!tests/|benchmarks/)[a-z_0-9/]+\.py)(?::([A-Za-z_.0-9]+))?`", text))
    assert len(named) > fewest
    for file, name in sorted(named):
        names = defined_in(source / file)
        assert not name or name in names, f"{file} has no {name}"


def test_every_package_is_in_the_picture_of_the_architecture() -> None:
    text = (ROOT / "docs" / "concepts" / "architecture.md").read_text(encoding="utf-8")
    packages = {folder.parent.name for folder in (ROOT / "src" / "ludus").glob("*/__init__.py")}
    assert {name for name in packages if f"{name}/" not in text} == set()


def defined_in(file: Path) -> set[str]:
    """Return the functions, classes and methods of a file, methods as `Class.method`."""
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found
