package pool

import (
	"runtime"
	"syscall/js"
	"time"
)

// lastYield is when the event loop had its last turn during a run, as far as is known. There is one thread.
var lastYield time.Time

// Yield gives others a turn, between pieces of long work: there is one thread without preemption. Goroutines have theirs always; the
// page's events, a cancellation among them, have theirs ten times a second.
func Yield() {
	runtime.Gosched()
	const often, idle = 100 * time.Millisecond, 2 * time.Second
	now := time.Now()
	switch d := now.Sub(lastYield); {
	case d > idle: // longer than chunks take: nothing ran, and the page had its turns
		lastYield = now
	case d > often:
		drain()
		lastYield = time.Now()
	}
}

// waiting is closed when the event loop comes round to wake; nil if nobody waits for it.
var waiting chan struct{}

// drain returns when the event loop has been through what was in its queue. A timer would do, but browsers hold back those of hidden pages,
// and all the work that they wake with them: to a hundredth of the processor.
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
