# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.

PYTHON ?= python3
# what a module sets up, such as a server or a store, is set up by one process
PARALLEL := -n 2 --dist loadscope --no-loadscope-reorder --max-worker-restart 0 --durations=12
MINUTES ?= 5
VENV := .venv
OLD_MLFLOW := 3.10
OLD_VENV := .venv-mlflow-$(OLD_MLFLOW)
NEW_MLFLOW := 3.18.0
NEW_VENV := .venv-mlflow-$(NEW_MLFLOW)
# a version whose wheel for this machine needs no GPU libraries, of gigabytes
TORCH := 2.13.0
TRAINING_VENV := .venv-training
OLD_WANDB := 0.26.1
OLD_WANDB_VENV := .venv-wandb-$(OLD_WANDB)

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-spark test-old-mlflow test-new-mlflow test-old-wandb test-training test-all environments bench fuzz format clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "make %-16s %s\n", $$1, $$2 }'

demo: $(VENV)/.demo ## train three classifiers, log them to an MLflow store, compare them
	@$(VENV)/bin/python examples/demo.py

test: $(VENV)/.test ## the default suite: tests, style, types, layers, documented examples
	$(VENV)/bin/python -m pytest $(PARALLEL)

test-slow: $(VENV)/.test ## the tests that take minutes, and those beside the default ones
	$(VENV)/bin/python -m pytest $(PARALLEL) -m "(slow or extended) and not training"

test-spark: $(VENV)/.spark ## the tests that start a Spark session, which needs Java
	$(VENV)/bin/python -m pytest -m spark tests/pairing tests/statistic

test-old-mlflow: $(OLD_VENV)/.test ## the tests of MLflow on the oldest MLflow that is supported
	$(OLD_VENV)/bin/python -m pytest $(PARALLEL) -m "tracker and not slow and not training" -k "not wandb and not mlflow-http" tests/leaderboards tests/server tests/trackers tests/test_cli_inspect.py tests/test_family.py

test-new-mlflow: $(NEW_VENV)/.test ## the tests of what newer versions of MLflow do otherwise, on a newer one
	$(NEW_VENV)/bin/python -m pytest $(PARALLEL) -m "tracker and not slow and not training" -k "genai or view or evaluator or mlflow_command" tests/trackers

test-old-wandb: $(OLD_WANDB_VENV)/.test ## the tests of W&B on the oldest version of wandb that is supported
	$(OLD_WANDB_VENV)/bin/python -m pytest $(PARALLEL) -m "tracker and not slow and not training" -k wandb tests/hooks tests/integrations tests/trackers

test-training: $(TRAINING_VENV)/.test ## the tests of callbacks and flows, with PyTorch, transformers, Lightning and Prefect
	$(TRAINING_VENV)/bin/python -m pytest $(PARALLEL) -m training tests/hooks tests/integrations

test-all: test test-slow test-spark test-old-mlflow test-new-mlflow test-old-wandb test-training ## everything

environments: $(OLD_VENV)/.test $(NEW_VENV)/.test $(OLD_WANDB_VENV)/.test $(TRAINING_VENV)/.test ## install what test-all tests with

bench: $(VENV)/.test ## benchmarks, as a table and as JSON in .benchmarks/
	$(VENV)/bin/python -m pytest tests/benchmarks -q -p benchmark --benchmark-quiet --benchmark-autosave

fuzz: $(VENV)/.fuzz ## fuzz the statistic language, MINUTES for each of three targets
	@rm -rf .fuzz/findings
	@for target in expressions specs targets; do \
	    $(VENV)/bin/python tests/fuzz/fuzz_$$target.py -max_total_time=$$((60 * $(MINUTES))) -max_len=4000 || exit 1; \
	done
	@! tail -n +1 .fuzz/findings/*.txt 2>/dev/null

format: $(VENV)/.test ## format the code and mend what ruff can mend
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

clean: ## remove the environments, caches and the demo's store
	rm -rf $(VENV) .venv-* demo-store .*_cache .hypothesis .benchmarks .fuzz

# $(call install,environment,what): an environment of its own with the package as it lies here
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "trackperm needs Python 3.10 or later; say which: make PYTHON=python3.12")'
	@echo "installing $(2) into $(1)"
	@test -x $(1)/bin/python || { $(PYTHON) -m venv $(1) && $(1)/bin/python -m pip install -qq --upgrade pip; }
	@$(1)/bin/python -m pip install -qq --no-compile --editable $(2)
	@touch $@
endef

$(VENV)/.demo: pyproject.toml
	$(call install,$(VENV),'.[demo]')

$(VENV)/.test: pyproject.toml
	$(call install,$(VENV),'.[test]')

$(VENV)/.fuzz: $(VENV)/.test
	$(call install,$(VENV),'.[fuzz]')

$(VENV)/.spark: $(VENV)/.test
	$(call install,$(VENV),'.[spark]')

$(OLD_VENV)/.test: pyproject.toml
	$(call install,$(OLD_VENV),'.[test]' 'mlflow==$(OLD_MLFLOW).*')

# its requirements name versions of parts of MLflow that package indexes may lack, and that it contains
$(NEW_VENV)/.test: pyproject.toml
	$(call install,$(NEW_VENV),'.[test]')
	@$(NEW_VENV)/bin/python -m pip install --quiet --no-compile --no-deps mlflow==$(NEW_MLFLOW) || { rm $@; exit 1; }

$(OLD_WANDB_VENV)/.test: pyproject.toml
	$(call install,$(OLD_WANDB_VENV),'.[test]' 'wandb==$(OLD_WANDB)')

$(TRAINING_VENV)/.test: pyproject.toml
	$(call install,$(TRAINING_VENV),'.[training]' 'torch==$(TORCH)')
