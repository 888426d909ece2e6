"""What reading the opponent is worth in brawl where choices are hidden: the rules `clash`.

    PYTHONPATH=. python benchmarks/clash.py --device cuda      # docs/data/gauntlet_clash.json

The opponents are copies of one strong agent that differ in what they choose in a clash alone. Steps:

1. `base`: train that agent by self-play and against bots;
2. `members`: make the copies, without training; twelve are met in training, three are kept for tests. Also make the
   agent that everyone below starts as: it plays as the base does, but draws evenly in clashes. Self-play ends with one
   choice that is made nearly always, and who never tries the others cannot learn when they win;
3. `ceiling`: agents without memory, with an LSTM and with an encoder of events, over several seeds: each meets the seen
   members in training, and is measured against all of them in sets of matches;
4. `answers`: copies that choose the best answers, and one that draws evenly, play against the members: what knowing the
   opponent is worth where nothing else differs, without any training.

Steps that are done are not done again, so a benchmark that was cut off can be started again. Agents that were told who
they meet, and LSTMs with chrono initialization, were measured with code that was removed: their results stay.
"""

import argparse
import csv
import itertools
import json
import math
import multiprocessing
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import ludus
from ludus.analysis.ablation import CONDITIONS, Shuffled
from ludus.analysis.analysed_policy import AnalysedPolicy, Change
from ludus.policies.agent import TENSORS, find_checkpoint
from ludus.policies.policy import Policy
from ludus.store import Checkpoint, write_single_file
from ludus.training.callbacks import BaseCallback, Counters
from ludus.worlds.brawl.rules import Choice

DATA = Path(__file__).parents[1] / "docs" / "data" / "gauntlet_clash.json"
KEYS = ("up", "left", "down", "right", "jump", "pick", "dodge", "light", "heavy", "taunt")
EVALUATION_SEED = 30  # training uses others
CURVE_PARTS = 30
RULES = {"rules": "clash", "stocks": 1}
MATCHES = 3  # of a set
SETS = RULES | {"matches_per_episode": MATCHES}
SPARRING = {"self": 10, "constant": 1, "based": 1, "aggressive": 1, "defensive": 1}


@dataclass(frozen=True, slots=True)
class Guesser:
    """What a copy of the base favours in a clash.

    Attributes:
        ahead: Its favourite while it is ahead by stocks and damage, None if it draws evenly.
        otherwise: Its favourite while it is level or behind.
        of_opponent: Whether both are about when the opponent is ahead, and otherwise, instead.
    """

    ahead: Choice | None = None
    otherwise: Choice | None = None
    of_opponent: bool = False

    @property
    def answer(self) -> "Guesser":
        """What beats it: each choice is beaten by the next one."""

        def beating(choice: Choice | None) -> Choice | None:
            return None if choice is None else Choice((choice + 1) % len(Choice))

        return Guesser(beating(self.ahead), beating(self.otherwise), of_opponent=True)


