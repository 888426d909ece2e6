"""Code of the user's own may raise anything; what would end the process is its fault like any other exception.

`sys.exit(0)` in the step of a game would otherwise end a training with the exit code of success and without a word.
Whoever calls such code catches BaseException and lets pass what is not meant for the code:

    except BaseException as error:
        let_pass(error)
        raise EnvFaultError(...) from error
"""

import signal
import traceback

from ludus.core.errors import LudusError
from ludus.core.text import blame


class UserExitError(LudusError, RuntimeError):
    """Code of the user's own raised SystemExit, or another exception that would have ended the process."""


class Unwinding(BaseException):
    """Base of what Ludus itself raises through code of the user's; no handler of that code catches it."""


def let_pass(error: BaseException) -> None:
    """Raise an exception again if it came from outside of the code that was called: of a signal, or of Ludus."""
    if not _is_fault(error):
        raise error


class RefusedExits:
    """Raises UserExitError where code of the user's would end the process; other exceptions stay what they are."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None and not isinstance(error, Exception) and _is_fault(error):
            raise UserExitError(
                f"{blame(error)}: this would end the process; raise an exception, or leave it out"
            ) from error


def _is_fault(error: BaseException) -> bool:
    if isinstance(error, Exception):
        return True
    if isinstance(error, GeneratorExit | Unwinding):
        return False
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    if isinstance(error, KeyboardInterrupt) and handlers[0] is signal.default_int_handler:
        return False  # which leaves no frame, so it may be Ctrl-C
    codes = [getattr(handler, "__code__", None) for handler in handlers]  # such as Ray's, and that of a training
    return not any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))
