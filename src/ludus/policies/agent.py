"""An agent to play with: a policy from a checkpoint alone, asked for actions as users of Stable-Baselines3 know it."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import (
    CheckpointError,
    ConfigError,
    DeviceError,
    LudusError,
    ObservationError,
    StateError,
    UnsupportedError,
    brief,
    listed,
)
from ludus.core.files import existing_folder, suggest_run
from ludus.envs.base import EnvSpec, action_dtypes
from ludus.envs.stored import CONFIG_FILE, StoredSettings
from ludus.nn.mlp import undrawn
from ludus.policies.config import PolicyConfig
from ludus.policies.cost import USUAL_LIMITS, Allowance, Cost, LoadLimits, check_load_time, clocks, cost_of, taken_s
from ludus.policies.description import PolicyDescription
from ludus.policies.memory import STRATEGY
from ludus.policies.network import made_up, network_shapes
from ludus.policies.policy import NETWORK, Policy, RecurrentState, check_finite, clone_recurrent_state, part_of
from ludus.policies.shipped import agent_names, find_agent_path
from ludus.store import Checkpoint, CheckpointStore, load_checkpoint, read_manifest, read_single_file
from ludus.store.checkpoint import MANIFEST_NAME

TENSORS = "policy"  # group of tensors in a checkpoint that holds `Policy.state()`
DOCUMENT = "agent"  # document in a checkpoint that holds the policy's description
ORIGIN = "origin"  # document in an exported file that says where it comes from
CHECKPOINTS_FOLDER = "checkpoints"  # where a run folder keeps its checkpoints

_PREFERRED = ("best", "final")
_CHOICES = ("action_mask", "action_uses", "exploratory_kinds", "action_places")

AnyObservation: TypeAlias = NDArray[Any] | Tensor | Mapping[str, NDArray[Any]] | Mapping[str, Tensor]
_Given: TypeAlias = AnyObservation | Mapping[str, NDArray[Any] | Tensor]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint that holds an agent."""

    path: Path  # its folder or file
    name: str  # of the checkpoint in its run, such as `best`
    env_steps: int | None  # at which it was taken; None if an exported file does not say
    checkpoint: Checkpoint  # at least its parts `TENSORS` and `DOCUMENT`

    @property
    def run(self) -> Path:
        """Where the folder of its run would be, if it lies in one."""
        return self.path.absolute().parent.parent


def find_checkpoint(agent: str | Path) -> FoundCheckpoint:
    """Return the checkpoint meant by a run's folder, a checkpoint's, a file, or the name of a shipped agent.

    Raises:
        CheckpointError: There is none, or it is damaged or holds no agent.
    """
    path = find_agent_path(agent) or Path(agent)
    found = _from_file(path) if path.is_file() else _from_folder(path)
    missing = {TENSORS} - set(found.checkpoint.tensors) | {DOCUMENT} - set(found.checkpoint.documents)
    if missing:
        raise CheckpointError(found.path, "manifest.json", f"no agent: it has no part {', '.join(sorted(missing))}")
    return found


def _from_file(path: Path) -> FoundCheckpoint:
    checkpoint = read_single_file(path)
    origin = checkpoint.documents.get(ORIGIN)
    said = origin if isinstance(origin, Mapping) else {}
    name, env_steps = said.get("checkpoint"), said.get("env_steps")
    return FoundCheckpoint(
        path,
        name if isinstance(name, str) else path.stem,
        env_steps if type(env_steps) is int and env_steps >= 0 else None,
        checkpoint,
    )


def _from_folder(path: Path) -> FoundCheckpoint:
    root = path / CHECKPOINTS_FOLDER if (path / CHECKPOINTS_FOLDER).is_dir() else path
    store = CheckpointStore(root, keep=1, report=lambda text: logger.warning("[WARN] %s", text))
    names = store.names()
    for name in _PREFERRED:
        if name in names:
            stored = store.load(name, parts=(TENSORS, DOCUMENT))
            if name == "best" or stored.step >= store.newest_step():  # else the run was extended since
                return FoundCheckpoint(root / name, name, stored.step, stored.checkpoint)
    newest = store.latest_valid() if names else None
    if newest is not None:
        return FoundCheckpoint(root / newest.name, newest.name, newest.step, newest.checkpoint)
    folder = existing_folder(path)
    if folder.is_dir() and not (folder / MANIFEST_NAME).exists():
        raise CheckpointError(path, MANIFEST_NAME, f"is missing{suggest_run(path)}")
    checkpoint = load_checkpoint(path, parts=(TENSORS, DOCUMENT))
    return FoundCheckpoint(path, path.resolve().name, read_manifest(folder).step, checkpoint)


