//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package wgpu

import (
	"sync"
	"sync/atomic"

	"github.com/ebitengine/purego"
)

// States of a word that a completion changes.
const (
	Pending = iota
	Done
	Failed
)

// Lost is told that a device is lost. The library knows it by a number.
type Lost struct {
	number uintptr
	reason atomic.Pointer[string]
}

// losses are those of open devices, by number.
var losses struct {
	sync.Mutex
	by   map[uintptr]*Lost
	last uintptr
}

// NewLost returns the loss of a device that is going to be opened.
func NewLost() *Lost {
	losses.Lock()
	defer losses.Unlock()
	if losses.by == nil {
		losses.by = map[uintptr]*Lost{}
	}
	losses.last++
	l := &Lost{number: losses.last}
	losses.by[l.number] = l
	return l
}

// Close is for devices that were released, or were not opened.
func (l *Lost) Close() {
	losses.Lock()
	defer losses.Unlock()
	delete(losses.by, l.number)
}

// Reason says why the device is lost, nil while it is not.
func (l *Lost) Reason() *string { return l.reason.Load() }

// Lose notes a loss; the first one counts.
func (l *Lost) Lose(reason string) { l.reason.CompareAndSwap(nil, &reason) }

// Addresses of callbacks. They are made once, as none is ever freed. All take six words, more than C passes: what an argument of C
// takes differs by system.
var callbacks = sync.OnceValue(func() (c struct{ mapped, worked, workedText, lost, failed, opened uintptr }) {
	made := func(words int, text bool, f func(a [6]uintptr, text StringView, userdata uintptr)) uintptr {
		at := words
		switch {
		case text && viewAddress:
			at++
		case text:
			at += 2
		}
		return purego.NewCallback(func(a0, a1, a2, a3, a4, a5 uintptr) uintptr {
			a := [6]uintptr{a0, a1, a2, a3, a4, a5}
			var view StringView
			switch {
			case text && viewAddress:
				view = *(*StringView)(Pointer(a[words]))
			case text:
				view = StringView{Data: a[words], Length: a[words+1]}
			}
			f(a, view, a[at])
			return 0
		})
	}
	finish := func(a [6]uintptr, _ StringView, userdata uintptr) {
		state := int32(Failed)
		if uint32(a[0]) == MapAsyncStatus_Success { // which is QueueWorkDoneStatus_Success as well
			state = Done
		}
		(*atomic.Int32)(Pointer(userdata)).Store(state)
	}
	c.mapped = made(1, true, finish)
	c.worked = made(1, false, finish)
	c.workedText = made(1, true, finish)
	c.lost = made(2, true, func(_ [6]uintptr, text StringView, userdata uintptr) {
		losses.Lock()
		l := losses.by[userdata]
		losses.Unlock()
		if l != nil {
			l.Lose(text.String())
			report(ErrorLost, text.String())
		}
	})
	c.failed = made(2, true, func(a [6]uintptr, text StringView, _ uintptr) {
		report(uint32(a[1]), text.String())
	})
	c.opened = made(2, true, func(a [6]uintptr, text StringView, userdata uintptr) {
		if uint32(a[0]) == RequestDeviceStatus_Success {
			*(*uintptr)(Pointer(userdata)) = a[1]
		} else {
			report(ErrorType_Unknown, text.String())
		}
	})
	return c
})

// RequestDevice opens f.Device on an adapter, and returns 0 if that fails.
func (f *Frame) RequestDevice(l *Library, adapter uintptr, lost *Lost) uintptr {
	c := callbacks()
	f.Device.DeviceLostCallbackInfo = DeviceLostCallbackInfo{Mode: CallbackMode_AllowSpontaneous, Callback: c.lost, Userdata1: lost.number}
	f.Device.UncapturedErrorCallbackInfo = UncapturedErrorCallbackInfo{Callback: c.failed}
	f.Handle = 0
	f.Callback = RequestDeviceCallbackInfo{Mode: CallbackMode_AllowSpontaneous, Callback: c.opened, Userdata1: Address(&f.Handle)}
	f.CallInfo(l.AdapterRequestDevice, adapter, Address(&f.Device)) // calls back before it returns
	return f.Handle
}

// WhenDone has word changed when what was submitted is done. The word must live until then.
func (f *Frame) WhenDone(l *Library, queue uintptr, word *atomic.Int32) {
	c := callbacks()
	f.Callback = QueueWorkDoneCallbackInfo{Mode: CallbackMode_AllowSpontaneous, Callback: c.worked, Userdata1: Address(word)}
	if l.ABI.workDoneText {
		f.Callback.Callback = c.workedText
	}
	f.CallInfo(l.QueueOnSubmittedWorkDone, queue)
}

// Map maps a buffer, and has word changed when it is mapped. The word must live until then.
func (f *Frame) Map(l *Library, buffer, mode uintptr, size uint64, word *atomic.Int32) {
	f.Callback = BufferMapCallbackInfo{Mode: CallbackMode_AllowSpontaneous, Callback: callbacks().mapped, Userdata1: Address(word)}
	f.CallInfo(l.BufferMapAsync, buffer, mode, 0, uintptr(size))
}
