# Everything needs only Go, git and make; tools are pinned in go.mod.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

GO          ?= go
FUZZTIME    ?= 30s
STRESS      ?= 20
HISTORIES   ?= 30s
LONG        ?= 20000
BENCHFLAGS  ?=
MUTANTFLAGS ?=
MUTANTS     ?=
PKG         ?=

PUBLIC := ./atomicbreaker ./cowchangeset ./oncecache ./shardedregistry

# What has protocols besides.
PARTS := ./internal/table ./atomicbreaker/internal/ring ./atomicbreaker/retrybudget ./atomicbreaker/throttle

# The packages whose tests race: all but the benchmarks and the gates, which
# build and disassemble rather than share memory.
# Of the journal, whose tests are mostly of files and one goroutine, only some do.
RACE := ./atomicbreaker/... ./cowchangeset ./oncecache/... ./shardedregistry/... ./internal/atomics/... ./internal/table/... ./fuzz/... ./examples/...

# Tests of one goroutine, with which nothing races, that take long, and those that
# measure what the race detector changes. ManyExpire: where many timers of a bubble fire at
# one instant, the race detector of Go 1.26 stops with a failed check of its own.
ALONE := Memory|Alloc|DecideLikeAList|AgainstAList|GenerationsGoRound|FullBucketsGoOn|DeparturesAreForgotten$$|AcrossLargeGaps|DeleteCreateGet|Postings(Shape)?$$|SimilarKeys|LinesAreAMap|FollowTheirSize|ManyExpire

# What make test runs of them: histories use all four packages, each with one type of keys
# and values, and so take little time to compile.
RACE_SAMPLE := ./internal/atomics ./fuzz/histories

RACED = GORACE=halt_on_error=1 $(GO) test $(COMPILE_IN_BIG_HEAP) $(NOT_INLINED) -vet=off -race -short -cpu 4 -skip '$(ALONE)'
NEEDS_CC = if ! command -v "$$($(GO) env CC)" >/dev/null; then echo 'left out: the race detector needs a C compiler'; exit 0; fi

# What measures the library and what checks it, but for the gates. make test leaves out their
# own tests.
ASIDE = $(call packages,./bench/... ./internal/tools/...)
packages = $(patsubst github.com/latchfree/latchfree/%,./%,$(shell $(GO) list $(1)))

# The packages whose tests look whether they are to be short.
SHORTENED = $(filter-out $(ASIDE),./fuzz/histories $(shell $(GO) list -f '{{$$d := .Dir}}{{range .TestGoFiles}}{{$$d}}/{{.}} {{end}}{{range .XTestGoFiles}}{{$$d}}/{{.}} {{end}}' ./... | xargs grep -l 'testing.Short()' | xargs -n1 dirname | sort -u | sed 's,^$(CURDIR),.,'))

# Those with stress tests.
STRESSED := $(PUBLIC) $(PARTS) ./atomicbreaker/breakerhttp ./cowchangeset/journal ./cowchangeset/journal/reader

# Modules of their own, so that importers of the library get none of what they need.
NESTED := bench/failures bench/peers cluster examples/planservice integrations/gobreaker integrations/grpc integrations/otel integrations/prometheus integrations/prometheus/dashboard integrations/sqlstore

# What is checked in the model. The twins of internal/atomics and internal/table
# exist there only.
MODEL := ./internal/tools/mc/... ./internal/tools/scenes ./internal/atomics $(PARTS) $(PUBLIC) ./fuzz ./fuzz/sequences ./fuzz/interleavings ./fuzz/internal/interleave ./bench/simulated

# Compiling and exploring make much garbage, and neither is about memory; tests
# that run for themselves keep Go's default. Nobody debugs what make test builds, and
# without the tables for that compiling takes a sixth less; -trimpath is there because
# internal/tools/repotest builds programs with both. What is explored little is compiled
# without inlining, which takes a third less.
BIG_HEAP := GOGC=400
COMPILE_IN_BIG_HEAP := -toolexec 'env $(BIG_HEAP)'
NOT_DEBUGGED := -trimpath -gcflags=all=-dwarf=false
NOT_INLINED := '-gcflags=-l -dwarf=false'

