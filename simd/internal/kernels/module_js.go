package kernels

import (
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"syscall/js"
	"unsafe"
)

// SIMD128 is in a second WebAssembly module, since Go's compiler emits none. It imports the memory of the Go program, finds
// the operands of a call in the mailbox, and leaves the results there.

//go:embed zz_kernels.wasm
var moduleCode []byte

// mailbox is laid out as asmgen/wasm/mailbox.go says.
type mailbox struct {
	op, n    uint32
	pointers [5]unsafe.Pointer
	params   [4]float32
	results  [4]float32
}

// box is a variable of the package, which has a fixed address. Storing a pointer in it moves to the heap what is pointed to,
// as it must: a stack may move before the module reads the address.
var box mailbox

// boxed is whether the mailbox is in use, by a goroutine that the scheduler took off the processor between writing to it and
// the call. The others then run the portable code.
var boxed bool

// module has the exported function of the side module as the getter of its length: of all ways from Go to JavaScript and
// back, js.Value.Length is the shortest one, since it passes no arguments and returns an int.
var module js.Value

// load makes an instance of the side module.
func load() (err error) {
	defer func() {
		if e, ok := recover().(js.Error); ok {
			err = e
		}
	}()
	memory, err := goMemory()
	if err != nil {
		return err
	}
	webAssembly := js.Global().Get("WebAssembly")
	code := js.Global().Get("Uint8Array").New(len(moduleCode))
	js.CopyBytesToJS(code, moduleCode)
	imports := map[string]any{"go": map[string]any{"mem": memory, "box": uintptr(unsafe.Pointer(&box))}}
	instance := webAssembly.Get("Instance").New(webAssembly.Get("Module").New(code), imports)
	run = instance.Get("exports").Get("run")
	object := js.Global().Get("Object").New()
	js.Global().Get("Object").Call("defineProperty", object, "length", map[string]any{"get": run})
	module = object
	return nil
}

var run js.Value

// goMemory finds the memory of the running Go program, in the object of class Go that runs it (lib/wasm/wasm_exec.js). Package
// syscall/js keeps that object to itself, but refers to it by a number that is the same in all programs.
func goMemory() (js.Value, error) {
	var object js.Value
	global := js.Global()
	// The layout of js.Value: a number that says which object it is, and a pointer that is nil for objects never freed.
	type value struct {
		_   [0]func()
		ref uint64
		gc  *uint64
	}
	const globalRef, goRef = 0x7ff8_0001_0000_0005, 0x7ff8_0001_0000_0006
	if unsafe.Sizeof(object) != unsafe.Sizeof(value{}) {
		return object, errors.New("js.Value has another layout than expected")
	}
	if g := (*value)(unsafe.Pointer(&global)); g.ref != globalRef || g.gc != nil {
		return object, errors.New("js.Value has another layout than expected")
	}
	(*value)(unsafe.Pointer(&object)).ref = goRef
	memory := object.Get("_inst").Get("exports").Get("mem")
	if !memory.InstanceOf(global.Get("WebAssembly").Get("Memory")) {
		return object, fmt.Errorf("the Go program's memory is a %s", memory.Type())
	}
	runtime.KeepAlive(global)
	return memory, nil
}
