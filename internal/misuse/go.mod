module github.com/wavelane/wavelane/internal/misuse

go 1.26.0

require github.com/wavelane/wavelane v0.0.0

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cogentcore/webgpu v0.23.0 // indirect
	github.com/ebitengine/purego v0.11.3 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/sys v0.49.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace github.com/wavelane/wavelane => ../..
