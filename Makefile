# `make demo` runs the main job, `make test` the tests, `make docs` builds the documentation, with the examples' pictures
# if GALLERY=1; each sets up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint docs clean

demo: .venv/ready
	$(BIN)/latentviews demo --out demo

test: .venv/ready
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal --cov  # a thread per worker, neighbours together for what they share

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/ready
	rm -rf docs/reference/generated docs/gallery  # a name or script that is gone leaves no page
	OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going --quiet -j auto docs docs/_build/html
	@echo 'built: docs/_build/html/index.html'

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "latentviews needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	touch $@

clean:
	rm -rf .venv demo docs/_build docs/reference/generated docs/gallery
