"""Strong opponents of brawl with different best responses, and what it is worth to know which of them one meets.

    python benchmarks/gauntlet.py --work runs/gauntlet --lanes 6 --device cuda      # docs/data/gauntlet.json

Every member of the population has a habit: keys that it never presses, or rewards of its own. Members of one habit are
a family, which is either seen in training or kept for tests. Steps:

1. `members`: train one by self-play with every habit, and export them; or `base`: train one strong agent by self-play,
   from which everyone below then starts, so that nobody wins because others fight badly;
2. `exploiters`: train an agent that meets all seen members so far, then exploiters that meet it alone, one with every
   habit; they join the population. Asked for twice, it is done twice;
   `select` trains such an agent once more and sets aside the members that it beats anyway (`--keep-below`): against
   what is left, one way of fighting does not win;
3. `responses`: train a best response to each seen member, from nothing;
4. `table`: every response, and every member, against every member;
5. `ceiling`: agents that meet all seen members in training, over several seeds: blind, an oracle that is told whom it
   meets, an LSTM, and a strategy encoder; each against all members, seen and unseen;
6. `specialists`: go on with the blind agent of the first seed against one seen member alone, once for each member, and
   as a yardstick against all of them, by equal env steps. Whoever is told the opponent can choose its specialist, so
   what specialists gain is a ceiling that does not depend on how well an oracle learns to use what it is told;
7. `ship`: put the hardest member of each of the hardest families into the package, by what `select` found.

With `--duelists` the members are scripted: brawl's bots `duelist`, which differ in what they do at close range and in
nothing else. The steps are then `base`, which trains against the seen ones, `ceiling` and `specialists`.

With `--guessers` the members are copies of the agent of the step `base`, which the step `members` makes without
training: they differ from it in what they choose in a clash (`--rules clash`) alone. The step `answers` lets copies
that choose the best answers, and one that draws evenly, play against them: what knowing the opponent is worth where
nothing else differs, without any training. Agents of the ceiling start from the base too, but draw evenly in clashes:
self-play ends with one choice that is made nearly always, and who never tries the others cannot learn when they win.

Steps that are done are not done again, so a benchmark that was cut off can be started again.
"""

import argparse
import csv
import itertools
import json
import math
import multiprocessing
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from benchmarks.shipped_agents import FOLDER, write_card
from torch import Tensor, nn

import ludus
from ludus.analysis.ablation import CONDITIONS, Shuffled
from ludus.analysis.analysed_policy import AnalysedPolicy, Change
from ludus.core.files import EXPORT_SUFFIX
from ludus.envs.base import OPPONENT_IDENTITY, EnvSpec
from ludus.policies.agent import TENSORS, find_checkpoint
from ludus.policies.policy import NETWORK, Policy
from ludus.policies.shipped import GAUNTLET, ShippedAgent
from ludus.store import Checkpoint, write_single_file
from ludus.training.callbacks import BaseCallback, Counters
from ludus.training.run_folder import changed_config, fork_run, read_run_config
from ludus.worlds.brawl.kernels.bot_styles import DUELS
from ludus.worlds.brawl.rules import Choice

DATA = Path(__file__).parents[1] / "docs" / "data" / "gauntlet.json"
KEYS = ("up", "left", "down", "right", "jump", "pick", "dodge", "light", "heavy", "taunt")
NEVER = -20.0  # logit of a key that is never pressed
EVALUATION_SEED = 30  # training uses others
CURVE_PARTS = 30


@dataclass(frozen=True, slots=True)
class Habit:
    """What a family of members does differently.

    Attributes:
        never: Keys that it never presses.
        rewards: Weights on top of the dense ones.
        seen: Whether agents may meet the family in training.
    """

    never: tuple[str, ...] = ()
    rewards: Mapping[str, float] = field(default_factory=dict)
    seen: bool = True


