# Every target builds the environment it needs, so each one works on a fresh clone. A recipe needs Python, a shell and
# the coreutils, and no other program.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(PROGRAMS)
# A stamp's name holds a hash of what defines the environment and the extra that was installed:
# edit one of these files and the environment is brought up to date.
READY := $(VENV)/installed-$(shell cat pyproject.toml studies/pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
DEV := $(READY)-dev
# The demo needs little; it does not wait for the whole development environment.
DEMO := $(or $(wildcard $(DEV)),$(READY)-demo)
WORKERS ?= 2
# Each process starts with a half of the tests in their order, so that what a module prepares is prepared once.
PARALLEL := -n $(WORKERS) --dist worksteal
# make test SEED=N runs the tests in the random order number N; without it they run in the order of the files.
ORDER := $(if $(SEED),--order $(SEED))
# One thread per process, as conftest.py has it for the tests: work is parallel over processes already.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
# Tests whose numbers could depend on the kernels of OpenBLAS and NumPy.
NUMERICAL := $(addprefix tests/,agreement contracts distributions estimators evaluation learning matrix metamorphic \
	properness published scores simulation)
# Bytecode is kept, whatever the environment asks for: the tests start many processes.
TESTING := PYTHONDONTWRITEBYTECODE=
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.PHONY: help setup demo test test-kernels test-slow test-bayes test-docs test-lowest test-newest fuzz lint format bench conformance docs studies clean

help: ## Show this list
	@while IFS= read -r line; do case $$line in [a-z]*:*'## '*) \
		printf '  make %-11s %s\n' "$${line%%:*}" "$${line##*'## '}";; esac; done < $(firstword $(MAKEFILE_LIST))

setup: $(DEV) ## Build .venv with the library, the studies and the pinned versions of constraints.txt

$(READY)-%:
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 with venv found; set PYTHON=/path/to/python"; exit 1; }
	@echo "installing censcore[$*] into $(VENV); the first time takes $(if $(filter dev,$*),two to ten,one to five) minutes"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@rm -f $(filter-out $(READY)-%,$(wildcard $(VENV)/installed-*))
	@$(BIN)/pip install -qq --constraint constraints.txt --editable '.[$*]' \
		$(if $(filter dev,$*),--editable './studies[dask]')
	@touch $@

demo: $(DEMO) ## Score forecasts on a real data set: a table, and a plot in demo/
	$(BIN)/censcore demo --out demo

test: $(DEV) ## Run the tests, the docstring examples and the code blocks of the docs
	$(TESTING) $(BIN)/pytest -q $(PARALLEL) $(ORDER) -m "not slow"

test-kernels: $(DEV) ## Run the numerical tests under the other kernels of OpenBLAS and NumPy that this processor has
	@$(BIN)/python .ci/kernels.py | while read -r setting; do \
		echo "$$setting"; \
		env $$setting $(TESTING) $(BIN)/pytest -q $(PARALLEL) $(ORDER) -m "not slow" $(NUMERICAL) </dev/null || exit 1; done

test-slow: $(DEV) ## Run the tests that take minutes
	$(TESTING) $(BIN)/pytest -q $(PARALLEL) -m slow tests studies/tests

# make fuzz CALLS=N SEED=M: so many calls of each name, other values with another seed.
fuzz: $(DEV) ## Call every public name and command with bad input, hundreds of times, and print how the calls ended
	$(ONE_THREAD) $(BIN)/python -m tests.fuzz $(if $(CALLS),--examples $(CALLS)) $(if $(SEED),--seed $(SEED))

test-bayes: $(DEV) ## Run the tests that need ArviZ and NumPyro, which make setup leaves out
	$(BIN)/pip install -qq --constraint constraints.txt --editable '.[peers-bayes]'
	$(BIN)/pytest -q tests/estimators/libraries/test_draws.py

test-docs: docs ## Build the documentation and test it in a browser (Chromium, where there is one)
	$(BIN)/pytest -q $(PARALLEL) tests/test_docs*.py