EVENLY = "evenly"  # in place of a choice: all alike; in place of a member: the copy that always draws so
GUESSERS = {
    "_".join(EVENLY if choice is None else choice.name.lower() for choice in favourites): Guesser(*favourites)
    for favourites in itertools.product((*Choice, None), repeat=2)
    if favourites != (None, None)
}
# Both among the seen and among the unseen ones each choice is as often a favourite as the others, ahead and otherwise:
# a blind agent finds no answer that is better than the rest. Those that draw evenly in one of the two cases are all
# seen: they show that what an opponent does ahead says nothing about what it does otherwise.
UNSEEN_GUESSERS = ("strike_guard", "guard_throw", "throw_strike")
START = "base-start"  # where agents of the ceiling begin
TEACHING, TAUGHT = 3_000, 8192  # updates that make it, and views in each
FIRST_STATE, STATES = 24, 13  # own state of the observation, which is all zeros in a clash
# What of the observation says who is ahead: own stocks and damage, the opponent's; three stocks weigh 600 of damage.
LEAD = {6: 3.0, 58: -3.0, 5: -1.0, 57: 1.0}
LEAD_SCALE = 10.0  # a copy is wholly ahead with 20 damage less than the opponent, and not at all with as much
OFF = -100.0  # weight that keeps a unit at 0
ADDED = 8  # hidden units of each layer of a copy; fewer are used, but tensor cores like multiples
STEPS = ("base", "members", "ceiling", "answers")
RECORDED = ("ceiling-told-", "ceiling-chrono-")  # results of code that was removed
# What agents of the ceiling are made of.
LSTM = {"size": 128, "skip": True}
# Keeps blows and clashes alone, and learns to foresee the actions that decide them.
EVENTS = {
    "layers": 2, "heads": 4, "width": 64, "feedforward": 256, "window": 33,
    "block": ["self", "opponent", "world"], "events": ["self.state_stun", "opponent.state_stun"],
    "stop_gradient": True, "predict_actions": 1.0, "predict_before_events": True,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "blind": {},
    "blind_long": {},
    "lstm": {"recurrent": LSTM},
    "events": {"strategy": EVENTS},
}
STEPS_OF_KINDS = {"blind_long": 2}  # times as many as the others: steps without memory take half the time


class Start(BaseCallback):
    """Begin with the weights of another agent; columns for what that one does not see begin at zero."""

    def __init__(self, agent: Path) -> None:
        self._weights = find_checkpoint(agent).checkpoint.tensors[TENSORS]

    def on_training_start(self, counters: Counters) -> None:
        """Replace the weights, unless the run goes on."""
        if counters.env_steps:
            return
        policy, unused = self.trainer.components.policy, set(self._weights)
        with torch.no_grad():
            for name, parameter in policy.named_parameters():
                weights = self._weights.get(f"parameter.{name}")  # encoders and memories are new
                if weights is not None:
                    unused.discard(f"parameter.{name}")
                    parameter.copy_(fitted(weights, parameter, before=inputs_before(name, policy)))
        if unused:
            raise RuntimeError(f"the agent has no place for {', '.join(sorted(unused))}")


def inputs_before(name: str, policy: Policy) -> int | None:
    """Return how many new inputs of a layer come before those it had; None for all of them."""
    if name.startswith("value_head"):
        return None
    return 0 if policy.config.recurrent is None or "layers.0" not in name else policy.config.recurrent.size


def fitted(weights: Tensor, parameter: Tensor, before: int | None) -> Tensor:
    """Return weights with zeros for the inputs that they lack."""
    if weights.shape == parameter.shape:
        return weights
    missing = parameter.shape[1] - weights.shape[1]
    left = missing if before is None else before
    return nn.functional.pad(weights, (left, missing - left))


def copy_guessers(agents: Path, options: dict[str, Any]) -> None:
    """Make the members that are copies of the base, players of the step `answers`, and where others start."""
    favoured = options["favoured"]
    players = {f"{name}-0": guesser for name, guesser in GUESSERS.items()}
    answers = {f"response-{name}": guesser.answer for name, guesser in players.items()}
    for name, guesser in {**players, **answers, f"response-{EVENLY}": Guesser()}.items():
        guessing(agents / "base-0.ludus", agents / f"{name}.ludus", guesser, favoured)
    if not (agents / f"{START}.ludus").exists():
        draw_evenly(agents / "base-0.ludus", agents / f"{START}.ludus", options)


