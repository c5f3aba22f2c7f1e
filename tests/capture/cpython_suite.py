"""CPython's own tests as the judge of the interpreter loop.

Each file of the installed `test` package runs twice in processes of its own, in CPython and with
every frame in Assay's loop, and the same tests must pass, fail and be skipped.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

RUNNER = Path(__file__).with_name("cpython_runner.py")


@dataclass(frozen=True)
class TestFile:
    """`slow`: takes more than five seconds in CPython. `limit`: in seconds, for the loop too."""

    __test__ = False

    name: str
    slow: bool = False

    @property
    def limit(self) -> int:
        return 900 if self.slow else 300


FAST = """
    test_abc test_ast test_asyncgen test_augassign test_baseexception test_bdb test_binop
    test_bool test_builtin test_bytes test_call test_class test_code test_collections
    test_compare test_compile test_complex test_contains test_context test_contextlib
    test_contextlib_async test_copy test_copyreg test_coroutines test_cprofile
    test_dataclasses test_decorators test_defaultdict test_descr test_descrtut
    test_dictcomps test_dictviews test_dis test_doctest test_dynamic
    test_dynamicclassattribute test_enum test_enumerate test_eof test_except_star
    test_exception_group test_exception_hierarchy test_exception_variations test_extcall
    test_float test_format test_fractions test_frame test_fstring test_funcattrs
    test_functools test_future_stmt test_generator_stop test_generators test_genericalias
    test_genericclass test_genexps test_global test_grammar test_hash test_heapq test_index
    test_inspect test_int test_int_literal test_isinstance test_iter test_iterlen
    test_itertools test_keywordonlyarg test_list test_listcomps test_long test_math
    test_metaclass test_module test_named_expressions test_numeric_tower test_opcache
    test_opcodes test_operator test_patma test_pdb test_peepholer test_pep646_syntax
    test_positional_only_arg test_pow test_pprint test_property test_raise test_range
    test_re test_reprlib test_richcmp test_scope test_set test_setcomps test_slice test_sort
    test_statistics test_string test_string_literals test_structseq test_subclassinit
    test_super test_syntax test_sys test_sys_setprofile test_sys_settrace test_traceback
    test_type_annotations test_type_cache test_type_comments test_typechecks test_types
    test_typing test_unary test_unicode test_unpack test_unpack_ex test_userdict
    test_userlist test_userstring test_warnings test_weakset test_with test_yield_from
"""

SLOW = """
    test_deque test_dict test_exceptions test_finalization test_gc test_json
    test_ordered_dict test_pickle test_queue test_signal test_thread test_threading
    test_threading_local test_threadsignals test_tuple test_unittest test_weakref
"""

# What the quick suite runs: syntax, scopes, exceptions, with-blocks and calls, in a few seconds.
QUICK = ("test_grammar", "test_scope", "test_with", "test_extcall", "test_exception_variations")

# Tests that may end differently under the loop, with the reason. Each is checked to differ still.
SPECIALIZED = (
    "looks at the instructions into which CPython's evaluator rewrites hot code; the loop executes "
    "the original ones and rewrites nothing"
)
EXPECTED_DIFFERENCES: dict[str, str] = {
    f"test.test_dis.{group}.{test}": SPECIALIZED
    for group in ("DisTests", "DisWithFileTests")
    for test in (
        "test_binary_specialize",
        "test_call_specialize",
        "test_load_attr_specialize",
        "test_loop_quicken",
        "test_show_caches",
        "test_super_instructions",
    )
}


def files() -> list[TestFile]:
    return [
        *(TestFile(name) for name in FAST.split()),
        *(TestFile(name, slow=True) for name in SLOW.split()),
    ]


@dataclass
class Outcome:
    """What became of the tests of one file. `tests`: id to outcome; `details`: id to reason."""

    tests: dict[str, str]
    details: dict[str, str]
    end: str


def run_file(file: TestFile, all_frames: bool, directory: Path) -> Outcome:
    """Runs the file in a process of its own; what it leaves behind goes into `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    results = directory / "results.jsonl"
    environment = {**os.environ, "PYTHONHASHSEED": "0", "TERM": "dumb", "TMPDIR": str(directory)}
    environment.pop("ASSAY_TEST_ALL_FRAMES", None)
    if all_frames:
        environment["ASSAY_TEST_ALL_FRAMES"] = "1"
    process = subprocess.Popen(
        [sys.executable, "-P", str(RUNNER), file.name, str(results)],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=file.limit)
        end = f"exit code {process.returncode}"
    except subprocess.TimeoutExpired:
        end = f"no end after {file.limit} s"
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    outcome = read_results(results, end)
    if outcome.end != "finished":
        outcome.end += "\n" + output[-3000:]
    return outcome


def read_results(results: Path, end: str) -> Outcome:
    """A test with several failing subtests has failed once; the last thing said of it counts."""
    tests: dict[str, str] = {}
    details: dict[str, str] = {}
    for line in results.read_text().splitlines() if results.exists() else []:
        record = json.loads(line)
        if record["outcome"] == "finished":
            end = "finished"
        elif tests.get(record["test"]) != "failed":
            tests[record["test"]] = record["outcome"]
            details[record["test"]] = record["detail"]
    return Outcome(tests, details, end)


def differences(plain: Outcome, loop: Outcome) -> list[str]:
    """What the loop did differently, in words."""
    found = []
    if loop.end != "finished":
        running = [test for test, outcome in loop.tests.items() if outcome == "started"]
        found.append(f"the loop did not finish, in {running or 'no test'}: {loop.end}")
    for test in sorted({*plain.tests, *loop.tests}):
        expected, actual = plain.tests.get(test, "absent"), loop.tests.get(test, "absent")
        if expected != actual and test not in EXPECTED_DIFFERENCES:
            found.append(
                f"{test}: {expected}, but {actual} in the loop\n{loop.details.get(test, '')}"
            )
        elif expected == actual and test in EXPECTED_DIFFERENCES:
            found.append(f"{test}: the same now; remove it from EXPECTED_DIFFERENCES")
    return found
