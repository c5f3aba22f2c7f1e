"""Colours: on a terminal only, and never against NO_COLOR."""

from __future__ import annotations

import subprocess

from support.command import BINARY, FIXTURES, assay, assay_on_terminal, environment

LAUNCHER = FIXTURES / "linear_layernorm_relu" / "dynamo_launcher.py"
ESCAPE = "\033["


def test_no_colours_in_a_pipe() -> None:
    for result in (assay("run", LAUNCHER), assay("show", LAUNCHER), assay("run", "missing.py")):
        assert ESCAPE not in result.out + result.err


def test_colours_on_a_terminal() -> None:
    result = assay_on_terminal("run", LAUNCHER)
    assert result.code == 0
    assert f"{ESCAPE}1mran{ESCAPE}0m with backend eager" in result.out
    failed = assay_on_terminal("run", "missing.py")
    assert failed.out.startswith(f"{ESCAPE}31merror:{ESCAPE}0m missing.py: No such file")


def test_no_color_is_respected_on_a_terminal() -> None:
    assert ESCAPE not in assay_on_terminal("run", LAUNCHER, env={"NO_COLOR": "1"}).out
    # no-color.org: an empty value does not count.
    assert ESCAPE in assay_on_terminal("run", LAUNCHER, env={"NO_COLOR": ""}).out


def test_errors_in_a_file_have_no_colours_though_output_is_a_terminal() -> None:
    import os
    import pty

    controller, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [BINARY, "run", "missing.py"],
            stdout=terminal,
            stderr=subprocess.PIPE,
            env=environment(TERM="xterm"),
            check=False,
        )
    finally:
        os.close(terminal)
        os.close(controller)
    assert done.stderr.startswith(b"error: missing.py")
