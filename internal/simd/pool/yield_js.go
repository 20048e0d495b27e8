package pool

import (
	"runtime"
	"syscall/js"
	"time"
)

// lastYield is when the event loop last ran during a run, as far as is known. There is one thread.
var lastYield time.Time

// Yield lets others run between pieces of long work, since there is one thread without preemption: goroutines each time, and
// the page's events, such as a cancellation, ten times a second.
func Yield() {
	runtime.Gosched()
	const often, idle = 100 * time.Millisecond, 2 * time.Second
	now := time.Now()
	switch d := now.Sub(lastYield); {
	case d > idle: // longer than chunks take: no work ran, and the event loop did
		lastYield = now
	case d > often:
		drain()
		lastYield = time.Now()
	}
}

// waiting is closed when the event loop comes round to wake; nil if nobody waits for it.
var waiting chan struct{}

// drain returns when the event loop has handled what was in its queue. A timer would do, but browsers throttle those of
// hidden pages, to a hundredth of the processor.
func drain() {
	if waiting == nil {
		waiting = make(chan struct{})
		post.Invoke()
	}
	<-waiting
}

// post puts a call of wake at the end of the event loop's queue.
var post = func() js.Value {
	wake := js.FuncOf(func(js.Value, []js.Value) any {
		close(waiting)
		waiting = nil
		return nil
	})
	if immediate := js.Global().Get("setImmediate"); immediate.Type() == js.TypeFunction { // Node.js, where a port would keep it from ending
		return immediate.Call("bind", js.Undefined(), wake)
	}
	channel := js.Global().Get("MessageChannel").New()
	channel.Get("port1").Set("onmessage", wake)
	to := channel.Get("port2")
	return to.Get("postMessage").Call("bind", to, js.Null())
}()
