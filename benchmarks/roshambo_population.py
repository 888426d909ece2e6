"""Score bots of Roshambo against the 43 bots of OpenSpiel, as `ludus benchmark --suite roshambo` scores an agent.

It shows that the scorer is right: Lanctot et al. (arXiv 2303.03196) give the aggregates of the best bots, greenberg 284
and iocaine 250. Needs the extra `openspiel`.

    python benchmarks/roshambo_population.py openspiel:greenberg openspiel:iocainebot random meta --matches 20
"""

import argparse
import json

import torch

from ludus.envs.registry import make_env
from ludus.envs.world_parts import metrics_of
from ludus.evaluation.benchmark import Population, RowResult
from ludus.evaluation.matches import play_first_matches
from ludus.evaluation.players import find_player, seat_in_batch
from ludus.evaluation.results import MatchStatistics, estimates
from ludus.evaluation.suite import SuiteRow
from ludus.worlds.roshambo.openspiel import OPENSPIEL_BOTS


def main() -> None:
    """Scores the bots and prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bots", nargs="+", help="bots to score, such as openspiel:greenberg or meta")
    parser.add_argument("--matches", type=int, default=100, help="matches against each of the 43 bots")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    scores = {bot: score(bot, arguments.matches, arguments.seed) for bot in arguments.bots}
    if arguments.json:
        print(json.dumps({bot: each.as_json() for bot, each in scores.items()}, indent=2))
        return
    for bot, each in scores.items():
        low, high = each.aggregate.interval()
        print(
            f"{bot:24} return {each.mean_return.value:7.1f}  exploitability {each.exploitability.value:6.1f} "
            f"by {each.exploiter:26} aggregate {each.aggregate.value:7.1f} ({low:.1f} to {high:.1f})"
        )


def score(bot: str, matches: int, seed: int) -> Population:
    """Play a bot in one seat, by turns, against everyone of the population, itself included."""
    with make_env("roshambo", len(OPENSPIEL_BOTS) * matches, seed=seed) as env:
        players = [find_player(f"openspiel:{name}", env) for name in OPENSPIEL_BOTS]
        number = torch.arange(env.num_envs)
        opponents = number // matches
        own = torch.stack([number % 2 == 0, number % 2 == 1], 1)
        seating = torch.where(own, len(players), opponents.unsqueeze(1))
        statistics = MatchStatistics(env, own, metrics_of(env.spec.id))
        actors = seat_in_batch(env, [*players, find_player(bot, env)], seating, lambda _: seed, deterministic=False)
        results = statistics.results(opponents, play_first_matches(env, actors, statistics, seed=seed))
        rows = [
            RowResult(
                SuiteRow(opponent=player.name),
                estimates(results.against(index), metrics_of(env.spec.id), env.spec.rate_hz),
            )
            for index, player in enumerate(players)
        ]
    return Population.of(rows)


if __name__ == "__main__":
    main()
