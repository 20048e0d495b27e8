package webgpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall/js"

	"github.com/wavelane/wavelane/compute"
)

// functions are the browser's functions, looked up once, so that calls do not look them up by name. Methods take their object as first
// argument.
type functions struct {
	object, uint8, uint32, promise js.Value // constructors
	outOfMemory                    js.Value // GPUOutOfMemoryError

	all, arrayOf, then js.Value // Promise.all, Array.of, Promise.prototype.then

	// of devices and queues
	createBuffer, createShaderModule, createBindGroupLayout, createPipelineLayout, createComputePipeline, createBindGroup,
	createCommandEncoder, createQuerySet, pushErrorScope, popErrorScope, submit, onSubmittedWorkDone js.Value
	// of encoders and passes
	beginComputePass, copyBufferToBuffer, resolveQuerySet, finish, setPipeline, setBindGroup, dispatchWorkgroups, end js.Value
	// of buffers
	mapAsync, getMappedRange, unmap, destroy js.Value

	validation, memory, internal js.Value // names of error scopes
}

// api returns the browser's functions, or nil where there is no WebGPU.
var api = sync.OnceValue(func() *functions {
	global := js.Global()
	if global.Get("GPUDevice").IsUndefined() {
		return nil
	}
	function := global.Get("Function").Get("prototype")
	call, bind := function.Get("call"), function.Get("bind")
	method := func(class, name string) js.Value {
		return bind.Call("call", call, global.Get(class).Get("prototype").Get(name))
	}
	static := func(class, name string) js.Value {
		return bind.Call("call", global.Get(class).Get(name), global.Get(class))
	}
	return &functions{
		object: global.Get("Object"), uint8: global.Get("Uint8Array"), uint32: global.Get("Uint32Array"),
		promise: global.Get("Promise"), outOfMemory: global.Get("GPUOutOfMemoryError"),
		all: static("Promise", "all"), arrayOf: static("Array", "of"), then: method("Promise", "then"),

		createBuffer: method("GPUDevice", "createBuffer"), createShaderModule: method("GPUDevice", "createShaderModule"),
		createBindGroupLayout: method("GPUDevice", "createBindGroupLayout"),
		createPipelineLayout:  method("GPUDevice", "createPipelineLayout"),
		createComputePipeline: method("GPUDevice", "createComputePipeline"), createBindGroup: method("GPUDevice", "createBindGroup"),
		createCommandEncoder: method("GPUDevice", "createCommandEncoder"), createQuerySet: method("GPUDevice", "createQuerySet"),
		pushErrorScope: method("GPUDevice", "pushErrorScope"), popErrorScope: method("GPUDevice", "popErrorScope"),
		submit: method("GPUQueue", "submit"), onSubmittedWorkDone: method("GPUQueue", "onSubmittedWorkDone"),

		beginComputePass:   method("GPUCommandEncoder", "beginComputePass"),
		copyBufferToBuffer: method("GPUCommandEncoder", "copyBufferToBuffer"),
		resolveQuerySet:    method("GPUCommandEncoder", "resolveQuerySet"), finish: method("GPUCommandEncoder", "finish"),
		setPipeline:        method("GPUComputePassEncoder", "setPipeline"),
		setBindGroup:       method("GPUComputePassEncoder", "setBindGroup"),
		dispatchWorkgroups: method("GPUComputePassEncoder", "dispatchWorkgroups"), end: method("GPUComputePassEncoder", "end"),

		mapAsync: method("GPUBuffer", "mapAsync"), getMappedRange: method("GPUBuffer", "getMappedRange"),
		unmap: method("GPUBuffer", "unmap"), destroy: method("GPUBuffer", "destroy"),

		validation: js.ValueOf("validation"), memory: js.ValueOf("out-of-memory"), internal: js.ValueOf("internal"),
	}
})

// live counts the Go functions that JavaScript holds. All this runs on one thread, and nothing here is preempted.
var live int

func newFunc(f func(args []js.Value)) js.Func {
	live++
	return js.FuncOf(func(_ js.Value, args []js.Value) any {
		f(args)
		return nil
	})
}

func releaseFunc(f js.Func) {
	live--
	f.Release()
}

// settle calls f with the value of a promise, or with the error that it was rejected with. F runs within JavaScript's event
// loop, so it must not block; what takes its time it gives to a goroutine.
func (w *functions) settle(promise js.Value, f func(v js.Value, err error)) {
	var kept, broken js.Func
	release := func() {
		releaseFunc(kept)
		releaseFunc(broken)
	}
	kept = newFunc(func(args []js.Value) {
		release()
		f(args[0], nil)
	})
	broken = newFunc(func(args []js.Value) {
		release()
		f(js.Undefined(), reason(args[0]))
	})
	w.then.Invoke(promise, kept, broken)
}

// await waits for a promise. Only goroutines may call it: inside a function that JavaScript has called it would wait for ever.
func (w *functions) await(ctx context.Context, promise js.Value) (js.Value, error) {
	type outcome struct {
		v   js.Value
		err error
	}
	done := make(chan outcome, 1)
	w.settle(promise, func(v js.Value, err error) { done <- outcome{v, err} })
	select {
	case o := <-done:
		return o.v, o.err
	case <-ctx.Done():
		return js.Undefined(), ctx.Err()
	}
}

// reason is the error that JavaScript threw.
func reason(v js.Value) error {
	if v.Type() != js.TypeObject {
		return errors.New(js.Global().Get("String").Invoke(v).String())
	}
	name, message := v.Get("name").String(), v.Get("message").String()
	if name == "RangeError" { // no memory for a mapping
		return fmt.Errorf("%s: %s: %w", name, message, compute.ErrOutOfMemory)
	}
	return fmt.Errorf("%s: %s", name, message)
}

// attempt turns what f throws into an error.
func attempt(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			thrown, ok := r.(js.Error)
			if !ok {
				panic(r)
			}
			err = reason(thrown.Value)
		}
	}()
	f()
	return nil
}

// gpuError is the error of an error scope, or nil.
func (w *functions) gpuError(v js.Value) error {
	if v.IsNull() || v.IsUndefined() {
		return nil
	}
	text := v.Get("message").String()
	if v.InstanceOf(w.outOfMemory) {
		return fmt.Errorf("%s: %w", text, compute.ErrOutOfMemory)
	}
	return errors.New(text)
}

// literal makes an object of names and values in turn.
func (w *functions) literal(pairs ...any) js.Value {
	o := w.object.New()
	for i := 0; i < len(pairs); i += 2 {
		o.Set(pairs[i].(string), pairs[i+1])
	}
	return o
}
