# Every verb that a person or CI uses. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# Cargo knows where it builds to.
FULMAR = $(CARGO) run --release --locked -p fulmar-cli --
FILE ?=
# Built sooner, and slower than a release.
DEMO_PROFILE ?= quick
OLD ?=
SECONDS_EACH ?= 600
COUNT ?= 10000
MINUTES ?= 10
SEED ?= 1
LINKS ?= 1000
RATE_MAX ?= 1gbit
FIRST ?= 0
RUNS ?= 5
VERSION ?=
ONLY ?=
JOBS ?= 2
# What is built once, as CI does, is built faster without what would make a second time faster, or what runs of seconds do not need.
ifeq ($(CI),true)
export CARGO_INCREMENTAL ?= 0
export CARGO_PROFILE_TEST_DEBUG ?= 0
export CARGO_PROFILE_DEV_DEBUG ?= 0
export CARGO_PROFILE_DEV_OPT_LEVEL ?= 0
export CARGO_PROFILE_RELEASE_LTO ?= off
endif
# Tests on real links wait most of the time.
TEST_THREADS ?= $(shell expr 4 \* $$(nproc))

.PHONY: help setup packages demo test test-quick lint docs site wasm bench speed ns3-speed parity tun side-by-side found-rate thin-flows auto-vs-fixed frontier requests damage loss-causes several-paths tunnel attack field flows soak explore faults prove fuzz wheel package static release release-twice cut published sbom verdicts league strangers old-and-new swarm random-links replay clusters lab-costs one-way satellite-pass clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Check the tools that everything else needs
	@scripts/setup

packages: setup ## As root, install the Debian packages of the tests on real links; else name those that are missing
	@scripts/setup-debian

demo: setup ## Send a real file over a bad link in every mode (FILE=... for yours)
	$(CARGO) run --profile $(DEMO_PROFILE) --locked -p fulmar-cli -- demo --out target/demo $(if $(FILE),--file "$(FILE)")

test: setup packages wasm ## Every test; as root it installs Debian packages first, without root tests on real links are skipped
	@# What the second half runs is built meanwhile, out of what the first leaves: its tests wait for links much of the time.
	nice -n 19 $(CARGO) build --release --locked --quiet -p fulmar-cli & built=$$!; passed=0; \
	RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test --locked --workspace --features fulmar/tokio --no-fail-fast || passed=$$?; \
	wait $$built; exit $$passed
	scripts/python-tests

test-quick: setup ## The fast tests: units, properties and short sessions
	$(CARGO) test --locked --workspace --lib --bins

# What a release is built with and tried on.
RELEASE_PACKAGES = musl-tools gcc-aarch64-linux-gnu libc6-dev-arm64-cross dpkg-dev fakeroot rpm cpio file buildah mmdebstrap qemu-user-static
# The library for programs, and what it stands on.
PUBLISHED = fulmar fulmar-proto fulmar-channel fulmar-settings fulmar-capture fulmar-baseline fulmar-net

lint: setup ## Formatting, lints, documentation and dependencies (deny.toml), all without a warning
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --locked --workspace --all-targets --features fulmar/tokio -- -D warnings
	$(CARGO) check --locked --quiet --manifest-path fuzz/Cargo.toml --target-dir target
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc --locked --workspace --features fulmar/tokio --no-deps --document-private-items
	scripts/public-names
	$(CARGO) package --locked --no-verify --allow-dirty --quiet $(PUBLISHED:%=-p %)
	scripts/deny

site: setup ## Every page as a searchable site, in target/site/html; PAPERS=DIR adds what `fulmar reproduce all --out DIR` wrote
	scripts/with-lab scripts/site $(if $(PAPERS),--papers "$(PAPERS)")

wasm: setup ## Build the core for wasm32: proof that it touches no system
	@scripts/wasm-check

bench: setup ## Benchmarks, written to docs/measurements
	scripts/bench

