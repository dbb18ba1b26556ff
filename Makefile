# Two commands, each of which sets up .venv:
#   make demo   pre-train a tiny ELECTRA on prose that comes with Python
#   make test   lint and the whole test suite
# Another Python (after `make clean`): make PYTHON=/path/to/python3.11 demo

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first of these that runs and is 3.10, 3.11 or 3.12.
SUPPORTED := import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))
PYTHON ?= $(shell for p in python3.11 python3.12 python3.10 python3; do \
	  if $$p -c '$(SUPPORTED)' >/dev/null 2>&1; then echo $$p; break; fi; done)
PY := .venv/bin/python
READY := .venv/.stamp

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export MPLBACKEND := Agg
# Works without a writable home directory, too.
export MPLCONFIGDIR := $(CURDIR)/.venv/.matplotlib

.PHONY: help demo quick test lint typecheck docs notebook format pretrain-reference \
	pretrain-twin pretrain-easy-start setup clean

help:
	@echo "make demo                pre-train a tiny ELECTRA, end to end (2 minutes)"
	@echo "make quick               the fast tests (2 minutes)"
	@echo "make test                lint and all tests (15 minutes on 2 cores)"
	@echo "make lint                ruff, the import layers and mypy"
	@echo "make typecheck           mypy on the packages that compute and train"
	@echo "make docs                the documentation as a site in site/"
	@echo "make notebook            run the notebooks of examples/ again (10 minutes)"
	@echo "make format              rewrite the code in the house style"
	@echo "make pretrain-reference  ELECTRA as published, as in docs/results.md (3 hours or more)"
	@echo "make pretrain-twin       its twin: a masked LM of equal FLOPs"
	@echo "make pretrain-easy-start  models/reference: an easy start and correction"
	@echo "make clean               remove .venv and caches"

demo: $(READY)
	@$(PY) -m electra_tf demo

# Three models of equal sizes and FLOPs: ELECTRA as published; its twin, a masked
# LM; and models/reference, which has the objectives of the preset
# `small_machine`. A vocabulary, records of two lengths, a phase on
# short sequences, its position table extended, a phase on longer ones. Run
# again, each command continues or is done.
CORPUS = $(wildcard $(or $(ELECTRA_TF_REFERENCE),../shared)/data/pretrain_corpus*/*.txt)
RUNS = runs
NAME = reference
SHORT = $(RUNS)/models/$(NAME)_short
PRETRAIN = $(PY) run_pretraining.py --data-dir $(RUNS)
RECORDS = --pretrain_tfrecords '$(RUNS)/pretrain_tfrecords_$(1)/pretrain_data.tfrecord*' \
	  --eval_tfrecords '$(RUNS)/pretrain_tfrecords_$(1)/eval_data.tfrecord*'

pretrain-twin: NAME = reference_mlm
pretrain-twin: SHORT_FLAGS = --objective mlm --num_train_steps 48860
pretrain-twin: LONG_FLAGS = --objective mlm --num_train_steps 4365

pretrain-easy-start: NAME = reference_easy_start
pretrain-easy-start: SHORT_FLAGS = --unigram_steps 2500 --correction_weight 5 \
	  --num_train_steps 40710
pretrain-easy-start: LONG_FLAGS = --correction_weight 5 --num_train_steps 3660

pretrain-reference pretrain-twin pretrain-easy-start: $(READY)
	$(if $(CORPUS),,$(error no pretrain_corpus*/*.txt in ../shared/data; pass the files: make $@ CORPUS="FILE.txt ..."))
	@mkdir -p $(RUNS)/corpus && ln -sf $(abspath $(CORPUS)) $(RUNS)/corpus
	@test -e $(RUNS)/vocab.txt || $(PY) -m electra_tf build_vocab $(RUNS)/corpus \
	  --output $(RUNS)/vocab.txt --vocab_size 6000 --num_unused 20
	@for length in 64 256; do $(PY) build_pretraining_dataset.py \
	  --corpus-dir $(RUNS)/corpus --vocab-file $(RUNS)/vocab.txt --max_seq_length $$length \
	  --output-dir $(RUNS)/pretrain_tfrecords_$$length --num_processes 2 --num_shards 512 \
	  --draws document --held_out_fraction 0.01 --split_long_lines || exit; done
	@$(PRETRAIN) --preset reference_short --model-name $(NAME)_short \
	  $(call RECORDS,64) $(SHORT_FLAGS)
	@test -e $(SHORT)_longer/model.ckpt.index || $(PY) -m electra_tf convert_checkpoint \
	  $(SHORT) $(SHORT)_longer/model.ckpt --output_format native \
	  --strip_optimizer --extend_positions 256
	@$(PRETRAIN) --preset reference --model-name $(NAME) $(call RECORDS,256) \
	  --init_checkpoint $(SHORT)_longer/model.ckpt $(LONG_FLAGS)

# One process per core, at most eight; each takes up to 3 GB. Idle processes
# take over tests from the end of another process's part.
PYTEST := $(PY) -m pytest --numprocesses=auto --maxprocesses=8 --dist=worksteal

test: lint
	@$(PYTEST) --durations=10

# Folders that `make quick` leaves out, because their tests start processes or
# export models. It also draws fewer examples of each property.
SLOW := benchmarks commands compare documents end_to_end export extras faults \
	inspection keras prediction

quick: $(READY)
	@$(PYTEST) -q -m "not slow" --hypothesis-profile=quick $(SLOW:%=--ignore=tests/%)

lint: $(READY)
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/lint-imports --no-logo
	@.venv/bin/mypy

# pyproject.toml names the packages and the options of mypy.
typecheck: $(READY)
	@.venv/bin/mypy

# A broken link, or a public name without an entry or a docstring, is an error.
docs: $(READY)
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

# Executes the notebooks and keeps their outputs. The figures of their cells need
# the kernel's own MPLBACKEND.
notebook: $(READY)
	@env -u MPLBACKEND .venv/bin/jupyter execute --inplace $(wildcard examples/*.ipynb)

format: $(READY)
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

setup: $(READY)

$(READY): constraints.txt requirements.txt requirements-dev.txt
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c '$(SUPPORTED)' 2>/dev/null; then \
	  echo "error: need Python 3.10, 3.11 or 3.12, found: $$({ $(or $(PYTHON),python3) --version; } 2>/dev/null || echo none)." >&2; \
	  echo "On Debian or Ubuntu: apt install python3 python3-venv. Installed elsewhere: make PYTHON=/path/to/python3.11 $(or $(MAKECMDGOALS),demo)" >&2; \
	  exit 1; fi
	@if ! "$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null; then \
	  v=$$("$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  echo "error: $(PYTHON) cannot make a virtual environment: its venv package is missing." >&2; \
	  echo "On Debian or Ubuntu: apt install python$$v-venv (or python3-venv)." >&2; \
	  exit 1; fi
	@if [ -d .venv ] && ! $(PY) -c '$(SUPPORTED)' >/dev/null 2>&1; then \
	  echo "The old .venv does not run a supported Python; making a new one."; \
	  "$(PYTHON)" -m venv --clear .venv; \
	elif ! $(PY) -m pip --version >/dev/null 2>&1; then \
	  "$(PYTHON)" -m venv .venv; fi
	@echo "Installing TensorFlow and the other packages into .venv (once; about 3 GB, a few minutes) ..."
	@$(PY) -m pip install -qq --use-pep517 --constraint constraints.txt \
	  --requirement requirements-dev.txt
	@touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
