package webgpu

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"syscall/js"
	"unicode/utf16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// browser is the driver over the browser's WebGPU.
//
// How errors travel. Nothing that WebGPU makes tells at once whether it came into being, and waiting would need the event
// loop, which a caller may be holding up. So every creation and submission stands between error scopes whose outcome comes
// later: whatever is made can be used immediately, and a submission completes after the outcome of everything that was made
// before it is known. All of it runs on one thread without preemption, so pushing a scope, the call, and popping the scope are
// never torn apart, and no lock is needed.
type browser struct {
	w             *functions
	device, queue js.Value
	owned         bool // destroyed by close

	making   map[*creation]bool // whose outcome is not known
	shared   *creation          // of groups that are made together
	inFlight []*pending         // in the order of submission
	stray    error              // that no scope caught, for the next submission

	lostErr    error
	lostSignal chan struct{} // closed with lostErr set
	noMoreLost js.Value      // ends the wait for a loss
	uncaptured js.Func

	// Reused from call to call: WebGPU reads descriptors before it returns.
	bufferDesc, groupDesc js.Value
	resources             []resource // by binding
	bindings              []js.Value // by binding: {binding, resource}
	bindingLists          []js.Value // by number of bindings
	dynamic               dynamicOffsets
	stamps                []stamps // free
}

func newBrowserDriver(device js.Value, owned bool) *browser {
	w := api()
	d := &browser{
		w: w, device: device, queue: device.Get("queue"), owned: owned, making: map[*creation]bool{},
		lostSignal: make(chan struct{}), bufferDesc: w.object.New(), groupDesc: w.object.New(),
	}
	// The promise of the loss may never be kept. To get the functions back, wait for one that close can keep.
	executor := newFunc(func(args []js.Value) { d.noMoreLost = args[0] })
	gate := w.promise.New(executor)
	releaseFunc(executor)
	w.then.Invoke(device.Get("lost"), d.noMoreLost)
	w.settle(gate, func(info js.Value, _ error) {
		if info.Truthy() {
			d.lose(fmt.Errorf("%s: %s: %w", info.Get("reason").String(), info.Get("message").String(), compute.ErrDeviceLost))
		}
	})
	if owned { // errors of a page's device may be the page's
		d.uncaptured = newFunc(func(args []js.Value) {
			args[0].Call("preventDefault") // the console need not have it as well
			d.strayed(w.gpuError(args[0].Get("error")))
		})
		device.Call("addEventListener", "uncapturederror", d.uncaptured)
	}
	return d
}

// strayed delivers an error that belongs to no call that we know of with the work in flight, or with the next.
func (d *browser) strayed(err error) {
	for _, f := range d.inFlight {
		f.fail(err)
	}
	if len(d.inFlight) == 0 && d.stray == nil {
		d.stray = err
	}
}

func (d *browser) Lost() error { return d.lostErr }

// Idle reports whether no submission is in flight and no outcome is waited for, for tests.
func (d *browser) Idle() bool { return len(d.inFlight)+len(d.making) == 0 }

// lose ends everything in flight.
func (d *browser) lose(err error) {
	if d.lostErr != nil {
		return
	}
	d.lostErr = err
	close(d.lostSignal)
	for _, f := range d.inFlight {
		f.waiting = 0
	}
	d.complete()
}

func (d *browser) Close() {
	for _, s := range d.stamps {
		s.Free(d)
	}
	d.stamps = nil
	d.noMoreLost.Invoke()
	if d.owned {
		d.device.Call("removeEventListener", "uncapturederror", d.uncaptured)
		releaseFunc(d.uncaptured)
		d.device.Call("destroy")
	}
}

// creation is the creation of an object, whose outcome comes later.
type creation struct {
	known bool
	err   error
	then  []func(error)
}

// scoped calls f, which makes something, between error scopes. It returns the creation, and what f has thrown. Explain, if
// not nil, may find out more about an error before it is told.
func (d *browser) scoped(filters []js.Value, explain func(err error, tell func(error)), f func(c *creation)) (*creation, error) {
	for _, filter := range filters {
		d.w.pushErrorScope.Invoke(d.device, filter)
	}
	c := &creation{}
	d.making[c] = true
	thrown := attempt(func() { f(c) })
	tell := func(err error) {
		if d.lostErr != nil {
			err = d.lostErr // a lost device reports nothing else
		}
		delete(d.making, c)
		c.known, c.err = true, err
		for _, f := range c.then {
			f(err)
		}
		c.then = nil
	}
	waiting, found, torn := len(filters), thrown, false
	for range filters {
		d.w.settle(d.w.popErrorScope.Invoke(d.device), func(v js.Value, err error) {
			if err == nil {
				err = d.w.gpuError(v)
			} else {
				torn = true // the browser's GPU process has ended: that the device is lost is not known yet
			}
			if found == nil || errors.Is(err, compute.ErrOutOfMemory) {
				found = err
			}
			if waiting--; waiting > 0 {
				return
			}
			if torn {
				go func() {
					d.awaitLoss()
					tell(found)
				}()
			} else if found != nil && explain != nil {
				explain(found, tell)
			} else {
				tell(found)
			}
		})
	}
	return c, thrown
}