def draw_evenly(agent: Path, target: Path, options: dict[str, Any]) -> None:
    """Write an agent that was trained to play as another does, but to draw evenly in clashes.

    Unlike the copies, it has no units that were made by hand, so that it can go on learning what to choose.
    """
    torch.manual_seed(EVALUATION_SEED)
    teacher = ludus.load_agent(agent, options["device"]).policy
    student = ludus.load_agent(agent, options["device"]).policy
    seen = watched(teacher, options)
    views = seen["vector"]
    in_clash = views[:, FIRST_STATE : FIRST_STATE + STATES].sum(-1) == 0.0
    with torch.no_grad():
        wanted = parameters_of(teacher, seen).sigmoid()
    for key, probability in key_probabilities(None, 0.0).items():
        wanted[in_clash, KEYS.index(key)] = probability
    ordinary, clashes = (~in_clash).nonzero().squeeze(-1), in_clash.nonzero().squeeze(-1)
    trained = [*student.actor.parameters(), *student.head.parameters()]
    optimizer = torch.optim.Adam(trained, 1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, TEACHING)
    for _ in range(TEACHING):
        losses: list[Tensor] = []
        for rows in (ordinary, clashes):
            batch = rows[torch.randint(len(rows), (TAUGHT // 2,), device=views.device)]
            asked = {name: entry[batch] for name, entry in seen.items()}
            logits = parameters_of(student, asked)
            losses.append(nn.functional.binary_cross_entropy_with_logits(logits, wanted[batch]))
            losses[-1] = losses[-1] - entropy_of(wanted[batch])  # 0 where the student is the teacher
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    print(f"{target.stem}: {losses[0]:.5f} nats per key from the base, {losses[1]:.5f} in clashes", flush=True)
    found = find_checkpoint(agent).checkpoint
    state = {name: tensor.cpu() for name, tensor in student.state().items()}
    write_single_file(target, Checkpoint({TENSORS: state}, found.documents))


def watched(policy: Policy, options: dict[str, Any], games: int = 256, frames: int = 1500) -> dict[str, Tensor]:
    """Return what the seats of matches of an agent against itself see: `(rows, ...)` per entry."""
    env = ludus.make_env("brawl", games, options["device"], seed=EVALUATION_SEED, config=RULES)
    generator = torch.Generator(env.device).manual_seed(EVALUATION_SEED)
    rows = games * env.spec.seats
    memory, starts = policy.initial(rows), torch.ones(rows, dtype=torch.bool, device=env.device)
    observations, seen = env.reset(), []
    for _ in range(frames):
        flat = {name: entry.flatten(0, 1) for name, entry in observations.items()}
        seen.append({name: entry.clone() for name, entry in flat.items()})
        done = policy.step(flat, memory, starts, policy.draw_noise(1, rows, generator)[0])
        stepped = env.step(done.actions.view(games, env.spec.seats, -1).to(torch.int8))
        observations, memory = stepped.observations, done.memory
        starts = stepped.ended.repeat_interleave(env.spec.seats)
    env.close()
    return {name: torch.cat([frame[name] for frame in seen]) for name in seen[0]}


def parameters_of(policy: Policy, seen: Mapping[str, Tensor]) -> Tensor:
    """Return the logits `(rows, keys)` of an agent without memory."""
    segments = {name: entry.unsqueeze(0) for name, entry in seen.items()}
    rows = len(next(iter(seen.values())))
    starts = torch.ones(1, rows, dtype=torch.bool, device=next(iter(seen.values())).device)
    return policy.action_parameters(segments, policy.initial(rows), starts)[0]


def entropy_of(probabilities: Tensor) -> Tensor:
    """Return the mean entropy of keys in nats."""
    return nn.functional.binary_cross_entropy(probabilities, probabilities)


def guessing(agent: Path, target: Path, guesser: Guesser, favoured: float) -> None:
    """Write a copy of an agent that plays as it does, but chooses in a clash as a guesser.

    Hidden units are added. In the first layer c = relu(1 - sum of the own state's entries) is 1 in a clash and 0
    otherwise; with the lead s, scaled, relu(s) - relu(s - 1) goes from 0 to 1 as the copy gets ahead. In the second
    layer relu(relu(s) - relu(s - 1) + 100 c - 100) is 1 while it is ahead in a clash, another unit while it is in a
    clash and not ahead. c switches all units of the agent's own second layer off, so that in a clash the biases of the
    head and these two units alone decide: the favourite gets a probability of `favoured`, the others share the rest.
    """
    checkpoint = find_checkpoint(agent).checkpoint
    weights = dict(checkpoint.tensors[TENSORS])
    described = json.loads(json.dumps(checkpoint.documents["agent"]))
    if described["config"]["activation"] != "relu":
        raise ValueError("only networks of ReLU can be copied; train the base with policy.activation=relu")
    first, second, head = (f"parameter.{name}" for name in ("actor.layers.0", "actor.layers.1", "head.linear"))
    before, width = weights[f"{first}.weight"].shape[0], weights[f"{second}.weight"].shape[0]
    for name, rows, columns in ((first, ADDED, 0), (second, ADDED, ADDED), (head, 0, ADDED)):
        weights[f"{name}.weight"] = nn.functional.pad(weights[f"{name}.weight"], (0, columns, 0, rows))
        weights[f"{name}.bias"] = nn.functional.pad(weights[f"{name}.bias"], (0, rows))
    clash, lead, full_lead = before, before + 1, before + 2
    weights[f"{first}.weight"][clash, FIRST_STATE : FIRST_STATE + STATES] = -1.0
    weights[f"{first}.bias"][clash] = 1.0
    for column, weight in LEAD.items():
        sign = -1.0 if guesser.of_opponent else 1.0
        weights[f"{first}.weight"][[lead, full_lead], column] = sign * weight * LEAD_SCALE
    weights[f"{first}.bias"][full_lead] = -1.0
    weights[f"{second}.weight"][:width, clash] = OFF
    for unit, sign, favourite in ((width, 1.0, guesser.ahead), (width + 1, -1.0, guesser.otherwise)):
        weights[f"{second}.weight"][unit, [clash, lead, full_lead]] = torch.tensor([-OFF, sign, -sign])
        weights[f"{second}.bias"][unit] = OFF + (1.0 if sign < 0.0 else 0.0)
        for key, probability in key_probabilities(favourite, favoured).items():
            row = KEYS.index(key)
            weights[f"{head}.weight"][row, unit] = (
                math.log(probability / (1.0 - probability)) - weights[f"{head}.bias"][row]
            )
    described["config"]["net_arch"]["pi"] = [before + ADDED, width + ADDED]
    write_single_file(target, Checkpoint({TENSORS: weights}, {**checkpoint.documents, "agent": described}))


def key_probabilities(favourite: Choice | None, favoured: float) -> dict[str, float]:
    """Return how often to hold light and heavy, each drawn alone: heavy throws, light without it strikes."""
    rest = (1.0 - favoured) / (len(Choice) - 1)
    strike, throw = (
        1.0 / len(Choice) if favourite is None else favoured if choice == favourite else rest
        for choice in (Choice.STRIKE, Choice.THROW)
    )
    return {"light": strike / (1.0 - throw), "heavy": throw}


@dataclass(frozen=True, slots=True)
class Job:
    """One job: a step, of whom or of which kind, and its seed."""

    step: str
    name: str
    seed: int

    @property
    def title(self) -> str:
        """A name for its run folder."""
        return f"{self.step}-{self.name}-{self.seed}"


def main() -> None:
    """Do the steps that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", nargs="*", choices=STEPS, default=list(STEPS))
    parser.add_argument("--width", type=int, default=192, help="of the layers of all agents")
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS), help="of the ceiling")
    parser.add_argument("--work", type=Path, default=Path("runs/gauntlet-clash"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--judge-on", help="device of evaluations, such as cpu; that of the training by default")
    parser.add_argument("--lanes", type=int, default=6, help="trainings at a time")
    parser.add_argument("--favoured", type=float, default=0.9, help="share of the favourite of a copy")
    parser.add_argument("--num-envs", type=int, default=2048)
    parser.add_argument("--set", nargs="*", default=[], help="settings of all trainings, as KEY=VALUE")
    parser.add_argument("--base-steps", type=int, default=150_000_000)
    parser.add_argument("--ceiling-steps", type=int, default=60_000_000)
    parser.add_argument("--seeds", type=int, default=3, help="of the ceiling")
    parser.add_argument("--matches", type=int, default=180)
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.lanes, mp_context=context) as pool:
        for step in options.steps:
            started_s = time.monotonic()
            for done in pool.map(run_job, jobs_of(step, options), itertools.repeat(vars(options))):
                print(done, flush=True)
            print(f"{step}: {time.monotonic() - started_s:.0f} s", flush=True)
    write(options)


def jobs_of(step: str, options: argparse.Namespace) -> list[Job]:
    """Return the jobs of a step; that of making the copies is done here."""
    if step == "base":
        return [Job("base", "blind", 0)]
    if step == "members":
        copy_guessers(options.work / "agents", vars(options))
        return []
    if step == "answers":
        return [Job("answer", name, 0) for name in (EVENLY, *members(options.work))]
    return [Job("ceiling", *pair) for pair in itertools.product(options.kinds, range(options.seeds))]


def members(work: Path) -> list[str]:
    """Return the names of all members that there are."""
    others = ("base-", "response-")
    return sorted(file.stem for file in (work / "agents").glob("*.ludus") if not file.stem.startswith(others))


def is_seen(member: str) -> bool:
    """Return whether agents may meet a member in training."""
    return member.rpartition("-")[0] not in UNSEEN_GUESSERS


def run_job(job: Job, options: dict[str, Any]) -> str:
    """Do one job in a process of its own; return a line about it."""
    torch.set_num_threads(1)
    started_s = time.monotonic()
    work: Path = options["work"]
    result = work / f"{job.title}.json"
    if result.exists():
        return f"{job.title}: there already"
    numbers = answer(job, options) if job.step == "answer" else train(job, options)
    numbers["seconds"] = round(time.monotonic() - started_s, 1)
    result.write_text(json.dumps(numbers))
    return f"{job.title}: {json.dumps(numbers)[:300]}"


def answer(job: Job, options: dict[str, Any]) -> dict[str, Any]:
    """Play the copy that knows the answers to a member against it, or the one that draws evenly against all."""
    work: Path = options["work"]
    names = members(work) if job.name == EVENLY else [job.name]
    return {"wins": by_member(evaluated(work / "agents" / f"response-{job.name}.ludus", names, options, RULES))}


def train(job: Job, options: dict[str, Any]) -> dict[str, Any]:
    """Train one agent, and export or evaluate it."""
    work: Path = options["work"]
    is_base = job.step == "base"
    if not is_base and (work / job.title).exists():  # cut off in training, or before it was judged
        return judged(ludus.resume(work / job.title), options)
    total = options["base_steps"] if is_base else options["ceiling_steps"] * STEPS_OF_KINDS.get(job.name, 1)
    league: dict[str, Any] = {"snapshot_every_env_steps": max(total // 20, 1), "keep": 20, "sampler": "recent"}
    opponents: dict[str, float] = dict(SPARRING)
    callbacks: list[BaseCallback] = []
    if not is_base:
        opponents = {str(work / "agents" / f"{name}.ludus"): 1 for name in members(work) if is_seen(name)}
        callbacks.append(Start(work / "agents" / f"{START}.ludus"))
    width, started_s = options["width"], time.monotonic()
    run = ludus.train(
        "brawl",
        preset="quick",
        seed=job.seed,
        device=options["device"],
        callbacks=callbacks,
        opponents=opponents,
        total_env_steps=total,
        folder=work / job.title,
        world={"num_envs": options["num_envs"], "settings": RULES if is_base else SETS},
        policy={"net_arch": {"pi": [width, width], "vf": [width, width]}, **({} if is_base else KINDS[job.name])},
        ppo={
            "n_steps": 32,
            "batch_size": 16_384,
            "learning_rate": {"kind": "linear", "start": 2e-3 if is_base else 1e-3, "end": 1e-4},
            "ent_coef": 0.002,
        },
        rewards={"base": "dense", "weights": {"draw": 0.0}},
        league=league,
        evaluation=None,
        monitoring={"console": "off"},
        checkpoints={"every_env_steps": total},
        overrides=options["set"],
    )
    if not is_base:
        return judged(run, options)
    (work / "agents").mkdir(exist_ok=True)
    ludus.export_agent(run.folder, work / "agents" / "base-0.ludus")
    return {"env_steps": run.env_steps, "training_seconds": round(time.monotonic() - started_s, 1)}


def judged(run: ludus.TrainedRun, options: dict[str, Any]) -> dict[str, Any]:
    """Return win rates against every member, by match of a set and, of those with an encoder, without their latent."""
    names = members(options["work"])
    agent = ludus.load_agent(run.folder, options["judge_on"] or options["device"])
    rows = evaluated(agent, names, options, SETS)
    sessions = json.loads((run.folder / "run.json").read_text())["sessions"]
    found: dict[str, Any] = {
        "env_steps": run.env_steps,
        "training_seconds": round(sum(session["training_s"] for session in sessions), 1),
        "curve": curve(run.folder / "opponents.csv"),
        "wins": won_matches(rows),
        "by_match": [by_member(rows, f"win_rate_match_{number}") for number in range(1, MATCHES + 1)],
    }
    changes: tuple[Change, ...] = (torch.zeros_like, Shuffled()) if run.config.policy.strategy is not None else ()
    for condition, change in zip(CONDITIONS[1:], changes, strict=False):
        changed = AnalysedPolicy(agent.policy, "latent", change)
        found[condition] = won_matches(evaluated(changed, names, options, SETS))
    return found


def curve(matches: Path) -> list[tuple[int, float]]:
    """Return env steps and the score of the matches in training until then, draws counted half, in equal parts."""
    with matches.open(newline="") as file:
        rows = [(int(row["env_steps"]), int(row["matches"]), row) for row in csv.DictReader(file)]
    last = max(env_steps for env_steps, _, _ in rows)
    points = []
    for part in range(CURVE_PARTS):
        first, end = (last * (part + more) // CURVE_PARTS for more in (0, 1))
        chosen = [(count, row) for env_steps, count, row in rows if first < env_steps <= end]
        played = sum(count for count, _ in chosen)
        if played:
            score = sum(int(row["wins"]) + 0.5 * int(row["draws"]) for _, row in chosen)
            points.append((end, round(score / played, 4)))
    return points


def evaluated(
    agent: ludus.Agent | Policy | Path, names: list[str], options: dict[str, Any], settings: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return what evaluations against each member give."""
    rows = ludus.evaluate(
        agent,
        [str(options["work"] / "agents" / f"{name}.ludus") for name in names],
        matches=options["matches"] // settings.get("matches_per_episode", 1),
        config=settings,
        seed=EVALUATION_SEED,
        device=options["judge_on"] or options["device"],
    ).rows
    return dict(zip(names, rows, strict=True))


def won_matches(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the share of matches won of every row of sets."""
    numbers = range(1, MATCHES + 1)
    return {name: sum(row[f"win_rate_match_{number}"] for number in numbers) / MATCHES for name, row in rows.items()}


def by_member(rows: Mapping[str, Mapping[str, Any]], score: str = "win_rate") -> dict[str, float]:
    """Return one score of every row."""
    return {name: float(row[score]) for name, row in rows.items()}


def write(options: argparse.Namespace) -> None:
    """Put all results into one file, with those in it that cannot be measured again."""
    known = json.loads(options.out.read_text())["results"] if options.out.exists() else {}
    results = {name: result for name, result in known.items() if name.startswith(RECORDED)}
    results |= {file.stem: json.loads(file.read_text()) for file in sorted(options.work.glob("*.json"))}
    seen = {name.rpartition("-")[0]: is_seen(name) for name in members(options.work)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    found = {**RULES, "best_of": MATCHES, "seen": seen, "results": results}
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
