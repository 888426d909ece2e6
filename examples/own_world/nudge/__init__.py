"""A world in one folder: rules, reward terms, episode metrics, a preset, pictures and a browser player."""

from ludus.envs.world import World

WORLD = World(
    id="nudge-v1",
    env="nudge.env:make",
    config="nudge.env:NudgeSettings",
    rewards="nudge.rewards:SETS",
    default_reward="dense",
    metrics="nudge.metrics:METRICS",
    replay_view="nudge.replay_view:REPLAY_VIEW",
)
