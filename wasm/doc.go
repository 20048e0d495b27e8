// Package wasm makes the npm package: the library compiled to WebAssembly behind a JavaScript API of typed arrays and promises.
//
// [Pack] puts it together from three places: bridge, the Go program; js, what runs around it and its declarations, of which the
// list of operations is generated from the catalogue; and Go's own support file. What a page sees is documented in js/wavelane.d.ts and in
// README.md, which becomes the package's.
package wasm