HABITS = {
    "allround": Habit(),
    "light": Habit(never=("heavy",)),
    "heavy": Habit(never=("light",)),
    "unarmed": Habit(never=("pick",)),
    "rusher": Habit(rewards={"closing": 2.0, "damage": 0.0, "damage_offensive": 2.0}),
    "evader": Habit(rewards={"closing": -0.3, "damage": 0.0, "damage_defensive": 2.0}),
    "climber": Habit(rewards={"height": -0.4, "closing": 0.2}),
    "edge": Habit(rewards={"edge_pressure": 1.0}),
    "armed": Habit(rewards={"armed": 0.3, "damage_armed": 2.0}, seen=False),
    "grounded": Habit(never=("jump",), seen=False),
    "undodging": Habit(never=("dodge",), seen=False),
    "combo": Habit(rewards={"combo": 0.5}, seen=False),
}
# A favourite guess after success and one after being hit; unseen ones combine what seen ones have, so that each guess
# is met in both places.
DUELISTS = {f"duelist:family={family},delay=2": family not in (1, 5, 6) for family in range(DUELS)}
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
START = "base-start"  # where agents of the ceiling begin with `--guessers`
TEACHING, TAUGHT = 3_000, 8192  # updates that make it, and views in each
FIRST_STATE, STATES = 24, 13  # own state of the observation, which is all zeros in a clash
# What of the observation says who is ahead: own stocks and damage, the opponent's; three stocks weigh 600 of damage.
LEAD = {6: 3.0, 58: -3.0, 5: -1.0, 57: 1.0}
LEAD_SCALE = 10.0  # a copy is wholly ahead with 20 damage less than the opponent, and not at all with as much
OFF = -100.0  # weight that keeps a unit at 0
ADDED = 8  # hidden units of each layer of a copy; fewer are used, but tensor cores like multiples
STEPS = ("base", "members", "exploiters", "select", "responses", "table", "ceiling", "specialists", "answers", "ship")
SHIPPED = 8  # families in the package
RARELY = 1e-9  # weight of opponents that a specialist does not meet
TOWERS = ("actor", "critic")
SCRIPTED = "scripted"  # an empty file that marks a folder of scripted members
EVERYONE = "everyone"  # in place of a member: the yardstick of specialists


class Told(nn.Module):
    """An actor and a critic whose layers are scaled and shifted by whoever is played (FiLM).

    An oracle can so play differently against each opponent, and begins like the agent whose weights it starts with.
    """

    cuda_graphs = True

    def __init__(self, spec: EnvSpec, width: int = 192, layers: int = 2) -> None:
        super().__init__()
        seen = {name: math.prod(space.shape or ()) for name, space in spec.observation_space.items()}
        sizes = [seen["vector"], *(width,) * layers]
        self.towers = nn.ModuleDict(
            {name: nn.ModuleList(itertools.starmap(nn.Linear, itertools.pairwise(sizes))) for name in TOWERS}
        )
        self.film = nn.Linear(seen[OPPONENT_IDENTITY], 2 * width * layers * len(TOWERS), bias=False)
        nn.init.zeros_(self.film.weight)

    def forward(self, observations: Mapping[str, Tensor]) -> Tensor:
        """Return the features of the actor, then those of the critic."""
        changes = iter(self.film(observations[OPPONENT_IDENTITY]).chunk(2 * len(TOWERS) * self._layers, dim=-1))
        features = []
        for name in TOWERS:
            hidden = observations["vector"]
            for layer in self._tower(name):
                hidden = torch.relu(layer(hidden) * (1.0 + next(changes)) + next(changes))
            features.append(hidden)
        return torch.cat(features, dim=-1)

    @property
    def _layers(self) -> int:
        return len(self._tower(TOWERS[0]))

    def _tower(self, name: str) -> nn.ModuleList:
        tower = self.towers[name]
        assert isinstance(tower, nn.ModuleList)
        return tower


# What agents of the ceiling are made of; all but the oracles see the opponent alone.
ORACLES = ("oracle", "told")
LSTM = {"kind": "lstm", "size": 128, "skip": True}
ENCODER = {
    "kind": "streaming", "layers": 2, "heads": 4, "width": 64, "feedforward": 256, "window": 65,
    "block": ["self", "opponent"], "condition": "film", "stop_gradient": True, "predict_actions": 1.0,
}  # fmt: skip
# Keeps blows and clashes alone, and learns to foresee the actions that decide them.
EVENTS = {
    **ENCODER, "block": ["self", "opponent", "world"], "events": ["self.state_stun", "opponent.state_stun"],
    "window": 33, "predict_before_events": True,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "blind": {},
    "blind_long": {},
    "oracle": {},
    "told": {"module": Told, "net_arch": {"pi": [], "vf": []}},
    "lstm": {"recurrent": LSTM},
    "chrono": {"recurrent": {**LSTM, "chrono_init": 600}},
    "encoder": {"strategy": ENCODER},
    "full": {"strategy": ENCODER, "recurrent": LSTM},
    "events": {"strategy": EVENTS},
    "contrast": {"strategy": {**ENCODER, "contrast": 0.1, "contrast_gap": 8}, "recurrent": LSTM},
    "slow": {"strategy": ENCODER, "recurrent": LSTM},
}
PPO_OF_KINDS = {"slow": {"memory_lr_scale": 0.1}}  # what else a kind has
STEPS_OF_KINDS = {"blind_long": 2}  # times as many as the others: steps without memory take half the time


