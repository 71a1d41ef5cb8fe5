# Two commands do all the set-up: `make demo` and `make test`. Both install from requirements.lock into .venv.
PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv pip install -q -c requirements.lock

.PHONY: demo test fast check bench format lock clean

demo: .venv/.core
	@scripts/ensure-java
	@$(BIN)/foretide demo $(ARGS)

test: .venv/.dev
	@scripts/ensure-java
	@scripts/ensure-chromium
	@$(MAKE) --no-print-directory check
	$(BIN)/pytest -n 2 -m "not spark" $(ARGS)
	$(BIN)/pytest -n 2 --dist loadgroup -m spark $(ARGS)

fast: .venv/.dev
	$(BIN)/pytest -n 2 -m "not spark and not slow" $(ARGS)

check: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: .venv/.dev
	@scripts/ensure-java
	@for b in benchmarks/[a-z]*.py; do echo "== $$b"; $(BIN)/python $$b || exit 1; done

format: .venv/.dev
	$(BIN)/ruff check --fix -q
	$(BIN)/ruff format -q

lock: .venv/.uv
	$(BIN)/uv pip compile -q pyproject.toml --all-extras --universal --no-header --no-annotate -o requirements.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/.uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Foretide needs Python 3.11 or newer; set PYTHON=/path/to/python3.11 and run make again."; exit 1; }
	@echo "Setting up .venv (about a minute on a good line)..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install -q --disable-pip-version-check uv==0.13.7
	@touch $@

.venv/.core: .venv/.uv pyproject.toml requirements.lock
	@$(UV) -e .
	@touch $@

.venv/.dev: .venv/.uv pyproject.toml requirements.lock
	@$(UV) -e '.[dev,deep,stats]'
	@touch $@ .venv/.core
