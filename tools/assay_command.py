#!python
"""The `assay` command of an installed package: starts the C++ program that lies in the package.

A script and not an entry point: an entry point would import the package, and with it torch, which
takes two seconds. Here nothing is imported; the process becomes bin/assay.
"""

import importlib.util
import os
import pathlib
import sys


def package_folders(name: str) -> list[pathlib.Path]:
    spec = importlib.util.find_spec(name)
    return [pathlib.Path(p) for p in (spec.submodule_search_locations or [])] if spec else []


def main() -> None:
    candidates = [folder / "bin" / "assay" for folder in package_folders("assay")]
    binary = next((path for path in candidates if path.is_file()), None)
    if binary is None:
        sys.exit("assay: the package is not installed whole: bin/assay is missing; reinstall it")
    environment = dict(os.environ)
    # The binary looks for torch beside its own package. Where torch lies elsewhere (a virtual
    # environment on top of another one), the loader must be told.
    if not (binary.parents[2] / "torch" / "lib").is_dir():
        libraries = [str(folder / "lib") for folder in package_folders("torch")]
        if not libraries:
            sys.exit("assay: torch is not installed; run `pip install torch==2.13.0`")
        inherited = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = ":".join(libraries + ([inherited] if inherited else []))
    os.execve(binary, ["assay", *sys.argv[1:]], environment)


main()
