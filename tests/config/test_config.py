"""`assay.config`: attributes, patches, errors; the same values as C++ has."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
import torch

import assay
from support.command import environment


@pytest.fixture(autouse=True)
def nothing_stays_set() -> Iterator[None]:
    before = assay.config.to_dict()
    yield
    assert assay.config.to_dict() == before


def test_attributes_have_the_types_of_the_table() -> None:
    assert assay.config.repro_after is None
    assert assay.config.repro_level == 2
    assert assay.config.repro_tolerance == 1e-3
    assert assay.config.repro_forward_only is False
    assert assay.config.debug_dir_root == "torch_compile_debug"


def test_assignment() -> None:
    before = assay.config.cache_size_limit
    assay.config.cache_size_limit = 3
    assert assay.config.cache_size_limit == 3
    assay.config.unset("cache_size_limit")
    assert assay.config.cache_size_limit == before
    with pytest.raises(AttributeError, match="there is no setting 'cache_size_limt'"):
        assay.config.unset("cache_size_limt")


def test_patch_is_a_context_manager_and_nests() -> None:
    with assay.config.patch(repro_level=3, repro_after="aot"):
        with assay.config.patch({"repro_level": 4}):
            assert (assay.config.repro_level, assay.config.repro_after) == (4, "aot")
        assert assay.config.repro_level == 3
        assay.config.repro_level = 1  # as in PyTorch, the patch ends this too
        with assay.config.patch(repro_after=None):
            assert assay.config.repro_after is None
    assert (assay.config.repro_level, assay.config.repro_after) == (2, None)


def test_patch_ends_with_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), assay.config.patch(repro_level=3):
        _ = 1 / 0
    assert assay.config.repro_level == 2


def test_patch_is_a_decorator() -> None:
    @assay.config.patch(repro_level=4)
    def levels(depth: int) -> list[int]:
        """What it is."""
        return [assay.config.repro_level, *(levels(depth - 1) if depth else [])]

    assert levels(2) == [4, 4, 4]
    assert assay.config.repro_level == 2
    assert (levels.__name__, levels.__doc__) == ("levels", "What it is.")


def test_one_patch_can_be_entered_again() -> None:
    patch = assay.config.patch(repro_level=4)
    for _ in range(2):
        with patch, patch:
            assert assay.config.repro_level == 4
        assert assay.config.repro_level == 2


def test_a_generator_function_is_not_decorated() -> None:
    with pytest.raises(TypeError, match="generator or coroutine"):

        @assay.config.patch(repro_level=4)
        def numbers() -> Iterator[int]:
            yield 1


def test_all_threads_see_a_patch() -> None:
    seen = []
    with assay.config.patch(repro_level=4):
        thread = threading.Thread(target=lambda: seen.append(assay.config.repro_level))
        thread.start()
        thread.join()
    assert seen == [4]


def test_unknown_names_are_attribute_errors_with_the_nearest() -> None:
    message = r"there is no setting 'repro_levl'\n  hint: did you mean repro_level\?"
    with pytest.raises(AttributeError, match=message):
        _ = assay.config.repro_levl
    with pytest.raises(AttributeError, match=message):
        assay.config.repro_levl = 4
    with pytest.raises(AttributeError, match=message):
        assay.config.patch(repro_levl=4)
    assert not hasattr(assay.config, "recompile_everything")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("repro_level", "4"),
        ("repro_level", 4.0),
        ("repro_level", True),
        ("repro_level", None),
        ("repro_forward_only", 1),
        ("repro_tolerance", "1e-3"),
        ("repro_tolerance", False),
        ("repro_after", 3),
        ("logs", None),
        ("logs", ["dynamo"]),
    ],
)
def test_values_of_another_type_are_type_errors(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"the setting {name} cannot be .*\n.*hint: expected "):
        setattr(assay.config, name, value)
    with pytest.raises(TypeError, match=f"the setting {name} cannot be "):
        assay.config.patch({name: value})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("repro_level", 5, "an integer from 1 to 4"),
        ("repro_level", 2**70, "an integer from 1 to 4"),
        ("repro_tolerance", -1, "a number such as 0.001"),
        ("repro_tolerance", float("nan"), "a number such as 0.001"),
        ("repro_after", "dynamos", "dynamo, aot or nothing"),
        ("repro_inputs", None, "data or shapes"),
    ],
)
def test_values_that_are_not_allowed_are_user_errors(
    name: str, value: object, expected: str
) -> None:
    with pytest.raises(assay.UserError, match=f"the setting {name} .*\n.*expected {expected}"):
        setattr(assay.config, name, value)
    with pytest.raises(assay.UserError, match=expected):
        assay.config.patch(repro_forward_only=True, **{name: value})


def test_a_setting_cannot_be_deleted() -> None:
    with pytest.raises(AttributeError, match="cannot be deleted: 'repro_level'"):
        del assay.config.repro_level


def test_dir_lists_the_settings() -> None:
    assert {"repro_after", "cache_size_limit", "patch"} <= set(dir(assay.config))


def test_the_library_obeys(capfd: pytest.CaptureFixture[str]) -> None:
    """What Python sets is what C++ reads: a fault, and logs."""
    x = torch.randn(4)
    with assay.config.patch(inject_fault="relu:runtime_error"):
        step = assay.aot.compile(torch.relu)
        with pytest.raises(RuntimeError, match="injected runtime error"):
            step(x)
    with assay.config.patch(logs="aot_graphs"):
        assay.aot.compile(torch.relu)(x)
    assert "[__aot_graphs]" in capfd.readouterr().err
    assay.aot.compile(torch.relu)(x)
    assert "[__aot_graphs]" not in capfd.readouterr().err


def test_set_logs_is_the_setting() -> None:
    assay.set_logs("+aot")
    try:
        assert assay.config.logs == "+aot"
    finally:
        assay.config.unset("logs")
    with pytest.raises(assay.SettingsError, match=r'^set_logs: unknown name "dinamo"'):
        assay.set_logs("dinamo")
    with pytest.raises(assay.SettingsError, match='the setting logs: unknown name "dinamo"'):
        assay.config.logs = "dinamo"


def test_a_reserved_setting_warns(capfd: pytest.CaptureFixture[str]) -> None:
    with assay.config.patch(fallback_random=True):
        assert assay.config.fallback_random is True
    assert "the setting fallback_random has no effect yet" in capfd.readouterr().err


SCRIPT = """
import os
import assay
print(assay.config.repro_after, assay.config.repro_level)
os.environ["TORCHDYNAMO_REPRO_LEVEL"] = "1"
print(assay.config.repro_level)
assay.config.reload_environment()
print(assay.config.repro_level)
os.environ["ASSAY_REPRO_LEVEL"] = "nine"
assay.config.reload_environment()
try:
    assay.config.repro_level
except assay.UserError as error:
    print(error)
"""


def test_the_environment_is_read_once_until_it_is_reloaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=environment(TORCHDYNAMO_REPRO_AFTER="aot", TORCHDYNAMO_REPRO_LEVEL="3"),
        timeout=120,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert lines[:4] == ["aot 3", "3", "1", "ASSAY_REPRO_LEVEL is 'nine'"], done.stderr
    assert "expected an integer from 1 to 4; it sets repro_level: " in lines[4]
