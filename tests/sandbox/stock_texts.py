"""Files and requests for trials of the stock server."""

from __future__ import annotations

AFTER_DYNAMO = """
import torch
from torch import tensor, device
torch._inductor.config.cpp.threads = 3
from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer('scale', torch.tensor(0.5, dtype=torch.float32))

    def forward(self, L_x_ : torch.Tensor, L_w_ : torch.nn.parameter.Parameter):
        l_x_ = L_x_
        l_w_ = L_w_
        mm = torch.mm(l_x_, l_w_);  l_x_ = l_w_ = None
        scale = self.scale
        mul = mm * scale;  mm = scale = None
        relu = torch.relu(mul);  mul = None
        return (relu,)

mod = Repro()

def load_args(reader):
    buf0 = reader.storage(None, 64)
    reader.tensor(buf0, (4, 4), is_leaf=True)  # L_x_
    buf1 = reader.storage(None, 64)
    reader.tensor(buf1, (4, 4), requires_grad=True, is_leaf=True)  # L_w_
load_args._version = 0

if __name__ == '__main__':
    from torch._dynamo.repro.after_dynamo import run_repro
    run_repro(mod, load_args, accuracy=False, command='run',
        save_dir=None, autocast=False, backend='inductor')
"""

AFTER_AOT = """
import os
os.environ['TORCHINDUCTOR_CACHE_DIR'] = '/nowhere'
import torch
from torch import tensor, device

class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: "f32[4, 4][4, 1]cpu", y: "f32[4, 4][4, 1]cpu"):
        sin: "f32[4, 4][4, 1]cpu" = torch.ops.aten.sin.default(x);  x = None
        relu: "f32[4, 4][4, 1]cpu" = torch.ops.aten.relu.default(sin);  sin = None
        permute = torch.ops.aten.permute.default(relu, [1, 0]);  relu = None
        expand = torch.ops.aten.expand.default(permute, [2, 4, 4])
        add = torch.ops.aten.add.Tensor(permute, y);  permute = y = None
        return (add, expand)

def load_args(reader):
    buf0 = reader.storage(None, 64)
    reader.tensor(buf0, (4, 4), is_leaf=True)  # x
    buf1 = reader.storage(None, 64)
    reader.tensor(buf1, (4, 4), is_leaf=True)  # y
load_args._version = 0

mod = Repro()

if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, command='run', save_dir=None,
            tracing_mode='real', check_str=None)
"""

BUG = "torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY"
WALL = {"wall": 120.0}


def backend(body: str) -> str:
    """Lines that register a backend ``mine``, whose compiled function does what ``body`` says."""
    return f"""
import ctypes, os, sys, time, torch, subprocess
from torch._dynamo import register_backend
@register_backend(name="mine")
def mine(graph, inputs):
    def run(*inputs):
        {body}
        return graph(*inputs)
    return run
"""


def with_body(body: str) -> str:
    """The file after aot with another body of its graph."""
    start = AFTER_AOT.index("        sin:")
    end = AFTER_AOT.index("\ndef load_args")
    return AFTER_AOT[:start] + body.lstrip("\n") + AFTER_AOT[end:]
