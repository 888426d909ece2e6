"""What `--plugin` loads to play `stroll`; the folder of the tests must be on the path."""

from ludus.envs.registry import register_env, registered_envs

if "stroll-v1" not in registered_envs():
    register_env("stroll-v1", "stroll.env:make", "stroll.env:StrollSettings")
