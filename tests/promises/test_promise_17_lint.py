"""Promise 17: no pickle, eval, exec, torch.load or yaml.load in src/; lint rules hold it, a scan checks them."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BANNED_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
BANNED_FUNCTIONS = {"torch.load", "torch.save", "numpy.load", "yaml.load", "yaml.unsafe_load", "yaml.full_load"}
BANNED_BUILTINS = {"eval", "exec", "compile", "__import__"}

SAMPLES = {
    "pickle": "import pickle",
    "pickle.loads": "from pickle import loads",
    "cPickle": "import cPickle",
    "dill": "import dill",
    "cloudpickle": "import cloudpickle",
    "joblib": "import joblib",
    "marshal": "import marshal",
    "shelve": "import shelve",
    "torch.load": "import torch\n\nSTATE = torch.load('x')",
    "torch.load by name": "from torch import load",
    "torch.save": "import torch\n\ntorch.save({}, 'x')",
    "yaml.load": "import yaml\n\nSTATE = yaml.load('x')",
    "numpy.load": "import numpy as np\n\nSTATE = np.load('x')",
    "eval": "STATE = eval('1')",
    "exec": "exec('1')",
}
RULES = {"TID251", "S102", "S301", "S302", "S307", "S506"}


def ruff() -> str:
    found = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    assert found is not None, "ruff is one of the development packages"
    return found


def banned_in(source: str) -> list[str]:
    """Returns every banned name that a source text uses, whatever it says in comments; independent of ruff."""
    found, modules = [], {}
    nodes = list(ast.walk(ast.parse(source)))
    for node in nodes:
        if isinstance(node, ast.Import):
            modules.update({alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names})
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in BANNED_MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name for name in names if name.split(".")[0] in BANNED_MODULES or name in BANNED_FUNCTIONS]
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{modules.get(node.value.id, node.value.id)}.{node.attr}"
            found += [name] if name in BANNED_FUNCTIONS else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BANNED_BUILTINS:
            found.append(node.func.id)
    return found


@pytest.mark.parametrize("source", SAMPLES.values(), ids=SAMPLES.keys())
def test_the_lint_rules_and_the_scan_flag_each_banned_thing(source: str) -> None:
    text = f'"""A sample."""\n\n{source}\n'
    result = subprocess.run(
        [ruff(), "check", "--output-format", "json", "--stdin-filename", "src/ludus/sample.py", "-"],
        input=text, capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    codes = {fault["code"] for fault in json.loads(result.stdout)}
    assert codes & RULES, f"ruff says only {codes}"
    assert banned_in(text), "the scan sees nothing"


def test_a_harmless_file_is_not_flagged() -> None:
    assert banned_in("import json\nimport torch\n\nx = json.loads('1')\ny = torch.zeros(1)\nz = model.eval()") == []


def test_nothing_banned_is_in_the_source() -> None:
    files = sorted((ROOT / "src").rglob("*.py"))
    assert len(files) > 20
    found = {str(path.relative_to(ROOT)): names for path in files if (names := banned_in(path.read_text("utf-8")))}
    assert found == {}


def test_ruff_agrees_about_the_source_also_where_comments_ask_it_to_look_away() -> None:
    result = subprocess.run(
        [ruff(), "check", "--ignore-noqa", "--select", ",".join(sorted(RULES)), "src"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout
