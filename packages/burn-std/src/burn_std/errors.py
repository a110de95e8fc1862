"""The errors of the framework: one tree, each with its facts as attributes.

    BurnError
      ShapeError(ValueError)         a shape rule is broken
        PropertyError(AttributeError)  a tensor of this shape has no such property
      DTypeError(TypeError)          a dtype rule is broken
      ArgumentError(ValueError)      an argument has no meaning
      IndexRangeError(IndexError)    an index is outside its dim
      DeviceError(RuntimeError)      devices differ, are unknown or already configured
        DeviceLostError              the device failed; its values are gone
      BackendError(RuntimeError)
        BackendLoadError             a plugin does not load
        BackendContractError         a plugin breaks the contract
        UnsupportedOpError           a backend has no such operation
        ExecutionError               a kernel failed
      GraphError(ValueError)         a program breaks its specification
      AutodiffError(RuntimeError)    no gradient, freed tape, not tracked
      ConfigError(ValueError), StoreError(RuntimeError), TrainError(RuntimeError)
    BroadcastWarning(UserWarning)    input and target of a loss broadcast

Every message reads `<op>: <rule>; got <values>. <remedy>` and is made here, from the fields.
"""

from __future__ import annotations

# Of a value in a message.
_LETTERS = 1000


class BurnError(Exception):
    """Base of all errors; carries the facts a test or a handler may want.

    Attributes:
        op: operation, class or function that refuses.
        rule: the rule that is broken.
        got: what was given, already in words, or None.
        remedy: what to do, or None.
    """

    def __init__(
        self, op: str, rule: str, *, got: object = None, remedy: str | None = None
    ) -> None:
        self.op = op
        self.rule = rule
        self.got = got
        self.remedy = remedy
        text = f"{op}: {rule}"
        if got is not None:
            shown = str(got)
            # A value of the user's can be of any length; what it was is seen from its beginning.
            if len(shown) > _LETTERS:
                shown = f"{shown[:_LETTERS]}... ({len(shown)} letters)"
            text += f"; got {shown}"
        if remedy:
            text += f". {remedy}"
        super().__init__(text)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.__class__, self.op, self.rule, self.got, self.remedy))


def _rebuild(
    cls: type[BurnError], op: str, rule: str, got: object, remedy: str | None
) -> BurnError:
    return cls(op, rule, got=got, remedy=remedy)


class ShapeError(BurnError, ValueError):
    """Shapes do not fit the operation's rule."""


class PropertyError(ShapeError, AttributeError):
    """A tensor of this shape has no such property, so `hasattr` answers False."""


class DTypeError(BurnError, TypeError):
    """Dtypes or argument types do not fit the operation's rule."""


class ArgumentError(BurnError, ValueError):
    """An argument has a value without meaning."""


class IndexRangeError(BurnError, IndexError):
    """A dim or an index is outside its range."""


class DeviceError(BurnError, RuntimeError):
    """Devices differ, are unknown, or were configured too late."""


class DeviceLostError(DeviceError):
    """The device failed and every value on it is lost."""


class BackendError(BurnError, RuntimeError):
    """Base of what goes wrong in or around a backend."""


class BackendLoadError(BackendError):
    """A backend or decorator is missing, broken or made for another contract."""


class BackendContractError(BackendError):
    """A backend's table lacks primitives or names operations that do not exist."""


class UnsupportedOpError(BackendError):
    """The backend has no such operation and none can be derived."""


class ExecutionError(BackendError):
    """A kernel failed after its arguments were accepted."""


class GraphError(BurnError, ValueError):
    """A recorded program breaks its specification."""


class AutodiffError(BurnError, RuntimeError):
    """No gradient can be had: untracked, freed, or not closed under differentiation."""


class CaptureError(BurnError, RuntimeError):
    """A step cannot be captured, or is not the one that was."""


class ConfigError(BurnError, ValueError):
    """A configuration has unknown, missing or unserialisable fields."""


class StoreError(BurnError, RuntimeError):
    """A file is refused: corrupt, hostile, or not what the model needs."""


class TrainError(BurnError, RuntimeError):
    """Training cannot go on."""


class PlanChurnWarning(UserWarning):
    """A loop on a device that records makes another plan in almost every round.

    Attributes:
        op: the first operation that differs from the round before.
        what: `op`, `inputs`, `attribute`, `dtype`, `shape` or `kept`: which results are held.
        old: what it was in the round before.
        new: what it is in this one.
        plans: how many were made at this line.
    """

    def __init__(self, op: str, what: str, old: str, new: str, plans: int) -> None:
        self.op = op
        self.what = what
        self.old = old
        self.new = new
        self.plans = plans
        remedies = {
            "kept": "Let go of the same results in every round.",
            "shape": "A dim that is 0 or 1 in one round and more in another makes a plan of its "
            "own; keep such rounds apart.",
        }
        remedy = remedies.get(what, "Keep to the same operations and settings in every round.")
        super().__init__(
            f"{op}: a loop makes another plan in almost every round ({plans} so far), since the "
            f"{_DIFFERS[what]}; got {old}, then {new}. {remedy} A part that has to differ runs in "
            "burn.no_fusion() without plans."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (self.__class__, (self.op, self.what, self.old, self.new, self.plans))


_DIFFERS = {
    "op": "operations differ",
    "inputs": "inputs of this operation differ",
    "attribute": "settings of this operation differ",
    "dtype": "dtypes differ",
    "shape": "shapes differ in kind",
    "kept": "program holds other results of it",
}


class ReplayWarning(UserWarning):
    """A plan runs again and again and cannot become one native call.

    It stays correct, and calls its kernels one by one.

    Attributes:
        plan: which plan.
        why: what differs from run to run.
    """

    def __init__(self, plan: str, why: str, remedy: str) -> None:
        self.plan = plan
        self.why = why
        self.remedy = remedy
        super().__init__(
            f"{plan}: a plan becomes one native call when its runs are alike; got {why}. It keeps "
            f"calling its kernels one by one. {remedy}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (self.__class__, (self.plan, self.why, self.remedy))


class BroadcastWarning(UserWarning):
    """Input and target of a loss have different shapes and broadcast, which is seldom meant.

    Attributes:
        op: the loss.
        shapes: of input and target.
    """

    def __init__(self, op: str, input: tuple[int, ...], target: tuple[int, ...]) -> None:
        self.op = op
        self.shapes = (input, target)
        super().__init__(
            f"{op}: the target has another shape than the input, so they broadcast; got input "
            f"{list(input)}, target {list(target)}. Reshape one, or expand it on purpose."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (self.__class__, (self.op, *self.shapes))


def unwritten(of: object, method: str) -> NotImplementedError:
    """Return the error of a method that a subclass has to write and did not.

    Args:
        of: the object that was asked.
        method: its name.

    Example:
        >>> class Schedule:
        ...     def rate(self, position):
        ...         raise unwritten(self, "rate")
        >>> class Mine(Schedule): ...
        >>> Mine().rate(3)
        Traceback (most recent call last):
            ...
        NotImplementedError: Mine: a subclass writes it; got none. Write rate(self, position).
    """
    # Of the class that raises: what a subclass put before it need not be a function.
    written = [c.__dict__[method] for c in type(of).__mro__ if method in c.__dict__]
    code = written[-1].__code__
    names = ", ".join(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    return NotImplementedError(
        f"{type(of).__name__}: a subclass writes it; got none. Write {method}({names})."
    )
