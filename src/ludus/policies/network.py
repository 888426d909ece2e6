"""The user's own network inside a policy: made, tried out, called and checked; what is wrong names its file and line.

The class is a `torch.nn.Module`, made as `MyNet(spec, **module_kwargs)`. `forward(observations)` gets `(rows, ...)` per
entry and returns features `(rows, features)`, on which Ludus's own memory and heads are built, or `(logits, values)`:
the parameters of the action head `(rows, parameters)` and values `(rows,)` or `(rows, 1)`.

State protocol: a recurrent network also has `initial_state(rows)`, which returns a dict of tensors with the rows first,
and its `forward(observations, state)` returns `(output, next_state)`. Ludus sets rows back to `initial_state` where an
episode starts. Sequences `(steps, rows, ...)` are unrolled by a loop over steps, unless the class has
`unroll(observations, state, episode_starts)`, which returns outputs `(steps, rows, ...)` and resets the rows itself.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from ludus.core.errors import ConfigError, NetworkError
from ludus.core.text import blame, plain_text
from ludus.envs.base import EnvSpec
from ludus.nn.recurrent import RecurrentState, reset_recurrent_state
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.user_module import find_network, place_of

_TRIED_ROWS, _TRIED_STEPS = 3, 4
_TOLERANCE = 1e-3  # between `unroll` and steps, which add up in different orders
_EXPECTED = "features (rows, features), or (logits, values)"

T = TypeVar("T")


class NetworkOutput(NamedTuple):
    """What actor and critic get: the same features `(..., size)`; or action parameters, and values `(..., 1)`."""

    actor: Tensor
    critic: Tensor


class UserNetwork(nn.Module):
    """A network of the user's own, of which nothing is taken that has the wrong form.

    Attributes:
        module: The user's.
        is_recurrent: Whether it has a state.
        gives_actions: Whether it returns the parameters of actions and values, instead of features.
        output_size: Features, or parameters of actions.
    """

    def __init__(
        self, name: str, arguments: Mapping[str, Any], spec: EnvSpec, seen: spaces.Dict, device: torch.device
    ) -> None:
        """Make it on the CPU, so that its first parameters are the same everywhere, and try it out on a device.

        Args:
            name: Of the class, see `find_network`.
            arguments: Its keyword arguments.
            spec: The spec that its constructor gets.
            seen: The entries of the observation that it gets.
            device: Where it is to play, and is tried out: it may run on no other.

        Raises:
            ConfigError: No class of this name is loaded.
            NetworkError: It failed, or its parameters, state or output have a wrong form.
        """
        super().__init__()
        self.name, self._class = name, find_network(name)
        self.is_recurrent = callable(getattr(self._class, "initial_state", None))
        self._has_unroll = self.is_recurrent and callable(getattr(self._class, "unroll", None))
        self.allows_cuda_graphs = bool(getattr(self._class, "cuda_graphs", False))
        self._state_form: dict[str, tuple[tuple[int, ...], torch.dtype]] | None = None
        self._was_seen_finite = False
        with torch.device("cpu"):
            self.module: nn.Module = self._run("__init__", lambda: self._class(spec, **arguments))
            for key, parameter in self.module.named_parameters():
                if parameter.dtype != torch.float32:
                    raise self._error("__init__", f"has a parameter {key!r} of {parameter.dtype}, expected float32")
            self.module.to(device)
            drawn_from = [device] if device.type == "cuda" else []
            with torch.random.fork_rng(devices=drawn_from), torch.no_grad():
                self.gives_actions, self.output_size = self._try_out(seen, device)

    def __str__(self) -> str:
        return plain_text(f"network {self.name!r} ({place_of(self._class)})")

    def describe(self) -> str:
        """Say what it is and returns, in a line."""
        output = "logits and values" if self.gives_actions else "features"
        state = ", ".join(f"{name} {shape}" for name, (shape, _) in (self._state_form or {}).items())
        return f"{self} returns {self.output_size} {output}{f', state {state} per row' if state else ''}"

    def initial(self, rows: int, device: torch.device) -> RecurrentState:
        """Return the state of `rows` rows that have seen nothing; empty without one."""
        return {name: tensor.detach().clone() for name, tensor in self._initial_state(rows, device).items()}

    def step(
        self, observations: Mapping[str, Tensor], state: RecurrentState, episode_starts: Tensor
    ) -> tuple[NetworkOutput, RecurrentState]:
        """Map one frame, `(rows, ...)` per entry, with episode starts `(rows,)` to its output and the next state."""
        rows = episode_starts.shape[0]
        output, following = self._forward(observations, state, episode_starts)
        checked = self._checked(output, (rows,))
        if not self._was_seen_finite and not torch.compiler.is_compiling():
            # Once, with real observations: later NaN come from training, and the run's own guard finds and names them.
            self._was_seen_finite = True
            if not bool(checked.actor.isfinite().all() & checked.critic.isfinite().all()):
                raise self._error("forward", "returned NaN or infinity for the first observations")
        return checked, following

    def unroll(
        self, observations: Mapping[str, Tensor], state: RecurrentState, episode_starts: Tensor
    ) -> NetworkOutput:
        """Map segments, `(steps, rows, ...)` per entry, with episode starts `(steps, rows)` to their output."""
        steps, rows = episode_starts.shape
        if not self.is_recurrent:
            flat = {name: tensor.flatten(0, 1) for name, tensor in observations.items()}
            output, _ = self._forward(flat, {}, episode_starts.flatten())
            together = self._checked(output, (steps * rows,))
            return NetworkOutput(*(part.reshape(steps, rows, -1) for part in together))
        if self._has_unroll:
            # A copy of the dict: what the user's code does to it must not show elsewhere.
            output = self._run("unroll", lambda: self._method("unroll")(observations, dict(state), episode_starts))
            return self._checked(output, (steps, rows), "unroll")
        return self._loop(observations, state, episode_starts)

    def _loop(self, observations: Mapping[str, Tensor], state: RecurrentState, episode_starts: Tensor) -> NetworkOutput:
        outputs: list[NetworkOutput] = []
        for t, starts in enumerate(episode_starts):
            frame = {name: tensor[t] for name, tensor in observations.items()}
            output, state = self._forward(frame, state, starts)
            outputs.append(self._checked(output, (starts.shape[0],)))
        return NetworkOutput(*(torch.stack(parts) for parts in zip(*outputs, strict=True)))

    def _forward(
        self, observations: Mapping[str, Tensor], state: RecurrentState, episode_starts: Tensor
    ) -> tuple[object, RecurrentState]:
        """Return what the user's `forward` made of a frame, and the next state, which has been checked."""
        if not self.is_recurrent:
            return self._run("forward", lambda: self.module(dict(observations))), {}
        rows, device = episode_starts.shape[0], episode_starts.device
        before = reset_recurrent_state(state, self._initial_state(rows, device), episode_starts)
        result = self._run("forward", lambda: self.module(dict(observations), before))
        if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], Mapping):
            raise self._error("forward", f"returned {_form(result)}, expected (output, next_state)")
        return result[0], self._checked_state(result[1], rows, "forward")

    def _initial_state(self, rows: int, device: torch.device) -> RecurrentState:
        if not self.is_recurrent:
            return {}
        state = self._run("initial_state", lambda: self._method("initial_state")(rows))
        if not isinstance(state, Mapping) or not state:
            raise self._error("initial_state", f"returned {_form(state)}, expected a dict of tensors (rows, ...)")
        tensors = self._checked_state(state, rows, "initial_state")
        return {name: tensor.to(device) for name, tensor in tensors.items()}

    def _checked_state(self, state: Mapping[str, Any], rows: int, method: str) -> RecurrentState:
        """Return a state whose names and shapes are those of the first one; floats get its types back."""
        for name, tensor in state.items():
            if not isinstance(name, str) or "." in name or not isinstance(tensor, Tensor) or tensor.dim() == 0:
                raise self._error(method, f"returned a state of {_form(state)}, expected tensors (rows, ...) by name")
        form = {name: (tuple(tensor.shape[1:]), tensor.dtype) for name, tensor in state.items()}
        if self._state_form is None:
            self._state_form = form
        known = self._state_form
        if form.keys() != known.keys():
            raise self._error(method, f"returned a state of {sorted(form)}, and {sorted(known)} before")
        for name, tensor in state.items():
            shape, dtype = known[name]
            is_like = tensor.dtype == dtype or (tensor.is_floating_point() and dtype.is_floating_point)
            if tensor.shape[0] != rows or form[name][0] != shape or not is_like:
                raise self._error(
                    method, f"returned a state {name!r} of {_form(tensor)}, expected {(rows, *shape)} {dtype}"
                )
        return {name: state[name].to(dtype) for name, (_, dtype) in known.items()}

    def _checked(self, output: object, leading: tuple[int, ...], method: str = "forward") -> NetworkOutput:
        """Return an output with the given first dimensions, or raise NetworkError."""
        if isinstance(output, Tensor):
            self._check_tensor(output, leading, method, "features")
            checked = NetworkOutput(output, output)
        elif isinstance(output, tuple) and len(output) == 2 and all(isinstance(part, Tensor) for part in output):
            logits, values = output
            self._check_tensor(logits, leading, method, "logits")
            values = values.unsqueeze(-1) if values.dim() == len(leading) else values
            self._check_tensor(values, leading, method, "values", 1)
            checked = NetworkOutput(logits, values)
        else:
            raise self._error(method, f"returned {_form(output)}, expected {_EXPECTED}")
        if hasattr(self, "output_size"):
            expected = self.output_size, self.gives_actions
            if (checked.actor.shape[-1], isinstance(output, tuple)) != expected:
                raise self._error(method, f"returned {_form(output)}, and {expected[0]} numbers per row before")
        return checked

    def _check_tensor(self, tensor: Tensor, leading: tuple[int, ...], method: str, what: str, size: int = 0) -> None:
        is_right = tensor.dim() == len(leading) + 1 and tuple(tensor.shape[:-1]) == leading and tensor.shape[-1] > 0
        if not is_right or not tensor.is_floating_point() or (size and tensor.shape[-1] != size):
            shown = ", ".join(map(str, leading))
            raise self._error(method, f"returned {what} of {_form(tensor)}, expected ({shown}, {size or what})")

    def _try_out(self, seen: spaces.Dict, device: torch.device) -> tuple[bool, int]:
        """Call it with made-up observations; return whether it gives actions, and the size of its output."""
        was_training = self.module.training
        self.module.eval()
        rows, generator = _TRIED_ROWS, torch.Generator().manual_seed(0)
        frames = {name: made_up(space, (_TRIED_STEPS, rows), generator).to(device) for name, space in seen.items()}
        first = {name: tensor[0] for name, tensor in frames.items()}
        state = self.initial(rows, device)
        output, _ = self._forward(first, state, torch.ones(rows, dtype=torch.bool, device=device))
        checked = self._checked(output, (rows,))
        if self._has_unroll:
            self._compare_unroll(frames, state)
        self.module.train(was_training)
        return isinstance(output, tuple), checked.actor.shape[-1]

    def _compare_unroll(self, frames: Mapping[str, Tensor], state: RecurrentState) -> None:
        """Raise NetworkError unless `unroll` gives what steps give, with episodes that start in between."""
        device = next(iter(frames.values())).device
        episode_starts = torch.eye(_TRIED_STEPS, _TRIED_ROWS, dtype=torch.bool).roll(1, 0).to(device)
        at_once = self.unroll(frames, state, episode_starts)
        by_step = self._loop(frames, state, episode_starts)
        for one, other in zip(at_once, by_step, strict=True):
            apart = float((one - other).abs().nan_to_num().max())
            if apart > _TOLERANCE * max(1.0, float(other.abs().nan_to_num().max())):
                raise self._error(
                    "unroll", f"differs from steps of forward by {apart:.3g}; it must reset rows at episode_starts too"
                )

    def check_logits(self, spec: EnvSpec, expected: int) -> None:
        """Raise NetworkError unless it returns as many parameters of actions as expected."""
        if self.output_size != expected:
            raise NetworkError(
                f"{self} returns {self.output_size} logits, but the actions of {spec.id}, {spec.action_space}, have "
                f"{expected} parameters; return as many"
            )

    def _method(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self.module, name)
        return method

    def _run(self, method: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except (torch.OutOfMemoryError, MemoryError):
            raise  # of the device, not of the network
        except Exception as error:
            raise NetworkError(
                f"network {self.name!r}: {method} failed: {blame(error)}"
                f"{f' ({place_of(self._class, method)})' if method == '__init__' else ''}; fix it and try again"
            ) from error

    def _error(self, method: str, fault: str) -> NetworkError:
        place = place_of(self._class, method)
        return NetworkError(plain_text(f"network {self.name!r}: {method} ({place}) {fault}; fix it and try again"))


def make_network(spec: EnvSpec, config: PolicyConfig, seen: spaces.Dict, device: torch.device) -> UserNetwork:
    """Make the network that `policy.module` names; raise ConfigError if other parts of the policy do not fit it."""
    # Only what an agent file holds, so that a loaded agent builds the same network.
    known = PolicyDescription.of(spec, config).spec()
    name = config.module or ""
    try:
        tried_on = torch.device("cpu") if device.type == "meta" else device
        network = UserNetwork(name, config.module_kwargs, known, seen, tried_on)
    except NetworkError:
        if device.type != "meta" or not torch.cuda.is_available():
            raise
        # A policy without memory only counts parameters; the network may be one that runs on a GPU alone.
        network = UserNetwork(name, config.module_kwargs, known, seen, torch.device("cuda"))
    beside = [part for part in ("strategy", "recurrent") if getattr(config, part) is not None]
    beside += ["state_dependent_exploration"] if config.state_dependent_exploration else []
    if network.gives_actions and beside:
        raise ConfigError(
            f"{network} returns (logits, values), so policy.{beside[0]} has no features to work on; leave that "
            "out, or return features"
        )
    return network


def network_shapes(name: str, arguments: Mapping[str, Any], spec: EnvSpec) -> dict[str, torch.Size]:
    """Return the shapes of a network's parameters without taking memory; nothing if it cannot be made without numbers.

    Arguments that come from the file of an agent may ask for any size. Raise ConfigError if it is not loaded.
    """
    network = find_network(name)
    try:
        with torch.device("meta"):
            return {key: parameter.shape for key, parameter in network(spec, **arguments).named_parameters()}
    except Exception:  # the user's code can raise anything; what is really wrong shows when it is made for real
        return {}


def made_up(space: spaces.Space[Any], leading: Sequence[int], generator: torch.Generator) -> Tensor:
    """Return observations `(*leading, *shape)` of a space, as a policy gets them."""
    shape = (*leading, *(space.shape or ()))
    if isinstance(space, spaces.Discrete):
        return torch.randint(int(space.n), shape, generator=generator)
    if len(space.shape or ()) == 3 and space.dtype == np.uint8:
        return torch.randint(256, shape, generator=generator, dtype=torch.uint8)
    return torch.rand(shape, generator=generator)


def _form(value: object) -> str:
    """Return the type of a value, with shapes where there are tensors, in a few words."""
    if isinstance(value, Tensor):
        return f"{tuple(value.shape)} {value.dtype}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_form(part)}' for name, part in list(value.items())[:5])}}}"
    if isinstance(value, tuple):
        return f"({', '.join(_form(part) for part in value[:5])})"
    return type(value).__name__
