//go:build !onnx && !llm

package main

import "syscall/js"

var models []func(c *call, m *message, extra js.Value)
