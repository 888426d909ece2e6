"""The page: a document of numbers, our own scripts and styles in one file that may load nothing and run nothing else.

Everything that a run's files say is data: it stands in the page as JSON without a single `<`, and the scripts put it
on the page as text. The content policy names the hashes of our script and style, so nothing else could run.
"""

import base64
import hashlib
import html
import json
from importlib import resources

from ludus.core.files import JSON

_ASSETS = "ludus.reports.page.assets"
_STYLE = "page.css"
# In the order in which they are read: each may use what those before it have.
_SCRIPTS = (
    "elements.js",
    "chart.js",
    "marks.js",
    "brawl.js",
    "rocket.js",
    "walker.js",
    "player.js",
    "sections.js",
    "page.js",
)
_TEMPLATE = "page.html"


def make_page(document: JSON, title: str) -> str:
    """Returns the whole HTML file."""
    style = _asset(_STYLE)
    scripts = "\n".join(_asset(name) for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{scripts}\n}})();\n'
    allowed = f"script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    parts = {
        "policy": html.escape(policy, quote=True),
        "title": html.escape(title),
        "style": style,
        "data": embedded(document),
        "script": script,
    }
    page = _asset(_TEMPLATE)
    pieces = page.split("{{")
    # One pass over the template: what is put in is never looked at again, whatever it holds.
    return pieces[0] + "".join(_filled(piece, parts) for piece in pieces[1:])


def embedded(document: JSON) -> str:
    """Returns JSON that can stand inside a script element: nothing in it can end the element or begin another."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _filled(piece: str, parts: dict[str, str]) -> str:
    name, _, rest = piece.partition("}}")
    return parts[name] + rest


def _asset(name: str) -> str:
    return (resources.files(_ASSETS) / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
