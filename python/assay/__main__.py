"""``python -m assay script.py args...`` runs a script with ``torch.compile`` routed to Assay.

python -m assay script.py args...       the script is not changed in any way
python -m assay -m package.module args...
python -m assay diagnose script.py args...   finds out why a script fails under torch.compile
python -m assay --replay FILE --trusted  runs a recorded frame again, as assay.replay does
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from types import ModuleType, TracebackType

import assay
from assay._route import route


def _print_exception(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    # The script's traceback begins with the script.
    entry = trace
    while entry is not None:
        if entry.tb_frame.f_code.co_filename == __file__:
            trace = entry.tb_next
        entry = entry.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


def _run_script(path: str) -> None:
    # A module that stays, unlike that of runpy: threads and exit functions may need its globals.
    module = ModuleType("__main__")
    module.__file__ = path
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    code = compile(Path(path).read_bytes(), path, "exec")
    exec(code, module.__dict__)


def _replay(arguments: list[str]) -> None:
    files = [argument for argument in arguments if argument != "--trusted"]
    if len(files) != 1:
        sys.exit("usage: python -m assay --replay FILE --trusted")
    try:
        assay.replay(files[0], trusted="--trusted" in arguments)
    except assay.UserError as error:
        if "--trusted" in arguments:
            raise
        sys.exit(str(error).replace("assay.replay(file, trusted=True)", "--trusted"))
    print("the frame ran without a failure")


def main() -> None:
    """Run what ``sys.argv`` names."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if arguments else 2)
    if arguments[0] == "--replay":
        _replay(arguments[1:])
        return
    if arguments[0] == "diagnose" and not Path("diagnose").is_file():
        # The driver starts processes and keeps PyTorch out of its own.
        driver = Path(assay.__file__).parent / "diagnose" / "__main__.py"
        os.execv(sys.executable, [sys.executable, str(driver), *arguments[1:]])
    if arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = arguments[1:]
        route()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    path = arguments[0]
    if not Path(path).is_file():
        sys.exit(f"python -m assay: there is no file '{path}'")
    sys.argv = arguments
    sys.path[0] = str(Path(path).resolve().parent)
    sys.excepthook = _print_exception
    route()
    _run_script(path)


if __name__ == "__main__":
    main()
