package wgslkernels

import (
	"embed"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/internal/recent"
	"github.com/wavelane/wavelane/wgsl"
)

//go:embed kernels/*.wgsl
var files embed.FS

type executor interface {
	ExecuteTemplate(w io.Writer, name string, data any) error
}

// sources are templates: specialisation is substitution of text, since override constants are not available everywhere. They are
// parsed when the first kernel is made. A test replaces them by another executor.
var sources = sync.OnceValue(func() executor { return mustParse(files, "kernels") })

// kernels by key. The number of expressions is unlimited, so those not used lately are dropped and made anew.
var kernels = kernelCache{kept: recent.New[*wgsl.Kernel](mostKernels)}

// mostKernels are more than all operations together have.
const mostKernels = 2048

type kernelCache struct {
	mu   sync.Mutex
	kept *recent.Map[*wgsl.Kernel]
}

func (c *kernelCache) get(key string) (*wgsl.Kernel, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.Get(key)
}

// add returns the kernel that has come first.
func (c *kernelCache) add(k *wgsl.Kernel) *wgsl.Kernel {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, ok := c.kept.Get(k.Key); ok {
		return first
	}
	c.kept.Put(k.Key, k)
	return k
}

// cached returns the kernel of that key.
func cached(key string, make func() *wgsl.Kernel) *wgsl.Kernel {
	if k, ok := kernels.get(key); ok {
		return k
	}
	k := make()
	k.Key, k.Finite = key, true
	if k.Entry == "" {
		k.Entry = "main"
	}
	return kernels.add(k)
}

// packedDots is an extension that is there or not, and needs no enabling.
const packedDots = "packed_4x8_integer_dot_product"

// render executes the template of a kernel file, with common.wgsl in front of it, and before that the extensions that it needs.
func render(file string, data any, extensions ...string) string {
	var b strings.Builder
	for _, x := range extensions {
		word := "enable "
		if x == packedDots {
			word = "requires "
		}
		b.WriteString(word + x + ";\n")
	}
	for _, name := range []string{"common.wgsl", file} {
		if err := sources().ExecuteTemplate(&b, name, data); err != nil {
			panic(fmt.Sprintf("wgsl: template %s: %v", name, err)) // our own text: every kernel is rendered in a test
		}
	}
	return b.String()
}
