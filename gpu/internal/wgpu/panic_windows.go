//go:build amd64 || arm64

package wgpu

import (
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

var (
	virtualProtect    = kernel32.NewProc("VirtualProtect")
	readProcessMemory = kernel32.NewProc("ReadProcessMemory")
)

// gccPrivate is how many words an exception keeps for the unwinder.
const gccPrivate = 6

// importDescriptor says where the names of the functions that a library takes of another are, and where their addresses.
type importDescriptor struct{ names, _, _, library, addresses uint32 }

// intercept puts a callback in the place of the function by which a library begins to unwind panics. It reports whether there is one.
func intercept(handle uintptr) bool {
	slot := imported(handle, "vcruntime140.dll", "_CxxThrowException")
	if slot == nil {
		return false
	}
	throw := *slot
	return replace(slot, purego.NewCallback(func(exception, kind uintptr) uintptr {
		endCall(exception)
		Call(throw, exception, kind) // ends the process
		return 0
	}))
}

// imported returns where a library keeps the address of a function of another one, nil if it takes none of that name.
func imported(handle uintptr, library, name string) *uintptr {
	const newHeader, optional, directory, byNumber = 0x3c, 24, 24 + 112 + 8, 1 << 63
	word := func(at uintptr) uintptr { return uintptr(*(*uint32)(Pointer(at))) }
	header := handle + word(handle+newHeader)
	if *(*uint16)(Pointer(header + optional)) != 0x20b || word(header+directory) == 0 { // not of 64 bits, or without imports
		return nil
	}
	for at := handle + word(header+directory); ; at += unsafe.Sizeof(importDescriptor{}) {
		d := (*importDescriptor)(Pointer(at))
		if d.library == 0 {
			return nil
		}
		if d.names == 0 || !strings.EqualFold(cString(handle+uintptr(d.library)), library) {
			continue
		}
		for i := uintptr(0); ; i += 8 {
			function := *(*uintptr)(Pointer(handle + uintptr(d.names) + i))
			if function == 0 {
				break
			}
			if function&byNumber == 0 && cString(handle+function+2) == name { // after a hint
				return (*uintptr)(Pointer(handle + uintptr(d.addresses) + i))
			}
		}
	}
}

func cString(at uintptr) string { return StringView{Data: at, Length: ^uintptr(0)}.String() }

// replace writes a word of memory that is read-only.
func replace(at *uintptr, value uintptr) bool {
	const readWrite = 4 // PAGE_READWRITE
	var before, ignored uint32
	address, size := uintptr(unsafe.Pointer(at)), unsafe.Sizeof(*at)
	if ok, _, _ := virtualProtect.Call(address, size, readWrite, uintptr(unsafe.Pointer(&before))); ok == 0 {
		return false
	}
	*at = value
	virtualProtect.Call(address, size, uintptr(before), uintptr(unsafe.Pointer(&ignored)))
	return true
}

// peek copies memory that may not exist.
func peek(from uintptr, to []byte) bool {
	const self = ^uintptr(0) // the handle of the process itself
	var n uintptr
	ok, _, _ := readProcessMemory.Call(self, from, uintptr(unsafe.Pointer(&to[0])), uintptr(len(to)), uintptr(unsafe.Pointer(&n)))
	return ok != 0 && n == uintptr(len(to))
}
