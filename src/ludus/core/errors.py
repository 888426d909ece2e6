"""The typed error tree: every error names the bad value, the valid ones and the next step."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice

from ludus.core.text import plain_text

_NAME = 200  # letters of a name that are shown; names may come from files
_LISTED = 200  # names that a message lists
_COMPARED = 2_000  # names that are compared with a wrong one
_FAULT = 2_000  # letters of a message about a file


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """What is wrong at one place."""

    place: str  # `file:line:column`, or `command line: key=value`
    key: str  # path of the key, such as `ppo.n_steps`
    expectation: str  # what should be there
    got: str = ""  # what is there, shortened; empty where nothing is, or where it must not be shown
    hint: str = ""  # the nearest valid name and the valid ones, where there are names to choose from

    def __str__(self) -> str:
        got = f" (got {self.got})" if self.got else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.place}: {self.key}: {self.expectation}{got}{hint}"


class LudusError(Exception):
    """Base of every error that Ludus raises on purpose."""


class ConfigError(LudusError, ValueError):
    """A setting or a data file has a value that cannot be used."""


class ConfigFileError(ConfigError):
    """Configuration files or overrides have faults; all that were found are listed at once."""

    def __init__(self, faults: Sequence[ConfigFault], left_out: int = 0) -> None:
        self.faults, self.left_out = tuple(faults), left_out
        total = len(self.faults) + left_out
        lines = [f"{total} fault{'s' if total > 1 else ''} in the configuration", *map(str, self.faults)]
        super().__init__("\n".join([*lines, f"and {left_out} more"] if left_out else lines))


class UnknownNameError(LudusError, ValueError):
    """A name is not among the registered ones."""

    def __init__(self, kind: str, name: str, valid: Iterable[str], hint: str = "") -> None:
        """Say what is unknown; `hint` is the next step where no valid name is near."""
        self.kind, self.name, self.valid = kind, name, tuple(valid)
        near = did_you_mean(name, self.valid)
        further = f"; {hint}" if hint and not near else ""
        super().__init__(f"unknown {kind} {brief(name, _NAME)}{near}; valid: {listed(self.valid)}{further}")


class ActionError(LudusError, ValueError):
    """Actions have the wrong shape, type, device or range."""


class DeviceError(LudusError, RuntimeError):
    """A device does not exist here, or a world cannot live on it."""


class UnsupportedError(LudusError, RuntimeError):
    """A world or a part does not offer what was asked of it."""


class SnapshotError(LudusError, ValueError):
    """A snapshot does not fit the environment that should take it."""


class StateError(LudusError, ValueError):
    """A saved state does not fit the part that should take it."""


class ConfigMismatchError(LudusError, ValueError):
    """A run was resumed with other settings than it was started with."""


class ObservationError(LudusError, ValueError):
    """An observation has the wrong names, shape, type or device."""


class NotFiniteError(LudusError, ArithmeticError):
    """NaN or infinity came back each time the run went on from its last finite state."""


class FormatError(LudusError, ValueError):
    """Content breaks the rules of the format in which it is, or should be, stored."""


class CheckpointError(LudusError, ValueError):
    """A checkpoint is damaged, foreign, hostile or of another version."""

    def __init__(self, folder: object, file: str, fault: str) -> None:
        self.folder, self.file, self.fault = str(folder), file, fault
        shown = plain_text(fault if len(fault) <= _FAULT else f"{fault[:_FAULT]} ...")
        super().__init__(f"checkpoint {folder} cannot be used: {file}: {shown}")


class StoreError(LudusError, OSError):
    """A file or a checkpoint could not be written; what was there before is intact."""

    def __str__(self) -> str:
        return self.strerror or super().__str__()


class StoreFullError(StoreError):
    """A file or a checkpoint could not be written because the disk or a quota is full; try again with more space."""


class ReplayError(LudusError, ValueError):
    """A replay file is damaged, foreign or of another version."""


class ReplayDivergedError(ReplayError):
    """A replayed game went another way than the recorded one."""


class VideoError(LudusError, RuntimeError):
    """A video could not be written; nothing was left under its name."""


class WorkerError(LudusError, RuntimeError):
    """A worker process failed more often than is tolerated."""


class EnvFaultError(LudusError, RuntimeError):
    """An environment of the user's own raised an exception, or returned what Gymnasium's API does not allow."""


class BotError(LudusError, RuntimeError):
    """A bot of the user's own raised an exception, took too long, or returned what is no action."""


class NetworkError(LudusError, RuntimeError):
    """A network of the user's own raised an exception, or returned what Ludus cannot use."""


class AgentError(LudusError, RuntimeError):
    """An agent decided NaN or infinity, took too long over a decision, or plays more seats at once than it may."""


class CallbackError(LudusError, RuntimeError):
    """A callback of the user's own raised an exception; the run was saved before."""


class RankError(LudusError, RuntimeError):
    """Another process of a run on several failed or was lost, so this one ends too."""


class RunLockedError(LudusError, RuntimeError):
    """Another process is training in the run folder."""


class VerificationError(LudusError, RuntimeError):
    """A check before a run failed, so the run would fail too."""


class GameNotFoundError(LudusError, RuntimeError):
    """A game that is played through the screen, or a program that it needs, is not installed."""


class GameLostError(LudusError, RuntimeError):
    """A game that is played through the screen is gone, frozen or not what it should be."""


class GuideError(LudusError, RuntimeError):
    """A guide failed, or gave advice that cannot be used."""


class NoAdviceError(GuideError):
    """A guide has no advice this time; the game continues without it, and the cause is counted."""

    def __init__(self, cause: str, message: str) -> None:
        self.cause = cause
        super().__init__(message)


class ConformanceError(LudusError, AssertionError):
    """An environment breaks the batched contract."""


class MissingDependencyError(LudusError, ImportError):
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        from ludus.core.distribution import install_command  # reads files, which no other error needs

        super().__init__(f"{purpose} needs {library}; install it with: {install_command(extra)}")


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest valid name, or nothing if none is near."""
    near = nearest_name(name, valid)
    return f" (did you mean {brief(near, _NAME)}?)" if near is not None else ""


def nearest_name(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name that a wrong one was probably meant to be, or None if none is near.

    Long names, and lists of thousands, come from files alone: comparing them would take minutes, and help nobody.
    """
    if len(name) > _NAME:
        return None
    near = get_close_matches(name, [each for each in islice(valid, _COMPARED) if len(each) <= _NAME], n=1, cutoff=0.5)
    return near[0] if near else None


def brief(value: object, most: int = 100) -> str:
    """Return the plain ASCII form of an untrusted value, cut to what fits into a message."""
    text = ascii(value[:most] if isinstance(value, str) else value)
    return text if len(text) <= most else f"{text[:most]}..."


def listed(names: Iterable[str]) -> str:
    """Return names side by side as plain text, each cut, and the number of those that are too many to show."""
    given = tuple(names)
    shown = [plain_text(name if len(name) <= _NAME else f"{name[:_NAME]}...") for name in given[:_LISTED]]
    more = [f"and {len(given) - _LISTED} more"] if len(given) > _LISTED else []
    return ", ".join([*shown, *more]) or "none"
