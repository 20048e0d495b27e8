// Package gguf reads and writes GGUF, the files that hold models for llama.cpp: metadata by name, and tensors in the block
// formats of package quant. Versions 2 and 3 are read, version 3 is written, both in little-endian order.
//
// [Open] maps a file into memory and reads the metadata and the list of tensors; arrays and tensor data are read on demand. A
// model that is split in files named …-00001-of-0000N.gguf is opened by the first of them. Where there is no mapping
// (Windows, js/wasm) or no file ([New]), data is read on demand.
//
// A file is taken for hostile: what it claims is compared with its size before anything is allocated, and whatever does not
// fit is an error that wraps [ErrMalformed], or [compute.ErrUnsupported] where the file may be right but is not read here.
//
// The source of the format is docs/gguf.md of github.com/ggml-org/ggml; where that leaves something open, ggml's own reader.
package gguf
