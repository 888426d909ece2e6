"""Export an agent: to one self-contained file that is safe to load from anyone, or to ONNX.

An ONNX file holds a policy's step, so that an agent can play where there is neither Python nor torch. Inputs:
`observation.NAME` `(rows, ...)` per entry; `starts` `(rows,)` bool, rows whose frame is the first of an episode;
`memory.NAME` `(rows, ...)`, zeros at first. Outputs: `actions` `(rows, ...)`, the most likely ones, within the bounds
of the action space; `parameters` `(rows, ...)` of the action distribution, to draw from, -1e30 for choices that are not
allowed; `next_memory.NAME`, the recurrent state for the next call. The critic is left out. The file's metadata hold the
description of the policy and of its world.
"""

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ludus.core import __version__
from ludus.core.errors import ConfigError, MissingDependencyError, UnsupportedError, brief
from ludus.core.files import EXPORT_SUFFIX, JSON, write_atomic
from ludus.envs.base import action_dtypes
from ludus.nn.recurrent import Lstm
from ludus.policies.agent import DOCUMENT, ORIGIN, TENSORS, Agent, build_policy, find_checkpoint
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy, RecurrentState
from ludus.store import Checkpoint, write_single_file

ONNX_SUFFIX = ".onnx"
_ONNX_NAME = re.compile(r"[ -~]{1,200}")  # of an input: others print it and look it up
_MOST_METADATA_BYTES = 1 << 20  # of the description; those of shipped agents have at most 2 kB
_ROWS = 2  # of the example that is traced; any other number works in the file
_EXPORTER_LOGGERS = ("torch.onnx", "onnxscript", "onnx_ir")


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written."""

    path: Path  # where
    size_bytes: int  # how large it is
    sha256: str  # of its content, as it is noted in the file itself: see `ludus.store.checkpoint`
    checkpoint: str  # name of the checkpoint that it was made from
    env_steps: int | None  # at which that was taken; None if unknown


def export_agent(agent: str | Path, target: str | Path) -> Exported:
    """Write an agent to one file: weights, normalisers, the policy's description, world, its settings and a SHA-256.

    The file can be used wherever an agent is expected, and plays bit-exactly as the checkpoint does on the CPU.

    Args:
        agent: A run folder, whose best agent is meant, a checkpoint folder, or an exported file.
        target: The file to write, which ends in `.ludus`; one that is there already is replaced.

    Raises:
        ConfigError: The target has another ending.
        CheckpointError: There is no agent, or it is damaged.
        StoreError: The file could not be written.
    """
    target = Path(target)
    if target.suffix != EXPORT_SUFFIX:
        raise ConfigError(f"the file {str(target)!r} must end in {EXPORT_SUFFIX}; name it {target.stem}{EXPORT_SUFFIX}")
    found = find_checkpoint(agent)
    Agent.load(found.path)  # builds it: what cannot be played is not exported
    documents, tensors = found.checkpoint.documents, found.checkpoint.tensors
    made_from: JSON = {"ludus": __version__, "checkpoint": found.name, "env_steps": found.env_steps}
    origin = documents.get(ORIGIN) or made_from
    content = Checkpoint({TENSORS: tensors[TENSORS]}, {DOCUMENT: documents[DOCUMENT], ORIGIN: origin})
    sha256 = write_single_file(target, content)
    return Exported(target, target.stat().st_size, sha256, found.name, found.env_steps)


class _PlainCell(nn.Module):
    """One step of an LSTM in plain operations: those that train are compiled kernels, which no file can hold."""

    def __init__(self, cell: Lstm) -> None:
        super().__init__()
        self.cell, self.output_size = cell, cell.output_size

    def initial(self, rows: int, device: torch.device) -> RecurrentState:
        """Return the memory of `rows` rows that have seen nothing."""
        return self.cell.initial(rows, device)

    def step(self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor) -> tuple[Tensor, RecurrentState]:
        """Advance by one frame; see `Lstm.step`."""
        keep = (~episode_starts).unsqueeze(-1).to(inputs.dtype)
        hidden, size, projected = memory["hidden"] * keep, self.cell.size, self.cell.project(inputs)
        gates = projected + hidden @ self.cell.hidden_weight.t()
        input_gate, forget_gate, output_gate = torch.sigmoid(gates[:, : 3 * size]).chunk(3, dim=1)
        state = forget_gate * (memory["cell"] * keep) + input_gate * torch.tanh(gates[:, 3 * size :])
        hidden = output_gate * torch.tanh(state)
        return hidden, {"hidden": hidden, "cell": state}


class _StepModule(nn.Module):
    """`Policy.step` without noise as a function of tensors alone."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        policy.memory.critic_recurrent = None
        if policy.memory.recurrent is not None:
            policy.memory.register_module("recurrent", _PlainCell(policy.memory.recurrent))
        self.policy = policy
        self.observations, self.memory = tuple(policy.spec.observation_space), tuple(policy.initial(1))
        self._action_dtype = action_dtypes(policy.spec.action_space)[0]
        self._parameters_seen: list[Tensor] = []
        policy.head.register_forward_hook(lambda _module, _inputs, output: self._parameters_seen.append(output))

    def forward(self, observations: list[Tensor], episode_starts: Tensor, memory: list[Tensor]) -> tuple[Tensor, ...]:
        """Return actions, parameters and the next memory; all in the order of the attributes."""
        self._parameters_seen.clear()
        entries = dict(zip(self.observations, observations, strict=True))
        # The streaming encoder writes into its memory, which would be an input of the file.
        before = {name: tensor.clone() for name, tensor in zip(self.memory, memory, strict=True)}
        step = self.policy.step(entries, before, episode_starts)
        actions = self.policy.clip_actions(step.actions).to(self._action_dtype)
        parameters = self.policy.restrict(self._parameters_seen[-1].float(), entries)
        return actions, parameters, *(step.memory[name] for name in self.memory)