// after calls f once the outcome is known.
func (c *creation) after(f func(error)) {
	if c.known {
		f(c.err)
		return
	}
	c.then = append(c.then, f)
}

// made is what every object has.
type made interface{ outcome() *creation }

func (d *browser) Ready(o Object, f func(error)) { o.(made).outcome().after(f) }

// WebGPU's usage flags.
const (
	usageMapRead, usageMapWrite, usageCopySrc, usageCopyDst = 1, 2, 4, 8
	usageUniform, usageStorage, usageQueryResolve           = 64, 128, 512

	mapRead, mapWrite = 1, 2
)

var usages = [BufferKinds]int{
	StorageBuffer:  usageStorage | usageCopySrc | usageCopyDst,
	UniformBuffer:  usageUniform | usageCopyDst,
	UploadBuffer:   usageMapWrite | usageCopySrc,
	ReadbackBuffer: usageMapRead | usageCopyDst,
}

// browserBuffer is a buffer of any kind.
type browserBuffer struct {
	*creation
	d      *browser
	ref    js.Value
	kind   BufferKind
	size   uint64
	mapped bool
	memory js.Value // of the mapping, once somebody needs it: an ArrayBuffer
	view   js.Value // all of it as bytes
}

func (b *browserBuffer) outcome() *creation { return b.creation }

func (b *browserBuffer) Free() { b.d.w.destroy.Invoke(b.ref) }

func (d *browser) NewBuffer(kind BufferKind, size uint64) (Object, error) {
	b := &browserBuffer{d: d, kind: kind, size: size, mapped: kind == UploadBuffer}
	explain := func(err error, tell func(error)) {
		tell(fmt.Errorf("create a %v buffer of %d bytes: %w", kind, size, err))
	}
	var thrown error
	b.creation, thrown = d.scoped([]js.Value{d.w.validation, d.w.memory}, explain, func(*creation) {
		d.bufferDesc.Set("size", float64(size))
		d.bufferDesc.Set("usage", usages[kind])
		d.bufferDesc.Set("mappedAtCreation", kind == UploadBuffer)
		b.ref = d.w.createBuffer.Invoke(d.device, d.bufferDesc)
	})
	if thrown != nil {
		return nil, fmt.Errorf("create a %v buffer of %d bytes: %w", kind, size, thrown)
	}
	return b, nil
}

// bytes returns a view of n bytes of the mapping.
func (b *browserBuffer) bytes(offset uint64, n int) js.Value {
	if b.memory.IsUndefined() {
		b.memory = b.d.w.getMappedRange.Invoke(b.ref)
		b.view = b.d.w.uint8.New(b.memory)
	}
	if offset == 0 {
		return b.view // copying stops where the shorter one ends
	}
	return b.d.w.uint8.New(b.memory, float64(offset), n)
}

// closeMapping forgets the mapping, which detaches its memory.
func (b *browserBuffer) closeMapping() {
	b.mapped, b.memory, b.view = false, js.Undefined(), js.Undefined()
	b.d.w.unmap.Invoke(b.ref)
}

func (d *browser) Write(upload Object, offset uint64, data []byte) {
	js.CopyBytesToJS(upload.(*browserBuffer).bytes(offset, len(data)), data)
}

func (d *browser) Read(readback Object, offset uint64, dst []byte) {
	js.CopyBytesToGo(dst, readback.(*browserBuffer).bytes(offset, len(dst)))
}

func (d *browser) Unmap(readback Object) error {
	b := readback.(*browserBuffer)
	if !b.mapped {
		return fmt.Errorf("internal error: %v buffer is not mapped", b.kind)
	}
	return attempt(b.closeMapping)
}

// browserPipeline is a pipeline with the layout of its bind group.
type browserPipeline struct {
	*creation
	ref, layout js.Value
	uniform     bool
}

func (p *browserPipeline) outcome() *creation { return p.creation }

func (p *browserPipeline) Free() { p.ref, p.layout = js.Undefined(), js.Undefined() }

