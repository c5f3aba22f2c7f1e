"""The user's own frame in an exception: that of a traceback, or the one Dynamo was tracing."""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from pathlib import Path
from typing import Any

import torch

# At the end of what Dynamo raises.
FROM_USER_CODE = re.compile(r'^\s*File "([^"]+)", line (\d+), in (\S+)\n\s*(.*)$', re.MULTILINE)

Frame = dict[str, Any]


def users_frame(error: BaseException) -> Frame | None:
    """The innermost frame that is neither PyTorch's nor the library's: file, line, function."""
    traced = _traced_frames(error)
    entries = traced or [
        (frame.filename, frame.lineno, frame.name, frame.line)
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    own = [entry for entry in entries if is_users(entry[0])]
    if not own:
        return None
    file, line, function, text = own[-1]
    return {"file": file, "line": line, "function": function, "text": text or ""}


def _traced_frames(error: BaseException) -> list[tuple[str, int | None, str, str | None]]:
    stack = getattr(error, "real_stack", None) or getattr(error, "user_stack", None)
    if stack:
        return [(frame.filename, frame.lineno, frame.name, frame.line) for frame in stack]
    _, _, after = str(error).partition("from user code:")
    return [
        (file, int(line), name, text) for file, line, name, text in FROM_USER_CODE.findall(after)
    ]


def is_users(file: str) -> bool:
    """Whether a file is of the user's program."""
    if file.startswith("<"):
        return False
    path = Path(file)
    library = Path(sysconfig.get_path("stdlib"))
    generated = Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", "/nowhere"))
    others = (Path(torch.__file__).parent, library, Path(__file__).parents[1], generated)
    return not any(folder in path.parents for folder in others)
