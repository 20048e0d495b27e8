package lower

import (
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// equivalents are mutations that compute the same, so that nobody can notice them, or what differs lies where it may: of kernels
// by name, of a kind, of instructions that a line of Go wrote which contains source.
var equivalents = []struct {
	kernel, kind string // regular expressions
	source       string
	reason       string
}{
	{`^pow_`, `^bounds$`, "",
		"pow's power of what the logarithm of an infinity comes to is infinite or zero all the same"},
}

func equivalent(k *Kernel, m *ptxtest.Mutation, pos ir.Pos) bool {
	for _, e := range equivalents {
		if matches(e.kernel, k.Name) && matches(e.kind, m.Kind) && strings.Contains(sourceAt(pos), e.source) {
			return true
		}
	}
	return false
}

func matches(pattern, s string) bool { return regexp.MustCompile(pattern).MatchString(s) }

// sourceAt is the line of Go that wrote an instruction.
func sourceAt(pos ir.Pos) string {
	lines, _ := sources.LoadOrStore(pos.File, sync.OnceValue(func() []string {
		text, err := os.ReadFile(pos.File)
		if err != nil {
			panic(err)
		}
		return strings.Split(string(text), "\n")
	}))
	return strings.TrimSpace(lines.(func() []string)()[pos.Line-1])
}

var sources sync.Map // file name → func() []string
