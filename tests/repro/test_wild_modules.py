"""A module given by its constructor computes what torch.nn's computes, with the same parameters.

A file's `self.m = Conv2d(...)` is read as function calls on parameters (graph/inline_modules.h).
Written out, stock PyTorch runs it: its results are the module's, to the bit, once it has the
module's parameters. Without Python it gives the same results.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

import assay

IMAGE = (2, 4, 6, 6)
VOLUME = (1, 2, 4, 4, 4)
SEQUENCE = (5, 2, 4)

MODULES: dict[str, tuple[Any, ...]] = {
    "Linear(4, 3)": ((2, 4),),
    "Linear(4, 3, bias=False)": ((2, 4),),
    "Bilinear(2, 3, 4)": ((5, 2), (5, 3)),
    "Conv1d(4, 6, 3, padding=1, groups=2)": ((2, 4, 8),),
    "Conv2d(4, 6, kernel_size=(3, 2), stride=2, padding=(1, 0), dilation=1)": (IMAGE,),
    "Conv2d(4, 4, 3, padding='same')": (IMAGE,),
    "Conv2d(4, 4, 3, padding=1, padding_mode='circular', bias=False)": (IMAGE,),
    "Conv3d(2, 3, 2)": (VOLUME,),
    "ConvTranspose1d(4, 2, 3)": ((2, 4, 8),),
    "ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)": (IMAGE,),
    "ConvTranspose3d(2, 1, 2, dilation=2)": (VOLUME,),
    "BatchNorm1d(4)": ((3, 4),),
    "BatchNorm2d(4, affine=False)": (IMAGE,),
    "BatchNorm2d(4, track_running_stats=False)": (IMAGE,),
    "BatchNorm2d(4).eval()": (IMAGE,),
    "BatchNorm3d(2, momentum=0.3)": (VOLUME,),
    "InstanceNorm1d(4)": ((2, 4, 8),),
    "InstanceNorm2d(4, affine=True, track_running_stats=True)": (IMAGE,),
    "LayerNorm(6)": (IMAGE,),
    "LayerNorm((6, 6), eps=1e-3)": (IMAGE,),
    "LayerNorm((6,), elementwise_affine=False)": (IMAGE,),
    "RMSNorm((6,))": (IMAGE,),
    "GroupNorm(2, 4)": (IMAGE,),
    "LocalResponseNorm(2)": (IMAGE,),
    "Embedding(7, 3)": ("ids",),
    "EmbeddingBag(7, 3, mode='max')": ("ids",),
    "Dropout(p=0.4)": (IMAGE,),
    "Dropout(p=0.4).eval()": (IMAGE,),
    "Dropout2d(p=0.4)": (IMAGE,),
    "AlphaDropout(p=0.4)": ((3, 4),),
    "MaxPool1d(2)": ((2, 4, 8),),
    "MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=True)": (IMAGE,),
    "MaxPool2d(2, return_indices=True)": (IMAGE,),
    "MaxPool3d(2)": (VOLUME,),
    "AvgPool1d(2)": ((2, 4, 8),),
    "AvgPool2d((2, 3), count_include_pad=False)": (IMAGE,),
    "AvgPool3d(2)": (VOLUME,),
    "AdaptiveAvgPool1d(3)": ((2, 4, 8),),
    "AdaptiveAvgPool2d((None, 2))": (IMAGE,),
    "AdaptiveMaxPool2d(2)": (IMAGE,),
    "LPPool2d(2, 2)": (IMAGE,),
    "ConstantPad2d((1, 2, 0, 1), 3.5)": (IMAGE,),
    "ZeroPad2d(1)": (IMAGE,),
    "ReflectionPad2d(1)": (IMAGE,),
    "ReplicationPad1d((1, 2))": ((2, 4, 8),),
    "CircularPad2d(2)": (IMAGE,),
    "Upsample(scale_factor=2.0, mode='bilinear', align_corners=False)": (IMAGE,),
    "UpsamplingNearest2d(size=(3, 3))": (IMAGE,),
    "UpsamplingBilinear2d(scale_factor=2)": (IMAGE,),
    "PixelShuffle(2)": (IMAGE,),
    "PixelUnshuffle(2)": (IMAGE,),
    "ChannelShuffle(2)": (IMAGE,),
    "Unfold(2)": (IMAGE,),
    "Fold((4, 5), (2, 2))": ((1, 8, 12),),
    "Flatten()": (IMAGE,),
    "Flatten(start_dim=2, end_dim=-1)": (IMAGE,),
    "Unflatten(1, (2, 2))": (IMAGE,),
    "Identity()": (IMAGE,),
    "CosineSimilarity(dim=1)": ((3, 4), (3, 4)),
    "PairwiseDistance(p=1.0)": ((3, 4), (3, 4)),
    "MSELoss()": ((3, 4), (3, 4)),
    "L1Loss(reduction='sum')": ((3, 4), (3, 4)),
    "SmoothL1Loss(beta=0.5)": ((3, 4), (3, 4)),
    "HuberLoss(delta=0.7)": ((3, 4), (3, 4)),
    "KLDivLoss(reduction='batchmean')": ((3, 4), (3, 4)),
    "BCEWithLogitsLoss()": ((3, 4), (3, 4)),
    "CrossEntropyLoss(label_smoothing=0.1)": ((3, 7), "labels"),
    "NLLLoss()": ((3, 7), "labels"),
    "Softmax(dim=-1)": (IMAGE,),
    "LogSoftmax(dim=1)": (IMAGE,),
    "Softmin(dim=1)": (IMAGE,),
    "Softmax2d()": (IMAGE,),
    "GLU(dim=1)": (IMAGE,),
    "PReLU(num_parameters=4)": (IMAGE,),
    "Threshold(0.1, 20.0)": (IMAGE,),
    "LSTM(4, 3, num_layers=2, batch_first=True, bidirectional=True)": (SEQUENCE,),
    "LSTM(4, 3, proj_size=2)": (SEQUENCE,),
    "GRU(4, 3)": (SEQUENCE,),
    "RNN(4, 3, nonlinearity='relu', bias=False)": (SEQUENCE,),
    "MultiheadAttention(4, 2, batch_first=True)": (SEQUENCE, SEQUENCE, SEQUENCE),
    "Sequential(Linear(6, 4), ReLU(), Sequential(Linear(4, 4, bias=False), Tanh()))": (IMAGE,),
    **{
        f"{name}()": (IMAGE,)
        for name in (
            "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish "
            "RReLU ReLU ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink"
        ).split()
    },
}

# Modules whose repr() leaves out what they were made with.
INCOMPLETE = re.compile(r"RNN|MultiheadAttention|PairwiseDistance|\w+Loss|MaxPool2d\(2, return")

RESULTS = {"LSTM": 2, "GRU": 2, "RNN": 2, "MultiheadAttention": 2}


def make_input(kind: Any) -> torch.Tensor:
    if kind == "ids":
        return torch.tensor([[1, 2, 6], [0, 5, 3]])
    if kind == "labels":
        return torch.tensor([1, 0, 6])
    return torch.randn(kind)


def read_module(text: str, count: int, path: Path) -> str:
    """The text form of a graph that calls one module on `count` inputs."""
    names = ", ".join(f"x{i}" for i in range(count))
    results = RESULTS.get(text.split("(")[0])
    result = "m" if results is None else ", ".join(f"m[{i}]" for i in range(results))
    path.write_text(
        "import torch\nfrom torch.nn import *\n"
        "class Repro(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        f"        self.m = {text}\n"
        f"    def forward(self, {names}):\n"
        f"        m = self.m({names})\n        return ({result},)\n"
        f"args = [{', '.join(['torch.zeros(1)'] * count)}]\n"
    )
    return assay.load(path).code


def stock(code: str) -> torch.nn.Module:
    scope: dict[str, Any] = {"torch": torch, "inf": float("inf")}
    exec(code, scope)
    made = scope["Repro"]()
    assert isinstance(made, torch.nn.Module)
    return made


def run(program: Any, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [leaf for leaf in tree_leaves(program(*inputs)) if isinstance(leaf, torch.Tensor)]


@pytest.mark.parametrize("text", MODULES)
def test_computes_what_the_module_computes(text: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    inputs = [make_input(kind) for kind in MODULES[text]]
    module = eval(f"torch.nn.{text}", {"torch": torch, **vars(torch.nn)})
    printed = repr(module) + (".eval()" if ".eval()" in text else "")
    for spelled in [text] if INCOMPLETE.match(text) else [text, printed]:
        code = read_module(spelled, len(inputs), tmp_path / "file.py")
        written = stock(code)
        with torch.no_grad():
            mine = dict(written.named_parameters()) | dict(written.named_buffers())
            for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
                if name == "num_batches_tracked":
                    continue
                mine.pop("m_" + name.replace(".", "_")).copy_(tensor)
            mine.pop("m_num_batches_tracked", None)
            assert not mine, "parameters that torch.nn does not have"
        ours, expected = run(written, inputs), run(module, inputs)
        torch.testing.assert_close(ours, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("text", MODULES)
def test_runs_without_python(text: str, tmp_path: Path) -> None:
    inputs = [make_input(kind) for kind in MODULES[text]]
    code = read_module(text, len(inputs), tmp_path / "file.py")
    # The same parameters in both: random ones become constants.
    code = re.sub(
        r"torch\.empty\((\[[^]]*\]), (dtype=[\w.]+)\)\.uniform_\([^)]*\)",
        r"torch.full(\1, 0.1, \2)",
        code,
    )
    code = re.sub(r"torch\.randn\((\[[^]]*\]), (dtype=[\w.]+)\)", r"torch.full(\1, 0.2, \2)", code)
    ours, expected = run(assay.parse(code), inputs), run(stock(code), inputs)
    torch.testing.assert_close(ours, expected, rtol=0, atol=0, equal_nan=True)


def test_parameters_begin_as_in_torch(tmp_path: Path) -> None:
    code = read_module("Linear(4, 2).to(torch.float64)", 1, tmp_path / "file.py")
    assert (
        "torch.nn.Parameter(torch.empty([2, 4], dtype=torch.float64).uniform_(-0.5, 0.5))" in code
    )
    code = read_module("LayerNorm(4)", 1, tmp_path / "file.py")
    assert "self.m_weight = torch.nn.Parameter(torch.full([4], 1.0, dtype=torch.float32))" in code


def test_calls_of_one_module_share_its_parameters(tmp_path: Path) -> None:
    file = tmp_path / "file.py"
    file.write_text(
        "import torch\n"
        "class Repro(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.m = torch.nn.Linear(3, 3)\n"
        "    def forward(self, x):\n"
        "        a = self.m(x)\n        b = self.m(x)\n        w = self.m.weight\n"
        "        return (a - b, w)\n"
        "args = [torch.ones(1, 3)]\n"
    )
    difference, weight = assay.load(file).run()
    assert torch.equal(difference, torch.zeros(1, 3))
    assert weight.shape == (3, 3)


def test_wrong_arguments_are_explained(tmp_path: Path) -> None:
    with pytest.raises(assay.UserError, match="the module 'm', a Linear, has no argument 'width'"):
        read_module("Linear(3, 4, width=5)", 1, tmp_path / "file.py")
    with pytest.raises(assay.UserError, match="needs the argument 'out_features'"):
        read_module("Linear(3)", 1, tmp_path / "file.py")
