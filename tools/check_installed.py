"""Are these pinned packages installed, and whole? `check_installed.py NAME==VERSION... [-r FILE]`

Exits with 1 and names the first that is not. Quicker than asking pip, and it notices what pip does
not: a package whose installation was cut short, which leaves files without a RECORD of them.
"""

import importlib.metadata
import pathlib
import sys


def pins(arguments: list[str]) -> list[str]:
    found = []
    words = iter(arguments)
    for word in words:
        if word == "-r":
            lines = pathlib.Path(next(words)).read_text().splitlines()
            found += [line.strip() for line in lines if line.strip() and line[0] != "#"]
        else:
            found.append(word)
    return found


def problem(pin: str) -> str | None:
    name, _, version = pin.partition("==")
    try:
        installed = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return "is not installed"
    record = installed.files  # None without a RECORD
    if record is None:
        return "is installed in part only"
    # A local label such as +cpu names a build of the same version.
    if installed.version.partition("+")[0] != version.partition("+")[0]:
        return f"is installed as {installed.version}"
    libraries = [pathlib.Path(str(file.locate())) for file in record if file.suffix == ".so"]
    if not all(library.exists() for library in libraries):
        return "has lost files"
    return None


for pin in pins(sys.argv[1:]):
    what = problem(pin)
    if what:
        print(f"{pin} {what}")
        sys.exit(1)
