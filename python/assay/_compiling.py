"""What programs ask while they are captured. Frames of this file are not captured themselves."""

from __future__ import annotations

from assay import _C

__all__ = ["is_compiling"]


def is_compiling() -> bool:
    """True in code that is being captured."""
    return _C.capture_is_recording()
