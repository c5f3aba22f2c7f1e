"""A function that Dynamo cannot trace, compiled with fullgraph=True."""

from pathlib import Path

import torch


def log(x: torch.Tensor) -> None:
    """Note what happens, for later."""
    with Path("/dev/null").open("a") as file:
        file.write(f"{tuple(x.shape)}\n")


def model(x: torch.Tensor) -> torch.Tensor:
    """A few layers."""
    for _ in range(3):
        x = torch.relu(torch.sin(x) + 1)
    log(x)
    return torch.softmax(x, -1)


print(torch.compile(model, fullgraph=True)(torch.ones(2, 3)))
