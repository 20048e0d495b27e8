package wgsl

import (
	"embed"
	"fmt"
	"io"
	"strings"
	"sync"
)

//go:embed kernels/*.wgsl
var files embed.FS

// sources are templates: specialisation is substitution of text, since override constants are not available everywhere. A test
// puts another executor in their place.
var sources interface {
	ExecuteTemplate(w io.Writer, name string, data any) error
} = mustParse(files, "kernels")

var kernels sync.Map // key → *Kernel

// cached returns the kernel of that key, made once.
func cached(key string, make func() *Kernel) *Kernel {
	if k, ok := kernels.Load(key); ok {
		return k.(*Kernel)
	}
	k := make()
	k.Key = key
	if k.Entry == "" {
		k.Entry = "main"
	}
	actual, _ := kernels.LoadOrStore(key, k)
	return actual.(*Kernel)
}

// render executes the template of a kernel file, with common.wgsl in front of it, and before that the extensions that it enables.
func render(file string, data any, enable ...string) string {
	var b strings.Builder
	for _, extension := range enable {
		b.WriteString("enable " + extension + ";\n")
	}
	for _, name := range []string{"common.wgsl", file} {
		if err := sources.ExecuteTemplate(&b, name, data); err != nil {
			panic(fmt.Sprintf("wgsl: template %s: %v", name, err)) // our own text: every kernel is rendered in a test
		}
	}
	return b.String()
}
