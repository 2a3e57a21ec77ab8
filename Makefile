# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.

# Hundreds of tests start a process, and one that may not keep bytecode compiles MLflow anew: four times as slow.
unexport PYTHONDONTWRITEBYTECODE
# Tests run in several processes: threads of linear algebra in each would wait for each other, a fifth of the time.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

PYTHON ?= python3
# one more than two processors, for tests of servers and watchers wait
PROCESSES ?= 3
SLOW_PROCESSES ?= $(PROCESSES)
# what a module sets up, such as a server or a store, is set up by one process (tests/conftest.py)
PARALLEL = -n $(PROCESSES) --dist loadgroup --no-loadscope-reorder --max-worker-restart 0 --durations=12
MINUTES ?= 5
DRAWS ?= 300
SEED ?= 0
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
LOWEST_VENV := .venv-lowest
NEWEST_VENV := .venv-newest
# what shows that versions work together: no server, no browser, and no drawn cases, which take minutes
VERSIONS = --ignore tests/report/leaderboard/test_browser.py -m "not slow and not extended and not nightly and not spark and not training and not generated" \
    tests/cli tests/report tests/tables/formats tests/statistic/test_builtin.py tests/statistic/test_targets.py \
    tests/statistic/test_declarations.py tests/exact/test_reference_pvalues.py tests/exact/intervals

# the tests of the contract of trackers that run on other versions; the night adds those of the second stores
# and of what few changes touch
OF_OTHER_VERSIONS = $(PART) and not slow and not nightly
PART = not extended

.DEFAULT_GOAL := help
.PHONY: help demo test style test-slow test-spark test-old-mlflow test-new-mlflow test-old-wandb test-training test-environments test-beside test-all test-lowest test-newest test-nightly environments audit bench docs fuzz mutants format clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "make %-16s %s\n", $$1, $$2 }'

demo: $(VENV)/.demo ## train three classifiers, log them to an MLflow store, compare them
	@$(VENV)/bin/python examples/demo.py

test: $(VENV)/.test ## the default suite: tests, style, types, layers, documented examples
	$(call tested_beside,"ruff check" "ruff format --check" $(OLDEST_TYPES) lint-imports)

style: $(VENV)/.test ## style, types and layers alone
	@$(call check,"ruff check" "ruff format --check" $(OLDEST_TYPES) $(NEWEST_TYPES) lint-imports)

# the oldest and the newest Python that pyproject.toml names, whichever runs here; on the oldest one NumPy has
# older stubs than those of this environment, which return Any there
OLDEST_TYPES = "mypy --python-version 3.10 --no-warn-return-any"
NEWEST_TYPES = "mypy --python-version 3.14"

# $(call check,commands) ends as pytest does, so that .ci/run adds it up
define check
	started=$$(date +%s); passed=0; failed=0; \
	for check in $(1); do \
	    if said=$$($(VENV)/bin/$$check 2>&1); then passed=$$((passed + 1)); \
	    else failed=$$((failed + 1)); printf '%s\n' "$$check:" "$$said"; fi; \
	done; \
	echo "== style: $$failed failed, $$passed passed in $$(($$(date +%s) - started)).0s =="; [ $$failed -eq 0 ]
endef

# $(call tested_beside,commands,choice of tests): both at the same time
define tested_beside
	@report=$$(mktemp); trap 'rm -f "$$report"' EXIT; \
	( $(call check,$(1)) ) >"$$report" 2>&1 & \
	$(VENV)/bin/python -m pytest $(PARALLEL) $(2); tests=$$?; \
	wait $$!; checked=$$?; cat "$$report"; \
	[ $$tests -eq 0 ] && [ $$checked -eq 0 ]
endef

test-slow: override PROCESSES := $(SLOW_PROCESSES)
test-slow: $(VENV)/.test ## the tests that take long, those beside the default ones, and types on the newest Python
	$(call tested_beside,$(NEWEST_TYPES),-m "(slow or extended) and not nightly and not spark and not training")

test-spark: $(VENV)/.spark ## the tests that start a Spark session, which needs Java
	$(VENV)/bin/python -m pytest -m "spark and not nightly" tests/pairing tests/statistic tests/tables

test-old-mlflow: $(OLD_VENV)/.test ## the contract of trackers on the oldest MLflow that is supported
	$(OLD_VENV)/bin/python -m pytest $(PARALLEL) -m "contract and $(OF_OTHER_VERSIONS)" -k "not wandb and not mlflow-http" tests/server tests/trackers

test-new-mlflow: $(NEW_VENV)/.test ## the same on a newer MLflow, and what that does otherwise
	$(NEW_VENV)/bin/python -m pytest $(PARALLEL) -m "(contract or newer) and $(OF_OTHER_VERSIONS)" -k "not wandb and not mlflow-http" tests/trackers tests/automation/training

