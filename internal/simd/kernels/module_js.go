package kernels

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"syscall/js"
	"unsafe"
)

// Go's compiler emits no SIMD for WebAssembly, so kernels are in a second module, the side module, which imports the memory
// of the Go program. Its source are the definitions in internal/simd/asmgen.

//go:embed kernels_gen.wasm
var moduleCode []byte

// loadErr says why there is no side module, or not yet.
var loadErr error

// loaded makes the tier available after the start. It is a variable since what computes the best tier at the start refers to it.
var loaded func()

func init() {
	loaded = func() {
		available = []Tier{Scalar, SIMD128}
		active, forcedErr = forced(os.Getenv(Variable))
	}
}

func detect() []Tier {
	if loadErr = load(moduleCode); loadErr != nil {
		return []Tier{Scalar}
	}
	return []Tier{Scalar, SIMD128}
}

// Missing says why kernels run as portable Go code on a platform that should have SIMD; nil if nothing is missing. In a browser
// that compiles large modules in the background only, it may become nil once the program has yielded to the event loop.
func Missing() error {
	if loadErr == nil {
		return nil
	}
	return fmt.Errorf("no %s: %w", SIMD128, loadErr)
}

// load makes an instance of the side module, so that it can be called. If the engine refuses to do so at once, loading goes
// on in the background; the tier is then available once it is done.
func load(code []byte) (err error) {
	defer recoverJS(&err)
	bytes, imports, err := prepared(code)
	if err != nil {
		return err
	}
	instance, err := instantiate(bytes, imports)
	if err != nil {
		// Engines limit the size of what they compile on a browser's main thread, some to 4 KiB.
		var then, failed js.Func
		settle := func(err error) any {
			then.Release()
			failed.Release()
			loadErr = err
			return nil
		}
		then = js.FuncOf(func(_ js.Value, args []js.Value) any {
			if err := connect(args[0].Get("instance")); err != nil {
				return settle(err)
			}
			loaded()
			return settle(nil)
		})
		failed = js.FuncOf(func(_ js.Value, args []js.Value) any { return settle(js.Error{Value: args[0]}) })
		js.Global().Get("WebAssembly").Call("instantiate", bytes, imports).Call("then", then, failed)
		return fmt.Errorf("not yet: %w", err)
	}
	return connect(instance)
}

// functions is the table of the side module's functions.
var functions js.Value

// Relaxed is the code of the module with functions for engines with relaxed SIMD.
func Relaxed() []byte { return moduleCode[len(moduleCode)-relaxedLen:] }

// Extend makes an instance of a module that adds functions to the side module's table. It is an error if the engine does not
// have its instructions.
func Extend(code []byte) error {
	bytes, imports, err := prepared(code)
	if err == nil {
		_, err = instantiate(bytes, imports)
	}
	return err
}

// prepared returns code and imports of a module as JavaScript has them.
func prepared(code []byte) (bytes, imports js.Value, err error) {
	memory, err := goMemory()
	if err != nil {
		return bytes, imports, err
	}
	bytes = js.Global().Get("Uint8Array").New(len(code))
	js.CopyBytesToJS(bytes, code)
	return bytes, js.ValueOf(map[string]any{
		"go": map[string]any{"mem": memory, "box": uintptr(unsafe.Pointer(&box)), "table": functions},
	}), nil
}

func instantiate(bytes, imports js.Value) (instance js.Value, err error) {
	defer recoverJS(&err)
	assembly := js.Global().Get("WebAssembly")
	return assembly.Get("Instance").New(assembly.Get("Module").New(bytes), imports), nil
}

// recoverJS turns what package syscall/js panics with into an error.
func recoverJS(err *error) {
	switch e := recover().(type) {
	case nil:
	case js.Error:
		*err = e
	case *js.ValueError:
		*err = e
	default:
		panic(e)
	}
}

// connect makes calls go to an instance, and tries one.
func connect(instance js.Value) (err error) {
	defer recoverJS(&err)
	object := js.Global().Get("Object").New()
	getter := map[string]any{"get": instance.Get("exports").Get("run")}
	js.Global().Get("Object").Call("defineProperty", object, "length", getter)
	module, functions = object, instance.Get("exports").Get("table")

	const n = 9
	x := make([]float32, n+1)
	for i := range x {
		x[i] = float32(i + 1)
	}
	addSIMD128(&x[0], &x[0], &x[0], n)
	for i, v := range x {
		want := float32(2 * (i + 1))
		if i == n {
			want = n + 1
		}
		if v != want {
			return fmt.Errorf("the module computes %v", x)
		}
	}
	return nil
}

// goMemory finds the memory of the running Go program, in the object of class Go that runs it (lib/wasm/wasm_exec.js of Go).
// Package syscall/js keeps that object to itself, but refers to it by a number that is the same in all programs.
func goMemory() (js.Value, error) {
	// The layout of js.Value: a number that says which object it is, and a pointer that is nil for objects never freed.
	type value struct {
		_   [0]func()
		ref uint64
		gc  *uint64
	}
	const globalRef, goRef = 0x7ff8_0001_0000_0005, 0x7ff8_0001_0000_0006
	global := js.Global()
	known := unsafe.Sizeof(global) == unsafe.Sizeof(value{})
	if v := (*value)(unsafe.Pointer(&global)); !known || v.ref != globalRef || v.gc != nil {
		return js.Value{}, errors.New("package syscall/js has another layout than that of Go 1.26")
	}
	object := *(*js.Value)(unsafe.Pointer(&value{ref: goRef}))
	memory := object.Get("_inst").Get("exports").Get("mem")
	if !memory.InstanceOf(global.Get("WebAssembly").Get("Memory")) {
		return js.Value{}, errors.New("the Go program's memory is not where Go 1.26 has it")
	}
	// It is the right one if what Go writes stands there.
	const token = 0x5eed_1234
	box.n = token
	word := global.Get("Uint32Array").New(memory.Get("buffer"), uintptr(unsafe.Pointer(&box.n)), 1)
	if word.Index(0).Float() != token {
		return js.Value{}, errors.New("the memory found is not the Go program's")
	}
	return memory, nil
}
