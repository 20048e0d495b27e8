//go:build cgo && !js

package gpu

import "testing"

// What the tests of both drivers ask of this one.

const noAdapter = "these tests need a software Vulkan driver; on Debian and Ubuntu: apt-get install mesa-vulkan-drivers"

func tuneDir(t testing.TB) string { return t.TempDir() }

// lose makes the device count as lost, and returns what its error says.
func lose(d *Device) string {
	d.drv.(interface{ Lose(string) }).Lose("unplugged")
	return "unplugged"
}

// many is how often tests repeat what a race could spoil.
const many = 2000

// slowRounds keeps the software device busy for a good part of a second.
const slowRounds = 4000

// breathe lets others run where there is one thread.
func breathe() {}

// says is what the compiler calls it.
func says(s string) string { return s }

var complaints = map[string]complaint{
	"type":       {3, 9, "expected to be `i32`"},
	"syntax":     {3, 20, "expected identifier"},
	"name":       {1, 18, "no definition in scope for identifier: 'foo'"},
	"validation": {1, 57, "type"},
	"entry":      {0, 0, "Unable to find entry point 'main'"},
	"binding":    {0, 0, "binding: 7"},
}
