//go:build !js

package gpu

import (
	"testing"
)

// What the tests of both drivers ask of this one.

const noAdapter = "these tests need a software Vulkan driver; on Debian and Ubuntu: apt-get install mesa-vulkan-drivers"

func tuneDir(t testing.TB) string { return t.TempDir() }

// lose makes the device count as lost, and returns what its error says.
func lose(d *Device) string {
	d.drv.(interface{ Lose(string) }).Lose("unplugged")
	return "unplugged"
}

// many is how often tests repeat what a race could break.
const many = 2000

// slowRounds keeps the software device busy for a good part of a second.
const slowRounds = 4000

// yield lets others run where there is one thread.
func yield() {}
