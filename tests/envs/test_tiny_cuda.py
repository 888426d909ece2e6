"""Toy environments on a CUDA device: they pass the conformance kit and compute what the CPU computes."""

import pytest
import torch

from ludus import make_env
from ludus.envs.check import CheckOptions, check_env

pytestmark = pytest.mark.cuda

TOYS = ["dig-v1", "duel-v1", "endless-v1", "identity-v1", "point-v1", "recall-v1", "rps-v1", "tug-v1"]


@pytest.mark.parametrize("name", TOYS)
def test_conformance(name: str) -> None:
    check_env(
        lambda num_envs, seed, first_game: make_env(name, num_envs, "cuda", seed=seed, first_game=first_game),
        CheckOptions(random=name not in {"endless-v1", "duel-v1"}),
    )


@pytest.mark.parametrize("name", TOYS)
def test_partial_resets_match_the_cpu(name: str) -> None:
    envs = [make_env(name, 6, device, seed=3) for device in ("cpu", "cuda")]
    chosen = torch.tensor([True, False, True, False, False, True])
    seen = []
    for env in envs:
        env.reset()
        seen.append(env.reset(chosen.to(env.device)))
    for key, on_cpu in seen[0].items():
        assert torch.equal(on_cpu, seen[1][key].cpu()), key
