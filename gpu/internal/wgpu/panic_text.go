//go:build ((linux && !android) || windows) && (amd64 || arm64)

package wgpu

import (
	"unicode/utf8"
	"unsafe"
)

// gccException and msvcException are what is thrown for a panic, as the compilers of versions 27 and 29 lay it out: for the unwinder of
// GCC, and for Microsoft's. After the canary comes what the panic was given, a pointer and its methods.
type (
	gccException struct {
		class   [8]byte
		_       [1 + gccPrivate + 1]uintptr // cleanup, the unwinder's, canary
		payload rustBox
	}
	msvcException struct {
		_       uintptr // canary
		payload rustBox
	}
	rustBox struct{ data, methods uintptr }
)

// panicText returns the text of a panic, so far as it is where it is expected. It reads without touching, so that another layout is no
// fault.
func panicText(exception uintptr) string {
	const unknown, most = "the library has panicked", 4096
	var gcc gccException
	var msvc msvcException
	var methods struct{ drop, size, align uintptr }
	var text struct{ capacity, data, length uintptr }
	payload := &msvc.payload
	if peekAt(exception, &gcc) && string(gcc.class[:]) == "MOZ\x00RUST" {
		payload = &gcc.payload
	} else if !peekAt(exception, &msvc) {
		return unknown
	}
	if !peekAt(payload.methods, &methods) || methods.size != unsafe.Sizeof(text) || !peekAt(payload.data, &text) || text.length == 0 || text.length > most {
		return unknown
	}
	b := make([]byte, text.length)
	if !peek(text.data, b) || !utf8.Valid(b) {
		return unknown
	}
	return string(b)
}

func peekAt[T any](from uintptr, to *T) bool {
	return peek(from, unsafe.Slice((*byte)(unsafe.Pointer(to)), unsafe.Sizeof(*to)))
}
