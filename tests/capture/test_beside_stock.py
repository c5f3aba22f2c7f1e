"""assay.compile in a process in which stock torch.compile is used too, or is not."""

from __future__ import annotations

from support.python import run_python


def test_compiling_does_not_import_stocks_compiler() -> None:
    result = run_python(
        """
        import sys
        import torch, assay

        compiled = assay.compile(lambda x: torch.relu(x) + 1)
        print(compiled(torch.ones(2)), compiled(torch.ones(2)))
        print("torch._dynamo" in sys.modules, "torch._inductor" in sys.modules)
        """
    )
    assert result.splitlines()[-1] == "False False"


def test_modules_are_created_after_stock_was_used() -> None:
    """Stock patches nn.Module.__init__ when it first compiles."""
    result = run_python(
        """
        import torch, assay

        class Stack(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(4))

            def forward(self, x):
                for layer in self.layers[:2]:
                    x = layer(x)
                return x

        model, x = Stack(), torch.randn(2, 4)
        expected = model(x)
        before = assay.compile(model, fullgraph=True)
        assert torch.equal(before(x), expected)
        stock = torch.compile(model, backend="eager")
        torch.testing.assert_close(stock(x), expected)
        after = assay.compile(model, fullgraph=True)
        for _ in range(3):
            for compiled in (before, stock, after):
                torch.testing.assert_close(compiled(x), expected)
        print("done")
        """
    )
    assert result.splitlines()[-1] == "done"


def test_stock_inside_ours_and_ours_inside_stock() -> None:
    result = run_python(
        """
        import torch, assay

        def inner(x):
            return torch.relu(x) * 2

        stock_inner = torch.compile(inner, backend="eager")
        our_inner = assay.compile(inner, backend="eager")

        def calls_stock(x):
            return stock_inner(x + 1) - 1

        def calls_ours(x):
            return our_inner(x + 1) - 1

        x = torch.arange(-3.0, 3.0)
        ours = assay.compile(calls_stock, backend="eager")
        stock = torch.compile(calls_ours, backend="eager")
        for value in (x, x + 1, torch.randn(5)):
            expected = inner(value + 1) - 1
            for compiled in (ours, stock):
                torch.testing.assert_close(compiled(value), expected)
        print("done")
        """
    )
    assert result.splitlines()[-1] == "done"


def test_stock_fails_to_compile_inside_ours() -> None:
    """Our frames went to stock's hook, which sent them back, and so on without end."""
    result = run_python(
        """
        import torch, assay
        from functorch.experimental.control_flow import map as map_rows

        def add_rows(x):  # stock rejects it: the arguments share memory
            return map_rows(lambda row, other: row + other, x, x[0])

        def call_it(function):
            for _ in range(3):
                try:
                    function(torch.ones(3, 4))
                except RuntimeError:
                    pass

        call_it(add_rows)
        call_it(assay.compile(add_rows, backend="eager"))
        print("done")
        """
    )
    assert result.splitlines()[-1] == "done"
