"""On a CUDA device: networks of users, dropout in graphs, and an update that really runs out of memory."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests import own_networks
from tests.own_networks import Features, inputs
from torch import Tensor, nn

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.core.errors import NetworkError
from ludus.envs.registry import make_env
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.policies.user_module import register_network
from ludus.store import save_checkpoint

pytestmark = pytest.mark.cuda


class Recorded(Features):
    """Allows that it is recorded."""

    cuda_graphs = True


class Wide(nn.Module):
    """Takes much memory per row."""

    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(inputs(spec), 4096), nn.Linear(4096, 8)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        hidden = self.first(torch.cat(list(observations.values()), -1))
        for _ in range(16):
            hidden = torch.sin(hidden)
        features: Tensor = self.last(hidden)
        return features


class CudaAlone(Features):
    """Runs on a GPU alone, as one with kernels of its own."""

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        if not all(tensor.is_cuda for tensor in (*observations.values(), *self.parameters())):
            raise RuntimeError("no kernel for the CPU")
        return super().forward(observations)


def make_learner(policy: dict[str, Any], games: int = 32, **settings: Any) -> PpoLearner:
    torch.manual_seed(0)
    env = make_env("duel-v1", games, "cuda")
    made = Policy(env.spec, PolicyConfig.model_validate(policy), "cuda")
    opponents = LeagueOpponents(env, made, {"rock": 1.0, "self": 1.0}, LeagueConfig(keep=3), 0)
    given = {"n_steps": 16, "batch_size": 256, "n_epochs": 2, "sequence_length": 8, "learning_rate": 1e-3}
    config = PpoConfig.model_validate(given | settings)
    learner = PpoLearner(env, made, config, learner=opponents.learner, opponents=opponents)
    opponents.attach(learner.rows)
    opponents.add_snapshot("one", 0, made.state())
    opponents.add_snapshot("two", 1, made.state())
    return learner


@pytest.mark.parametrize("network", ["Features", "Actions", "Recurrent", "RecurrentActions", "Unrolled"])
@pytest.mark.parametrize("bfloat16", [False, True])
def test_networks_learn_against_past_selves(network: str, bfloat16: bool) -> None:
    learner = make_learner({"module": f"{own_networks.__name__}:{network}", "bfloat16": bfloat16})
    metrics = [learner.iterate() for _ in range(3)]
    assert all(each["updates"] == 4 for each in metrics)
    assert all(bool(part.tensor.isfinite().all()) for part in learner.learned())


STRATEGY = {"layers": 1, "heads": 2, "width": 16, "feedforward": 16, "window": 5}


@pytest.mark.parametrize("policy", [{"module": f"{__name__}:Recorded"}, {"dropout": 0.2, "strategy": STRATEGY}])
def test_masks_in_graphs_are_new_in_every_update_and_follow_the_seed(policy: dict[str, Any]) -> None:
    learner = make_learner(policy)
    assert learner.updater._graphable
    learner.collect()
    losses = []
    for seed in (5, 5, 5, 6):  # the first one records the graph, which draws masks too
        learner._generator.manual_seed(seed)
        learner.updater.update(learner.rollout, 0.0, learner._generator)
        losses.append(learner.updater.device_metrics()[1].item())
        learner.updater._restore_point.restore(learner._generator)
    assert losses[2] == pytest.approx(losses[1], rel=1e-5)
    assert abs(losses[3] - losses[1]) > 1e-4 * abs(losses[1])


@pytest.mark.parametrize("graphs", [True, False])
def test_an_update_that_runs_out_of_memory_is_repeated(graphs: bool, caplog: pytest.LogCaptureFixture) -> None:
    class_name = "RecordedWide" if graphs else "Wide"
    learner = make_learner({"module": f"{__name__}:{class_name}"}, games=2048, batch_size=16 * 2048)
    learner.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    # A minibatch of 32,768 rows keeps 17 tensors of 4,096 numbers per row: 8.5 GiB. A half fits, the whole does not.
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 7 * 2**30) / total)
    before = learner.policy.state()
    try:
        learner.update()
        metrics = learner.metrics()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert learner.updater.parts >= 2
    assert metrics["updates"] == 2
    assert any("ppo.n_accumulate=" in record.getMessage() for record in caplog.records)
    after = learner.policy.state()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert all(bool(tensor.isfinite().all()) for tensor in after.values())
    assert learner.iterate()["updates"] == 2


class RecordedWide(Wide):
    """Allows that it is recorded."""

    cuda_graphs = True


def test_a_network_for_a_gpu_alone_learns_is_counted_and_loaded(tmp_path: Path) -> None:
    learner = make_learner({"module": register_network(CudaAlone)})
    assert learner.iterate()["updates"] > 0
    policy = learner.policy
    with torch.device("meta"):
        shell = Policy(policy.spec, policy.config, "meta")  # counts parameters, see `estimate_policy`
    assert sum(each.numel() for each in shell.parameters()) == sum(each.numel() for each in policy.parameters())
    save_checkpoint(tmp_path / "agent", agent_checkpoint(policy.spec, policy.config, policy.state()))
    loaded = Agent.load(tmp_path / "agent", "cuda").policy.state()
    assert all(torch.equal(loaded[name], tensor.to(loaded[name].device)) for name, tensor in policy.state().items())
    with pytest.raises(NetworkError, match="no kernel for the CPU"):
        Agent.load(tmp_path / "agent", "cpu")
