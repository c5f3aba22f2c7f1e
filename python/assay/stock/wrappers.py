"""The exceptions in which PyTorch's compilers wrap what a program raised. Needs no PyTorch."""

from __future__ import annotations

import re


def quotes(message: str, kind: str) -> bool:
    """Whether a wrapper's message is about an exception of that class.

    As Dynamo and inductor put it: ``got RuntimeError('...')``, ``RuntimeError when making fake
    tensor call``, ``LoweringException: RuntimeError: ...``.
    """
    return re.search(rf"\b{re.escape(kind)}(?:\(| when |: )", message) is not None