speed: setup ## Bulk data on the loopback beside TCP, QUIC, kcptun and SRT (as root it installs the last two; 5 min), written to docs/measurements
	scripts/speed

ns3-speed: setup ## The simulator and ns-3 on the same scenarios (as root it installs libns3-dev, 62 MB; 5 min), written to docs/measurements
	scripts/ns3-speed

parity: setup ## The simulator against real sockets, written to docs/measurements
	scripts/parity

tun: setup packages ## Speed and timing of the TUN link (root), written to docs/measurements
	scripts/tun

side-by-side: setup packages ## Kernel TCP and two gateways over the same lossy links (root, 20 min), written to docs/measurements
	scripts/side-by-side

found-rate: setup packages ## The rate found beside the rate told, kernel TCP and quinn, alone and beside others (root, hours; JOBS at once, RUNS each), written to docs/measurements
	scripts/found-rate --realtime --runs $(RUNS) --jobs $(JOBS)

thin-flows: setup packages ## A message every 20 ms through two gateways at 0, 10 and 30 % loss both ways (root, 4 min)
	scripts/thin-flows

requests: setup packages ## Requests over fresh connections beside kernel TCP and quinn (root, 15 min), written to docs/measurements
	scripts/requests

auto-vs-fixed: setup ## The mode auto beside every fixed setting in 500 random scenarios (21 min of processor time, on all cores)
	$(FULMAR) sim --auto-vs-fixed --random 500 --seed 1

frontier: setup ## The mode auto beside the frontier of capacity and delay, every row of reference/fraction_vs_budget.csv (some 7 min on two idle cores)
	FULMAR='$(FULMAR)' scripts/fraction-vs-budget fraction_vs_budget.csv

damage: setup packages ## Two gateways over a link that inverts bits, told nothing of it (root, 10 min for each of RUNS), written to docs/measurements
	scripts/damage --realtime --runs $(RUNS)
	scripts/damage --dropped --realtime --runs $(RUNS)

loss-causes: setup packages ## Losses by cause as gateways find them, beside the counters of twelve mixed links (root, 10 min), written to docs/measurements
	scripts/loss-causes --realtime

tunnel: setup packages ## The kernel's programs and TCP through a tunnel, beside boringtun (root, 4 min, and its build), written to docs/measurements
	scripts/tunnel --realtime --runs $(RUNS)

several-paths: setup packages ## A file over several paths at once, beside each path alone and kernel MPTCP (root, 20 min for each of RUNS), written to docs/measurements
	scripts/several-paths --realtime --runs $(RUNS)

replay: setup ## Predictions from recordings beside runs of fulmar perf over emulated links (30 min), written to docs/measurements
	scripts/with-lab scripts/replay --realtime --page

clusters: setup ## The cost of a sweep's tasks and rows, and the efficiency of two Dask workers (10 min on two idle cores)
	scripts/with-lab scripts/clusters

lab-costs: setup ## The time to a first notebook, and what Python adds to a sweep in time and memory (10 min on two idle cores), written to docs/measurements
	scripts/with-lab scripts/lab-costs

one-way: setup packages ## A file over links without a way back, to three receivers, and to fifty with a thin one beside NORM (root, 3 min for each of RUNS), written to docs/measurements
	scripts/one-way --realtime --page --runs $(RUNS)
	scripts/one-way-group --realtime --page --runs $(RUNS)

satellite-pass: setup packages ## Passes of a satellite with a told schedule of rate and power, beside perfect knowledge (root, 8 min for each of RUNS), written to docs/measurements
	scripts/satellite-pass --realtime --page --runs $(RUNS)

attack: setup ## 10,000,000 datagrams flipped, cut, spliced and replayed in front of genuine ones (10 min)
	FULMAR_ATTACKED=10000000 $(CARGO) test --locked --release -p fulmar-net --test slow_session_attack -- --nocapture

