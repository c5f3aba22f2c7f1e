"""Small Python programs, compiled with `assay.compile` against the same programs run eagerly.

- `harness.py` says how a program is written, runs it both ways and compares all a user could
  notice; `describe.py` is how; `engine.py` chooses the compiler (ASSAY_CAPTURE_ENGINE).
- `test_<kind>.py` are the programs, by what they exercise; `test_public_bugs*.py` follow public
  issues of PyTorch; `test_harness.py` checks that a wrong compiler is found out.
- `random_programs.py` writes programs from a seed, `shrink.py` makes failing ones small.
- `cpython_suite.py` runs CPython's own tests with every frame in Assay's interpreter loop.
"""
