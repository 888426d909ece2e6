"""Networks as a user writes them, for tests; `policy.module` names them by this file."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ludus.envs.base import EnvSpec

State = dict[str, Tensor]


def inputs(spec: EnvSpec) -> int:
    return sum(int(space.shape[0]) for space in spec.observation_space.values() if space.shape)


def side_by_side(observations: dict[str, Tensor]) -> Tensor:
    return torch.cat(list(observations.values()), dim=-1)


class Features(nn.Module):
    """Returns features; has dropout, and running statistics that are no parameters."""

    def __init__(self, spec: EnvSpec, width: int = 6) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(inputs(spec), width), nn.BatchNorm1d(width)
        self.dropout = nn.Dropout(0.3)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        features: Tensor = self.dropout(self.norm(torch.tanh(self.layer(side_by_side(observations)))))
        return features


class Actions(nn.Module):
    """Returns logits of three choices, or as many as it is told, and values `(rows,)`."""

    def __init__(self, spec: EnvSpec, outputs: int = 3) -> None:
        super().__init__()
        self.logits, self.values = nn.Linear(inputs(spec), outputs), nn.Linear(inputs(spec), 1)

    def forward(self, observations: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        vector = side_by_side(observations)
        return self.logits(vector), self.values(vector).squeeze(-1)


class Recurrent(nn.Module):
    """Features of a GRU cell whose first state is learned, and of a count of steps."""

    def __init__(self, spec: EnvSpec, width: int = 5) -> None:
        super().__init__()
        self.cell, self.first = nn.GRUCell(inputs(spec), width), nn.Parameter(0.5 * torch.ones(width))

    def initial_state(self, rows: int) -> State:
        steps = torch.full((rows,), -1, device=self.first.device)  # no count of Ludus's, which begin at 0
        return {"hidden": self.first.expand(rows, -1), "steps": steps}

    def forward(self, observations: dict[str, Tensor], state: State) -> tuple[Any, State]:
        hidden = self.cell(side_by_side(observations), state["hidden"])
        steps = state["steps"] + 1
        return torch.cat((hidden, steps.unsqueeze(-1).float() / 10.0), -1), {"hidden": hidden, "steps": steps}


class RecurrentActions(Recurrent):
    """Logits and values `(rows, 1)` from a state."""

    def __init__(self, spec: EnvSpec, outputs: int = 3) -> None:
        super().__init__(spec)
        self.heads = nn.Linear(6, outputs + 1)

    def forward(self, observations: dict[str, Tensor], state: State) -> tuple[Any, State]:
        features, following = super().forward(observations, state)
        outputs = self.heads(features)
        return (outputs[:, 1:], outputs[:, :1]), following


class Unrolled(nn.Module):
    """A leaky sum of the observation with its own way to unroll: all projections in one product."""

    resets = True

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__()
        self.layer, self.unrolled = nn.Linear(inputs(spec), 4), 0

    def initial_state(self, rows: int) -> State:
        return {"sum": self.layer.weight.new_zeros(rows, 4)}

    def forward(self, observations: dict[str, Tensor], state: State) -> tuple[Tensor, State]:
        total = 0.9 * state["sum"] + self.layer(side_by_side(observations))
        return total, {"sum": total}

    def unroll(self, observations: dict[str, Tensor], state: State, episode_starts: Tensor) -> Tensor:
        self.unrolled += 1
        outputs, total = [], state["sum"]
        for frame, starts in zip(self.layer(side_by_side(observations)), episode_starts, strict=True):
            total = 0.9 * (torch.where(starts.unsqueeze(1), 0.0, total) if self.resets else total) + frame
            outputs.append(total)
        return torch.stack(outputs)


class Forgetful(Unrolled):
    """Does not reset its rows when it unrolls."""

    resets = False


class Watching(nn.Module):
    """Notes what it sees of a row."""

    seen: ClassVar[dict[str, tuple[tuple[int, ...], torch.dtype]]] = {}

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(2))

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        self.seen.update({name: (tuple(tensor.shape[1:]), tensor.dtype) for name, tensor in observations.items()})
        return self.bias.expand(len(next(iter(observations.values()))), -1)


class Broken(nn.Module):
    """Does one thing wrong, in the line that says which."""

    def __init__(self, spec: EnvSpec, fault: str) -> None:
        super().__init__()
        self.fault, self.layer, self.calls = fault, nn.Linear(inputs(spec), 4), 0
        if fault == "init":
            raise ValueError("no such level")  # init
        if fault == "double":
            self.layer.double()

    def forward(self, observations: dict[str, Tensor]) -> Any:
        features = self.layer(side_by_side(observations))
        self.calls += 1
        faults: dict[str, Any] = {
            "flat": features.flatten(),
            "none": None,
            "whole numbers": features.long(),
            "three": (features, features, features),
            "values": (features[:, :3], features),
            "logits": (features, features[:, 0]),
            "one row": features[:1],
            "NaN": features / 0.0 if self.calls > 1 else features,
            "later": features if self.calls < 9 else features[:, :2],
        }
        if self.fault == "raise":
            return features @ features  # raise
        return faults[self.fault]


class BrokenState(Recurrent):
    """Its state has a wrong form."""

    def __init__(self, spec: EnvSpec, fault: str) -> None:
        super().__init__(spec)
        self.fault = fault

    def initial_state(self, rows: int) -> Any:
        if self.fault == "no dict":
            return torch.zeros(rows, 5)
        return {"a": torch.zeros(2 * rows, 5)} if self.fault == "rows" else super().initial_state(rows)

    def forward(self, observations: dict[str, Tensor], state: State) -> Any:
        features, following = super().forward(observations, state)
        faults: dict[str, Any] = {
            "no state": features,
            "other names": (features, {"hidden": following["hidden"]}),
            "other shape": (features, following | {"hidden": features}),
            "other type": (features, following | {"steps": following["steps"].float()}),
        }
        return faults[self.fault]


class StepCounter(nn.Module):
    """Plays by its memory alone: choice 0 in the first `period` steps that it remembers, then 1, then 2, then 0 again.

    Its logits are constants, but for a parameter that every network needs.
    """

    def __init__(self, spec: EnvSpec, period: int = 4) -> None:
        super().__init__()
        self.period, self.strength = period, nn.Parameter(torch.tensor(40.0))

    def initial_state(self, rows: int) -> State:
        return {"steps": torch.zeros(rows, dtype=torch.int64, device=self.strength.device)}

    def forward(self, observations: dict[str, Tensor], state: State) -> tuple[Any, State]:
        choice = state["steps"] // self.period % 3
        logits = self.strength * nn.functional.one_hot(choice, 3).float()
        return (logits, 0.0 * logits.sum(-1)), {"steps": state["steps"] + 1}
