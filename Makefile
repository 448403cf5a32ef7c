# The front door. `make up` and `make test` do all set-up that a fresh machine needs; the rest is for those who work here.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

REPLICAS ?= 2
LISTEN ?= 127.0.0.1:8080
ADMIN ?= 127.0.0.1:9090
# `builtin` (a tiny model that reasons, inside the replica), `smollm2` (SmolLM2-135M-Instruct, fetched once into the user's
# cache folder), a GGUF file or a Hugging Face folder.
MODEL ?= builtin

# Tests share one profile, so that unit tests, system tests and the binaries they drive are built once.
PROFILE := checked

.PHONY: help
help: ## what there is to do
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 12

.PHONY: tools
tools:
	@deploy/scripts/check-tools.sh

.PHONY: up
up: tools ## a gateway and two replicas, nothing to download: make up [MODEL=smollm2|PATH] [REPLICAS=2] [LISTEN=…] [ADMIN=…]
	cargo build --release --locked -p gateway -p engine-replica --bins
	model='$(MODEL)'; [ "$$model" != smollm2 ] || model="$$(deploy/scripts/fetch-smollm2.sh)"; \
	exec target/release/gateway up --model "$$model" \
		--replicas $(REPLICAS) --listen $(LISTEN) --admin-listen $(ADMIN)

.PHONY: check
check: tools ## formatting and lints
	cargo fmt --all --check
	cargo clippy --profile $(PROFILE) --locked --workspace --all-targets -- -D warnings

.PHONY: test
test: check ## everything: lints, unit, property, golden and system tests (fetches SmolLM2 and the official client once)
	cargo build --profile $(PROFILE) --locked --workspace --bins --tests
	python3 -m unittest discover -q -s tests/accuracy
	python3 -m unittest discover -q -s tests/load
	python3 -m unittest discover -q -s tests/load/engine_bench
	PYTHONDONTWRITEBYTECODE=1 python3 -m unittest discover -q -s engine-replica/models/training
	export PINION_TEST_MODEL="$$(deploy/scripts/fetch-smollm2.sh)" PINION_TEST_PYTHON="$$(tests/clients/setup.sh)" PINION_TEST_NVRTC="$$(engine-replica/tests/cuda/nvrtc.sh)"; \
	if cargo nextest --version >/dev/null 2>&1; then \
		cargo test --profile $(PROFILE) --locked --workspace --doc; \
		cargo nextest run --cargo-profile $(PROFILE) --locked --workspace; \
	else \
		cargo test --profile $(PROFILE) --locked --workspace -- --test-threads=1; \
	fi

.PHONY: cuda-check
cuda-check: tools ## every check of the CUDA kernels on the simulated GPU, with the whole list of planted bugs (minutes)
	PINION_TEST_PLANTED=all cargo test --profile $(PROFILE) --locked -p engine-replica --lib backend::cuda -- --nocapture

.PHONY: accuracy
accuracy: tools ## what thinking costs and buys, task by task: the built-in model's held-out questions in both lanes, through the product
	cargo build --release --locked -p gateway -p engine-replica --bins
	python3 tests/accuracy/accuracy.py

BUDGETS ?= 0,8,16,32,64,128,none

.PHONY: budget-curve
budget-curve: tools ## accuracy against thinking budget: the built-in model's table, and its drawing in engine-replica/models/abacus/budget.svg
	cargo build --release --locked -p gateway -p engine-replica --bins
	python3 tests/accuracy/accuracy.py --budgets $(BUDGETS) --svg engine-replica/models/abacus/budget.svg

.PHONY: bench
bench: tools ## figures beside their peers: the gateway beside nginx, the replica beside llama.cpp (both need a quiet machine)
	python3 tests/load/run.py
	python3 tests/load/engine_bench/engine_bench.py
