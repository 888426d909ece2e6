"""One fault of a configuration, as a line that an editor can jump to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """What is wrong at one place.

    Attributes:
        place: `file:line:column`, or `command line: key=value`.
        key: Path of the key, such as `ppo.steps`.
        expectation: What should be there.
        got: What is there, shortened; empty where nothing is, or where it must not be shown.
        hint: The nearest valid name and the valid ones, where there are names to choose from.
    """

    place: str
    key: str
    expectation: str
    got: str = ""
    hint: str = ""

    def __str__(self) -> str:
        got = f" (got {self.got})" if self.got else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.place}: {self.key}: {self.expectation}{got}{hint}"
