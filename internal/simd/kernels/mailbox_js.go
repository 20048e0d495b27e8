package kernels

import (
	"runtime"
	"syscall/js"
	"unsafe"
)

// mailbox is what a call of the side module finds its operands in, since passing them as arguments costs more. Its layout is
// that of asmgen/wasm/mailbox.go.
type mailbox struct {
	op, n    uint32
	pointers [5]unsafe.Pointer
	params   [4]float32
	results  [4]float32
	words    [8]uint32
	lanes    [2 * Lanes]float32
}

// box is a variable of the package, which has a fixed address. Storing a pointer in it moves to the heap what is pointed to,
// as it must: a stack may move before the module reads the address.
var box mailbox

// boxed is whether the mailbox is in use. The scheduler, which has one thread here, does not take a goroutine off in the middle
// of a call, but nothing says that it never will.
var boxed bool

// module has the exported function of the side module as the getter of its length: of all ways from Go to JavaScript and
// back js.Value.Length is the shortest, a quarter of Invoke, since it passes no arguments and returns an int.
var module js.Value

// openBox begins a call: it is followed by storing operands, runBox, reading results and closeBox.
func openBox(op uint32, n int) {
	for boxed {
		runtime.Gosched()
	}
	boxed = true
	box.op, box.n = op, uint32(n)
}

// runBox runs the operation and returns the number of elements done.
func runBox() int { return module.Length() }

// closeBox ends a call. Operands were reachable from the mailbox until now, and may be freed from here on.
func closeBox() {
	box.pointers = [5]unsafe.Pointer{}
	boxed = false
}
