//go:build cgo && linux && !android && (amd64 || arm64)

package wgpu

// The module is a static archive and the flags that link it.
import _ "github.com/oliverbestmann/webgpu/libs-linux"
