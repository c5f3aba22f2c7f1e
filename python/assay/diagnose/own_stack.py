"""The script's ``torch.compile`` as Assay's own, with the debug wrapper around every compiler."""

from __future__ import annotations

import functools
from typing import Any

import torch

import assay
from assay import _route


def route(request: dict[str, Any]) -> None:
    """From now on ``torch.compile`` in this process is Assay's; ``backend`` as for stock's."""
    _route.route()
    backend = request.get("backend")
    original = torch.compile

    @functools.wraps(original)
    def compile(model: Any = None, **options: Any) -> Any:
        if model is None:
            return functools.partial(compile, **options)
        if backend == "none":
            options["disable"] = True
        elif backend is not None:
            options["backend"] = backend
        return original(model, **options)

    torch.compile = compile
    torch.compiler.compile = compile
    if request.get("graphs"):
        assay.config.repro_after = "dynamo"
        assay.config.repro_level = request.get("repro_level", 3)
        assay.config.reduce = "launcher"
        assay.config.debug_dir_root = request["graphs"]
