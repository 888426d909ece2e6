"""The configuration reference: every key of a run, with its type, default, valid values and meaning."""

import re
from collections.abc import Callable

from docs.generate.markdown import table
from docs.generate.schema import sections, settings_table, shown_default, summary, type_of
from docs.generate.usage import check_justified, usage
from pydantic import BaseModel

from ludus.algorithms.algorithm import algorithms
from ludus.core.schedules import (
    ConstantSchedule,
    CosineSchedule,
    ExponentialSchedule,
    KlAdaptiveConfig,
    LinearSchedule,
)
from ludus.scale.config import AshaConfig, PbtConfig, SweepConfig
from ludus.scale.population import ExploiterRoleConfig, MainConfig, PopulationConfig
from ludus.scale.space import KINDS
from ludus.training.config import TrainConfig

_HEAD = """# Configuration reference

Every key that a run accepts, generated from the schema that checks it. Keys are dotted paths: `ppo.n_steps` is the key
`n_steps` in the section `ppo` of a YAML file, and `ludus train brawl ppo.n_steps=64` on the command line. `null` turns
an optional setting off. The last column names the presets that set a key, or else says why there is one: a setting that
nothing uses and no result supports is deleted. How layers of settings combine is explained in
[Configuration](../concepts/training.md#configuration); the settings of a world (`world.settings`) are on
[the page of the world](../worlds/index.md).

```sh
ludus config show brawl --preset quick --origins   # every value of a preset and where it comes from
```
"""
_SCHEDULES = """## Schedules { #schedules }

Where the type is *float or schedule*, write a number, or a mapping whose value follows the share of `total_env_steps`
that is done:

```yaml
ppo:
  learning_rate: {kind: linear, start: 3.0e-4, end: 0.0}
  ent_coef: {kind: cosine, start: 0.01, end: 0.001, until: 0.5}   # constant after half of the run
```
"""
_POINTS = """Where the type is *float or points* (weights of reward terms, `rewards.team_spirit`), write a number, or
points over env steps: `{points: [[0, 1.0], [200_000, 0.0]], kind: linear}`. The weight is constant before the first and
after the last point; `kind: cosine` eases between them.
"""
_SWEEPS = """## Sweeps { #sweeps }

[`ludus sweep`](../howto/scale.md) reads the configuration of a run with two additions: a search space in the place of
any value, and the section `sweep`.

```yaml
ppo:
  learning_rate: {sweep: log_uniform, low: 1.0e-4, high: 3.0e-3}
  n_epochs: {sweep: choice, values: [2, 4, 8]}
```
"""
_LEAGUES = """## Leagues { #leagues }

[`ludus league`](../howto/scale.md#a-league) reads the configuration of a run with one more section, `population`. It
sets `opponents`, `league.sampler` and `checkpoints.every_env_steps` of the learners itself.
"""
_SAME = {"curriculum[].rewards": "rewards", "curriculum[].exploration": "policy.exploration"}


def configuration_page() -> str:
    """Return the page."""
    paths = [*TrainConfig.model_fields]
    check_justified(paths + [f"{key}.{name}" for key, model in sections(TrainConfig) for name in model.model_fields])
    parts = [_HEAD, "## The run { #run }", null_for_none(_run_table())]
    for key, model in sections(TrainConfig):
        level = "##" if "." not in key else "###"
        title = key if "kind" not in model.model_fields or key != "adaptive_curriculum" else _with_kind(key, model)
        parts.append(f"{level} `{title}` {{ #{anchor(title)} }}")
        if key in _SAME:
            parts.append(f"As [`{_SAME[key]}`](#{anchor(_SAME[key])}), for one phase.")
            continue
        parts += [null_for_none(summary(model)), null_for_none(_key_table(key, model))]
    parts += [_SCHEDULES, _schedule_table(), _POINTS, _SWEEPS, *_sweep_tables(), _LEAGUES, *_league_tables()]
    return "\n\n".join(parts) + "\n"


def _sweep_tables() -> list[str]:
    """Return a section for every kind of search space, and for everything in the section `sweep`."""
    parts: list[str] = []
    for kind, space in KINDS.items():
        parts += [f"### `{{sweep: {kind}}}` {{ #sweep-{anchor(kind)} }}", summary(space), settings_table(space)]
    links = {"asha": "#sweep-asha", "pbt": "#sweep-pbt"}
    for key, model in (("sweep", SweepConfig), ("sweep.asha", AshaConfig), ("sweep.pbt", PbtConfig)):
        found = settings_table(model, link=lambda name: links.get(name, ""))
        parts += [f"### `{key}` {{ #{anchor(key)} }}", null_for_none(summary(model)), null_for_none(found)]
    return parts


def _league_tables() -> list[str]:
    """Return a section for everything in the section `population`."""
    exploiters = ("main_exploiter", "league_exploiter")
    links = {"main": "#population-main"} | dict.fromkeys(exploiters, "#population-exploiters")
    parts: list[str] = []
    for title, key, model in (
        ("`population`", "population", PopulationConfig),
        ("`population.main`", "population-main", MainConfig),
        ("`population.main_exploiter` and `population.league_exploiter`", "population-exploiters", ExploiterRoleConfig),
    ):
        found = settings_table(model, link=lambda name: links.get(name, ""))
        parts += [f"### {title} {{ #{key} }}", null_for_none(summary(model)), null_for_none(found)]
    return parts


def anchor(key: str) -> str:
    """Return the anchor of a section."""
    return re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")


def _links_below(key: str) -> Callable[[str], str]:
    """Return a function that links to the sections inside a section."""
    found = {inner for inner, _ in sections(TrainConfig)}

    def link(name: str) -> str:
        path = f"{key}.{name}" if key else name
        if path == "adaptive_curriculum":
            return "#adaptive-curriculum-kind-strategic"
        return next((f"#{anchor(full)}" for full in (path, f"{path}[]") if full in found), "")

    return link


def _with_kind(key: str, model: type[BaseModel]) -> str:
    return f"{key}, kind: {model.model_fields['kind'].default}"


def _key_table(key: str, model: type[BaseModel]) -> str:
    return settings_table(model, link=_links_below(key), usage=lambda name: usage(f"{key}.{name}"))


def _run_table() -> str:
    """Return the table of the run's own keys; the sections of algorithms are described by the algorithms."""
    own = {name: f"Settings of the algorithm; they count with `algorithm: {name}`." for name in algorithms()}
    return settings_table(TrainConfig, own, _links_below(""), usage)


def _schedule_table() -> str:
    rows = []
    for model in (ConstantSchedule, LinearSchedule, ExponentialSchedule, CosineSchedule, KlAdaptiveConfig):
        schema = model.model_json_schema()
        keys = [
            f"`{name}` ({type_of(schema['properties'][name], schema)}"
            + ("" if field.is_required() else f", default {shown_default(field.default)}")
            + ")"
            for name, field in model.model_fields.items()
            if name != "kind"
        ]
        note = "; for `ppo.learning_rate` alone" if model is KlAdaptiveConfig else ""
        rows.append((f"`{model.model_fields['kind'].default}`", ", ".join(keys), f"{summary(model)[:-1]}{note}."))
    return table(("kind", "keys", "value"), rows)


def null_for_none(text: str) -> str:
    """Return text of docstrings in the words of YAML."""
    for python, yaml in (("None", "`null`"), ("True", "`true`"), ("False", "`false`")):
        text = re.sub(rf"(?<![`\w]){python}(?![`\w])", yaml, text)
    return text