field: setup packages ## Real programs through two gateways, every way at every loss (root, 20 min), written to docs/measurements
	CI=true $(CARGO) test --locked -p fulmar-cli --test it gateway_field -- --ignored --nocapture

flows: setup ## Memory and leaks with 1,000 flows at once and 10,000 in a row, written to docs/measurements
	scripts/flows

soak: setup packages ## Transfers across ten outages of 20 s, and one of 10 min (root, 16 min)
	CI=true $(CARGO) test --locked -p fulmar-cli --test it gateway_soak -- --ignored --nocapture

explore: setup ## New random cases for MINUTES (default 10): property tests and swarms; a failure prints the command that repeats it
	@scripts/explore $(MINUTES)

faults: setup ## The custody store under a million histories of faults, and 1,000 kills with a full disk among them (20 min)
	FULMAR_HISTORIES=1000000 $(CARGO) test --release --locked -p fulmar-net --lib custody::faults -- --nocapture
	FULMAR_KILLS=1000 $(CARGO) test --locked -p fulmar-net --test custody_killed -- --nocapture

prove: setup ## Check the models of the handshake against an attacker who has the network (half a minute, and 3 min once to build Verifpal)
	scripts/prove

fuzz: setup ## Every fuzz target for SECONDS_EACH (default 600)
	scripts/fuzz $(SECONDS_EACH)

wheel: setup ## Build the Python package into target/wheels
	@scripts/wheel

package: setup ## The Debian package, in target/package
	scripts/package

release: setup ## All that is published, with checksums, in target/dist, of the tag that HEAD has or of VERSION; then each is installed (as root it installs what builds and tries it)
	@scripts/setup-debian $(RELEASE_PACKAGES)
	scripts/release $(VERSION)
	python3 -m unittest discover -s scripts/tests/release -v

release-twice: setup ## Proof that a release is reproducible: HEAD built twice in two folders, every file compared
	@scripts/setup-debian $(RELEASE_PACKAGES)
	scripts/release-twice

cut: setup ## Give the unreleased changes of CHANGELOG.md the title VERSION and today's date
	scripts/changelog --cut "$(VERSION)"

# Read by scripts/release.
published:
	@echo $(PUBLISHED:%=-p %)

verdicts: setup ## What `fulmar status` says in thirty situations of real processes, and whether it is right (6 min), written to docs/measurements
	scripts/verdicts --jobs $(JOBS)

league: setup packages ## The league table: kernel TCP, MPTCP, quinn, kcptun, SRT, UFTP, NORM and ours on a grid of links (root, hours; what is there stays), written to docs/measurements
	scripts/league --runs $(RUNS) --jobs $(JOBS) $(foreach one,$(ONLY),--only "$(one)")

static: setup ## The binary without libraries, in target/static, tried on its own and in the container image (as root installs musl-tools and buildah)
	@scripts/setup-debian musl-tools buildah
	scripts/static
	python3 -m unittest discover -s scripts/tests/static -v

sbom: setup ## The bill of materials of the binary, as CycloneDX, in target/sbom
	@scripts/sbom

strangers: setup ## The price of strangers' datagrams, in a gateway's processor time and traffic (6 min, part of bench), written to docs/measurements
	scripts/strangers

old-and-new: setup ## Gateways of the release before beside those of this one over one lossy link, and an upgrade over it (5 min; OLD=... for a program that is built)
	scripts/old-and-new $(if $(OLD),--old "$(OLD)")

swarm: setup ## COUNT random sessions from SEED; a failure prints the command that repeats it
	$(FULMAR) sim --swarm $(COUNT) --seed $(SEED)

random-links: setup ## The rate found on LINKS random links up to RATE_MAX, and the worst ten (docs/models/random-links.md; 4 min)
	$(CARGO) run --release --locked -p fulmar-sim --example random_links -- $(LINKS) $(RATE_MAX) $(FIRST)

clean: ## Remove everything that was built
	$(CARGO) clean
