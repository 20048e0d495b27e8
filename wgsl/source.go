package wgsl

import (
	"embed"
	"fmt"
	"strings"
	"sync"
	"text/template"
)

//go:embed kernels/*.wgsl
var files embed.FS

// sources are templates: specialisation is substitution of text, since override constants are not available everywhere.
var sources = template.Must(template.New("").Funcs(template.FuncMap{
	"seq": func(n int) []int { // range over 0 … n-1
		s := make([]int, n)
		for i := range s {
			s[i] = i
		}
		return s
	},
	"add": func(a, b int) int { return a + b },
	"sub": func(a, b int) int { return a - b },
	"mul": func(a, b int) int { return a * b },
	"div": func(a, b int) int { return a / b },
	"rem": func(a, b int) int { return a % b },
}).ParseFS(files, "kernels/*.wgsl"))

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

// render executes the template of a kernel file, with common.wgsl in front of it.
func render(file string, data any) string {
	var b strings.Builder
	for _, name := range []string{"common.wgsl", file} {
		if err := sources.ExecuteTemplate(&b, name, data); err != nil {
			panic(fmt.Sprintf("wgsl: template %s: %v", name, err)) // our own text: every kernel is rendered in a test
		}
	}
	return b.String()
}
