"""Every block of code in docs/environments.md runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "environments.md"


def test_the_code_on_the_page_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 7
    # Each block in a function of its own, so that none lives from another's names; one process, to import torch once.
    lines = ["from __future__ import annotations"]
    for number, block in enumerate(blocks):
        lines.append(f"def block_{number}():")
        lines += [f"    {line}" for line in block.splitlines()]
    lines += [f"block_{number}()" for number in range(len(blocks))]
    script = tmp_path / "page.py"
    script.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "nudge-v1: 15 passed, 2 skipped, 0 failed" in done.stdout
