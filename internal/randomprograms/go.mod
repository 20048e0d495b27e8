module github.com/wavelane/wavelane/internal/randomprograms

go 1.26.0

require (
	github.com/wavelane/wavelane v0.0.0
	github.com/x448/float16 v0.8.4
	pgregory.net/rapid v1.3.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/ebitengine/purego v0.11.3 // indirect
	github.com/oliverbestmann/webgpu/libs-darwin v0.0.0-20251123130615-bce73357dc8d // indirect
	github.com/oliverbestmann/webgpu/libs-linux v0.0.0-20251123130508-41a15cd9f5d4 // indirect
	github.com/oliverbestmann/webgpu/libs-windows v0.0.0-20251123134324-0b4e31ddbbf9 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/wavelane/wavelane => ../..
