"""`faulty_backend.py HOW KIND`: a backend with a fault in relu, and a program that calls it once."""

import os
import sys

import torch
import torch._dynamo

how, kind = sys.argv[1:]


def faulty(gm, example_inputs):
    has_relu = any(node.target is torch.relu for node in gm.graph.nodes)
    if kind == "compile_error" and has_relu:
        raise NotImplementedError("relu")
    if kind == "accuracy":
        for node in gm.graph.nodes:
            if node.target is torch.relu:
                node.target = torch.sigmoid
        gm.recompile()

    def run(*args):
        if kind == "runtime_error" and has_relu:
            raise NotImplementedError("relu")
        if kind == "abort" and has_relu:
            os.abort()
        return gm.forward(*args)

    return run


if how == "registered":
    torch._dynamo.register_backend(faulty, name="faulty_registered")
backend = {"registered": "faulty_registered", "direct": faulty}.get(how, how)


def program(x, w):
    y = torch.sin(x) + w
    y = torch.relu(y)
    return torch.cos(y) * 2


compiled = torch.compile(program, backend=backend)
x = torch.randn(4, 4, requires_grad=True)
compiled(x, torch.randn(4, 4)).sum().backward()
