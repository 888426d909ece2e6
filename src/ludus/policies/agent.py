"""An agent to play with: a policy from a checkpoint, asked as Stable-Baselines3 users know it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import StateError
from ludus.policies.description import PolicyDescription
from ludus.policies.memory import Memory
from ludus.policies.policy import Policy
from ludus.store import load_checkpoint

TENSORS = "policy"  # group of tensors in a checkpoint that holds `Policy.state()`
DOCUMENT = "agent"  # document in a checkpoint that holds the policy's description


class Agent:
    """A policy in evaluation mode: its statistics stand still.

    Attributes:
        policy: The policy.
    """

    def __init__(self, policy: Policy, *, seed: int = 0) -> None:
        """Takes the policy as it is; `seed` draws the actions that are not deterministic."""
        self.policy = policy.eval()
        self._generator = torch.Generator(policy.device).manual_seed(seed)

    @classmethod
    def load(cls, folder: str | Path, device: torch.device | str = "cpu", *, seed: int = 0) -> Self:
        """Reads an agent from a checkpoint, on any device; nothing in the file can run code.

        Raises:
            CheckpointError: The checkpoint is damaged.
            ConfigError: Its description of the policy cannot be read.
            StateError: Description and tensors do not fit together.
        """
        checkpoint = load_checkpoint(Path(folder), parts=(TENSORS, DOCUMENT))
        if TENSORS not in checkpoint.tensors or DOCUMENT not in checkpoint.documents:
            raise StateError(f"checkpoint {folder} holds no agent: it needs the parts {TENSORS!r} and {DOCUMENT!r}")
        description = PolicyDescription.read(checkpoint.documents[DOCUMENT])
        return cls(build_policy(description, checkpoint.tensors[TENSORS], device), seed=seed)

    @torch.no_grad()
    def predict(
        self,
        observation: Mapping[str, NDArray[np.generic]] | NDArray[np.generic],
        state: Memory | None = None,
        episode_start: NDArray[np.bool_] | bool | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[np.generic], Memory]:
        """Chooses actions.

        Args:
            observation: `(rows, ...)` an entry, or one row without the leading axis; an array where the world's
                observation has a single entry.
            state: What the last call returned; None before the first.
            episode_start: `(rows,)`, rows whose episode starts with this observation; none by default.
            deterministic: Whether to take the most likely action instead of drawing one.

        Returns:
            The actions, with a leading axis where the observation had one, and the state for the next call.
        """
        space = self.policy.spec.observation_space
        entries = observation if isinstance(observation, Mapping) else {next(iter(space)): observation}
        tensors = {name: torch.as_tensor(np.asarray(entries[name]), device=self.policy.device) for name in space}
        name, first = next(iter(tensors.items()))
        single = first.dim() == len(space[name].shape or ())
        if single:
            tensors = {name: tensor.unsqueeze(0) for name, tensor in tensors.items()}
        rows = next(iter(tensors.values())).shape[0]
        starts = torch.as_tensor(np.asarray(False if episode_start is None else episode_start)).expand(rows)
        noise = None if deterministic else self.policy.draw_noise(1, rows, self._generator)[0]
        memory = self.policy.initial(rows) if state is None else {key: part.clone() for key, part in state.items()}
        step = self.policy.step(tensors, memory, starts.to(self.policy.device), noise)
        actions = self.policy.clip_actions(step.actions).cpu().numpy()
        return (actions[0] if single else actions), step.memory


def build_policy(description: PolicyDescription, state: Mapping[str, Tensor], device: torch.device | str) -> Policy:
    """Builds a policy and gives it its state; sizes are compared before any memory is taken.

    Raises:
        StateError: Description and tensors do not fit together.
    """
    spec = description.spec()
    with torch.device("meta"):
        shapes = {
            name: parameter.shape for name, parameter in Policy(spec, description.config, "meta").named_parameters()
        }
    for name, shape in shapes.items():
        given = state.get(f"parameter.{name}")
        if given is None or given.shape != shape:
            found = "missing" if given is None else f"{tuple(given.shape)}"
            raise StateError(f"parameter {name} is {found}, but the description asks for {tuple(shape)}")
    policy = Policy(spec, description.config, device)
    policy.load_state(state)
    return policy
