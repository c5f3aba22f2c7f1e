"""A file for the stock server may come from a stranger: what it may hold, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.stock_client import Connection
from sandbox.stock_texts import AFTER_AOT, WALL, with_body

Answer = dict[str, Any]

FIXTURES = Path(__file__).parents[1] / "fixtures" / "stock"
STOCK_FILES = sorted(
    file
    for model in ("linear_layernorm_relu", "dynamic_mlp")
    for file in (FIXTURES / model).glob("*.py")
)

HOSTILE_BODIES = [
    "y = torch.load('/etc/passwd')",
    "y = torch.save(x, '/tmp/stolen')",
    "y = torch.hub.load('a/b', 'c')",
    "y = torch.ops.load_library('/tmp/evil.so')",
    "y = torch.ops.aten.save('x', '/tmp/stolen')",
    "y = torch.ops.aten.from_file.default('/etc/passwd', False, 100)",
    "y = torch.from_file('/tmp/stolen', True, 100)",
    "y = torch._from_blob(0, [1])",
    "y = torch.ops.inductor._reinterpret_tensor(x, [9], [1], 1000)",
    "y = torch.compile(x)",
    "y = torch.utils.cpp_extension.load('a', [])",
    "y = torch.os.system('id')",
    "y = torch.serialization.os.system('id')",
    "y = torch.nn.functional.torch.load('/etc/passwd')",
    "y = torch.nn.functional.importlib.import_module('os')",
    "y = operator.attrgetter('__class__')(x)",
    "y = operator.methodcaller('numpy')(x)",
    "y = operator.call(x)",
    "y = x.__class__.__base__.__subclasses__()",
    "y = getattr(x, '__class__')",
    "y = getattr(x, 'sha' + 'pe')",
    "y = x.apply_(math.sin)",
    "y = x.numpy().tofile('/tmp/stolen')",
    "y = x.register_hook(math.sin)",
    "y = self.__class__",
    "y = self.forward(x, x)",
    "y = self.load_state_dict({})",
    "y = '{0.__class__}'.format(x)",
    "y = (lambda: x)()",
    "y = [i for i in (1, 2)]",
    "y = __import__('os').system('id')",
    "y = eval('1')",
    "y = open('/etc/passwd').read()",
    "y = print(x)",
    "import os",
    "torch.load = x",
    "torch = self",
    "x.data = x",
    "global torch",
    "for i in x: pass",
    "y = f'{x.__class__}'",
    "y = torch.relu(*x)",
    "y = torch.relu(**x)",
    "y = (z := x)",
    "y = await x",
]


@pytest.mark.parametrize("line", HOSTILE_BODIES)
def test_hostile_graph(connection: Connection, line: str) -> None:
    file = with_body(f"        {line}\n        return (x,)\n")
    assert_refused(connection.ask(file, limits=WALL))


HOSTILE_FILES = {
    "statement": lambda file: file + "\nos.system('id')\n",
    "function": lambda file: file + "\ndef f():\n    pass\n",
    "decorator": lambda file: file.replace("class Repro", "@torch.load\nclass Repro"),
    "base": lambda file: file.replace(
        "(torch.nn.Module)", "(torch.nn.Module, metaclass=torch.load)"
    ),
    "method": lambda file: file.replace(
        "    def forward", "    def __del__(self):\n        pass\n    def forward"
    ),
    "class body": lambda file: file.replace(
        "    def forward", "    y = torch.load('x')\n    def forward"
    ),
    "default": lambda file: file.replace('y: "f32[4, 4][4, 1]cpu"', "y=torch.load('x')"),
    "init": lambda file: file.replace("super().__init__()", "super().__init__(); torch.load('x')"),
    "attribute": lambda file: file.replace(
        "super().__init__()", "super().__init__(); self.forward = torch.relu"
    ),
    "reader": lambda file: file.replace("reader.storage(None, 64)", "reader.__class__", 1),
    "reader's argument": lambda file: file.replace("(None, 64)", "(None, open('/etc/passwd'))", 1),
    "mod": lambda file: file.replace("mod = Repro()", "mod = torch.load('x')"),
    "symbol": lambda file: "torch = 3\n" + file,
}


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_hostile_file(connection: Connection, name: str) -> None:
    file = HOSTILE_FILES[name](AFTER_AOT)
    assert file != AFTER_AOT
    assert_refused(connection.ask(file, limits=WALL))


def assert_refused(answer: Answer) -> None:
    report = answer["report"]
    if report.get("type") == "SyntaxError":
        assert report["status"] == "invalid"
        return
    assert (report["status"], report["stage"]) == ("invalid", "load"), report
    assert report["type"] == "UntrustedFile", report
    assert "--trust" in report["message"]
    assert "line " in report["message"]


@pytest.mark.parametrize("file", STOCK_FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_what_stock_writes_is_allowed(connection: Connection, file: Path) -> None:
    save_dir = str(file.parent / "checkpoints")
    asked = {"backend": "eager", "save_dir": save_dir, "limits": WALL}
    assert connection.ask(file.read_text(), **asked)["report"]["status"] == "passed"


def test_annotations_are_not_evaluated(connection: Connection) -> None:
    file = AFTER_AOT.replace('x: "f32[4, 4][4, 1]cpu"', "x: print('evaluated')")
    answer = connection.ask(file, backend="eager", limits=WALL)
    assert answer["report"]["status"] == "passed"
    assert "evaluated" not in answer["output"]


def test_hash_is_no_path(connection: Connection, tmp_path: Path) -> None:
    file = AFTER_AOT.replace("reader.storage(None, 64)", "reader.storage('../secret', 64)", 1)
    report = connection.ask(file, save_dir=str(tmp_path), limits=WALL)["report"]
    assert report["status"] == "invalid"
    assert "not the hash" in report["message"]


@pytest.mark.parametrize(
    "setting",
    [
        ["torch._inductor.config.cpp.cxx", ["/tmp/evil"]],
        ["torch._inductor.config.debug_dir_root", "/etc"],
        ["os.environ.PATH", "/tmp"],
        ["torch._inductor.config.__class__", 1],
    ],
)
def test_hostile_setting(connection: Connection, setting: list[Any]) -> None:
    report = connection.ask(AFTER_AOT, backend="eager", config=[setting], limits=WALL)["report"]
    assert (report["status"], report["stage"]) == ("invalid", "load")
