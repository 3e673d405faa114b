# Two commands: `make` renders everything from the published runs and trains a few of them again here, `make test` proves the project.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROOF := results/paper/verified.csv
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Images of containers set it, and each of the processes of a build or of the tests would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: all env test quick walk check reproduction site rulegraph rooms lock clean
.DELETE_ON_ERROR:

all: env $(PROOF)
	snakemake all report --cores

env: $(VENV)/.installed

# Once, or after a publication: in three core-minutes, whether a few published runs come out here as they did there.
$(PROOF): $(VENV)/.installed $(wildcard results/published/*.zip)
	-clpapers verify --of-each --hours 0.05 --out $@

test: $(VENV)/.installed
	pytest -n auto --dist worksteal

# Unit tests: without those that train for long or run Snakemake.
quick: $(VENV)/.installed
	pytest -n auto --dist worksteal -m 'not slow and not workflow and not walk'

# What a person does, in order, on a default build: of a clone, or the one in the folder CLPAPERS_BUILT.
walk: $(VENV)/.installed
	pytest -n 2 --dist loadfile -m walk tests/walk

check: $(VENV)/.installed
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile rules
	mypy
	mypy --platform darwin
	snakemake --lint

# What pages and tables in git show of published runs, from results/published.
reproduction: $(VENV)/.installed
	clpapers reproduction

# The same, and the site of the published runs, in site/.
site: $(VENV)/.installed
	clpapers reproduction --site site

# docs/rulegraph.svg, the picture of the rules.
rulegraph: $(VENV)/.installed
	snakemake all --rulegraph dot --config hours=all | sed 's/fontname=sans/fontname=Helvetica/' | graphviz-pure -Tsvg -o docs/rulegraph.svg

# docs/rooms.svg, the picture of the rooms of src/clpapers.
rooms: $(VENV)/.installed
	python docs/rooms.py | graphviz-pure -Tsvg -o docs/rooms.svg

# Everything comes from the lock file; the project itself is installed in place, so edits take effect.
$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "clpapers needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Resolve anew: what pyproject.toml asks for, at today's releases, written down exactly.
lock:
	$(PYTHON) -m venv --clear $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --upgrade setuptools
	$(VENV)-lock/bin/python -m pip install --quiet 'torch==2.13.0'
	$(VENV)-lock/bin/python -m pip install --quiet --editable '.[dev]'
	$(VENV)-lock/bin/python -m pip freeze --all --exclude-editable --exclude pip | sed 's/+cpu$$//' > requirements.lock
	rm -r $(VENV)-lock

# What was published stays.
clean:
	mkdir -p results
	find results -mindepth 1 -maxdepth 1 ! -name published -exec rm -rf {} +
	rm -rf .snakemake