def agent_checkpoint(
    spec: EnvSpec, config: PolicyConfig, tensors: Mapping[str, Tensor], settings: Mapping[str, Any] | None = None
) -> Checkpoint:
    """Return what makes a checkpoint an agent's: tensors of `Policy.state`, and the world with its JSON settings."""
    description = PolicyDescription.of(spec, config, settings)
    return Checkpoint({TENSORS: tensors}, {DOCUMENT: json.loads(description.model_dump_json())})


class Agent:
    """Plays with a policy whose statistics stand still.

    Attributes:
        stored: Settings of the world `spec`, with which it was trained, as its file says them.
        plugins: Names of the user's own files and modules with which it was trained.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        seed: int = 0,
        settings: Mapping[str, Any] | StoredSettings | None = None,
        plugins: Sequence[str] = (),
    ) -> None:
        """Take a policy, which from now on learns no statistics; `seed` is for actions that are drawn."""
        given = settings if isinstance(settings, StoredSettings) else StoredSettings(settings or {}, is_trusted=True)
        self.stored, self.plugins = given, tuple(plugins)
        self.policy, self.spec, self.device = policy.eval(), policy.spec, policy.device
        self._generator = torch.Generator(policy.device).manual_seed(seed)
        self._shapes = {name: space.shape or () for name, space in policy.spec.observation_space.items()}
        self._action_dtype = action_dtypes(policy.spec.action_space)[0]

    @classmethod
    def load(
        cls,
        path: str | Path,
        device: str | torch.device = "cpu",
        *,
        seed: int = 0,
        limits: LoadLimits | None = USUAL_LIMITS,
    ) -> Self:
        """Load an agent; nothing in the file can run, and every byte is verified.

        Args:
            path: A checkpoint folder; or a run folder, of which `best` is taken, else `final`, else the newest one; or
                a file of `ludus export`; or the name of a shipped agent (`ludus agents` lists them).
            device: Where it shall live.
            seed: Of actions that are drawn.
            limits: What it may cost, to load and to play. None is for a file that this program itself has written.

        Raises:
            CheckpointError: There is no checkpoint, or it is damaged, hostile, above a limit or no agent's.
            DeviceError: The device is not here.
        """
        found = find_checkpoint(path)
        since = clocks()
        try:
            description = PolicyDescription.read(found.checkpoint.documents[DOCUMENT])
            settings = StoredSettings(description.settings, f"the agent {brief(str(path))}", found.run / CONFIG_FILE)
            arguments = {"module_kwargs": description.config.module_kwargs}  # of the user's own network
            replace(settings, values=arguments).checked(description.world)
            tensors = found.checkpoint.tensors[TENSORS]
            check_finite(tensors)
            policy = build_policy(description, tensors, _available(device), limits)
            if limits is not None:
                check_load_time(taken_s(since), limits)
        except (ConfigError, StateError, UnsupportedError, KeyError) as error:  # of an entry that no module can be of
            raise CheckpointError(found.path, f"{DOCUMENT}.json", str(error)) from error
        return cls(policy, seed=seed, settings=settings, plugins=description.plugins)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings with which it was trained.

        Raises:
            ConfigError: They are from a file and name something outside; see `ludus.envs.stored`.
        """
        return self.stored.checked(self.spec.id)

    def predict(
        self,
        observation: AnyObservation,
        state: RecurrentState | None = None,
        episode_start: NDArray[np.bool_] | Tensor | bool | None = None,
        deterministic: bool = False,
        action_masks: NDArray[Any] | Tensor | None = None,
    ) -> tuple[Any, RecurrentState | None]:
        """Return actions and the state to pass to the next call.

        Args:
            observation: What one seat sees, or a batch `(rows, ...)` of it: a mapping with all entries, or a plain
                array if there is one entry. NumPy gives NumPy back, torch gives torch on the agent's device.
            state: What the last call returned; None at the beginning. It is not changed. Its tensors have the
                rows first and stay on the agent's device.
            episode_start: `(rows,)` bool, rows whose observation is the first of an episode; none by default.
            deterministic: Whether the most likely action is taken instead of one that is drawn.
            action_masks: Which choices are allowed, instead of the mask entry of the observation.

        Raises:
            ObservationError: The names, shape or type do not fit the world that the agent was trained in.
        """
        entries, as_numpy, single = self._entries(self._masked(observation, action_masks))
        rows = next(iter(entries.values())).shape[0]
        episode_starts = self._episode_starts(rows, episode_start, fresh=state is None)
        memory = self.policy.initial(rows) if state is None else self._memory(state, rows)
        noise = None if deterministic else self.policy.draw_noise(1, rows, self._generator)[0]
        step = self.policy.step(entries, memory, episode_starts, noise)
        actions = self.policy.clip_actions(step.actions).to(self._action_dtype)
        actions = actions[0] if single else actions
        return (actions.cpu().numpy() if as_numpy else actions), (step.memory or None)

    @torch.no_grad()
    def strategy_latent(
        self,
        observation: AnyObservation,
        state: RecurrentState | None = None,
        episode_start: NDArray[np.bool_] | Tensor | bool | None = None,
    ) -> Any:  # noqa: ANN401 - an array or a tensor, like the observation
        """Return what the strategy encoder makes of the opponent's history up to this observation.

        The arguments are those of `predict`, which uses the same latent for its action.

        Returns:
            The latent, `(rows, latent)`, or `(latent,)` for a single observation; NumPy if the observation is.

        Raises:
            UnsupportedError: The agent has no strategy encoder.
            ObservationError: The names, shape or type do not fit the world that the agent was trained in.
        """
        policy = self.policy
        encoder = policy.memory.strategy
        if encoder is None:
            raise UnsupportedError("the agent has no strategy encoder; train one with policy.strategy")
        entries, as_numpy, single = self._entries(observation)
        rows = next(iter(entries.values())).shape[0]
        episode_starts = self._episode_starts(rows, episode_start, fresh=state is None)
        memory = policy.initial(rows) if state is None else self._memory(state, rows)
        latent, _ = encoder.step(policy.opponent_frames(entries), part_of(memory, STRATEGY), episode_starts)
        latent = latent[0] if single else latent
        return latent.cpu().numpy() if as_numpy else latent

    def check_world(self, spec: EnvSpec) -> None:
        """Raise StateError unless the agent can play in the world: same name, version, shapes and actions."""
        self.check_world_id(spec.id)  # of another world everything else may differ too, which explains nothing
        own, other = (PolicyDescription.of(each, self.policy.config).model_dump() for each in (self.spec, spec))
        faults = [
            f"its {name} is {brief(other[name], 500)}, the agent's {brief(own[name], 500)}"
            for name in ("observation_space", "action_space", *_CHOICES)
            if own[name] != other[name]
        ]
        if faults:
            raise StateError(f"the agent does not fit the world: {'; '.join(faults)}; use the world it was made for")

    def check_world_id(self, world_id: str) -> None:
        """Raise StateError unless the agent is for the world of this versioned name, such as `brawl-v1`."""
        if self.spec.id != world_id:
            shipped = ", ".join(agent_names(world_id))
            raise StateError(
                f"the agent does not fit the world: it plays {self.spec.id}, not {world_id}; use the world that it was "
                f"made for, or an agent of {world_id}{f' (shipped: {shipped})' if shipped else ''}"
            )

    def _masked(self, observation: AnyObservation, masks: NDArray[Any] | Tensor | None) -> _Given:
        """Return the observation with the mask that was given apart from it, if one was."""
        if masks is None:
            return observation
        name = self.spec.actions.mask
        if name is None:
            raise ObservationError(f"{self.spec.id} has no mask of allowed actions; leave out action_masks")
        if isinstance(observation, Mapping):
            return {**observation, name: masks}
        others = [entry for entry in self._shapes if entry != name]
        if len(others) != 1:
            raise ObservationError(f"{self.spec.id} has several entries: pass a mapping with {listed(others)}")
        return {others[0]: observation, name: masks}

    def _entries(self, observation: _Given) -> tuple[dict[str, Tensor], bool, bool]:
        """Return all entries as `(rows, ...)`, whether they came as NumPy, and whether it was a single one."""
        if isinstance(observation, Mapping):
            given: dict[str, Any] = dict(observation)
        elif len(self._shapes) == 1:
            given = {next(iter(self._shapes)): observation}
        else:
            raise ObservationError(f"{self.spec.id} has several entries: pass a mapping with {listed(self._shapes)}")
        if set(given) != set(self._shapes):
            raise ObservationError(f"{self.spec.id} is observed by {listed(self._shapes)}; got {listed(given)}")
        as_numpy = not any(isinstance(entry, Tensor) for entry in given.values())
        entries = {name: torch.as_tensor(given[name], device=self.device) for name in self._shapes}
        leading = {tuple(tensor.shape[: tensor.dim() - len(self._shapes[n])]) for n, tensor in entries.items()}
        fits = all(tuple(tensor.shape[tensor.dim() - len(self._shapes[n]) :]) == self._shapes[n]
                   for n, tensor in entries.items())  # fmt: skip
        if not fits or len(leading) != 1 or len(next(iter(leading))) > 1 or leading == {(0,)}:
            shapes = {name: tuple(tensor.shape) for name, tensor in entries.items()}
            raise ObservationError(
                f"an observation of {self.spec.id} has the shapes {self._shapes}, or (rows, ...) of these; got {shapes}"
            )
        single = leading == {()}
        return {name: tensor.unsqueeze(0) if single else tensor for name, tensor in entries.items()}, as_numpy, single

    def _episode_starts(self, rows: int, given: NDArray[np.bool_] | Tensor | bool | None, *, fresh: bool) -> Tensor:
        if fresh or given is None:
            return torch.full((rows,), fresh, dtype=torch.bool, device=self.device)
        episode_starts = torch.as_tensor(given, device=self.device).bool().reshape(-1)
        if episode_starts.shape != (rows,):
            raise ObservationError(f"episode_start must have shape ({rows},), got {tuple(episode_starts.shape)}")
        return episode_starts

    def _memory(self, state: RecurrentState, rows: int) -> RecurrentState:
        expected = {name: tuple(tensor.shape[1:]) for name, tensor in self.policy.initial(1).items()}
        got = {name: tuple(tensor.shape) for name, tensor in state.items()}
        if got != {name: (rows, *shape) for name, shape in expected.items()}:
            raise ObservationError(f"the state is not that of {rows} rows of this agent; pass what predict returned")
        return clone_recurrent_state(state)


