"""`greenbeat.Call`: a call that runs a little at a time.

    call = instance.exports.work.start(1)
    while not call.done:
        call.resume(fuel=10_000)
    call.result

Between two resumptions other calls may run, of the same instance too.
"""

from typing import TYPE_CHECKING, Any

from greenbeat.api import bridge
from greenbeat.api.checks import shown, whole
from greenbeat.errors import GreenbeatError
from greenbeat.wasm.printable import printable

_, _type = bridge.native_types()
READY, RUNNING, SUSPENDED, FINISHED, FAILED = range(5)
STATES = ("ready", "running", "suspended", "finished", "failed")
UNLIMITED = (1 << 63) - 1
_NOT_NOW = 2  # what resume_call returns when the call is over or running


class _Methods:
    """What Python adds to the native type."""

    __slots__ = ()
    _state: int
    _result: Any
    function: Any

    @property
    def done(self) -> bool:
        """Whether it is over: finished, or ended by an exception."""
        return self._state >= FINISHED

    @property
    def result(self) -> Any:
        """What the function returned.

        Raises:
            GreenbeatError: the call is not over, or an exception ended it.
        """
        if self._state != FINISHED:
            raise GreenbeatError(f"this call has no result: it is {STATES[self._state]}")
        return self._result

    def resume(self, fuel: int | None = None) -> bool:
        """Go on until the function returns, or `fuel` (by default without end) does not suffice for its next steps.

        What is left then is added to what is given the next time.

        Returns:
            Whether the call is over.

        Raises:
            Exhausted: the instance has too little fuel left; the call can go on when it gets more.
            Trap, or what a host function raised: the call is over.
            GreenbeatError: the call is over already, or running.
        """
        given = UNLIMITED if fuel is None else whole(fuel, "fuel")
        if not 0 < given <= UNLIMITED:
            raise ValueError(f"fuel must be from 1 to 2**63 - 1: {shown(given)}")
        if bridge.native.resume_call(self, given) == _NOT_NOW:
            raise GreenbeatError(f"this call cannot be resumed: it is {STATES[self._state]}")
        return self.done

    def __repr__(self) -> str:
        name = printable(self.function.name, 60) if self.function is not None else "?"
        return f"<greenbeat.Call of {name}, {STATES[self._state]}>"


for _name in ("done", "result", "resume", "__repr__"):
    setattr(_type, _name, vars(_Methods)[_name])

if TYPE_CHECKING:

    class Call(_Methods):
        """A resumable call; made by `Function.start`."""

else:
    Call = _type
