"""What the core refused, as exceptions with fields.

Misuse and ceilings are exceptions; "none", "taken" and "outside" are results.
"""

from .abi import STATUS_TEXTS, Status

_STATE = {Status.BAD_HANDLE, Status.NO_MEMORY, Status.OVER_CEILING}


class CoreError(Exception):
    """A refusal of the core.

    operation: the export that refused
    status: why
    done: of a batch, how many items were done before
    """

    operation: str
    status: Status
    done: int

    def __init__(
        self, operation: str, status: Status, got: str = "", done: int = 0
    ) -> None:
        text = f"{operation} refused with {status.name} ({status.value}): "
        text += STATUS_TEXTS[status]
        super().__init__(f"{text} Got {got}." if got else text)
        self.operation = operation
        self.status = status
        self.done = done


class CoreValueError(CoreError, ValueError):
    """An argument that the operation does not allow."""


class CoreStateError(CoreError, RuntimeError):
    """A dropped object, exhausted memory, or a ceiling."""


def refusal(operation: str, code: int, got: str = "", done: int = 0) -> CoreError:
    """The exception for a result below 0."""
    status = Status(code)
    kind = CoreStateError if status in _STATE else CoreValueError
    return kind(operation, status, got, done)
