"""The samples of every module that PyTorch tests, compiled to kernels, against eager.

The first sample of each mode; the slow suite takes all of them.
"""

from __future__ import annotations

import itertools

import pytest

import assay
from autograd.expected import MESSAGES
from autograd.test_module_db import EXPECTED, MODULES, samples
from kernels.against_eager import Program


def check(name: str, count: int | None) -> None:
    for training in (True, False) if MODULES[name].train_and_eval_differ else (True,):
        for description, sample in itertools.islice(samples(MODULES[name], training), count):
            expected = next((one for one in EXPECTED.get(name, ()) if one.when(sample)), None)
            try:
                text = Program(sample, sample.arguments.make).difference()
                assert not text, text
            except assay.TraceError as error:
                if expected is None or MESSAGES.get(expected.kind, "") not in str(error):
                    raise
            except BaseException as error:
                error.add_note(f"sample '{description}', training={training}")
                raise


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_first_sample(name: str) -> None:
    check(name, 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_all_samples(name: str) -> None:
    check(name, None)
