package parse

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Error is what is wrong with a text, and where. It wraps [compute.ErrArgument], or [compute.ErrUnsupported] for PTX that is
// right but not representable here.
type Error struct {
	Pos ir.Pos
	Msg string
	err error // the sentinel
}

// Error is "file:line:col: message".
func (e *Error) Error() string { return fmt.Sprintf("ptx: %s: %s", e.Pos, e.Msg) }

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.err }

// bail carries the first error out of the recursion. It never leaves the package.
type bail struct{ err *Error }

func (p *parser) pos(off int) ir.Pos {
	line, found := slices.BinarySearch(p.lines, off)
	if !found {
		line-- // the line that begins before off
	}
	return ir.Pos{File: p.file, Line: line + 1, Col: off - p.lines[line] + 1}
}

func (p *parser) failAt(off int, format string, args ...any) {
	panic(bail{&Error{p.pos(off), fmt.Sprintf(format, args...), compute.ErrArgument}})
}

func (p *parser) unsupportedAt(off int, format string, args ...any) {
	panic(bail{&Error{p.pos(off), fmt.Sprintf(format, args...), compute.ErrUnsupported}})
}

// nearest is " (did you mean X?)" for the candidate that differs least from name, or "" if all differ much.
func nearest(name string, candidates func(func(string))) string {
	best, cost := "", len(name)/3+1
	candidates(func(c string) {
		if d := distance(name, c, cost); d < cost || d == cost && (best == "" || c < best) {
			best, cost = c, d
		}
	})
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance is the number of characters to insert, delete, replace or swap with their neighbour to make b of a; limit+1 stands
// for more than limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
