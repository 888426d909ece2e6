"""Two processes that share the work end up where one process with the whole batch does."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, distributed, multiprocessing

from ludus import make_env
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.update import Updater
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.buffer import RolloutBuffer

pytestmark = pytest.mark.train

STEPS, ROWS = 16, 8
POLICIES = {
    "mlp": PolicyConfig.model_validate({"normalize": {"observations": True}}),
    "lstm": PolicyConfig.model_validate({"recurrent": {"size": 8}, "normalize": {"observations": True}}),
}


def _update(kind: str, rows: slice, seed: int) -> dict[str, Tensor]:
    """Updates on some rows of one and the same rollout; gives parameters, statistics, optimiser and metrics."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)  # ranks start from different parameters: the first one's count
    env = make_env("point-v1", 1)
    policy = Policy(env.spec, POLICIES[kind])
    generator = torch.Generator().manual_seed(7)
    count = len(range(ROWS)[rows])
    config = PpoConfig.model_validate(
        {
            "n_steps": STEPS,
            "batch_size": STEPS * count,
            "n_epochs": 3,
            "sequence_length": 8,
            "learning_rate": 1e-3,
            "target_kl": 10.0,
        }
    )
    updater = Updater(policy, config)
    buffer = RolloutBuffer(policy, STEPS, count, config.sequence_length_for(has_memory=policy.has_memory))

    def draw(tensor: Tensor, rows_axis: int, scale: float = 1.0) -> None:
        shape = [*tensor.shape]
        shape[rows_axis] = ROWS
        whole = torch.randn(shape, generator=generator) * scale
        tensor.copy_(whole.index_select(rows_axis, torch.arange(ROWS)[rows]))

    draw(buffer.observations["vector"], 1, 3.0)
    for tensor in (buffer.actions, buffer.log_probs, buffer.values, buffer.advantages, buffer.returns):
        draw(tensor, 1)
    for name in sorted(buffer.memory):
        draw(buffer.memory[name], 1)
    episode_starts = torch.empty(STEPS, count)
    draw(episode_starts, 1)
    buffer.episode_starts.copy_(episode_starts > 1.0)
    policy.observe(buffer.observations)
    updater.update(buffer, 0.0, torch.Generator().manual_seed(0))
    return policy.state() | updater.optimiser.state() | {"metrics": updater.device_metrics()}


def _rank(rank: int, folder: str) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    half = ROWS // 2
    for kind in POLICIES:
        state = _update(kind, slice(rank * half, (rank + 1) * half), seed=rank)
        contiguous = {name: tensor.contiguous() for name, tensor in state.items()}
        save_file(contiguous, f"{folder}/{kind}-rank{rank}.safetensors")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes have after an update of every kind of policy: starting them is what takes time."""
    folder = tmp_path_factory.mktemp("ranks")
    multiprocessing.spawn(_rank, (str(folder),), nprocs=2)  # type: ignore[attr-defined, no-untyped-call]
    return folder


@pytest.mark.parametrize("kind", list(POLICIES))
def test_two_processes_equal_one(kind: str, updated: Path) -> None:
    whole = _update(kind, slice(None), seed=0)
    processes = [load_file(updated / f"{kind}-rank{rank}.safetensors") for rank in range(2)]
    ratio_error = 5  # a maximum over a rank's own rows, so its mean over ranks differs
    for name, tensor in whole.items():
        assert torch.equal(processes[0][name], processes[1][name]), name
        got = processes[0][name]
        if name == "metrics":
            keep = [i for i in range(tensor.numel()) if i != ratio_error]
            tensor, got = tensor[keep], got[keep]
        torch.testing.assert_close(got, tensor, atol=2e-6, rtol=1e-4, msg=name)
