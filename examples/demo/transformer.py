"""A transformer for the demo, and how its graph file was made with stock PyTorch.

    python examples/demo/transformer.py

writes files/transformer/minifier_launcher.py with PyTorch's own writer: what torch.compile leaves
behind under TORCHDYNAMO_REPRO_AFTER=dynamo. The data of its inputs and weights is next to it, in
checkpoints/storages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

FILES = Path(__file__).resolve().parent / "files" / "transformer"


class Block(nn.Module):
    """Attention and a feed-forward part, each after a LayerNorm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))

    def attend(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Transformer(nn.Module):
    """Two blocks between an embedding of letters and their prediction."""

    def __init__(self, letters: int, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.positions = nn.Parameter(0.1 * torch.randn(length, width))
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(2)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters)

    def forward(self, text: Tensor, expected: Tensor) -> Tensor:
        x = self.letters(text) + self.positions
        for block in self.blocks:
            x = block(x)
        scores = self.head(self.norm(x))
        return F.cross_entropy(scores.flatten(0, 1), expected.flatten())


def write_file(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
    """What stock PyTorch writes about a graph after Dynamo, without this machine's paths."""
    from torch._dynamo.repro.after_dynamo import generate_dynamo_fx_repro_string

    store = FILES / "checkpoints"
    text = generate_dynamo_fx_repro_string(
        graph, inputs, "inductor", save_dir=str(store), command="minify"
    )
    text = text.replace(str(store), "checkpoints")
    text = re.sub(r"(?<='TORCHINDUCTOR_CACHE_DIR'\] = ).*", "'torchinductor_cache'", text)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip() + "\n"
    (FILES / "minifier_launcher.py").write_text(text)


def backend(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
    """Writes the file and runs the graph as it is."""

    def run(*inputs: Any) -> Any:
        write_file(graph, inputs)
        return graph(*inputs)

    return run


def main() -> None:
    torch.manual_seed(0)
    model = Transformer(letters=24, width=32, heads=4, length=8)
    text = torch.randint(24, (2, 8))
    expected = torch.randint(24, (2, 8))
    loss = torch.compile(model, backend=backend)(text, expected)
    torch.testing.assert_close(loss, model(text, expected))


if __name__ == "__main__":
    main()