test-lowest: ## Run the tests with the lowest versions that the metadata promises, in .venv-lowest
	@test -x .venv-lowest/$(PROGRAMS)/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/$(PROGRAMS)/pip install -qq --constraint constraints-lowest.txt --editable '.[test]' --editable './studies[dask]'
	@# code blocks of the docs need other libraries; old polars warns of forks, old scikit-learn asks SciPy first,
	@# old hypothesis does not see what the garbage collector has frozen
	SCIPY_ARRAY_API=1 .venv-lowest/$(PROGRAMS)/pytest -q $(PARALLEL) -m "not slow" --ignore=docs \
		--ignore=tests/test_docs.py --ignore=src/censcore/estimators/libraries/competing_risks_adapters.py \
		-W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning -W ignore::FutureWarning \
		-W "ignore:Using fork:RuntimeWarning" -W 'ignore:It looks like `register_random`'

test-newest: ## Run the tests with the newest versions, pandas 3 among them, in .venv-newest
	@test -x .venv-newest/$(PROGRAMS)/python || $(PYTHON) -m venv .venv-newest
	.venv-newest/$(PROGRAMS)/pip install -qq --upgrade --upgrade-strategy eager "$$(grep ^torch== constraints.txt)" \
		--editable '.[test]' --editable './studies[dask]'
	@# lifelines asks for pandas 2; with pandas 3 it warns of pandas 4
	.venv-newest/$(PROGRAMS)/pip install -qq --upgrade --no-deps pandas
	.venv-newest/$(PROGRAMS)/pytest -q $(PARALLEL) -m "not slow" --ignore=docs --ignore=tests/test_docs.py \
		--ignore=src/censcore/estimators/libraries/competing_risks_adapters.py \
		-W "ignore:Starting with pandas version 4:DeprecationWarning"

lint: $(DEV) ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV) ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV) ## Time against the peers, as ratios measured in one run
	$(BIN)/python -m benchmarks

conformance: $(DEV) ## Run the conformance cases on every installed library, for docs/conformance.md
	$(ONE_THREAD) $(BIN)/python -m conformance --out docs/results/conformance

docs: $(DEV) ## Build the documentation in docs/_build/html
	@echo "building the documentation; the first time takes five to ten minutes"
	$(BIN)/sphinx-build -b html -W --keep-going -q docs docs/_build/html
	@echo "open docs/_build/html/index.html"

.PHONY: release-check
release-check: ## Build the archives, and try the wheel and each extra in fresh environments (PYTHON=, TRIALS=)
	$(PYTHON) .ci/release_check.py $(TRIALS)

studies: $(DEV) ## Run the studies of the paper into results/; hours, and it goes on where it stopped
	$(ONE_THREAD) $(BIN)/censcore reproduce oracle-ranks --jobs $(WORKERS)
	$(ONE_THREAD) $(BIN)/censcore reproduce raw-scores --replications 200 --large 100000 --jobs $(WORKERS)
	$(ONE_THREAD) $(BIN)/censcore reproduce sensitivity --jobs $(WORKERS)
	$(ONE_THREAD) $(BIN)/censcore reproduce convergence --jobs $(WORKERS)
	$(ONE_THREAD) $(BIN)/censcore reproduce multivariate --jobs $(WORKERS)
	$(ONE_THREAD) $(BIN)/censcore reproduce multivariate-extensions --repetitions 5 --jobs $(WORKERS)
	$(ONE_THREAD) $(BIN)/censcore reproduce recovery
	$(ONE_THREAD) $(BIN)/censcore reproduce ablations --jobs $(WORKERS)
	$(ONE_THREAD) $(BIN)/censcore reproduce pictures
	$(ONE_THREAD) $(BIN)/censcore reproduce real-data --repetitions 4 --jobs $(WORKERS)
	$(ONE_THREAD) $(BIN)/censcore reproduce neutral-benchmark --jobs $(WORKERS)

clean: ## Remove the environment and everything built
	rm -rf $(VENV) .venv-lowest .venv-newest build dist demo docs/_build docs/generated .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache .hypothesis
	$(PYTHON) -c 'from pathlib import Path; from shutil import rmtree; \
		[rmtree(path) for path in list(Path().rglob("__pycache__"))]'
