package ir

import (
	"strings"
	"unicode"
)

// Func is the name of the kernel's function with a suffix for what implements it: Exp with NEON is expNEON, GELUErf with Go
// geluErfGo, ReLU with SSE reLUSSE.
func (k *Kernel) Func(suffix string) string {
	n := strings.IndexFunc(k.Name, func(r rune) bool { return !unicode.IsUpper(r) })
	switch {
	case n < 0:
		n = len(k.Name)
	case n > 1:
		n-- // the last capital begins the next word
	}
	return strings.ToLower(k.Name[:n]) + k.Name[n:] + suffix
}
