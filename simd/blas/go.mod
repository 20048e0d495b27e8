module github.com/wavelane/wavelane/simd/blas

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/wavelane/wavelane v0.0.0
	gonum.org/v1/gonum v0.17.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace github.com/wavelane/wavelane => ../..
