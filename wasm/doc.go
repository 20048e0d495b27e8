// Package wasm makes the npm package: the library compiled to WebAssembly behind a JavaScript API of typed arrays and promises, for pages
// and Web Workers, on WebGPU or on the CPU, and for Node.js on the CPU.
//
// [Pack] assembles it from three sources: bridge, the Go program; js, what runs around it and its declarations, of which the
// list of operations is generated from the catalogue; and Go's own support file. What a page sees is documented in
// js/wavelane.d.ts and in README.md, which becomes the package's.
//
// Folder site is the demo site. The API is tested in Node.js here, and with the site in Chromium by the module in folder browser.
package wasm
