"""What a ShapeEnv of stock PyTorch knows about its size symbols, for the extension."""

from __future__ import annotations

from typing import Any

__all__ = ["describe"]

_LIMIT = 2**62  # beyond it stock writes int_oo, or the largest integer of the machine


def describe(shape_env: Any) -> list[tuple[str, int | None, int | None, int | None]]:
    """Of each symbol its name, the value it had, and its lowest and highest value if it has any."""
    hints = {str(symbol): value for symbol, value in shape_env.backed_var_to_val.items()}
    rows = []
    for symbol, bounds in shape_env.var_to_range.items():
        name = str(symbol)
        rows.append((name, _integer(hints.get(name)), _bound(bounds.lower), _bound(bounds.upper)))
    return rows


def _integer(value: Any) -> int | None:
    return int(value) if value is not None and getattr(value, "is_Integer", False) else None


def _bound(value: Any) -> int | None:
    number = _integer(value)
    return None if number is None or abs(number) >= _LIMIT else number
