//go:build cgo && windows && amd64

package wgpu

// The module is a static archive and the flags that link it.
import _ "github.com/oliverbestmann/webgpu/libs-windows"
