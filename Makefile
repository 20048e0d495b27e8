# make demo and make test work on a machine that has only Go, gcc and make: scripts/setup installs the rest.

GO        ?= go
# What make test compiles all of without cgo. On the others it checks types, by a test of internal/arch, and compiles and vets what is
# tested there; make proofs compiles the rest too.
PLATFORMS := linux/amd64
OTHERS    := linux/arm64 js/wasm windows/amd64 darwin/arm64
# Packages with a promise about goroutines; the race detector needs cgo.
RACE      := ./simd ./cpu ./compute ./quant ./batch ./internal/simd/pool ./internal/simd/gemm ./gpu ./cuda ./cuda/internal/softgpu ./cuda/internal/libcuda ./ptx/sim ./dist .
# Packages whose tests run on other processors too: in emulation (arm64) and under Node.js (js/wasm).
PORTABLE  := ./compute ./onnx ./quant ./quant/gguf ./internal/program ./internal/catalogue ./internal/memplan ./batch ./simd ./cpu ./internal/simd/... ./ptx/eval .
# Modules of their own, so that what they depend on stays out of the main one.
MODULES   := internal/simd/asmgen simd/blas internal/browser internal/randomprograms internal/misuse wasm/browser bench
HOSTARCH  := $(shell $(GO) env GOHOSTARCH)
QEMU      := $(shell command -v qemu-aarch64-static || command -v qemu-aarch64)
# Of the suite's cases for each operation, one in so many runs in the browser, other ones by each seed.
BROWSER_SAMPLE ?= 96
# Go programs under Node.js with WebGPU by Dawn, from npm.
DAWN      := node --stack-size=8192 $(CURDIR)/wasm/npm/dawn.mjs
WASM_EXEC := $(shell $(GO) env GOROOT)/lib/wasm/go_js_wasm_exec

.DEFAULT_GOAL := help
.PHONY: check windows native native-linux native-windows direct3d mesa arm64 node help setup demo bench gpu-bundle wasm-package site serve test lint cross unit modules conformance loaded race portable browser dawn generate proofs proofs-kernels proofs-misuse proofs-programs fuzz ptx-diff ptxas-check

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what the demo and the tests need (Debian, Ubuntu), or say what to install
	scripts/setup test

demo: ## find the edges in a picture as one batch, then run the quickstart; IMAGE=photo.jpg takes yours
	scripts/setup demo
	mkdir -p out
	$(GO) run ./examples/edges $(if $(IMAGE),$(IMAGE),-input out/landscape.png) -o out/edges.png -software
	$(GO) run ./examples/quickstart -software

bench: ## measure the CPU's kernels beside OpenBLAS, BLIS, MKL, ONNX Runtime, gonum and vek (to bench/results), then all devices of this machine
	scripts/setup bench
	cd bench && WAVELANE_PYTHON=$(CURDIR)/out/peers/bin/python3 $(GO) run . -out results
	$(GO) run ./cmd/wavelane bench --software

# All random inputs of a run follow from one seed, see internal/testseed. It is always the same, so that a run fails only for what has
# changed; WAVELANE_SEED=2 make test takes another, make proofs draws one.
export WAVELANE_SEED ?= 1

# What contributors run while they work. It leaves out what make test has beside it: the other processors and the browser, the race
# detector, the modules of their own, examples, WebGPU, most cases of the conformance suite and of the tests of PTX kernels.
check: ## what to run between edits, in under three minutes: format, vet, builds for js and Windows, short tests, a sample of conformance on the CPU and the software GPU
	scripts/setup test
	@echo "WAVELANE_SEED=$(WAVELANE_SEED)"
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w:" $$unformatted; exit 1; fi
	$(GO) vet ./...
	CGO_ENABLED=0 GOOS=windows $(GO) build ./...
	CGO_ENABLED=0 GOOS=js GOARCH=wasm $(GO) build $(WASM) ./...
	WAVELANE_SAMPLE=64 $(TEST) -short -skip '$(SLOW)' $$($(GO) list ./... | grep -v $(ELSEWHERE))
	cd internal/conformance && WAVELANE_SAMPLE=256 $(TEST) -short -run '^(TestCPU|TestCUDASoftware)$$'