# A pattern for the tests that exist there only, but for costs, which race with
# nothing.
MODELED = ^($(shell grep -l '^//go:build modelcheck' $(PUBLIC:%=%/*_test.go) $(PARTS:%=%/*_test.go) internal/atomics/*_test.go | \
	xargs grep -hoE '^func Test\w+' | cut -d' ' -f2 | grep -v Cost | paste -sd'|'))$$

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Two at a time, so that no processor waits for the last test of one kind, and
# half of the processors for each: twice as many processes as processors take a
# quarter longer. A third are the modules of their own, whose tests wait for servers
# most of the time. make prints what each has printed when it is over, if it can.
TOGETHER := --no-print-directory -j3 $(if $(filter output-sync,$(.FEATURES)),--output-sync)
HALF := $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n > 3 ? n / 2 : 1)))
PARTS_OF_A_TEST = GOFLAGS="$${GOFLAGS:-} -p=$(HALF) $(NOT_DEBUGGED)" $(MAKE) $(TOGETHER)

.PHONY: test
test: ## the library: format, vet, tests, examples, fuzz seeds, gates; samples of protocols, scenes and races (5 minutes on 2 cores from nothing)
	@$(BIG_HEAP) $(GO) build $(NOT_DEBUGGED) $(PUBLIC:%=%/...) # once, and not three times at once
	@$(PARTS_OF_A_TEST) unit-public gates unit-others modelcheck-sample race-sample vet format # the longest first
	@echo
	@echo 'passed: format, vet, tests, examples, fuzz seeds, gates; samples of protocols and scenes; with a C compiler, histories under the race detector'
	@echo 'make test-all adds: modules of their own, long tests, those of tools, all packages under the race detector, 2,000 interleavings of each protocol, benchmarks once'

.PHONY: test-all
test-all: test ## make test, then test-rest: what a release needs
	@$(MAKE) --no-print-directory test-rest

.PHONY: test-rest
test-rest: ## what make test leaves out; what it has run in this checkout is not run again
	@$(PARTS_OF_A_TEST) nested race modelcheck-most vet-modelcheck unit-long smoke
	@echo
	@echo 'passed: modules of their own, long tests, those of tools; with a C compiler, the race detector; 2,000 interleavings of each protocol, benchmarks once'

.PHONY: format
format: ## fail if a file is not as gofmt prints it
	@echo '== format'
	@files=$$(gofmt -l .); if [[ -n "$$files" ]]; then echo "not gofmt-ed:"; echo "$$files"; exit 1; fi

.PHONY: vet
vet: ## go vet and go mod verify
	@echo '== vet'
	$(GO) mod verify
	$(GO) mod tidy -diff
	$(BIG_HEAP) $(GO) vet ./...

.PHONY: vet-modelcheck
vet-modelcheck: ## go vet of what explores
	@echo '== vet, with the model checker'
	$(BIG_HEAP) $(GO) vet -tags modelcheck $(MODEL)

.PHONY: vet-platforms
vet-platforms: ## go vet for other processors, tests too (a minute or two)
	GOARCH=386 $(GO) vet ./...
	GOARCH=arm64 $(GO) vet ./...

.PHONY: unit unit-public unit-others
unit: unit-public unit-others ## unit tests, examples, fuzz seeds, without what takes long

unit-public:
	@echo '== unit tests, examples'
	@$(GO) test $(COMPILE_IN_BIG_HEAP) -vet=off -short $(PUBLIC)

unit-others:
	@echo '== unit tests, examples, fuzz seeds of what is below the four packages'
	@$(GO) test $(COMPILE_IN_BIG_HEAP) -vet=off $(filter-out $(SHORTENED) $(ASIDE),$(call packages,./...))
	@$(GO) test $(COMPILE_IN_BIG_HEAP) -vet=off -short $(filter-out $(PUBLIC),$(SHORTENED))

.PHONY: gates
gates: ## what internal/tools/repotest demands of sources and docs, without what builds programs
	@echo '== gates'
	@$(GO) test $(COMPILE_IN_BIG_HEAP) -vet=off -short ./internal/tools/repotest

.PHONY: unit-long
unit-long: ## what unit leaves out: long tests, those of tools and benchmarks; the hash tables in portable Go
	@echo '== long tests, tools, benchmarks'
	@$(GO) test $(COMPILE_IN_BIG_HEAP) -vet=off $(SHORTENED) $(ASIDE)
	$(GO) test $(COMPILE_IN_BIG_HEAP) $(NOT_INLINED) -vet=off -short -tags purego -run 'Key|Lines|NaN' ./internal/table

.PHONY: race
race: ## the tests under the race detector at 4 threads, and shorter (see stress)
	@echo '== race detector'
	@$(NEEDS_CC); $(RACED) $(RACE)
	@$(NEEDS_CC); GORACE=halt_on_error=1 $(GO) test $(COMPILE_IN_BIG_HEAP) $(NOT_INLINED) -vet=off -race -run 'Group|Context|Close|Misuse|Tracker|Follow|Reader|Contradictions' ./cowchangeset/journal ./cowchangeset/journal/reader

.PHONY: race-sample
race-sample: ## histories of all four packages and of the hash tables, under the race detector
	@echo '== race detector, histories'
	@$(NEEDS_CC); $(RACED) $(RACE_SAMPLE)

.PHONY: modelcheck
modelcheck: ## explore all interleavings of small protocols, and compare with the tables in CHECKS.md (7 minutes)
	@echo '== model checker'
	$(BIG_HEAP) $(GO) test -vet=off -tags modelcheck $(MODEL)

.PHONY: modelcheck-most
modelcheck-most: ## the same, but the first 2,000 of each protocol at most, and 400 of each seed
	@echo '== model checker, up to 2,000 interleavings of each protocol'
	$(BIG_HEAP) $(GO) test -vet=off -tags modelcheck ./internal/tools/mc/...
	$(BIG_HEAP) $(GO) test -vet=off -tags modelcheck -short ./fuzz ./fuzz/sequences ./fuzz/interleavings ./fuzz/internal/interleave
	MC_MOST=2000 $(BIG_HEAP) $(GO) test -vet=off -tags modelcheck $(filter-out ./internal/tools/mc/... ./fuzz%,$(MODEL))

.PHONY: modelcheck-sample
modelcheck-sample: ## the same, but 600 interleavings of each protocol, and 600 at random
	@echo '== model checker, 1,200 interleavings of each protocol'
	@$(BIG_HEAP) $(GO) test -vet=off -tags modelcheck -short ./internal/atomics $(PARTS) $(PUBLIC)

.PHONY: modelcheck-spot
modelcheck-spot: ## check 60 interleavings of each protocol for data races (2 minutes; not in make test-all)
	@echo '== model checker, 60 interleavings of each protocol under the race detector'
	$(BIG_HEAP) $(GO) test $(NOT_INLINED) -vet=off -race -tags modelcheck -run Race ./internal/tools/mc
	@[[ '$(MODELED)' == *TestProtocols* ]]
	@MC_MOST=60 $(BIG_HEAP) $(GO) test $(NOT_INLINED) -vet=off -race -short -tags modelcheck -run '$(MODELED)' ./internal/atomics $(PARTS) $(PUBLIC)

.PHONY: modelcheck-race
modelcheck-race: ## the same for the first 2,000 (5 minutes)
	@[[ '$(MODELED)' == *TestProtocols* ]]
	@MC_MOST=2000 $(BIG_HEAP) $(GO) test -vet=off -race -tags modelcheck -timeout 60m -run '$(MODELED)' ./internal/atomics $(PARTS) $(PUBLIC)

.PHONY: modelcheck-long
modelcheck-long: ## explore what modelcheck bounds further, LONG=20000 interleavings each (20 minutes, a million take a night; prints as it goes)
	@for pkg in $(PUBLIC); do \
		echo "== $$pkg"; \
		MC_LONG=$(LONG) $(GO) test -v -tags modelcheck -timeout 24h $$pkg | grep --line-buffered -E '^(mc:|ok|FAIL| *--- FAIL|panic:)'; \
	done

.PHONY: stalls
stalls: ## stop a goroutine at each step of each operation, beside each other one and in threes, in many orders (10 minutes; not in make test-all)
	MC_STALLS=all $(BIG_HEAP) $(GO) test -vet=off -v -count 1 -tags modelcheck -timeout 2h -run '^TestProgress$$' $(PUBLIC) ./atomicbreaker/retrybudget ./atomicbreaker/throttle

.PHONY: scenes
scenes: ## play all generated scenes: three operations on breakers, trackers, caches and registries of all pairs of settings (35 minutes; prints as it goes; SCENES_SEED=1: others)
	SCENES=all $(GO) test -vet=off -timeout 24h -count 1 -v -run '^TestScenesInOrder$$' ./cowchangeset
	@for pkg in ./atomicbreaker ./cowchangeset ./oncecache ./shardedregistry; do \
		echo "== $$pkg"; \
		SCENES=all $(BIG_HEAP) $(GO) test -vet=off -tags modelcheck -timeout 24h -count 1 -v -run '^TestScenes(InOrder)?$$' $$pkg; \
	done

.PHONY: smoke
smoke: ## run every benchmark once
	@echo '== every benchmark once'
	$(GO) test ./bench -run '^$$' -bench . -benchtime 1x >/dev/null

.PHONY: nested
nested: ## vet and test the modules of their own
	@for module in $(NESTED); do \
		echo "== $$module"; \
		(cd $$module && $(GO) mod tidy -diff && $(BIG_HEAP) $(GO) vet ./... && $(GO) test $(COMPILE_IN_BIG_HEAP) -vet=off ./...); \
	done

.PHONY: nested-race
nested-race: ## cluster, integrations and examples under the race detector (11 minutes; not in make test-all)
	@for module in $(filter-out bench/% %/dashboard,$(NESTED)); do \
		echo "== $$module"; \
		(cd $$module && GORACE=halt_on_error=1 $(GO) test $(COMPILE_IN_BIG_HEAP) -vet=off -race ./...); \
	done

.PHONY: cluster-storm
cluster-storm: ## break a cluster of three servers under load, in all the ways of cluster/ (7 minutes; prints as it goes)
	cd cluster && CLUSTER_LONG=60 $(GO) test -p 1 -count=1 -v -timeout 30m ./... | grep --line-buffered -vE '^=== '

.PHONY: fuzz
fuzz: ## search for new inputs with all fuzz targets, FUZZTIME=30s each (16 minutes; goes on after a failure and ends with a table)
	$(GO) run ./internal/tools/fuzzall -time $(FUZZTIME)

.PHONY: stress
stress: ## the stress tests STRESS=20 times over under the race detector, histories for HISTORIES=30s each, and 500 processes killed (two hours; says which round it is)
	@for round in $$(seq $(STRESS)); do \
		echo "== round $$round of $(STRESS)"; \
		GORACE=halt_on_error=1 GOGC=10 $(GO) test -vet=off -race -cpu 1,2,4,8 -run 'Stress|Report' -count 1 $(STRESSED); \
	done
	GORACE=halt_on_error=1 HISTORY_TIME=$(HISTORIES) $(GO) test -race -cpu 1,2,4,8 -run Histories -timeout 60m -v ./fuzz/histories
	$(GO) test -vet=off -run Killed -count 25 ./cowchangeset ./cowchangeset/journal

.PHONY: bench
bench: ## compare with the locked baselines, speed and latency: a summary, pictures and bench/results/report.html (under 6 minutes)
	$(GO) run ./bench/cmd/bench $(BENCHFLAGS)

.PHONY: bench-quick
bench-quick: ## a dozen headline cases of it in under a minute
	$(GO) run ./bench/cmd/bench -quick $(BENCHFLAGS)

.PHONY: bench-memory
bench-memory: ## bytes per key, garbage per operation, and the heap after ten million keys have come and gone (3 minutes)
	$(GO) run ./bench/cmd/memory

.PHONY: bench-peers
bench-peers: ## compare with other libraries (5 minutes)
	$(GO) run ./bench/cmd/bench -package ./bench/peers $(BENCHFLAGS)

.PHONY: bench-failures
bench-failures: ## run what goes wrong in eight caches, and write oncecache/COMPARISON.md (two minutes)
	cd bench/failures && $(GO) run . -o ../../oncecache/COMPARISON.md

.PHONY: cover
cover: ## coverage of the four packages by all tests (3 minutes)
	$(GO) test -coverpkg=./atomicbreaker/...,./cowchangeset,./oncecache,./shardedregistry -coverprofile=cover.out ./atomicbreaker/... ./cowchangeset ./oncecache ./shardedregistry ./fuzz/...
	$(GO) tool cover -func=cover.out | tail -1

.PHONY: mutants
mutants: ## break the concurrency line by line; all but the reviewed must fail a test (PKG=oncecache: one package; hours, it says how many are left; MUTANTS=150: so many of all, always the same)
	$(GO) run ./internal/tools/mutants $(MUTANTFLAGS) $(MUTANTS:%=-sample %) $(PKG:%=./%)

.PHONY: mutants-record
mutants-record: ## write down which test killed which mutant, for the next campaign to begin with
	$(GO) run ./internal/tools/mutants -record $(MUTANTFLAGS) $(PKG:%=./%)

.PHONY: mutants-sequential
mutants-sequential: ## the same with conditions, arithmetic and results (hours)
	$(GO) run ./internal/tools/mutants -sequential $(MUTANTFLAGS) $(PKG:%=./%)

.PHONY: lint
lint: ## staticcheck with each set of build tags, tests too (nine minutes)
	printf '%s\n' plain: 'modelcheck: -tags=modelcheck' 'purego: -tags=purego' | $(GO) tool -modfile=internal/tools/lint/go.mod staticcheck -matrix ./...
	@for module in $(NESTED); do \
		echo "== $$module"; \
		(cd $$module && $(GO) tool -modfile=$(CURDIR)/internal/tools/lint/go.mod staticcheck ./...); \
	done
