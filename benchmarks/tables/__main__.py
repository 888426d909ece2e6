"""Writes the tables of docs/ anew from the raw data in docs/data.

A table stands between the lines `<!-- results:NAME -->` and `<!-- /results:NAME -->`; NAME is that of the command that
measures it, `make results-NAME`, and where one command measures several tables, `NAME:part`.

    python -m benchmarks.tables              # all tables
    python -m benchmarks.tables brawl-sim    # those of one command
    python -m benchmarks.tables --check      # changes nothing, and fails if a page differs from the data
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks.tables import (
    brawl,
    city,
    city_micropolis,
    city_screens,
    city_vision,
    costs,
    gauntlet,
    learner,
    mimic,
    peers,
    recipe,
    rocket,
    rocket_parity,
    share,
    strategy,
    summaries,
    tuning,
)
from benchmarks.tables.markdown import DOCS, ROOT

TABLES: Mapping[str, Callable[[], str]] = {
    "learn:readme": summaries.peers,
    "peers": peers.readme,
    "peers:details": peers.details,
    "brawl-quick:summary": summaries.brawl,
    "rocket-quick:summary": summaries.rocket,
    "mimic-walk:summary": summaries.mimic,
    "city-quick:summary": summaries.city,
    "city-modes": city.modes,
    "city-variants": partial(city.modes, "city_variants.json"),
    "brawl-bots:scores": brawl.bot_scores,
    "brawl-bots:behaviour": brawl.bot_behaviour,
    "brawl-weapons": brawl.weapons,
    "brawl-sim": brawl.simulation,
    "brawl-quick": brawl.quick,
    "brawl-competition:opponents": brawl.competition,
    "brawl-competition:goals": brawl.competition_goals,
    "brawl-competition:curves": brawl.competition_curves,
    "brawl-candidates": brawl.candidates,
    "brawl-recipe:changes": recipe.changes,
    "brawl-recipe:curves": recipe.curves,
    "brawl-recipe:more": partial(recipe.changes, "quick_recipe_x86.json", short=False),
    "brawl-curriculum:stages": brawl.phases,
    "brawl-curriculum:opponents": brawl.curriculum,
    "brawl-armed:opponents": brawl.armed,
    "brawl-armed:goals": brawl.goals,
    "brawl-tuning:memory": tuning.memory,
    "brawl-tuning:recipes": tuning.recipes,
    "brawl-tuning:weapons": tuning.weapons,
    "brawl-tuning:long": tuning.long,
    "brawl-tuning:waiting": tuning.waiting,
    "brawl-tuning:waiting-long": tuning.waiting_long,
    "strategy:compared": strategy.compared,
    "strategy:curves": strategy.curves,
    "strategy:probes": strategy.probes,
    "strategy:ablation": strategy.ablation,
    "gauntlet:ceiling": gauntlet.ceiling,
    "gauntlet:members": gauntlet.members,
    "gauntlet-triangle:ceiling": partial(gauntlet.ceiling, "gauntlet_triangle.json"),
    "gauntlet-triangle:room": gauntlet.room,
    "gauntlet-predictable:ceiling": partial(gauntlet.ceiling, "gauntlet_predictable.json"),
    "gauntlet-predictable:specialists": partial(gauntlet.specialists, "gauntlet_predictable.json", "40 M"),
    "unknown-opponents": gauntlet.unknown,
    "competition-memory:standard": partial(gauntlet.competition_memory, "standard"),
    "competition-memory:clash": partial(gauntlet.competition_memory, "clash"),
    "competition-memory:latent": partial(gauntlet.competition_latent, "clash"),
    "competition-memory:latent-standard": partial(gauntlet.competition_latent, "standard"),
    "gauntlet-rounds:ceiling": partial(gauntlet.ceiling, "gauntlet_rounds.json"),
    "gauntlet-rounds:sets": partial(gauntlet.sets, "gauntlet_rounds.json"),
    "gauntlet-rounds:specialists": partial(gauntlet.specialists, "gauntlet_rounds.json", "30 M"),
    "gauntlet-duelists:ceiling": partial(gauntlet.ceiling, "gauntlet_duelists.json"),
    "gauntlet-duelists:sets": partial(gauntlet.sets, "gauntlet_duelists.json"),
    "gauntlet-duelists:specialists": partial(gauntlet.specialists, "gauntlet_duelists.json", "3 M"),
    "gauntlet-clash:reading": partial(gauntlet.reading, "gauntlet_clash.json"),
    "gauntlet-clash:worth": partial(gauntlet.worth, "gauntlet_clash.json", "events"),
    "gauntlet-clash:answers": partial(gauntlet.answers, "gauntlet_clash.json"),
    "gauntlet-exploiters:ceiling": partial(gauntlet.ceiling, "gauntlet_exploiters.json"),
    "gauntlet-exploiters:specialists": partial(gauntlet.specialists, "gauntlet_exploiters.json", "30 M"),
    "browser": share.parity,
    "gymnasium-curves": learner.curves,
    "gymnasium-presets": learner.presets,
    "learner-device": learner.learner_device,
    "roshambo-population": summaries.roshambo,
    "roshambo": summaries.roshambo_trained,
    "learn:peers": learner.peers,
    "learn:brawl": learner.brawl,
    "mimic-walk": mimic.walk,
    "mimic-walk-3d": mimic.walk_3d,
    "mimic-walk-gpu": mimic.walk_gpu,
    "mimic-gait:numbers": mimic.gait_numbers,
    "mimic-gait:joints": mimic.gait_joints,
    "mimic-gait:pushes": mimic.gait_pushes,
    "mimic-gpu": mimic.gpu,
    "mimic-balance": mimic.balance,
    "mimic-slow": mimic.slow,
    "mimic-motions": mimic.motions,
    "mimic-motions:one": mimic.one_policy,
    "mimic-parity:driven": mimic.driven,
    "mimic-parity:walking": mimic.crossed,
    "mimic-physics": mimic.physics,
    "mimic-sim": mimic.simulation,
    "mimic-learn": mimic.learn,
    "mimic-algorithms": mimic.algorithms,
    "rocket-sim": rocket.simulation,
    "rocket-parity": partial(rocket_parity.parity, "Ball and contacts"),
    "rocket-oracle:states": rocket_parity.random_states,
    "rocket-oracle:bounces": rocket_parity.facets,
    "rocket-quick": rocket.quick,
    "rocket-stages:modes": rocket.staged,
    "rocket-stages:ratings": rocket.rated,
    "rocket-search:stages": rocket.phases,
    "rocket-search:recipes": rocket.search,
    "rocket-bots:scores-1v1": partial(brawl.bot_scores, "rocket_bots_1v1"),
    "rocket-bots:scores-2v2": partial(brawl.bot_scores, "rocket_bots_2v2"),
    "rocket-bots:goals-1v1": partial(rocket.bot_goals, "1v1"),
    "rocket-bots:goals-2v2": partial(rocket.bot_goals, "2v2"),
    "rocket-bots:behaviour": partial(brawl.bot_behaviour, "rocket_bots_1v1"),
    "render:brawl": partial(costs.pictures, "brawl"),
    "render:rocket": partial(costs.pictures, "rocket"),
    "league": costs.league,
    "league-scaling:costs": costs.league_costs,
    "league-scaling:loads": costs.league_loads,
    "league-scaling:limits": costs.league_limits,
    "logging": costs.logging,
    "startup": costs.startup,
    "checkpoints": costs.checkpoints,
    "together": costs.together_cost,
    "together-cuda": costs.together_rate,
    "speedrun": costs.speedruns,
    "city-screens": city_screens.screens,
    "city-micropolis:players": city_micropolis.players,
    "city-micropolis:learning": city_micropolis.learning,
    "city-micropolis:faults": city_micropolis.faults,
    "city-guided:players": partial(city_micropolis.players, "city_guided.json"),
    "city-guided:seeds": partial(
        city_micropolis.seeds, ("city_guided.json", "city_guided_1.json", "city_guided_2.json")
    ),
    "city-guided:learning": partial(city_micropolis.learning, "city_guided.json"),
    "city-lincity:players": partial(city.real_game, "city_lincity.json"),
    "city-lincity:learning": partial(city_micropolis.learning, "city_lincity.json"),
    "city-lincity:faults": partial(city_micropolis.faults, "city_lincity.json"),
    "city-opencity:players": partial(city.real_game, "city_opencity.json"),
    "city-opencity:learning": partial(city_micropolis.learning, "city_opencity.json"),
    "city-opencity:faults": partial(city_micropolis.faults, "city_opencity.json"),
    "city-vision:accuracy": city_vision.accuracy,
    "city-vision:speed": city_vision.speed,
    "city-strategies": city.strategies,
    "city-quick": city.quick,
}
_BLOCK = re.compile(r"<!-- results:(?P<name>[a-z0-9:-]+) -->\n(?P<body>.*?)<!-- /results:(?P=name) -->", re.DOTALL)


def main() -> None:
    """Reads the arguments and rewrites the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names of commands; all if left out")
    parser.add_argument("--check", action="store_true", help="fail if a page differs, and change nothing")
    options = parser.parse_args()
    stale = []
    for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        old = page.read_text(encoding="utf-8")
        new = filled(old, options.names)
        if new != old:
            stale.append(str(page.relative_to(ROOT)))
            if not options.check:
                page.write_text(new, encoding="utf-8")
    print("\n".join(f"[{'WARN' if options.check else 'OK'}] {page} differed from its data" for page in stale))
    if options.check and stale:
        sys.exit(1)


def filled(page: str, commands: list[str] | None = None) -> str:
    """Returns a page with its tables made anew; those of some commands alone if any are named."""

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        if commands and command_of(name) not in commands:
            return match[0]
        return f"<!-- results:{name} -->\n{_made(name)}<!-- /results:{name} -->"

    return _BLOCK.sub(fill, page)


def _made(name: str) -> str:
    """Returns the lines of a table; none as long as nothing was measured."""
    try:
        return TABLES[name]() + "\n"
    except FileNotFoundError:
        return ""


# What lost was removed with the scripts that measured it; the tables stay, and this commit still has the commands.
BEFORE_REMOVAL = "84949106"
REMOVED = frozenset(
    {"competition-memory", "gauntlet"} | {f"gauntlet-{name}" for name in (
        "duelists", "exploiters", "predictable", "rounds", "triangle")}
)  # fmt: skip


def command_of(name: str) -> str:
    """Returns the command that measures a table: the part of its name before the colon."""
    return name.partition(":")[0]


if __name__ == "__main__":
    main()