func (d *browser) NewPipeline(k *wgsl.Kernel) (Object, error) {
	p := &browserPipeline{uniform: k.Uniform > 0}
	label, _, _ := strings.Cut(k.Key, "#")
	var module js.Value
	explain := func(err error, tell func(error)) {
		if errors.Is(err, compute.ErrOutOfMemory) || errors.Is(err, compute.ErrDeviceLost) || module.IsUndefined() {
			tell(fmt.Errorf("create the pipeline of %s: %w", k.Key, err))
			return
		}
		d.w.settle(module.Call("getCompilationInfo"), func(info js.Value, failed error) {
			e := &ShaderError{Label: label, Message: oneLine(err.Error()), Details: err.Error()}
			if failed == nil {
				e.take(info.Get("messages"), k.Source)
			}
			tell(e)
		})
	}
	p.creation, _ = d.scoped([]js.Value{d.w.validation, d.w.memory, d.w.internal}, explain, func(*creation) {
		module = d.w.createShaderModule.Invoke(d.device, d.w.literal("label", k.Key, "code", k.Source))
		var entries []any
		for i, a := range k.Bindings {
			kind := "read-only-storage"
			if a == wgsl.ReadWrite {
				kind = "storage"
			}
			entries = append(entries, layoutEntry(i, map[string]any{"type": kind}))
		}
		if p.uniform {
			entries = append(entries, layoutEntry(len(entries), map[string]any{"type": "uniform", "hasDynamicOffset": true}))
		}
		p.layout = d.w.createBindGroupLayout.Invoke(d.device, d.w.literal("entries", entries))
		layout := d.w.createPipelineLayout.Invoke(d.device, d.w.literal("bindGroupLayouts", []any{p.layout}))
		p.ref = d.w.createComputePipeline.Invoke(d.device, d.w.literal("label", k.Key, "layout", layout,
			"compute", map[string]any{"module": module, "entryPoint": k.Entry}))
	})
	return p, nil
}

func layoutEntry(binding int, buffer map[string]any) map[string]any {
	const visibleToCompute = 4
	return map[string]any{"binding": binding, "visibility": visibleToCompute, "buffer": buffer}
}

// oneLine leaves out which call of ours an error came from: " - While calling …".
func oneLine(report string) string {
	var parts []string
	for line := range strings.Lines(strings.TrimSpace(report)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "- While calling") {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, " ")
}

// take reads the compiler's messages.
func (e *ShaderError) take(messages js.Value, source string) {
	var all []string
	for i := range messages.Length() {
		m := messages.Index(i)
		kind, text := m.Get("type").String(), m.Get("message").String()
		line, column := m.Get("lineNum").Int(), m.Get("linePos").Int()
		all = append(all, fmt.Sprintf("%d:%d: %s: %s", line, column, kind, text))
		if kind == "error" && e.Line == 0 {
			e.Message, e.Line, e.Column = oneLine(text), line, byteColumn(source, line, column)
		}
	}
	if len(all) > 0 {
		e.Details = strings.Join(append(all, e.Details), "\n")
	}
}

// byteColumn turns a column in UTF-16 units into one in bytes.
func byteColumn(source string, line, column int) int {
	lines := strings.Split(source, "\n")
	if line < 1 || line > len(lines) {
		return column
	}
	units := 1
	for at, r := range lines[line-1] {
		if units >= column {
			return at + 1
		}
		units += utf16.RuneLen(r)
	}
	return len(lines[line-1]) + 1
}

// resource is {buffer, offset, size}, with the numbers that it has.
type resource struct {
	js.Value
	offset, size uint64
}

// browserGroup is a bind group.
type browserGroup struct {
	*creation
	ref js.Value
}

func (g *browserGroup) outcome() *creation { return g.creation }

func (g *browserGroup) Free() { g.ref = js.Undefined() }

func (d *browser) NewGroup(pipeline Object, bind []Binding) (Object, error) {
	for len(d.bindingLists) <= len(bind) { // lists of 0, 1, 2 … bindings share their entries
		n := len(d.bindings)
		d.bindingLists = append(d.bindingLists, js.ValueOf(values(d.bindings)))
		r := resource{Value: d.w.literal("offset", 0, "size", 0)}
		d.resources = append(d.resources, r)
		d.bindings = append(d.bindings, d.w.literal("binding", n, "resource", r.Value))
	}
	g := &browserGroup{}
	create := func(c *creation) {
		g.creation = c
		for i, b := range bind {
			r := &d.resources[i]
			r.Set("buffer", b.Buffer.(*browserBuffer).ref)
			if r.offset != b.Offset {
				r.Set("offset", float64(b.Offset))
			}
			if r.size != b.Size {
				r.Set("size", float64(b.Size))
			}
			r.offset, r.size = b.Offset, b.Size
		}
		d.groupDesc.Set("layout", pipeline.(*browserPipeline).layout)
		d.groupDesc.Set("entries", d.bindingLists[len(bind)])
		g.ref = d.w.createBindGroup.Invoke(d.device, d.groupDesc)
	}
	var thrown error
	if d.shared != nil {
		thrown = attempt(func() { create(d.shared) })
	} else {
		_, thrown = d.scoped([]js.Value{d.w.validation}, nil, create)
	}
	if thrown != nil {
		return nil, fmt.Errorf("bind buffers: %w", thrown)
	}
	return g, nil
}

func (d *browser) Together(f func() error) (err error) {
	_, thrown := d.scoped([]js.Value{d.w.validation}, nil, func(c *creation) {
		d.shared = c
		defer func() { d.shared = nil }()
		err = f()
	})
	return cmp.Or(err, thrown)
}

func values(list []js.Value) []any {
	all := make([]any, len(list))
	for i, v := range list {
		all[i] = v
	}
	return all
}
