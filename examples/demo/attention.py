"""The model of the demo, and how its graph files were made with stock PyTorch.

    python examples/demo/attention.py

writes to files/, with PyTorch's own writers, what torch.compile leaves behind for a user:

    repro.py                the graph after AOTAutograd; data of its inputs in checkpoints/storages
    fx_graph_readable.py    the same graph with types and the user's source lines

and two broken copies of the latter: forgotten_transpose.py fails when it runs, misspelt.py names
an operator that does not exist.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
FILES = HERE / "files"


class Attention(nn.Module):
    """One head of self-attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = (q / math.sqrt(self.width)) @ k.transpose(-2, -1)
        weights = torch.softmax(scores, dim=-1)
        return x + self.out(weights @ v)


def _clean(text: str) -> str:
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip() + "\n"


def write_files(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
    """What stock PyTorch writes about a graph, without this machine's paths."""
    from torch._dynamo.repro.after_aot import save_graph_repro

    FILES.mkdir(exist_ok=True)
    store = FILES / "checkpoints"
    file = io.StringIO()
    save_graph_repro(
        file, graph, inputs, "inductor", stable_hash=True, save_dir=str(store), command="minify"
    )
    text = file.getvalue().replace(str(store), "checkpoints")
    text = re.sub(r"(?<='TORCHINDUCTOR_CACHE_DIR'\] = ).*", "'torchinductor_cache'", text)
    (FILES / "repro.py").write_text(_clean(text))

    readable = graph.print_readable(print_output=False, include_stride=True, include_device=True)
    readable = _clean(readable.replace(f"{HERE}/", ""))
    (FILES / "fx_graph_readable.py").write_text(readable)
    forgotten = readable.replace("permute_1, [2, 8, 5]", "getitem_1, [2, 5, 8]")
    (FILES / "forgotten_transpose.py").write_text(forgotten)
    misspelt = readable.replace("aten.amax.default", "aten.amx.default")
    (FILES / "misspelt.py").write_text(misspelt)


def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
    """Inductor's backend up to the point where it would generate code."""
    from torch._inductor.compile_fx import compile_fx

    def inner_compile(
        gm: torch.fx.GraphModule, _: Sequence[Any], **options: Any
    ) -> Callable[[list[Any]], Any]:
        def run(real_inputs: list[Any]) -> Any:
            write_files(gm, real_inputs)
            return gm(*real_inputs)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return compile_fx(graph, inputs, inner_compile=inner_compile)


def example() -> tuple[Attention, Tensor]:
    """The model and the input whose data the files hold."""
    torch.manual_seed(0)
    return Attention(width=8), torch.randn(2, 5, 8)


def main() -> None:
    model, x = example()
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(model, backend=backend)(x), model(x))


if __name__ == "__main__":
    main()
