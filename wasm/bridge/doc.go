// Command bridge is wavelane.wasm: the library behind the JavaScript of wasm/js, which is its only caller.
//
// A call from JavaScript is a message of numbers and a list of byte arrays (message_js.go). Those that wait (calls_js.go) are begun by
// the callback, which copies what it was given and returns, and are settled later by their number; nothing blocks in a callback. Those that
// do not (now_js.go) return what they found. Objects that JavaScript holds have handles (handles_js.go). The work of a device starts
// in the order of the calls (queue_js.go).
//
//go:build js

package main