def build_policy(
    description: PolicyDescription,
    state: Mapping[str, Tensor],
    device: torch.device | str,
    limits: LoadLimits | None = None,
) -> Policy:
    """Build a policy from its state, comparing sizes before memory is taken; raise StateError if it does not fit.

    With `limits`, as for a file of somebody else, raise StateError too if it costs more.
    """
    try:
        with torch.random.fork_rng(devices=[]), undrawn():  # the state takes the place of all parameters
            return _build(description, state, device, limits)
    except LudusError:
        raise
    except (ArithmeticError, AssertionError, LookupError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        # Numbers that are possible each for itself may not be so together: what torch and Gymnasium say is passed on.
        fault = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise StateError(
            f"the description cannot be built: {fault}; it was changed or made by another version"
        ) from error


def _build(
    description: PolicyDescription, state: Mapping[str, Tensor], device: torch.device | str, limits: LoadLimits | None
) -> Policy:
    own = sum(tensor.numel() for name, tensor in state.items() if name.startswith(f"parameter.{NETWORK}."))
    cost = cost_of(description, own) if limits is not None else Cost()
    if limits is not None:
        cost.check(limits)
    spec, config = description.spec(), description.config
    with torch.device("meta"):
        if config.module is not None:
            _check_sizes(state, network_shapes(config.module, config.module_kwargs, spec), f"{NETWORK}.module.")
        shell = Policy(spec, config, "meta")
    _check_sizes(state, {name: parameter.shape for name, parameter in shell.named_parameters()})
    policy = Policy(spec, config, device)
    policy.load_state(state)
    if limits is not None:
        if policy.network is not None:  # what it remembers is known only now
            cost.state_bytes = sum(tensor.nbytes for tensor in policy.initial(1).values())
            cost.check(limits)
        policy.allowance = Allowance(cost, limits)
        _check_decision(policy, policy.allowance)
    return policy


def _check_decision(policy: Policy, allowance: Allowance) -> None:
    """Raise StateError if a decision is NaN, because finite weights are far too large, or takes too long.

    A user's own network has been tried out before.
    """
    if policy.network is not None:
        return
    generator, space = torch.Generator().manual_seed(0), policy.spec.observation_space
    frame = {name: made_up(entry, (1,), generator).to(policy.device) for name, entry in space.items()}
    starts = torch.ones(1, dtype=torch.bool, device=policy.device)
    since = clocks()
    step = policy.step(frame, policy.initial(1), starts)
    seconds, limit_s = taken_s(since), allowance.decision_s(1)
    if seconds > limit_s and policy.device.type == "cpu":  # a GPU compiles first
        raise StateError(f"it took {seconds:.1f} s over a decision; its limit is {limit_s:.1f} s")
    if not all(bool(tensor.isfinite().all()) for tensor in (step.log_probs, step.values)):
        raise StateError("its decisions are NaN or Inf, though its weights are finite: they are far too large")


def _check_sizes(state: Mapping[str, Tensor], shapes: Mapping[str, torch.Size], prefix: str = "") -> None:
    for name, shape in shapes.items():
        given = state.get(f"parameter.{prefix}{name}")
        if given is None or given.shape != shape:
            found = "missing" if given is None else f"{tuple(given.shape)}"
            raise StateError(f"parameter {prefix}{name} is {found}, but the description asks for {tuple(shape)}")


def _available(device: str | torch.device) -> torch.device:
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise DeviceError(f"device {str(device)!r} is not here ({str(error).splitlines()[0]}); use 'cpu'") from error
