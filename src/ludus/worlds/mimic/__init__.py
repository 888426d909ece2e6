"""Mimic: a MuJoCo walker that imitates a reference gait."""

from ludus.envs.world import World

WORLD = World(
    id="mimic-v1",
    env="ludus.worlds.mimic.env:MimicEnv",
    config="ludus.worlds.mimic.config:MimicConfig",
    rewards="ludus.worlds.mimic.rewards:SETS",
    default_reward="dense",
    default_preset="walk",
    metrics="ludus.worlds.mimic.metrics:METRICS",
    scenarios="ludus.worlds.mimic.scenarios:SCENARIOS",
    display="ludus.worlds.mimic.display:DISPLAY",
    replay_view="ludus.worlds.mimic.display:REPLAY_VIEW",
    browser="ludus.worlds.mimic.browser:BROWSER",
    commands={
        "motion": "ludus.worlds.mimic.commands:motion",
        "gait": "ludus.worlds.mimic.gait_command:gait",
    },
    checks={"OpenGL": "ludus.worlds.mimic.rendering.gl:check_gl"},
)
