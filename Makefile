# Two commands do all the set-up: `make demo` and `make test`. Both install into .venv the exact
# versions of the lock files and verify their hashes; only the project itself has none.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/uv pip install -q
COMPILE := $(BIN)/uv pip compile -q pyproject.toml --universal --generate-hashes --no-header \
  --no-annotate --no-emit-package foretide
LOCKS := requirements.lock requirements-run.lock requirements-build.lock

.PHONY: demo test fast slow check audit wheel bench format lock clean

demo: .venv/.core
	@scripts/ensure-java
	@$(BIN)/foretide demo $(ARGS)

test: .venv/.dev
	@scripts/ensure-java
	@scripts/ensure-chromium
	@scripts/ensure-kafka
	@$(MAKE) --no-print-directory check
	$(BIN)/pytest -n 2 -m "not spark and not long" $(ARGS)
	$(BIN)/pytest -n 2 --dist loadgroup -m "spark and not long" $(ARGS)

fast: .venv/.dev
	$(BIN)/pytest -n 2 -m "not spark and not slow" $(ARGS)

# Hours on a small machine: every crash point, kills and a soak on Spark.
slow: .venv/.dev
	@scripts/ensure-java
	$(BIN)/pytest -m long
	$(BIN)/python benchmarks/chaos.py --kills 100
	$(BIN)/python benchmarks/soak.py

check: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

audit: .venv/.dev
	$(BIN)/python scripts/audit $(LOCKS)

wheel: .venv/.core
	$(BIN)/uv build -q --wheel --no-build-isolation --python $(BIN)/python -o dist

bench: .venv/.dev
	@scripts/ensure-java
	@for b in benchmarks/[a-z]*.py; do case $$b in */chaos.py|*/soak.py|*/power_cut.py) continue;; esac; \
	  echo "== $$b"; $(BIN)/python $$b || exit 1; done

format: .venv/.dev
	$(BIN)/ruff check --fix -q
	$(BIN)/ruff format -q

lock: .venv/.uv
	$(COMPILE) --all-extras -o requirements.lock
	$(COMPILE) --extra spark -c requirements.lock -o requirements-run.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist

.venv/.uv: requirements-build.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Foretide needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" \
	  "and run make again."; exit 1; }
	@echo "Setting up .venv (about a minute on a good line)..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements-build.lock
	@touch $@

.venv/.core: .venv/.uv pyproject.toml requirements-run.lock
	@$(INSTALL) --require-hashes -r requirements-run.lock
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

.venv/.dev: .venv/.uv pyproject.toml requirements.lock
	@$(INSTALL) --require-hashes -r requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@ .venv/.core
