//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64) && (!cgo || (windows && arm64))

package wgpu

import "errors"

func linked() (*Library, error) {
	return nil, errors.New("a program built with CGO_ENABLED=0 has no WebGPU library in it; put one beside it or name one in " +
		Environment + " (wavelane wgpu says where to get it), or build with cgo and a C compiler")
}
