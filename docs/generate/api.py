"""The Python reference: every public name of `ludus`, rendered from its docstring by mkdocstrings."""

import inspect

import ludus

_HEAD = """# Python API

Everything that `import ludus` offers. [Training from Python](../howto/python.md) shows how the parts work together;
shapes of tensors are in the docstrings.
"""
_ERRORS = """## Errors

All are subclasses of `ludus.LudusError`. A message names the value, what is valid and the next step."""
_GROUPS = {
    "Train": ("train", "resume", "TrainedRun", "BaseCallback"),
    "Play and evaluate": ("evaluate", "play_match", "load_agent", "Agent", "export_agent"),
    "Environments": ("make_env", "registered_envs", "register_gymnasium", "check_env", "allow_files"),
    "Bring your own": (
        *("register_bot", "reward_term", "register_network", "register_algorithm"),
        *("register_env", "register_world", "World"),
    ),
}
_CONTRACT = {
    "The environment contract": (
        *("ludus.envs.base.BatchedEnv", "ludus.envs.base.EnvSpec", "ludus.envs.base.StepResult"),
        *("ludus.envs.base.EnvRequest", "ludus.rewards.step_info.StepInfo", "ludus.algorithms.algorithm.Algorithm"),
    )
}


def api_page() -> str:
    """Return the page, which holds one directive of mkdocstrings per name."""
    named = {name for names in _GROUPS.values() for name in names}
    errors = [name for name in ludus.__all__ if name.endswith("Error")]
    missing = set(ludus.__all__) - named - set(errors) - {"__version__"}
    if missing:
        raise ValueError(f"docs/generate/api.py has no group for {', '.join(sorted(missing))}")
    parts = [_HEAD]
    for title, names in _GROUPS.items():
        parts.append(f"## {title}")
        parts += [_directive(f"ludus.{name}", _home(name)) for name in names]
    for title, paths in _CONTRACT.items():
        parts.append(f"## {title}")
        parts += [_directive(path, path) for path in paths]
    parts.append(_ERRORS)
    parts += [_directive(f"ludus.{name}", _home(name)) for name in errors]
    return "\n\n".join(parts) + "\n"


def _home(name: str) -> str:
    found = getattr(ludus, name)
    return f"{inspect.getmodule(found).__name__}.{found.__qualname__}"  # type: ignore[union-attr]  # all have a module


def _directive(title: str, path: str) -> str:
    return f"::: {path}\n    options:\n      heading: {title}\n      toc_label: {title}"
