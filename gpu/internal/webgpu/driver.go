// Package webgpu has the drivers of WebGPU: wgpu-native by package wgpu, the browser's through JavaScript, and none on other systems.
// They know buffers, pipelines and submissions, and neither tensors nor programs.
package webgpu

import (
	"fmt"
	"time"

	"github.com/wavelane/wavelane/wgsl"
)

// Driver is an open device. Its methods are safe for concurrent use, and none waits: a browser tells only later whether an object was
// created, see Ready.
//
// Arguments have been validated, so that an error means that the machine refused. Errors wrap compute.ErrOutOfMemory or
// compute.ErrDeviceLost, or are a *ShaderError. Any other error is a defect of this module or of the WebGPU implementation.
type Driver interface {
	NewBuffer(kind BufferKind, size uint64) (Object, error)
	NewPipeline(k *wgsl.Kernel) (Object, error)
	// NewGroup binds buffers to a pipeline's storage bindings, then to its uniform if it has one.
	NewGroup(pipeline Object, bind []Binding) (Object, error)
	// Together calls f, which makes groups and nothing else. Where outcomes come later, the groups share one.
	Together(f func() error) error
	// Ready calls f, which must not block, once it is known whether o was created; at once if it is known already. Until then o can
	// be used like any other object. If o failed, submissions that use it fail, and it must be freed and not be used again.
	Ready(o Object, f func(error))

	// Write copies into an upload buffer that no submission uses.
	Write(upload Object, offset uint64, data []byte)
	// Read copies out of a readback buffer between the completion of its submission and Unmap.
	Read(readback Object, offset uint64, dst []byte)
	Unmap(readback Object) error

	// Submit records and submits. If it returns nil, s.Done will be called once, after the work has finished or failed, which
	// includes a failure to record the rest of it, and after the outcome of all earlier creations is known. If it returns an error,
	// nothing was submitted.
	Submit(s *Submission) error

	// Lost returns why the device is lost, or nil if it is not. A lost device stays lost.
	Lost() error
	// Close releases the device. All objects have been freed and nothing is in flight.
	Close()
}

// Object is a buffer, pipeline or bind group of a driver. Free is called once, when no submission in flight uses it.
type Object interface{ Free() }

// BufferKind is the purpose of a buffer.
type BufferKind uint8

// Kinds of buffers.
const (
	StorageBuffer  BufferKind = iota
	UniformBuffer             // filled by copies, read by kernels
	UploadBuffer              // mapped for writing while no submission uses it
	ReadbackBuffer            // mapped for reading from the completion of its submission to Unmap
	BufferKinds               // their number
)

func (k BufferKind) String() string {
	return [...]string{"storage", "uniform", "upload", "readback"}[k]
}

// Binding is a part of a buffer.
type Binding struct {
	Buffer       Object
	Offset, Size uint64
}

// Command is a dispatch if it has a pipeline, else a timestamp if that is set, else a copy.
type Command struct {
	Timestamp       bool
	Pipeline, Group Object
	Dynamic         uint32 // offset of the uniform, if the pipeline has one
	Grid            [3]uint32

	From, To             Object
	FromOffset, ToOffset uint64
	Size                 uint64
}

// Submission is the work of one run.
type Submission struct {
	Commands []Command
	Cuts     []int       // where command buffers end, except the last; each is submitted before the next is recorded
	Staging  []Object    // the upload and readback buffers in Commands; mapped at completion
	Done     func(error) // called from any goroutine; must not block

	Timed      bool            // fill in GPUTime and Times, valid in Done
	GPUTime    time.Duration   // from the first to the last command
	Timestamps int             // number of commands that are timestamps; 0 unless Timed
	Times      []time.Duration // between the timestamps, one fewer
}

// ShaderError reports WGSL that does not compile, or that does not fit the bindings declared for it.
type ShaderError struct {
	Label   string // of the kernel
	Line    int    // in the WGSL text, from 1; 0 if the compiler did not say
	Column  int    // in bytes, from 1; 0 if the compiler did not say
	Message string // what is wrong, in one line
	Details string // the compiler's whole report
}

// Error names the kernel and, if known, the position.
func (e *ShaderError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("kernel %s: %s", e.Label, e.Message)
	}
	return fmt.Sprintf("kernel %s: %d:%d: %s", e.Label, e.Line, e.Column, e.Message)
}
