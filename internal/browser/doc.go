// Package browser drives a headless Chromium from Go: for tests that open pages, and for running Go programs compiled to
// GOOS=js in it. It is a module of its own, so that the library's users do not download what it needs.
//
// [Start] gives a test a browser, [Serve] serves a folder to it, [Browser.Page] opens an address. WebGPU runs on
// SwiftShader, the software GPU that Chromium brings along, so tests mean the same on every machine. A missing browser is an
// error, never a skip. [RunGo] is behind the command gobrowser, which `go test -exec` takes.
//
// Whatever becomes of the process that started it (return, panic, signal, kill), Chromium is killed and its profile removed:
// that is the work of a shell which waits for the end of a pipe.
//
// # Concurrency
//
// A Browser is safe for concurrent use; a Page belongs to one goroutine.
//
// # Platforms
//
// Linux.
package browser
