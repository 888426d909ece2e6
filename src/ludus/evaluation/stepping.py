"""The fastest way to step a policy that only plays: CUDA graphs, compiled functions on the CPU, else plain calls."""

import torch

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.native.mlp import supports
from ludus.algorithms.ppo.stepping import Stepper, make_stepper
from ludus.algorithms.ppo.update import Updater
from ludus.policies.agent import build_policy
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy


def make_playing_stepper(policy: Policy, rows: int) -> Stepper:
    """Returns who steps the policy as it is now, where actions are drawn; the policy itself does not change.

    Args:
        policy: Who plays.
        rows: Rows of every step; on a CPU later steps may have fewer.
    """
    if not supports(policy):
        return make_stepper(policy, rows, cuda_graphs=True)
    # The compiled functions move the parameters to where they want them, so they get a policy of their own: this one
    # may be in the hands of a learner. Its first parameters are drawn, which nobody else's random numbers may notice.
    with torch.random.fork_rng(devices=[]):
        own = build_policy(PolicyDescription.of(policy.spec, policy.config), policy.state(), policy.device)
    return Updater(own, PpoConfig()).native or own