# What make check leaves to make test: packages, and tests that take long of packages that it tests for the rest.
ELSEWHERE := -e /internal/conformance -e /internal/benchmarks -e /internal/cudacorpus -e /examples/ -e '/wasm$$'
SLOW := ^(TestCasesOnWebGPU|TestCasesOnCUDA|TestUses|TestConvolutionLowering|TestQuantisedLowering|TestPreloadLoadsModules|TestConformance|TestConformanceOfEveryTier|TestSchedules|TestMutants|TestLowerings|TestVerdicts|TestStrict|TestOptimised|TestAttentionVariants|TestQuantisedVariants|TestLongLoops|TestLoopsAreTested)$$

# Where devices take long, the suite's cases are sampled by the seed; WAVELANE_SAMPLE=1 make test takes all of them everywhere, and
# make proofs does what takes longest.
test: ## run every test: format, vet, all platforms, conformance on every device, race detector, arm64, js/wasm, Chromium
	scripts/setup test
	@echo "WAVELANE_SEED=$(WAVELANE_SEED)"
	@# Each waits for something at times, a browser or one long test: two at once keep the cores busy. JOBS=1 needs less memory.
	$(MAKE) -j$(JOBS) $(STAGES)
	@echo "all tests passed"

JOBS   ?= 2
# Of two that begin together, one compiles for another processor, so that nothing is compiled twice; what takes longest comes early.
STAGES := lint arm64 cross unit conformance loaded race node modules browser

gpu-bundle: ## build out/gpu-bundle: copied to a machine with an NVIDIA GPU, ./run there tests and measures all (bench/results/README.md)
	GO="$(GO)" scripts/gpu/bundle out/gpu-bundle

wasm-package: ## build out/npm/wavelane, ready for npm publish: the library for browsers
	$(GO) run ./wasm/cmd/pack out/npm/wavelane

site: wasm-package ## build out/site, the demo site: any static host will do
	rm -rf out/site
	cp -R wasm/site out/site
	cp -R out/npm/wavelane out/site/wavelane

serve: site ## build the demo site and serve it on this machine
	$(GO) run ./wasm/serve out/site

