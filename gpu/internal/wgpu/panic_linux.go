//go:build !android && (amd64 || arm64)

package wgpu

import (
	"os"
	"syscall"
	"unsafe"
)

// linkMap begins what the loader knows of a library, to which a handle points.
type linkMap struct {
	base    uintptr
	name    uintptr
	dynamic uintptr
}

// dynamicEntry, relocation and symbol are entries of the tables by which the loader links a library.
type dynamicEntry struct{ tag, value uintptr }

type relocation struct {
	offset       uintptr
	kind, symbol uint32
	addend       int64
}

type symbol struct {
	name        uint32
	info, other uint8
	section     uint16
	value, size uint64
}

// intercept puts thrown in the place of the function by which a library begins to unwind panics. It reports whether there is one.
func intercept(handle uintptr) bool {
	const (
		dtPLTRELSZ, dtSTRTAB, dtSYMTAB, dtRELA, dtRELASZ, dtJMPREL = 2, 5, 6, 7, 8, 23
		name                                                       = "_Unwind_RaiseException\x00"
	)
	l := (*linkMap)(Pointer(handle))
	tables := map[uintptr]uintptr{}
	for at := l.dynamic; ; at += unsafe.Sizeof(dynamicEntry{}) {
		e := (*dynamicEntry)(Pointer(at))
		if e.tag == 0 {
			break
		}
		tables[e.tag] = e.value
	}
	for _, t := range []uintptr{dtSTRTAB, dtSYMTAB, dtRELA, dtJMPREL} { // some loaders leave addresses as they are in the file
		if tables[t] != 0 && tables[t] < l.base {
			tables[t] += l.base
		}
	}
	found := false
	for table, size := range map[uintptr]uintptr{dtRELA: dtRELASZ, dtJMPREL: dtPLTRELSZ} {
		if tables[table] == 0 {
			continue
		}
		for at := tables[table]; at < tables[table]+tables[size]; at += unsafe.Sizeof(relocation{}) {
			r := (*relocation)(Pointer(at))
			if r.symbol == 0 {
				continue
			}
			s := (*symbol)(Pointer(tables[dtSYMTAB] + uintptr(r.symbol)*unsafe.Sizeof(symbol{})))
			if string(unsafe.Slice((*byte)(Pointer(tables[dtSTRTAB]+uintptr(s.name))), len(name))) == name {
				found = replace(l.base+r.offset, thrown()) || found
			}
		}
	}
	return found
}

// replace writes a word of memory that may be read-only, which it stays not.
func replace(at, value uintptr) bool {
	page := uintptr(os.Getpagesize())
	if _, _, errno := syscall.Syscall(syscall.SYS_MPROTECT, at&^(page-1), page, syscall.PROT_READ|syscall.PROT_WRITE); errno != 0 {
		return false
	}
	*(*uintptr)(Pointer(at)) = value
	return true
}

// gccPrivate is how many words an exception keeps for the unwinder.
const gccPrivate = 2

// peek copies memory that may not exist, through a pipe.
func peek(from uintptr, to []byte) bool {
	var ends [2]int
	if syscall.Pipe2(ends[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK) != nil {
		return false
	}
	defer syscall.Close(ends[0])
	defer syscall.Close(ends[1])
	n, _, errno := syscall.Syscall(syscall.SYS_WRITE, uintptr(ends[1]), from, uintptr(len(to)))
	if errno != 0 || int(n) != len(to) {
		return false
	}
	got, err := syscall.Read(ends[0], to)
	return err == nil && got == len(to)
}
