package main

import (
	"os"
	"syscall/js"
)

// host is what the loader gives the program: functions to call, held once.
type host struct {
	settle     js.Value // (call, failure or null, results)
	uint8Array js.Value
}

var page host

// The loader passes the name of a global variable that is there for the time of this call only.
func main() {
	if len(os.Args) != 2 {
		panic("wavelane.wasm is started by wavelane.js")
	}
	object := js.Global().Get(os.Args[1])
	page = host{
		settle:     object.Get("settle"),
		uint8Array: js.Global().Get("Uint8Array"),
	}
	// As many functions as there will ever be: they are never released.
	object.Call("ready", js.FuncOf(begin), js.FuncOf(now))
	select {}
}
