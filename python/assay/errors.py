"""The exceptions that Assay raises; all of them are attributes of :mod:`assay`.

Each C++ exception names the class here that is raised for it (``python_class`` in
``include/assay/error.h``). Every class is also what Python code would catch for its kind:

>>> try:
...     assay.parse("not a graph")
... except ValueError as error:
...     print(type(error).__name__)
UserError
"""

__all__ = [
    "AccuracyError",
    "BackendCompilerFailed",
    "Error",
    "InternalError",
    "OperatorError",
    "SettingsError",
    "TraceError",
    "UserError",
]


class Error(Exception):
    """Base class of all Assay exceptions."""


class UserError(Error, ValueError):
    """The request or the file is wrong; the message says what, where, and what to do."""


class TraceError(UserError):
    """The program does something that cannot be part of a graph, such as reading a value."""


class SettingsError(UserError):
    """A setting of logs or traces cannot be used."""


class InternalError(Error, RuntimeError):
    """A bug in Assay; please report it."""


class OperatorError(Error, RuntimeError):
    """An operator of the graph failed; the message says where it was called."""


class BackendCompilerFailed(Error, RuntimeError):
    """A backend failed, while compiling or in what it compiled."""


class AccuracyError(Error, RuntimeError):
    """The results of a compiled graph are not those of eager."""