class Restriction(BaseCallback):
    """Keep an agent from ever pressing some keys; its weights hold the habit, so that it needs no code."""

    def __init__(self, never: Iterable[str]) -> None:
        self._never = [KEYS.index(key) for key in never]

    def on_rollout_start(self, counters: Counters) -> None:
        """Undo what the last update may have moved."""
        head = self.trainer.components.policy.head.linear
        with torch.no_grad():
            head.weight[self._never] = 0.0
            head.bias[self._never] = NEVER


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
                # A tower of `Told` is called like that of a plain agent; encoders and memories are new.
                known = re.sub(rf"^{NETWORK}\.module\.towers\.(\w+)\.", r"\1.layers.", name)
                weights = self._weights.get(f"parameter.{known}")
                if weights is not None:
                    unused.discard(f"parameter.{known}")
                    parameter.copy_(fitted(weights, parameter, before=inputs_before(name, policy)))
        if unused:
            raise RuntimeError(f"the agent has no place for {', '.join(sorted(unused))}")


def inputs_before(name: str, policy: Policy) -> int | None:
    """Return how many new inputs of a layer come before those it had; None for all of them."""
    if name.startswith("value_head") or (
        OPPONENT_IDENTITY in policy.spec.observation_space.spaces and "head" not in name
    ):
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
    env = ludus.make_env("brawl", games, options["device"], seed=EVALUATION_SEED, config=settings(options))
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
    """One job: a step, of whom or of which kind, and its seed; of exploiters the seed is their round."""

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
    parser.add_argument("--steps", nargs="*", choices=STEPS, default=["members", "responses", "table", "ceiling"])
    parser.add_argument("--duelists", action="store_true", help="scripted members instead of trained ones")
    parser.add_argument("--guessers", action="store_true", help="members are copies of the base that favour choices")
    parser.add_argument("--width", type=int, default=192, help="of the layers of whoever starts from the base")
    parser.add_argument("--rules", default="standard", help="of brawl, for all")
    parser.add_argument("--reaction-frames", type=int, default=0, help="of everyone")
    parser.add_argument("--stocks", type=int, default=3, help="a fighter starts with; fewer make matches shorter")
    parser.add_argument("--best-of", type=int, default=1, help="matches of a set, for agents of the ceiling")
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=["blind", "oracle"], help="of the ceiling")
    parser.add_argument("--window", type=int, default=65, help="frames that a strategy encoder sees at a time")
    parser.add_argument("--work", type=Path, default=Path("runs/gauntlet"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--judge-on", help="device of evaluations, such as cpu; that of the training by default")
    parser.add_argument("--lanes", type=int, default=6, help="trainings at a time")
    parser.add_argument("--per-family", type=int, default=1, help="members with other seeds of each habit")
    parser.add_argument("--sharpness", type=float, default=1.0, help="of members: what their logits are multiplied by")
    parser.add_argument("--favoured", type=float, default=0.9, help="share of the favourite of `--guessers`")
    parser.add_argument("--keep-below", type=float, default=0.88, help="win rate of whoever met all members")
    parser.add_argument("--num-envs", type=int, default=2048)
    parser.add_argument("--set", nargs="*", default=[], help="settings of all trainings, as KEY=VALUE")
    parser.add_argument("--base-steps", type=int, default=400_000_000)
    parser.add_argument("--member-steps", type=int, default=60_000_000)
    parser.add_argument("--response-steps", type=int, default=40_000_000)
    parser.add_argument("--ceiling-steps", type=int, default=200_000_000)
    parser.add_argument("--seeds", type=int, default=3, help="of the ceiling")
    parser.add_argument("--matches", type=int, default=400)
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.duelists:
        (options.work / SCRIPTED).touch()
    seeds = range(options.per_family)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.lanes, mp_context=context) as pool:
        for place, step in enumerate(options.steps):
            started_s = time.monotonic()
            if step == "base":
                jobs = [Job("base", "blind", 0)]
            elif step == "members" and options.guessers:
                copy_guessers(options.work / "agents", vars(options))
                jobs = []
            elif step == "members":
                jobs = [Job("member", name, seed) for seed, name in itertools.product(seeds, HABITS)]
            elif step == "exploiters":
                turn = 1 + options.steps[:place].count("exploiters")
                print(pool.submit(run_job, Job("target", "blind", turn), vars(options)).result(), flush=True)
                jobs = [Job("exploiter", name, turn) for name in HABITS]
            elif step == "select":
                jobs = [Job("select", "blind", 1 + len(list(options.work.glob("target-blind-*.json"))))]
            elif step == "responses":
                jobs = [Job("response", name, 0) for name in seen_members(options.work)]
            elif step == "specialists":
                jobs = [Job("specialist", name, 0) for name in (EVERYONE, *hardest_first(options.work))]
            elif step == "answers":
                jobs = [Job("answer", name, 0) for name in (EVENLY, *members(options.work))]
            elif step == "ship":
                ship(options.work, settings(vars(options)))
                jobs = []
            elif step == "ceiling":
                jobs = [Job("ceiling", *pair) for pair in itertools.product(options.kinds, range(options.seeds))]
            else:
                jobs = [Job("table", name, 0) for name in contenders(options.work)]
            for done in pool.map(run_job, jobs, itertools.repeat(vars(options))):
                print(done, flush=True)
            print(f"{step}: {time.monotonic() - started_s:.0f} s", flush=True)
    write(options)


def members(work: Path) -> list[str]:
    """Return the names of all members that there are."""
    if (work / SCRIPTED).exists():
        return list(DUELISTS)
    others = ("base-", "response-", "target-")
    return sorted(file.stem for file in (work / "agents").glob("*.ludus") if not file.stem.startswith(others))


def is_seen(member: str) -> bool:
    """Return whether agents may meet a member in training.

    Its family is its name without the exploiters' mark and without the number.
    """
    if member in DUELISTS:
        return DUELISTS[member]
    family = member.removeprefix("exploiter_").rpartition("-")[0]
    return family not in UNSEEN_GUESSERS if family in GUESSERS else HABITS[family].seen


def player(work: Path, member: str) -> str:
    """Return what plays as a member: a bot's name, or an agent's file."""
    return member if member in DUELISTS else str(work / "agents" / f"{member}.ludus")


def seen_members(work: Path) -> list[str]:
    """Return the members that agents may meet in training."""
    return [name for name in members(work) if is_seen(name)]


def hardest_first(work: Path) -> list[str]:
    """Return the members that agents may meet in training, those first against whom the blind agent wins least."""
    wins: dict[str, float] = json.loads((work / "ceiling-blind-0.json").read_text())["wins"]
    return sorted(seen_members(work), key=lambda name: wins[name])


def start_of(job: Job, work: Path) -> Path | None:
    """Return the agent whose weights a training begins with; None to begin from nothing."""
    if job.step == "base" or not (work / "agents" / "base-0.ludus").exists():
        return None
    starts = [*sorted((work / "agents").glob("target-*.ludus")), work / "agents" / f"{START}.ludus"]
    return next((agent for agent in reversed(starts) if agent.exists()), work / "agents" / "base-0.ludus")


def contenders(work: Path) -> list[str]:
    """Return whom the table shows: all members, and all best responses."""
    return sorted(file.stem for file in (work / "agents").glob("*.ludus"))


def run_job(job: Job, options: dict[str, Any]) -> str:
    """Do one job in a process of its own; return a line about it."""
    torch.set_num_threads(1)
    started_s = time.monotonic()
    work: Path = options["work"]
    result = work / f"{job.title}.json"
    if result.exists():
        return f"{job.title}: there already"
    steps = {"table": evaluate, "specialist": specialise, "select": select, "answer": answer}
    if job.step == "target" and not seen_members(work):  # the first exploiters meet the agent of the step `base` itself
        steps["target"] = copy_base
    numbers = steps.get(job.step, train)(job, options)
    numbers["seconds"] = round(time.monotonic() - started_s, 1)
    result.write_text(json.dumps(numbers))
    return f"{job.title}: {json.dumps(numbers)[:300]}"


def copy_base(job: Job, options: dict[str, Any]) -> dict[str, Any]:
    """Take the agent of the step `base` as it is."""
    agents: Path = options["work"] / "agents"
    shutil.copy(agents / "base-0.ludus", agents / f"target-{job.seed}.ludus")
    return {"env_steps": 0}


def evaluate(job: Job, options: dict[str, Any]) -> dict[str, Any]:
    """Play a contender of the table against every member."""
    work: Path = options["work"]
    return {"wins": win_rates(work / "agents" / f"{job.name}.ludus", members(work), options)}


def answer(job: Job, options: dict[str, Any]) -> dict[str, Any]:
    """Play the copy that knows the answers to a member against it, or the one that draws evenly against all."""
    work: Path = options["work"]
    names = members(work) if job.name == EVENLY else [job.name]
    return {"wins": win_rates(work / "agents" / f"response-{job.name}.ludus", names, options)}


def select(job: Job, options: dict[str, Any]) -> dict[str, Any]:
    """Set aside the members that an agent beats which met all seen ones; it becomes where others start."""
    work: Path = options["work"]
    trained = train(Job("target", job.name, job.seed), options)
    wins = win_rates(work / "agents" / f"target-{job.seed}.ludus", members(work), options)
    aside = work / "agents" / "aside"
    aside.mkdir(exist_ok=True)
    kept = [name for name, rate in wins.items() if rate < options["keep_below"]]
    for name in wins.keys() - kept:
        (work / "agents" / f"{name}.ludus").rename(aside / f"{name}.ludus")
    return {**trained, "wins": wins, "kept": kept}


def specialise(job: Job, options: dict[str, Any]) -> dict[str, Any]:
    """Go on with the blind agent against one member, or everyone; evaluate it against whom it met."""
    work: Path = options["work"]
    names = seen_members(work) if job.name == EVERYONE else [job.name]
    began = read_run_config(work / "ceiling-blind-0")
    changes = {
        # A branch keeps the list of opponents, so that its games can go on: the others get next to no weight.
        "opponents": {file: 1.0 if Path(file).stem in names else RARELY for file in began.opponents or {}},
        "total_env_steps": began.total_env_steps + options["response_steps"],
    }
    folder = work / job.title
    config = changed_config(began, [f"{key}={json.dumps(value)}" for key, value in changes.items()])
    if not folder.exists():
        fork_run(work / "ceiling-blind-0", folder, config)
    run = ludus.resume(folder)
    return {"env_steps": run.env_steps, "wins": win_rates(folder, names, options)}


def train(job: Job, options: dict[str, Any]) -> dict[str, Any]:
    """Train one agent, and export or evaluate it."""
    work: Path = options["work"]
    if job.step == "ceiling" and (work / job.title).exists():  # cut off in training, or before it was judged
        return judged(ludus.resume(work / job.title), options)
    files = {name: player(work, name) for name in members(work)}
    rewards: dict[str, Any] = {"base": "dense", "weights": {"draw": 0.0}}
    sections: dict[str, Any] = {"rewards": rewards, "evaluation": None, "monitoring": {"console": "off"}}
    # Of guessers an oracle meets all: whoever is told nobody's name cannot show what knowing an unseen one is worth.
    meets_all = job.step == "ceiling" and job.name in ORACLES and options["guessers"]
    opponents: dict[str, float] = {files[name]: 1 for name in (members if meets_all else seen_members)(work)}
    callbacks: list[BaseCallback] = []
    policy: dict[str, Any] = {}
    start = start_of(job, work)
    total, width, rate = options["response_steps"], 128 if start is None else options["width"], 1e-3
    if job.step == "base":
        total, width, rate = options["base_steps"], options["width"], 2e-3
        opponents = opponents or dict(SPARRING)
    elif job.step in ("member", "exploiter"):
        habit = HABITS[job.name]
        callbacks = [Restriction(habit.never)]
        rewards["weights"] |= habit.rewards
        total, width = options["member_steps"], width if start else 64
        opponents = dict(SPARRING) if job.step == "member" else {str(work / "agents" / f"target-{job.seed}.ludus"): 1}
    elif job.step == "response":
        opponents = {files[job.name]: 1}
    elif job.step == "ceiling":
        total = options["ceiling_steps"] * STEPS_OF_KINDS.get(job.name, 1)
        width, policy = options["width"], KINDS[job.name]
        policy = policy | ({"module_kwargs": {"width": width}} if "module" in policy else {})
        if "strategy" in policy and "events" not in policy["strategy"]:
            policy = policy | {"strategy": {**policy["strategy"], "window": options["window"]}}
    if start is not None:
        callbacks.insert(0, Start(start))
    league: dict[str, Any] = {"snapshot_every_env_steps": max(total // 20, 1), "keep": 20, "sampler": "recent"}
    if job.step == "ceiling":
        league |= {"reveal_opponent": job.name in ORACLES, "best_of": options["best_of"]}
    started_s = time.monotonic()
    run = ludus.train(
        "brawl",
        preset="quick",
        seed=job.seed,
        device=options["device"],
        callbacks=callbacks,
        opponents=opponents,
        total_env_steps=total,
        folder=work / job.title,
        world={"num_envs": options["num_envs"], "settings": settings(options)},
        policy={"net_arch": {"pi": [width, width], "vf": [width, width]}, **policy},
        ppo={
            "n_steps": 32,
            "batch_size": 16_384,
            "learning_rate": {"kind": "linear", "start": rate, "end": 1e-4},
            "ent_coef": 0.002,
            **(PPO_OF_KINDS.get(job.name, {}) if job.step == "ceiling" else {}),
        },
        league=league,
        checkpoints={"every_env_steps": total},
        overrides=options["set"],
        **sections,
    )
    if job.step == "ceiling":
        return judged(run, options)
    trained_s = round(time.monotonic() - started_s, 1)
    (work / "agents").mkdir(exist_ok=True)
    names = {
        "base": f"base-{job.seed}",
        "member": f"{job.name}-{job.seed}",
        "response": f"response-{job.name}",
        "target": f"target-{job.seed}",
        "exploiter": f"exploiter_{job.name}-{job.seed}",
    }
    name = names[job.step]
    exported = ludus.export_agent(run.folder, work / "agents" / f"{name}.ludus").path
    if job.step in ("member", "exploiter"):
        sharpen(exported, options["sharpness"])
    numbers: dict[str, Any] = {
        "env_steps": run.env_steps,
        "training_seconds": trained_s,
        "bytes": exported.stat().st_size,
    }
    if job.step == "exploiter":
        numbers["wins"] = win_rates(exported, [f"target-{job.seed}"], options)
    return numbers


def judged(run: ludus.TrainedRun, options: dict[str, Any]) -> dict[str, Any]:
    """Return win rates against every member, by match of a set and, of those with an encoder, without their latent."""
    names, best_of = members(options["work"]), options["best_of"]
    agent = ludus.load_agent(run.folder, options["judge_on"] or options["device"])
    rows = evaluated(agent, names, options, best_of)
    numbers = range(1, best_of + 1) if best_of > 1 else ()
    sessions = json.loads((run.folder / "run.json").read_text())["sessions"]
    found: dict[str, Any] = {
        "env_steps": run.env_steps,
        "training_seconds": round(sum(session["training_s"] for session in sessions), 1),
        "curve": curve(run.folder / "opponents.csv"),
        "wins": by_member(rows),
        "by_match": [by_member(rows, f"win_rate_match_{number}") for number in numbers],
    }
    changes: tuple[Change, ...] = (torch.zeros_like, Shuffled()) if run.config.policy.strategy is not None else ()
    for condition, change in zip(CONDITIONS[1:], changes, strict=False):
        changed = AnalysedPolicy(agent.policy, "latent", change)
        found[condition] = by_member(evaluated(changed, names, options, best_of))
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


def ship(work: Path, rules: Mapping[str, Any]) -> None:
    """Put compact members into the package, each with a card."""
    results = {file.stem: json.loads(file.read_text()) for file in work.glob("*.json")}
    sorted_by = max((name for name in results if name.startswith("select-")), key=lambda name: int(name[-1]))
    hardest: dict[str, tuple[float, str]] = {}
    for name, rate in results[sorted_by]["wins"].items():
        family = name.removeprefix("exploiter_").rpartition("-")[0]
        hardest[family] = min((rate, name), hardest.get(family, (rate, name)))
    for family, (rate, name) in sorted(hardest.items(), key=lambda item: item[1])[:SHIPPED]:
        target = FOLDER / GAUNTLET / f"{GAUNTLET}-{family}{EXPORT_SUFFIX}"
        target.parent.mkdir(exist_ok=True)
        compact(work / "agents" / f"{name}.ludus", target)
        won = results[name.replace("_", "-")]["wins"]
        described = ShippedAgent(
            world=ludus.load_agent(target).spec.id,
            summary=f"an exploiter, family {family}, {'seen' if HABITS[family].seen else 'unseen'} in training",
            result=f"won {100 * next(iter(won.values())):.0f} % against the agent that it exploits, and "
            f"{100 * (1 - rate):.0f} % were not won by one that met them all",
            measured_with="make results-gauntlet-rounds",
            command="make results-gauntlet-rounds",
        )
        played = ", ".join(f"`{key}: {value}`" for key, value in rules.items())
        body = (
            f"# {target.stem}\n\nA member of brawl's gauntlet: strong agents, each with weaknesses of its own, to "
            f"train against and to be measured by. It was trained with the world's settings {played}, which whoever "
            "meets it should have too. It has an actor alone: its values are zero.\n"
        )
        write_card(target.stem, described, body)
        print(f"{target.stem}: {target.stat().st_size:,} bytes", flush=True)


def compact(agent: Path, target: Path) -> None:
    """Write an agent without its critic, which nobody needs who only meets it."""
    checkpoint = find_checkpoint(agent).checkpoint
    weights = {name: tensor for name, tensor in checkpoint.tensors[TENSORS].items() if "critic" not in name}
    weights["parameter.value_head.weight"] = torch.zeros((1, weights["parameter.actor.layers.0.weight"].shape[1]))
    weights["parameter.value_head.bias"] = torch.zeros(1)
    described = json.loads(json.dumps(checkpoint.documents["agent"]))
    described["config"]["net_arch"]["vf"] = []
    write_single_file(target, Checkpoint({TENSORS: weights}, {**checkpoint.documents, "agent": described}))


def sharpen(agent: Path, factor: float) -> None:
    """Multiply the logits of an exported agent: the larger the factor, the more predictable it is."""
    checkpoint = find_checkpoint(agent).checkpoint
    weights = dict(checkpoint.tensors[TENSORS])
    for name in ("parameter.head.linear.weight", "parameter.head.linear.bias"):
        weights[name] = weights[name] * factor
    write_single_file(agent, Checkpoint({TENSORS: weights}, checkpoint.documents))


def settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the rules that everyone plays by."""
    return {key: options[key] for key in ("rules", "reaction_frames", "stocks")}


def win_rates(agent: Path, names: list[str], options: dict[str, Any]) -> dict[str, float]:
    """Return the share of matches won against each member; draws are not won."""
    return by_member(evaluated(agent, names, options))


def evaluated(
    agent: ludus.Agent | Policy | Path, names: list[str], options: dict[str, Any], best_of: int = 1
) -> dict[str, dict[str, Any]]:
    """Return what evaluations against each member give."""
    rows = ludus.evaluate(
        agent,
        [player(options["work"], name) for name in names],
        matches=options["matches"],
        best_of=best_of,
        config=settings(options),
        seed=EVALUATION_SEED,
        device=options["judge_on"] or options["device"],
    ).rows
    return dict(zip(names, rows, strict=True))


def by_member(rows: Mapping[str, Mapping[str, Any]], score: str = "win_rate") -> dict[str, float]:
    """Return one score of every row."""
    return {name: float(row[score]) for name, row in rows.items()}


def write(options: argparse.Namespace) -> None:
    """Put all results into one file."""
    results = {file.stem: json.loads(file.read_text()) for file in sorted(options.work.glob("*.json"))}
    seen = {name if name in DUELISTS else name.rpartition("-")[0]: is_seen(name) for name in members(options.work)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    found = {**settings(vars(options)), "best_of": options.best_of, "seen": seen, "results": results}
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
