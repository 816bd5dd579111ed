# Every target does its own set-up: git, make and a Python 3.11 or newer are enough.
#
# Paths are handed to commands through the environment, so that spaces and quotes in them do no harm.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

OUT ?= ami-out
SEEDS ?=
PYTHON ?=
ROUNDS ?=
PAGES ?=
AMI ?=
CASES ?=
LEASE ?=
MOST ?=
ROOM ?=
SECONDS ?=
SAMPLE ?=
# For two cores; what waits for most of its time asks for more.
WORKERS ?= 4
export SEEDS OUT PYTHON

BIN := .venv/bin

.PHONY: help
help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

.PHONY: crawl
crawl: environment-run ## Archive SEEDS=path (or a demo site on this machine) into OUT=directory (ami-out)
	@if [ -z "$$SEEDS" ]; then exec $(BIN)/python examples/demo.py --out "$$OUT"; fi; \
	status=0; $(BIN)/scrapy crawl seeds -a file="$$SEEDS" -a out="$$OUT" || status=$$?; \
	[ ! -e "$$OUT/captures.parquet" ] || $(BIN)/amicrawl inspect "$$OUT" || exit $$((status ? status : 1)); \
	exit $$status

.PHONY: test
# Hundreds of processes are started; without bytecode that is kept each would compile what it loads.
test: export PYTHONDONTWRITEBYTECODE =
test: environment-dev ## Check style, types and import order, then run the tests [WORKERS=6]
	@$(MAKE) --jobs 3 style tests-ready
	@$(MAKE) --jobs 2 types tests-run

# The check of types has one core busy for most of a minute, in which tests wait at least as long.
.PHONY: tests-run
# Of all tests, two thirds of the time is waiting.
tests-run: WORKERS = 6
tests-run: environment-dev
	.ci/tests-twice $(BIN)/python -n $(WORKERS) --dist worksteal

.PHONY: tests-ready tests-installed tests-compiled
tests-ready: tests-installed tests-compiled

tests-installed: environment-dev
	@.ci/system-packages gzip chromium redis-server rsync
	@.ci/replay-environment
	@.ci/replayweb
	@.ci/jwarc

# Collected once here, the modules of the tests are compiled for all workers, while the above downloads.
tests-compiled: environment-dev
	@$(BIN)/python -m pytest --collect-only -q -q >/dev/null || $(BIN)/python -m pytest --collect-only -q -q

.PHONY: quick
quick: export PYTHONDONTWRITEBYTECODE =
quick: environment-dev ## Run the tests that start no process and take no time, without the style check [WORKERS=4]
	$(BIN)/python -m pytest -q -m "not slow" -n $(WORKERS) --dist worksteal

.PHONY: test-scrapy
test-scrapy: environment-dev ## Run Scrapy's own tests with the add-on, and hold what differs against a list
	@directory=tests/scrapy_suite/.venv; \
	$(BIN)/python .ci/environment.py suite --directory $$directory --check 2>/dev/null || \
	$(BIN)/python .ci/environment.py suite --directory $$directory
	@.ci/mitmproxy-environment
	$(BIN)/python tests/scrapy_suite/run_suite.py

SPARK := tests/.venv-spark

.PHONY: environment-spark
environment-spark: environment-dev ## Have Java and the environment of the tests that need Spark
	@.ci/java
	@$(BIN)/python .ci/environment.py spark --directory $(SPARK) --check 2>/dev/null || \
	$(BIN)/python .ci/environment.py spark --directory $(SPARK)

