"""What the strategy encoder makes of its opponents, from `strategy_analysis.csv`."""

import numpy as np

from ludus.reports.doctor.finding import Change, Finding, Unknown, Verdict
from ludus.reports.run_data import RunData

SMALL_NORM = 0.01  # a latent this short moves nothing that reads it
CONSTANT_STD = 1e-3  # of the latent's length: it hardly differs from frame to frame
CHANCE = 2.0  # times what separation is by chance alone
FEWEST_OVER = 4  # segments more than opponents; with fewer, separation says nothing
FEWEST_ROWS = 3
_LAST_ROWS = 5


def encoder_ignored(data: RunData) -> Verdict:
    """A strategy latent that says nothing of the opponent."""
    table = data.strategy
    if len(table) < FEWEST_ROWS:
        return Unknown(
            f"fewer than {FEWEST_ROWS} rows in strategy_analysis.csv, which runs with a strategy encoder have"
        )
    last = slice(-_LAST_ROWS, None)
    norm, spread = (float(np.median(table.numbers(name)[last])) for name in ("latent_norm", "latent_std"))
    if norm < SMALL_NORM:
        evidence = f"latent_norm {norm:.2g} at the end, {table.numbers('latent_norm')[0]:.2g} at first"
        return [_finding(data, "its latent is nearly 0", evidence)]
    if spread < CONSTANT_STD * norm:
        evidence = f"latent_std {spread:.2g} at the end, with latent_norm {norm:.2g}"
        return [_finding(data, "its latent is constant", evidence)]
    separation, opponents, segments = (table.numbers(name) for name in ("separation", "opponents", "segments"))
    judged = np.flatnonzero(np.isfinite(separation) & (opponents >= 2) & (segments - opponents >= FEWEST_OVER))
    if not len(judged):
        return []
    judged = judged[last]
    # Where the encoder sees no difference, the variance between opponents over that within them is about this.
    by_chance = float(np.median((opponents - 1)[judged] / (segments - opponents)[judged]))
    middle = float(np.median(separation[judged]))
    if middle > CHANCE * by_chance:
        return []
    evidence = (
        f"separation {middle:.2g} between {opponents[judged].max():.0f} opponents in the last {len(judged)} rows that "
        f"have one; chance alone gives {by_chance:.2g}"
    )
    return [_finding(data, "its latent is the same for all opponents", evidence)]


def _finding(data: RunData, how: str, evidence: str) -> Finding:
    decay = data.setting("ppo.weight_decay", 0.0) or 0.0
    if decay > 0.01:
        remedy, change = "weight decay pulls the encoder to 0: lower it", Change("ppo.weight_decay", decay, 0.0)
    else:
        predict = data.setting("policy.strategy.predict", 0.0) or 0.0
        remedy = (
            "let the encoder predict what the opponent does next or recognise the bots (policy.strategy.recognise), "
            "and let it meet opponents that differ; or take it out (policy.strategy=null) if there is nothing to "
            "recognise"
        )
        change = Change("policy.strategy.predict", predict, max(3.0 * predict, 0.1))
    return Finding(
        f"the strategy encoder is ignored: {how}", (f"{evidence} (strategy_analysis.csv)",), remedy, (change,)
    )