def write_onnx(agent: Agent, target: str | Path) -> None:
    """Write the step of an agent's policy as an ONNX file.

    Raises:
        ConfigError: The target does not end in `.onnx`.
        MissingDependencyError: The libraries of the extra `onnx` are not installed.
        UnsupportedError: This policy or its names cannot be written as ONNX, with the reason.
        StoreError: The file could not be written.
    """
    target = Path(target)
    if target.suffix != ONNX_SUFFIX:
        raise ConfigError(f"the file {str(target)!r} must end in {ONNX_SUFFIX}; name it {target.stem}{ONNX_SUFFIX}")
    description = PolicyDescription.of(agent.spec, agent.policy.config, agent.stored.values)
    metadata = _metadata(description)
    module = _StepModule(build_policy(description, agent.policy.state(), "cpu").eval()).eval().requires_grad_(False)
    raw = _encode(module, {"ludus.agent": metadata})
    write_atomic(target, raw)


def _metadata(description: PolicyDescription) -> str:
    """Return the description as JSON; raise UnsupportedError where a name or a text cannot stand in the file."""
    for name, _ in description.observation_space:
        if not _ONNX_NAME.fullmatch(name):
            raise UnsupportedError(
                f"the observation entry {brief(name)} cannot be the name of an input of an ONNX file; valid: 1 to 200 "
                "printable ASCII letters; train it with another name"
            )
    try:
        text = description.model_dump_json()
    except ValueError as error:  # half of a surrogate pair, which is no Unicode
        raise UnsupportedError(f"the settings of this agent cannot be written as ONNX: {brief(str(error))}") from error
    if len(text.encode()) > _MOST_METADATA_BYTES:
        raise UnsupportedError(
            f"the description of this agent has {len(text):,} letters; ONNX files take {_MOST_METADATA_BYTES:,} bytes"
        )
    return text


def _encode(module: _StepModule, metadata: Mapping[str, str]) -> bytes:
    try:
        import onnx
        import onnxscript  # noqa: F401 - torch's exporter needs it
    except ImportError:
        raise MissingDependencyError("onnx and onnxscript", "onnx", "writing ONNX files") from None
    with _quiet(), torch.no_grad():  # with gradients, torch traces parts of the step a second time
        try:
            model = _trace(module)
        except Exception as error:
            reason = str(error).strip().splitlines()
            raise UnsupportedError(
                f"this policy cannot be written as ONNX: {reason[0] if reason else type(error).__name__}; "
                "the file of `ludus export` without --onnx has everything"
            ) from error
    onnx.helper.set_model_props(model, dict(metadata))
    raw: bytes = model.SerializeToString()
    return raw


def _trace(module: _StepModule) -> Any:  # noqa: ANN401 - of the onnx library
    policy = module.policy
    observations = [
        torch.zeros((_ROWS, *(space.shape or ())), dtype=getattr(torch, str(space.dtype)))
        for space in policy.spec.observation_space.values()
    ]
    episode_starts, memory = torch.zeros(_ROWS, dtype=torch.bool), list(policy.initial(_ROWS).values())
    rows = {0: torch.export.Dim.DYNAMIC}
    program = torch.onnx.export(
        module,
        (observations, episode_starts, memory),
        dynamo=True,
        input_names=[
            *(f"observation.{name}" for name in module.observations),
            "starts",
            *(f"memory.{name}" for name in module.memory),
        ],
        output_names=["actions", "parameters", *(f"next_memory.{name}" for name in module.memory)],
        dynamic_shapes=([rows for _ in observations], rows, [rows for _ in memory]),
        verbose=False,
    )
    if program is None:
        raise RuntimeError("torch gave no program")
    return program.model_proto


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's own remarks, which are about itself, away from the user."""
    loggers = [logging.getLogger(name) for name in _EXPORTER_LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