# Packages that consist of other files than those that were vetted before are vetted again.
FILES := {{.ImportPath}} {{.GoFiles}} {{.CgoFiles}} {{.SFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}

lint: ## gofmt and go vet
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w:" $$unformatted; exit 1; fi
	$(GO) vet ./...
	@set -e; here=$$(mktemp); $(GO) list -f '$(FILES)' ./... | sort > $$here; \
	$(GO) list -tags hardware -f '$(FILES)' ./... | sort | comm -23 - $$here | cut -d' ' -f1 | xargs -t $(GO) vet -tags hardware; rm $$here
	@set -e; for m in $(MODULES); do echo "go vet in $$m"; (cd $$m && $(GO) vet ./...); done

TRIM := -trimpath
# As the package wasm compiles the packed program, so that either finds what the other has compiled.
WASM := $(TRIM) -gcflags=fmt=-l -gcflags=github.com/wavelane/wavelane/internal/wgslkernels=-l
# Of the programs one is linked; the others are where they are tested.
BUILT := {{if or (ne .Name "main") (eq .ImportPath "github.com/wavelane/wavelane/cmd/wavelane")}}{{.ImportPath}}{{end}}
cross: ## build and vet without cgo
	@set -e; here=$$(mktemp); $(GO) list -f '$(FILES)' ./... | sort > $$here; \
	export CGO_ENABLED=0; for p in $(PLATFORMS); do \
		echo "CGO_ENABLED=0 $$p"; export GOOS=$${p%/*} GOARCH=$${p#*/}; \
		case $$p in js/*) trim="$(WASM)";; *) trim=; esac; \
		$(GO) build $$trim $$($(GO) list -f '$(BUILT)' ./...); \
		$(GO) vet $$trim $$($(GO) list -f '$(FILES)' ./... | sort | comm -23 - $$here | cut -d' ' -f1); \
	done; rm $$here

# lint and cross have vetted what go test would vet again; on other processors it is -vet=all.
# A slow machine with another job beside takes more than go test's own ten minutes for a package.
TEST := $(GO) test -vet=off -timeout 45m

# The CPU's conformance run in ./cpu is that of ./internal/conformance again. What tests of the packed program depend on is more than
# go test knows of, so that their results must not come from its cache.
unit: # all but the conformance suite, what takes longest first
	$(TEST) -skip '^TestConformance$$' ./internal/ptxkernels $$($(GO) list ./... | grep -v -e /internal/conformance -e '/wasm$$')
	$(TEST) -count=1 ./wasm

modules: # what generates the assembly, with a test that fails when committed files are stale, and the other modules
	@set -e; for m in $(MODULES); do echo "go test in $$m"; (cd $$m && $(TEST) -count=1 ./...); done

conformance: # the catalogue on every device; in its own folder, go test shows how many cases ran where
	cd internal/conformance && $(TEST)

# Of the suite's cases for each operation, one in so many.
LOADED_SAMPLE ?= 96

loaded: export CGO_ENABLED := 0
loaded: export WAVELANE_WGPU := $(CURDIR)/out/wgpu/29/libwgpu_native.so
loaded: export WAVELANE_SAMPLE := $(LOADED_SAMPLE)
loaded: # without cgo, with the WebGPU library that scripts/setup has fetched
	$(GO) run ./examples/quickstart -software
	$(TEST) -short ./gpu ./gpu/internal/...
	cd internal/conformance && $(TEST) -short -run '^(TestWebGPU|TestWebGPUExtensions)$$'

# Packages whose tests need nothing of the host, such as a C compiler.
WINDOWS := ./compute ./quant ./lz4 ./internal/monotime ./internal/route ./internal/simd/pool ./simd ./batch ./cuda/internal/softgpu ./gpu
WINE    := $(CURDIR)/scripts/wine
ON_WGPU := ^(TestWebGPU|TestWebGPUExtensions)$$

# Programs with the library that MinGW links.
LINKED        := WAVELANE_WGPU=linked CGO_ENABLED=1 CC=x86_64-w64-mingw32-gcc
WINDOWS_WGPU  := Z:$(CURDIR)/out/wgpu/windows/wgpu_native.dll
define WINDOWS_SETUP
scripts/wine build
[ -e out/wgpu/windows/wgpu_native.dll ] || scripts/wgpu out/wgpu/windows windows-amd64
endef

# Of the suite's cases for each operation, as in 'loaded', one in so many.
windows: export GOOS := windows
windows: export CGO_ENABLED := 0
windows: export WAVELANE_WGPU := $(WINDOWS_WGPU)
windows: export WAVELANE_SAMPLE := $(LOADED_SAMPLE)
windows: export WAVELANE_TEST_LOADER := Z:$(CURDIR)/out/wgpu/faulty/vulkan-1.dll
windows: ## tests of Windows programs, WebGPU's over Vulkan, under Wine 10 in a root that scripts/wine builds (2.2 GB)
	$(WINDOWS_SETUP)
	mkdir -p out/wgpu/faulty
	x86_64-w64-mingw32-gcc -shared -o out/wgpu/faulty/vulkan-1.dll gpu/testdata/vulkan.c
	$(GO) run $(TRIM) -exec $(WINE) ./cmd/wavelane wgpu '$(WAVELANE_WGPU)'
	$(GO) run $(TRIM) -exec $(WINE) ./cmd/wavelane info
	$(GO) run $(TRIM) -exec $(WINE) ./examples/quickstart -software
	$(TEST) $(TRIM) -short -p 1 -exec $(WINE) $(WINDOWS)
	$(LINKED) $(TEST) $(TRIM) -exec $(WINE) -run '^TestFailedSubmission$$' ./gpu
	$(TEST) $(TRIM) -short -exec $(WINE) -run '^(TestOpen|TestOptions|TestKernel|TestLaunches)' ./cuda
	cd internal/conformance && $(TEST) $(TRIM) -short -exec $(WINE) -run '^(TestCPU|TestCUDASoftware)$$'
	$(MAKE) native-windows

native: ## the suite on the software adapter by the linked and by the loaded WebGPU library, on Linux and, as in make windows, under Wine; f16, subgroups and integer dots forced
	$(MAKE) native-linux
	$(MAKE) native-windows

native-linux: export WAVELANE_SAMPLE := $(LOADED_SAMPLE)
native-linux:
	cd internal/conformance && WAVELANE_WGPU=linked $(TEST) -short -run '$(ON_WGPU)'
	cd internal/conformance && WAVELANE_WGPU=$(CURDIR)/out/wgpu/29/libwgpu_native.so CGO_ENABLED=0 $(TEST) -short -run '$(ON_WGPU)'

native-windows: export GOOS := windows
native-windows: export WAVELANE_SAMPLE := $(LOADED_SAMPLE)
native-windows:
	$(WINDOWS_SETUP)
	cd internal/conformance && $(LINKED) $(TEST) $(TRIM) -short -exec $(WINE) -run '$(ON_WGPU)'
	cd internal/conformance && WAVELANE_WGPU='$(WINDOWS_WGPU)' CGO_ENABLED=0 $(TEST) $(TRIM) -short -exec $(WINE) -run '$(ON_WGPU)'

# Microsoft's compiler comes with Dawn. With dxcompiler.dll beside it there is no adapter.
direct3d: export GOOS := windows
direct3d: export CGO_ENABLED := 0
direct3d: ## the suite over Direct3D 12, by Microsoft's FXC on Wine's vkd3d, after make windows
	rm -rf out/direct3d && mkdir -p out/direct3d
	cp wasm/npm/node_modules/webgpu/dist/win32-x64/d3dcompiler_47.dll out/direct3d
	$(TEST) $(TRIM) -c -o out/direct3d/conformance.exe ./internal/conformance
	cd internal/conformance && WAVELANE_WGPU='$(WINDOWS_WGPU)' WAVELANE_ADAPTER=1 WAVELANE_SAMPLE=400 \
		$(WINE) $(CURDIR)/out/direct3d/conformance.exe -test.short -test.timeout 45m -test.run '^TestWebGPU$$'

mesa: export WAVELANE_SAMPLE := $(LOADED_SAMPLE)
mesa: ## the suite on the software adapter of Mesa 25, by both WebGPU libraries, in the root that scripts/wine builds
	scripts/wine build
	cd internal/conformance && WAVELANE_WGPU=linked $(TEST) -short -exec '$(WINE) linux' -run '$(ON_WGPU)'
	cd internal/conformance && WAVELANE_WGPU=$(CURDIR)/out/wgpu/29/libwgpu_native.so $(TEST) -short -exec '$(WINE) linux' -run '$(ON_WGPU)'

race: # with the race detector
	CGO_ENABLED=1 $(TEST) -race -short -skip '^TestConformance' $(RACE)

portable: arm64 node # the CPU device and its kernels elsewhere

# In emulation. It takes long: of the suite's cases one in so many, other ones by each seed.
EMULATED_SAMPLE ?= 8

arm64:
ifneq ($(HOSTARCH),arm64)
	@# What imports cuda or gpu is linked dynamically, and the emulator has no libraries of its processor.
	WAVELANE_SAMPLE=$(EMULATED_SAMPLE) CGO_ENABLED=0 GOARCH=arm64 $(TEST) -vet=all -short -tags nocuda,nogpu -exec "$(QEMU)" $(PORTABLE)
	@# Arguments by value and callbacks, with a compiler and a C library of that processor.
	CC=aarch64-linux-gnu-gcc QEMU_LD_PREFIX=/usr/aarch64-linux-gnu CGO_ENABLED=0 GOARCH=arm64 $(TEST) -exec "$(QEMU)" ./dist/internal/nccl
	CC=aarch64-linux-gnu-gcc QEMU_LD_PREFIX=/usr/aarch64-linux-gnu CGO_ENABLED=0 GOARCH=arm64 $(TEST) -exec "$(QEMU)" -run '^TestStub$$' ./gpu/internal/webgpu
endif

node:
	CGO_ENABLED=0 GOOS=js GOARCH=wasm $(TEST) -vet=all $(WASM) -short -exec "$(WASM_EXEC)" $(PORTABLE)
	@# What else consists of other files there.
	CGO_ENABLED=0 GOOS=js GOARCH=wasm $(GO) vet $(WASM) ./gpu ./gpu/internal/webgpu ./internal/conformance ./wasm/bridge ./internal/device ./internal/mapped ./internal/route ./internal/tune ./onnx/internal/exec

# The CPU device's tests run under Node.js; here it is in its place beside WebGPU. Chromium brings a software GPU along.
browser: export GOOS := js
browser: export GOARCH := wasm
browser: export CGO_ENABLED := 0
browser: export WAVELANE_SAMPLE := $(BROWSER_SAMPLE)
browser: # in a headless Chromium, in a page and in a worker
	cd internal/browser && GOOS= GOARCH= $(GO) build -o $(CURDIR)/out/gobrowser ./cmd/gobrowser
	cd internal/conformance && $(TEST) $(WASM) -short -exec $(CURDIR)/out/gobrowser -run '^(TestWebGPU|TestWebGPUExtensions|TestCPU)$$'
	cd internal/conformance && DAWN=backend=null WAVELANE_FEATURES="shader-f16 subgroups" $(TEST) $(WASM) -exec "$(DAWN)" -run '^TestExtensionsCompile$$'
	$(TEST) $(WASM) -exec $(CURDIR)/out/gobrowser ./gpu
	$(TEST) $(WASM) -exec "$(CURDIR)/out/gobrowser -worker" -run '^(TestOpenInBrowser|TestKernelRuns|TestInterop|TestLost)$$' . ./gpu

dawn: export GOOS := js
dawn: export GOARCH := wasm
dawn: export CGO_ENABLED := 0
dawn: ## force the kernels with f16 and subgroups on this machine's Vulkan adapter, by Chromium's WebGPU outside of it; Mesa 25's software adapter will do
	cd internal/conformance && WAVELANE_FEATURES=shader-f16 $(TEST) -v -exec "$(DAWN)" -run '^TestWebGPUExtensions$$'

generate: ## write what is generated from the catalogue and the kernels; tests fail when it is stale
	$(GO) generate ./...

# WAVELANE_MUTANTS is how many mistakes are made in each kernel, 0 for all that a list has: about 0.15 s of a core each.
ifeq ($(origin WAVELANE_SEED),file) # not given by the caller
proofs: export WAVELANE_SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d " ")
endif
proofs: ## what make test leaves to the seed: every PTX kernel analysed, on 20 schedules, optimised, with 10 mistakes made in it, all cases with every check; 5,000 random programs per device, misuse for over an hour, by a new seed (about two hours of two cores)
	@echo "WAVELANE_SEED=$(WAVELANE_SEED)"
	$(MAKE) cross PLATFORMS="$(OTHERS)"
	WAVELANE_PROOFS=all $(MAKE) -j$(JOBS) proofs-kernels proofs-misuse proofs-programs
	$(MAKE) fuzz

PROOF := $(GO) test -vet=off -count=1 -timeout 180m

proofs-kernels: SHELL := bash
proofs-kernels: .SHELLFLAGS := -o pipefail -c
proofs-kernels:
	WAVELANE_SAMPLE=1 $(PROOF) ./internal/ptxkernels -run '^(TestStrict|TestUses|TestVerdicts|TestSchedules|TestMutants|TestOptimised|TestLowerings|TestAttentionVariants|TestEveryKernelIsLaunched|TestElementwisePerturbed|TestLongLoops)$$' -v | grep -v '^ *\(===\|---\)'

proofs-misuse: # by the clock, each part its share
	cd internal/misuse && $(PROOF) -v .

proofs-programs:
	$(PROOF) -v ./internal/cudacorpus ./onnx/internal/corpus ./examples/ocr ./examples/clusters ./internal/decoder ./internal/benchmarks ./internal/wgslkernels \
		./internal/simd/gemm ./internal/simd/kernels ./ptx/eval ./cuda
	WAVELANE_SAMPLE=1 $(PROOF) ./internal/conformance ./cpu
	cd internal/simd/asmgen && $(PROOF) ./kernels
	cd internal/randomprograms && $(PROOF) .
	$(PROOF) -v ./gpu -run '^TestRoundTrips$$'
	WAVELANE_STREAMS=10m $(PROOF) -v ./examples/serve -run "^(TestStreams|TestClients)$$$$"
	$(PROOF) ./dist -run "^TestMPI"

FUZZTIME ?= 20s
fuzz: ## each fuzz test for FUZZTIME
	@grep -rHoE '^func Fuzz\w+' --include='*_test.go' . | while IFS=: read -r file name; do \
		$(GO) test -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 2s "$$(dirname "$$file")" || exit 1; done

BASE ?= HEAD
ptx-diff: ## is the PTX of every kernel, byte for byte, what it is at the commit BASE? For changes of the builder, or of the kernels' Go alone
	@t=$$(mktemp -d); trap 'git worktree remove --force $$t/base; rm -r $$t' EXIT; git worktree add -q --detach $$t/base $(BASE); \
	for at in $$t/base $(CURDIR); do \
		(cd $$at && $(GO) build -o $$t/wavelane ./cmd/wavelane) || exit 1; \
		$$t/wavelane ptx emit | cut -d: -f1 | sort -u | while read family; do $$t/wavelane ptx emit --family $$family; done > $$t/$$(basename $$at).ptx; \
	done; \
	diff -u $$t/base.ptx $$t/$(notdir $(CURDIR)).ptx && echo "$$(grep -c '\.entry' $$t/base.ptx) kernels are as at $(BASE)"

ptxas-check: ## assemble the PTX kernels that have changed with NVIDIA's ptxas (from PATH, or PTXAS=…) and write what each takes to a table
	@command -v "$${PTXAS:-ptxas}" >/dev/null || { echo "no ptxas: set PTXAS (the README says how to get one)"; exit 1; }
	$(GO) test -count=1 ./internal/ptxkernels -run '^TestPtxas(Sass)?$$' -update
	$(GO) test -count=1 ./ptx/... -run Ptxas
