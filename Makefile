# Everything one does with Assay. `make` alone prints the list below; nothing needs to be installed
# by hand: system packages come through apt-get, Python packages go into .venv.
#
# Variables: PYTHON=<a Python 3.11>  JOBS=<parallel compiles>  PRESET=<release|dev>
#            ASSAY_APT=no (never install system packages)
PRESET ?= release
JOBS ?= $(shell nproc)
export PYTHON

BUILD := build/$(PRESET)
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# What runs against the build: the package, and the command by its path.
RUN := PYTHONPATH=$(CURDIR)/$(BUILD)/python ASSAY_BINARY=$(CURDIR)/$(BUILD)/bin/assay \
       PATH=$(CURDIR)/$(BUILD)/bin:$$PATH
# What examples/demo/run runs; all of them are targets of the build.
DEMO := assay _C python_package cpp_training
# Halves of the tests in order, so that those of one file stay together and share their set-up.
PYTEST := .venv/bin/python -m pytest tests -n $(JOBS) --dist worksteal
CTEST = ctest --test-dir $(1) --output-on-failure -j $(JOBS)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup build demo test test-slow asan-test tsan-test bench lint lint-quick \
        format wheel clean

help: ## print this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: ## install what is missing: system packages, .venv
	@tools/setup_system
	@tools/setup_venv

build: setup ## compile libassay, the command, the Python extension and the tests
	@tools/build $(PRESET) $(JOBS)

demo: setup ## build what the demo runs, then take a real repro file through the assay command
	@tools/build $(PRESET) $(JOBS) $(DEMO)
	@$(RUN) examples/demo/run

test: build ## build, then run every test but the slow ones
	@status=0; \
	$(call CTEST,$(BUILD)) -LE slow || status=1; \
	$(RUN) $(PYTEST) || status=1; \
	exit $$status

test-slow: build ## the slow tests only
	@status=0; \
	$(call CTEST,$(BUILD)) -L slow || status=1; \
	$(RUN) $(PYTEST) -m slow || status=1; \
	exit $$status

# libtorch itself is not instrumented; tools/*.supp name what it does on its own. CPython is not
# either: it starts with the sanitizer's library and gets its memory from malloc, and what it leaves
# behind at exit is not looked at. The quarantine is small because a test looks at memory in use.
asan-test: setup ## the C++ tests and capture under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/build asan $(JOBS)
	@status=0; export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1; \
	options=detect_stack_use_after_return=1:strict_string_checks=1; \
	ASAN_OPTIONS=detect_leaks=1:$$options \
	LSAN_OPTIONS=suppressions=$(CURDIR)/tools/lsan.supp:print_suppressions=0 \
	$(call CTEST,build/asan) -LE 'python|slow' || status=1; \
	PYTHONPATH=$(CURDIR)/build/asan/python ASSAY_BINARY=$(CURDIR)/build/asan/bin/assay \
	ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8:$$options PYTHONMALLOC=malloc \
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so.6)" \
	.venv/bin/python -m pytest tests/capture -n $(JOBS) || status=1; \
	exit $$status

# report_mutex_bugs=0: of libtorch's mutexes ThreadSanitizer sees some unlocks (tail calls into
# pthread) and not the locks. setarch -R: ThreadSanitizer of GCC 12 cannot live with the kernel's
# wider address randomisation.
tsan-test: setup ## the C++ tests under ThreadSanitizer
	@tools/build tsan $(JOBS)
	@TSAN_OPTIONS=suppressions=$(CURDIR)/tools/tsan.supp:halt_on_error=1:second_deadlock_stack=1:report_mutex_bugs=0 \
	setarch -R $(call CTEST,build/tsan) -LE 'python|slow'

bench: build ## measure against eager and stock torch.compile
	@test -x bench/run || { echo "bench/run is missing"; exit 1; }
	@$(RUN) bench/run

lint-quick: setup ## what CI checks before the tests: clang-format, ruff, mypy, the rooms
	@tools/setup_system format
	@tools/lint quick

lint: setup ## clang-format, clang-tidy on changed files (LINT_ALL=1: on all), ruff, mypy, the rooms
	@tools/setup_system lint
	@JOBS=$(JOBS) tools/lint check

format: setup ## rewrite the sources with clang-format and ruff
	@tools/setup_system format
	@tools/lint format

wheel: setup ## build a wheel into dist/
	@echo "Building a wheel into dist/"
	@.venv/bin/python -m pip --quiet wheel --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

clean: ## remove what was built (.venv stays)
	rm -rf build dist