.PHONY: test-spark
test-spark: environment-spark ## Run the tests that need Spark, on clusters of this machine, with the extra alone [CASES=paths]
	AMICRAWL_SPARK_TESTS=yes .ci/tests-twice $(SPARK)/bin/python --timeout 400 $(or $(CASES),$(wildcard tests/*/test_spark_*.py))

.PHONY: lint style types
lint: style types ## Check style, types and import order

style: environment-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: environment-dev
	$(BIN)/mypy

.PHONY: bench
bench: environment-dev ## Measure pages per CPU second beside other crawlers [AMI=path] [CASES=words] [PAGES=10000] [ROUNDS=3]
	@.ci/system-packages wget
	$(BIN)/python -m benchmarks $(if $(PAGES),--pages $(PAGES)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		$(if $(AMI),--ami "$(AMI)") $(if $(CASES),--cases $(CASES))

.PHONY: reference
reference: environment-dev ## Write the tables of settings and keys in docs, and the schema of crawl files, from the code
	$(BIN)/python .ci/reference.py

.PHONY: docs
docs: environment-dev ## Build the documentation as a site in build/site, check its links, and write the man page build/man/amicrawl.1
	$(BIN)/python .ci/reference.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	$(BIN)/python .ci/man_page.py build/man/amicrawl.1

.PHONY: pictures
pictures: environment-dev ## Draw the dashboard, crawls, a report, a replayed page and a terminal into docs/screenshots
	@.ci/system-packages chromium redis-server
	@.ci/replay-environment
	PYTHONPATH=tests $(BIN)/python tests/dashboard/screenshots.py docs/screenshots
	PYTHONPATH=tests $(BIN)/python tests/crawl_pictures.py docs/screenshots
	PYTHONPATH=tests $(BIN)/python tests/replay_pictures.py docs/screenshots
	PYTHONPATH=tests $(BIN)/python tests/terminal_picture.py docs/screenshots/crawl.svg

.PHONY: crash-test
crash-test: environment-dev ## Kill a crawl at random moments, fail each call to a disk: nothing is lost [ROUNDS=200]
	AMICRAWL_CRASH_ROUNDS=$(or $(ROUNDS),200) AMICRAWL_HISTORIES=10 $(BIN)/python -m pytest --timeout 0 \
		--hypothesis-profile search tests/crash tests/contract tests/frontier/live/test_partition_on_faulty_disks.py

.PHONY: test-replay
test-replay: tests-ready ## Crawl sixteen pages made by scripts, and hold what pywb and ReplayWeb.page show of them against the live pages
	@mkdir -p build
	AMICRAWL_BROWSER_LONG=1 AMICRAWL_REPLAY_TABLE=build/replay.md \
		$(BIN)/python -m pytest --timeout 0 tests/replay/test_scripted_sites.py
	@cat build/replay.md

.PHONY: built-sites
built-sites: environment-dev ## Build the sites of tests/replay/apps again from npm into the data of the tests
	$(BIN)/python .ci/built_sites.py

.PHONY: browser-campaign
browser-campaign: environment-dev ## Kill crawls in a browser, and open pages that want to hold one up [ROUNDS=30]
	AMICRAWL_BROWSER_LONG=1 AMICRAWL_CRASH_ROUNDS=$(or $(ROUNDS),30) $(BIN)/python -m pytest --timeout 0 \
		tests/browser tests/crash/test_kill_browser.py

.PHONY: operators-day
operators-day: environment-dev ## Run two pipelines through outages and kills, with leases as shipped: four minutes
	AMICRAWL_WHOLE_DAY=1 $(BIN)/python -m pytest tests/jobs/test_operators_day.py

.PHONY: job-campaign
# Its runs wait most of the time.
job-campaign: WORKERS = 10
job-campaign: environment-dev ## Kill, signal, freeze and cut off machines at each step of a job, with bad buckets [RUNS=210 SEED=0 WORKERS=10 LEASE=4 STEPS="end.*freezes"]
	out=$$(mktemp -d) && AMICRAWL_CAMPAIGN_LEASE=$(or $(LEASE),4) PYTHONPATH=tests:. $(BIN)/python -m jobs.campaign $(or $(RUNS),210) $(or $(SEED),0) $(WORKERS) $$out '$(STEPS)' && rm -r $$out

.PHONY: test-recount
test-recount: environment-dev ## Crawl manuals of Debian, and count all products again without our code [MOST=400 files of a package]
	AMICRAWL_RECOUNT_CACHE=build/manuals AMICRAWL_RECOUNT_MOST=$(or $(MOST),400) \
		$(BIN)/python -m pytest --timeout 0 tests/recount

.PHONY: collection-demo
collection-demo: environment-dev ## Build the demonstration collection of manuals in build/collection-demo [MOST=11500 files of a package]
	PYTHONPATH=examples $(BIN)/python -m manuals.demo $(if $(MOST),--most $(MOST))

.PHONY: mutants
mutants: environment-dev ## Count the changes of code that no test notices [ROOM=politeness] [SAMPLE='*3 *7']
	WORKERS=$(WORKERS) SAMPLE='$(SAMPLE)' .ci/mutants $(or $(ROOM),politeness)

.PHONY: fuzz
# The tests of properties, too: `make test` tries the same examples of each every time.
fuzz: environment-dev ## Feed hostile input to every reader, by atheris or else hypothesis [SECONDS=60]
	$(BIN)/python -m pytest -q -m hypothesis -n $(WORKERS) --hypothesis-profile search
	$(BIN)/python tests/fuzz/fuzz_readers.py all -max_total_time=$(or $(SECONDS),60)

.PHONY: sbom
sbom: environment-dev ## Write what a release depends on, with versions and digests, as CycloneDX [SBOM=dist/amicrawl.cdx.json]
	@mkdir -p $(dir $(or $(SBOM),dist/amicrawl.cdx.json))
	$(BIN)/uv export --quiet --frozen --no-dev --no-emit-project --all-extras --format cyclonedx1.5 \
		--output-file $(or $(SBOM),dist/amicrawl.cdx.json)

.PHONY: audit
audit: environment-dev ## Look up the locked packages among known vulnerabilities (OSV); fails if there is one
	$(BIN)/uv audit --frozen

.PHONY: clean
clean: ## Remove what the other targets made, except what was archived
	rm -rf .venv $(SPARK) benchmarks/peers/*/.venv benchmarks/out build dist *.egg-info .coverage*
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .fuzz
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: environment-run environment-dev
environment-run environment-dev: environment-%:
	@$(BIN)/python .ci/environment.py $* --check 2>/dev/null || \
	{ python=$${PYTHON:-$$(.ci/find-python)} && "$$python" .ci/environment.py $*; }