test-old-wandb: $(OLD_WANDB_VENV)/.test ## the contract of trackers on the oldest wandb that is supported
	$(OLD_WANDB_VENV)/bin/python -m pytest $(PARALLEL) -m "contract and $(OF_OTHER_VERSIONS)" -k wandb tests/trackers

test-lowest: $(LOWEST_VENV)/.test ## the command line, readers and numbers with the lowest versions that pyproject.toml allows
	$(LOWEST_VENV)/bin/python -m pytest $(PARALLEL) $(VERSIONS)

# what is installed there differs from $(VENV); where nothing does, `make test` has run these tests already
test-newest: $(NEWEST_VENV)/.test ## the same with the newest versions, where other packages hold them back in .venv
	@above=$$($(NEWEST_VENV)/bin/python -m pip list --path $$(echo $(NEWEST_VENV)/lib/python*/site-packages) --format freeze | grep -v ^trackperm); \
	echo "newer than in $(VENV): $${above:-nothing}"; \
	[ -z "$$above" ] || $(NEWEST_VENV)/bin/python -m pytest $(PARALLEL) $(VERSIONS)

test-training: $(TRAINING_VENV)/.test ## the tests of callbacks and flows, with PyTorch, transformers, Lightning and Prefect
	$(TRAINING_VENV)/bin/python -m pytest $(PARALLEL) -m "training and not nightly" tests/automation tests/integrations

# the longest first
ENVIRONMENTS = test-spark test-training test-lowest test-newest test-old-wandb test-new-mlflow test-old-mlflow

# each starts alone and ends alone, so two at a time keep two processors busy
test-environments: $(VENV)/.spark ## the suites with an environment of their own, two at a time
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target PROCESSES=1 $(ENVIRONMENTS)

# the slow suite often waits, for servers, watchers and browsers; `.spark` comes first, for it installs into $(VENV)
test-beside: $(VENV)/.spark ## the slow suite, with those of other environments beside it
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target PROCESSES=1 SLOW_PROCESSES=2 \
	    test-slow $(ENVIRONMENTS)

test-all: test test-beside ## everything a change has to pass

test-nightly: export TRACKPERM_NIGHTLY := 1
test-nightly: $(VENV)/.spark $(VENV)/.fuzz $(TRAINING_VENV)/.test ## the long tail: long runs, whole tables, many generated cases, fuzzing
	$(VENV)/bin/python -m pytest $(PARALLEL) -m "(nightly or generated) and not spark and not training and not live"
	$(VENV)/bin/python -m pytest -m "(nightly or generated) and spark" tests/pairing tests/statistic tests/tables
	$(TRAINING_VENV)/bin/python -m pytest $(PARALLEL) -m "training and nightly" tests/automation tests/integrations
	@$(MAKE) --no-print-directory --keep-going PART=extended test-old-mlflow test-new-mlflow test-old-wandb
	@$(MAKE) --no-print-directory fuzz MINUTES=1

environments: $(OLD_VENV)/.test $(NEW_VENV)/.test $(OLD_WANDB_VENV)/.test $(LOWEST_VENV)/.test $(NEWEST_VENV)/.test $(TRAINING_VENV)/.test ## install what test-all tests with

# not in CI, for it needs the advisories of PyPI, which a mirror may lack
audit: $(VENV)/.audit ## ask PyPI's advisories about everything that is installed; needs the network
	@report=$$(mktemp); trap 'rm -f "$$report"' EXIT; \
	$(VENV)/bin/pip-audit --local --skip-editable --progress-spinner off >"$$report" 2>&1; status=$$?; \
	unknown=$$(grep -c 'could not be audited' "$$report"); \
	if grep -q 'requests.exceptions\|ConnectionError\|ServiceError' "$$report"; then \
	    echo "nothing was checked: the advisories of PyPI are out of reach"; exit 1; \
	elif [ "$$unknown" -gt 0 ]; then \
	    grep -v 'could not be audited\|^No known' "$$report"; \
	    echo "not checked: $$unknown packages, of which this index has no advisories"; exit 1; \
	fi; cat "$$report"; exit $$status

bench: $(VENV)/.test ## benchmarks, as a table and as JSON in .benchmarks/
	$(VENV)/bin/python -m pytest tests/benchmarks -q -p benchmark --benchmark-quiet --benchmark-autosave

