module github.com/wavelane/wavelane/internal/simd/asmgen

go 1.26.0

require (
	github.com/mmcloughlin/avo v0.6.0
	github.com/stretchr/testify v1.12.1
	github.com/tetratelabs/wazero v1.12.0
	golang.org/x/arch v0.32.0
	golang.org/x/sys v0.49.0
)

require pgregory.net/rapid v1.3.0 // indirect

require (
	github.com/wavelane/wavelane v0.0.0
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/mod v0.38.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/tools v0.48.0 // indirect
)

replace github.com/wavelane/wavelane => ../../..
