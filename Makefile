# `make test` is what CI runs, and all it runs. It needs Go, and npm for a real pi; without
# npm the tests of a real pi are skipped and say so (with CI=true they fail).

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
PI          = adapters/internal/pitest/npm adapters/pi/e2e/testdata/pi-1.3.0
FUZZTIME   ?= 5s

SHELL       = bash -o pipefail

.PHONY: test pi format vet lint race fuzz examples tidy cross bench

test: format vet lint tidy cross pi race fuzz examples

# A real pi, the newest and the oldest that are supported, and the Node.js that they need,
# pinned, in ignored folders.
pi:
	@if command -v npm >/dev/null; then \
		for dir in $(PI); do npm ci --prefix $$dir --no-audit --no-fund --loglevel=error || exit; done; \
	else echo "npm is missing: tests of a real pi will be skipped"; fi

format:
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "not formatted:"; echo "$$out"; exit 1; }

vet:
	go vet ./...

lint:
	go run $(STATICCHECK) ./...

tidy:
	go mod tidy -diff

cross:
	GOOS=darwin go vet ./...
	GOOS=windows go vet ./...

race:
	go test -race -shuffle=on -timeout 30m -json ./... | go run .ci/report.go

# Every fuzz target for a few seconds; `make fuzz FUZZTIME=10m` for a long run.
fuzz:
	@set -e; for pkg in $$(go list ./...); do \
		for target in $$(go test $$pkg -list '^Fuzz' | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; go test $$pkg -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME); \
		done; \
	done

examples:
	go run ./examples/quickstart

bench:
	go test -run '^$$' -bench . -benchmem ./...