fuzz: $(VENV)/.fuzz ## fuzz files and the statistic language, MINUTES for each of four targets
	@rm -rf .fuzz/findings
	@$(VENV)/bin/python tests/fuzz/fuzz_files.py $$((60 * $(MINUTES))) $$(date +%s) .fuzz/findings || ls .fuzz/findings/files-*.txt >/dev/null
	@for target in expressions specs targets; do \
	    $(VENV)/bin/python tests/fuzz/fuzz_$$target.py -max_total_time=$$((60 * $(MINUTES))) -max_len=4000 || exit 1; \
	done
	@! tail -n +1 .fuzz/findings/*.txt 2>/dev/null

docs: $(VENV)/.test ## build the documentation into site/
	$(VENV)/bin/python docs/screenshots.py
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build -q -f docs/mkdocs.yml

mutants: $(VENV)/.test ## mutate load-bearing modules DRAWS times by SEED, and list what no test notices
	$(VENV)/bin/python tests/mutants/mutants.py --draws $(DRAWS) --seed $(SEED) --processes $(PROCESSES)

format: $(VENV)/.test ## format the code and mend what ruff can mend
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

clean: ## remove the environments, caches and the demo's store
	rm -rf $(VENV) .venv-* demo-store site .*_cache .hypothesis .benchmarks .fuzz .mutants

# $(call install,environment,what): the package as it lies here, in an environment that is made if need be
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "trackperm needs Python 3.10 or later; say which: make PYTHON=python3.12")'
	@echo "installing $(2) into $(1)"
	@test -x $(1)/bin/python || { $(PYTHON) -m venv $(1) && $(1)/bin/python -m pip install -qq --upgrade pip; }
	@$(1)/bin/python -m pip install -qq --no-compile --editable $(2)
	@touch $@
endef

# $(call install_above,environment,what): the same in one that sees all of $(VENV), but what it has in another version
define install_above
	@test -x $(1)/bin/python || $(VENV)/bin/python -m venv --without-pip $(1)
	@below=$$($(VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	echo "import site; site.addsitedir('$$below')" > $$(echo $(1)/lib/python*/site-packages)/below.pth
	$(call install,$(1),$(2))
endef

$(VENV)/.demo: pyproject.toml
	@echo "trackperm, MLflow and scikit-learn, with all that they need: about 100 packages and 1.1 GB on disk"
	$(call install,$(VENV),'.[demo]')

$(VENV)/.test: pyproject.toml
	$(call install,$(VENV),'.[test]')

$(VENV)/.fuzz: $(VENV)/.test
	$(call install,$(VENV),'.[fuzz]')

$(VENV)/.audit: $(VENV)/.test
	$(call install,$(VENV),'.[audit]')

$(VENV)/.spark: $(VENV)/.test
	$(call install,$(VENV),'.[engines]')

$(OLD_VENV)/.test: $(VENV)/.test
	$(call install_above,$(OLD_VENV),'.[test]' 'mlflow==$(OLD_MLFLOW).*')

# its requirements name versions of parts of MLflow that package indexes may lack, and that it contains
$(NEW_VENV)/.test: $(VENV)/.test
	$(call install_above,$(NEW_VENV),'.[test]')
	@$(NEW_VENV)/bin/python -m pip install --quiet --no-compile --no-deps mlflow==$(NEW_MLFLOW) || { rm $@; exit 1; }

$(OLD_WANDB_VENV)/.test: $(VENV)/.test
	$(call install_above,$(OLD_WANDB_VENV),'.[test]' 'wandb==$(OLD_WANDB)')

# $(call direct,resolution): versions of the direct dependencies alone, whatever other packages ask for
direct = UV_FIND_LINKS=$(PIP_FIND_LINKS) $(VENV)/bin/uv pip compile --quiet --no-deps --no-header --no-annotate \
    --resolution $(1) --python $(VENV)/bin/python $(if $(PIP_INDEX_URL),--default-index $(PIP_INDEX_URL)) pyproject.toml

# of what is installed for users; the tools that test stay as they are
$(LOWEST_VENV)/.test: $(VENV)/.test
	@mkdir -p $(LOWEST_VENV)
	@$(call direct,lowest-direct) --extra all --extra demo --extra trec >$(LOWEST_VENV)/lowest.txt
	$(call install_above,$(LOWEST_VENV),'.[test]' --constraint $(LOWEST_VENV)/lowest.txt)

# of the tools too, for pandas, PyArrow and DuckDB are what users compare; MLflow has a suite of its own, and it
# and not a user says which GraphQL is there
$(NEWEST_VENV)/.test: $(VENV)/.test
	@mkdir -p $(NEWEST_VENV)
	@$(call direct,highest) --extra test --extra trec --no-emit-package mlflow --no-emit-package graphql-core >$(NEWEST_VENV)/newest.txt
	$(call install_above,$(NEWEST_VENV),'.[test]')
	@$(NEWEST_VENV)/bin/python -m pip install -qq --no-compile --no-deps --requirement $(NEWEST_VENV)/newest.txt || { rm $@; exit 1; }

$(TRAINING_VENV)/.test: $(VENV)/.test
	$(call install_above,$(TRAINING_VENV),'.[training]' 'torch==$(TORCH)')
