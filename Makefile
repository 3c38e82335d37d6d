# Everything happens in $(VENV); nothing else on the machine is touched.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SEED ?= 0
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help install demo test check format lint types imports clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## Make the virtual environment and install everything into it

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[train,humaneval,browser,miniwob,dev]'
	touch $@

demo: install ## Train a policy, measure it, write runs/demo/report.html
	$(BIN)/agent-gym demo --seed $(SEED)

test: install ## Run the tests
	$(BIN)/pytest --quiet --numprocesses $(WORKERS) --dist worksteal

check: install format lint types imports test ## Everything that must hold before a commit lands

format:
	$(BIN)/ruff format --check .

lint:
	$(BIN)/ruff check .

types:
	$(BIN)/mypy

imports:
	$(BIN)/lint-imports

clean: ## Remove what was made, the virtual environment too
	rm -rf $(VENV) runs dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
