# `make demo` runs the main job, `make test` the tests, `make docs` builds the documentation, without the examples'
# pictures if GALLERY=0, `make evidence` reruns the benchmarks; each sets up .venv first.
PYTHON ?= python3
BIN := .venv/bin
LOWEST ?= tests/core/test_tensors.py tests/core/test_moments.py tests/core/test_streams.py tests/core/test_spaces.py tests/io/test_readers.py \
    tests/mixtures/test_kernels_by_dtype.py tests/sequences/test_conditional.py tests/plot/test_displays.py tests/cli/test_crowd.py tests/report/test_report.py  # LOWEST= for all

.PHONY: demo test coverage lint docs site evidence peers wheel properties lowest mutants changelog clean

demo: .venv/ready
	$(BIN)/latentviews demo --out demo

test: .venv/ready
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal  # a thread per worker, neighbours together for what they share

coverage: .venv/ready  # the same with the lines and branches that no test takes, which costs a quarter more time
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal --cov

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/ready
	rm -rf docs/reference/generated docs/gallery  # a name or script that is gone leaves no page
	OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going --quiet -j auto docs docs/_build/html
	@echo 'built: docs/_build/html/index.html'

site: docs  # the built pages in Chromium: links, pictures, the console, a phone's width, the search
	$(BIN)/python docs/check_site.py

evidence: $(if $(FULL),build/peers/ready,.venv/ready)  # small sizes, in minutes; FULL=1 measures everything again, in hours
	OPENBLAS_NUM_THREADS=1 $(if $(FULL),build/peers/bin,$(BIN))/python benchmarks/evidence.py $(if $(FULL),--full --lanes 2)

peers: build/peers/ready  # an environment with all that the benchmarks compare with

wheel: .venv/ready  # sdist and wheel in dist/, and the wheel, made from the sdist, in an environment of its own
	rm -rf dist build/wheel
	$(BIN)/python -m build --outdir dist
	$(PYTHON) -m venv --clear build/wheel
	build/wheel/bin/pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd build && wheel/bin/python ../tests/minimal.py

properties: .venv/ready  # EXAMPLES cases of every model and function, by default ten thousand, which take hours
	$(BIN)/python benchmarks/properties.py --again --count $(or $(EXAMPLES),10000)

lowest:  # some tests with the lowest versions that pyproject.toml allows, in an environment of their own
	$(PYTHON) -m venv --clear build/lowest
	build/lowest/bin/pip install --quiet --disable-pip-version-check -c lowest.txt -e '.[cli,dask]' array-api-strict hmmlearn hypothesis networkx polars pytest skops
	OPENBLAS_NUM_THREADS=1 build/lowest/bin/pytest -q --seeds 1 $(LOWEST)

mutants: .venv/ready  # how many small faults in the core the tests notice
	$(BIN)/pip install --quiet --disable-pip-version-check cosmic-ray
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/mutants.py

changelog: .venv/ready  # what the next release would say
	$(BIN)/towncrier build --draft --version next

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "latentviews needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	touch $@

build/peers/ready: .venv/ready benchmarks/peers.txt
	$(PYTHON) -m venv --clear build/peers
	grep -v '^pandas==' constraints.txt > build/constraints.txt
	build/peers/bin/pip install --quiet --disable-pip-version-check -c build/constraints.txt -r benchmarks/peers.txt -e '.[dev]'
	rm -rf build/peers/lib/python*/site-packages/tests  # PhenoGraph's, which would hide ours
	touch $@

clean:
	rm -rf .venv build dist demo docs/_build docs/reference/generated docs/gallery
