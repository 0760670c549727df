# The two commands: `make run` converts the examples, `make test` runs every test. Both set up all they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
VLLM_VENV ?= .venv-vllm
EXAMPLES := examples/two-column-article.pdf examples/invoice.pdf examples/skewed-scan.jpg examples/chinese-report.pdf

.PHONY: run test test-fast lint format bench quality lock clean

run: $(VENV)/.installed-run
	$(BIN)/pagemill convert $(EXAMPLES) --output out
	@echo; echo "Markdown:"; ls -1 out/*.md

test: $(STAMP) lint
	@tests/install_tools.sh
	vllm=$$(tests/vllm/ensure.sh $(VLLM_VENV)) && PAGEMILL_VLLM=$${PAGEMILL_VLLM-$$vllm} $(BIN)/pytest

test-fast: $(STAMP)
	$(BIN)/pytest -m "not slow" -x -q

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python bench/render.py --pages 96
	$(BIN)/python bench/two_thousand_pages.py
	$(BIN)/python bench/client.py
	$(BIN)/python bench/long_document.py

# Makes the generated pages first: needs Pango and the fonts Liberation and Noto CJK.
quality: $(STAMP)
	$(BIN)/pip install --quiet --constraint requirements.lock --group quality
	$(BIN)/python bench/quality.py --data ../shared/data/quality --out docs/quality.md

# Versions that are known to work together; installs are held to them.
lock:
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install --quiet --upgrade "pip>=25.1" uv
	$(VENV)-lock/bin/uv pip compile --universal --python-version 3.10 --no-header --no-annotate --no-emit-index-url \
		--all-extras --group test --group lint --group bench pyproject.toml --output-file requirements.lock
	rm -rf $(VENV)-lock

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.installed-run: $(VENV)/bin/python pyproject.toml requirements.lock
	$(BIN)/pip install --quiet --constraint requirements.lock --editable ".[embedded]"
	@touch $@

$(STAMP): $(VENV)/bin/python pyproject.toml requirements.lock
	$(BIN)/pip install --quiet --constraint requirements.lock --editable ".[embedded,heic,gateway,postgres,s3,otel]" \
		--group test --group lint --group bench
	@touch $@ $(VENV)/.installed-run

clean:
	rm -rf $(VENV) $(VLLM_VENV) out dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
