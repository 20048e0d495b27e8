// Package sanitize reports the faults of kernels on the software GPU in the words of NVIDIA's compute-sanitizer.
//
//	report := sanitize.NewReport(sanitize.All)
//	gpu := sim.New(sim.Config{Checks: report.Tools.Checks(), Report: report.Add})
//	_, err := gpu.Run(ctx, kernel, launch)   // goes on after what can be gone on after
//	report.Ended(err)                        // a fault that ends the launch is reported as well
//	err = report.WriteText(os.Stderr)
//
// Accesses that are alike, by the same instruction and against the same one, are one error with the number of them. A Report is not safe
// for concurrent use.
package sanitize

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/internal/source"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// Tools is a set of compute-sanitizer's tools.
type Tools uint8

// The tools. Bounds, alignment and barriers are checked whatever is asked for.
const (
	Memcheck  Tools = 1 << iota // accesses out of bounds and misaligned, traps, illegal instructions
	Racecheck                   // conflicting accesses without order, in shared and in global memory; unawaited asynchronous copies
	Initcheck                   // values that nobody wrote, in any memory and in registers
	Synccheck                   // barriers that not all threads reach, deadlocks
	All       = Memcheck | Racecheck | Initcheck | Synccheck
)

var names = []string{"memcheck", "racecheck", "initcheck", "synccheck"}

// ParseTools reads a list such as "memcheck,racecheck", "all" or "none". Errors wrap [compute.ErrArgument].
func ParseTools(list string) (Tools, error) {
	switch list {
	case "all":
		return All, nil
	case "none":
		return 0, nil
	}
	var t Tools
next:
	for name := range strings.SplitSeq(list, ",") {
		for i, n := range names {
			if strings.TrimSpace(name) == n {
				t |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("no tool %q: there are %s, all and none: %w", name, strings.Join(names, ", "), compute.ErrArgument)
	}
	return t, nil
}

// String is a list as [ParseTools] takes it.
func (t Tools) String() string {
	var list []string
	for i, n := range names {
		if t>>i&1 != 0 {
			list = append(list, n)
		}
	}
	if list == nil {
		return "none"
	}
	return strings.Join(list, ",")
}

// Checks are what the software GPU has to check for the tools.
func (t Tools) Checks() sim.Checks {
	var c sim.Checks
	if t&Racecheck != 0 {
		c |= sim.CheckRace | sim.CheckAsync
	}
	if t&Synccheck != 0 {
		c |= sim.CheckAsync // with any check, lanes that a shuffle reads from have to take part
	}
	if t&Initcheck != 0 {
		c |= sim.CheckInit
	}
	return c
}

// ToolOf is the tool that a fault belongs to.
func ToolOf(f *sim.Fault) Tools {
	switch f.Kind {
	case sim.Race, sim.AsyncHazard, sim.ProxyFence:
		return Racecheck
	case sim.Uninitialized:
		return Initcheck
	case sim.BarrierDivergence, sim.Deadlock, sim.WarpSync:
		return Synccheck
	case sim.BadOperand:
		if strings.Contains(f.Instr, "bar") { // bar.sync, barrier, mbarrier
			return Synccheck
		}
	}
	return Memcheck
}

// Error is a fault, and how many are like it.
type Error struct {
	Tool  Tools
	Fault *sim.Fault // the first
	Count int
}

// Report collects faults.
type Report struct {
	Tools  Tools
	Errors []*Error // in the order in which their first faults were met
	// SourceDirs are searched for source files that are not where the compiler found them.
	SourceDirs []string
	seen       map[key]*Error
}

// key is what makes faults alike.
type key struct {
	kind      sim.FaultKind
	kernel    string
	at, other ir.Pos
	detail    string // where there is no instruction
}

// NewReport returns a report without errors.
func NewReport(t Tools) *Report { return &Report{Tools: t} }

// Add adds a fault, unless it is of a check that comes with another tool's. It returns true: a launch goes on after it, see [sim.Config].
func (r *Report) Add(f *sim.Fault) bool {
	if ToolOf(f) == Racecheck && r.Tools&Racecheck == 0 {
		return true
	}
	k := key{kind: f.Kind, kernel: f.Kernel, at: f.Pos}
	switch {
	case f.Other != nil && f.Kind == sim.Uninitialized: // one read of what nobody wrote is one error, whatever becomes of the value
		k.at, k.kernel = f.Other.Pos, ""
	case f.Other != nil:
		k.other = f.Other.Pos
		if less(k.other, k.at) { // which of two racing accesses comes first is chance
			k.at, k.other = k.other, k.at
		}
	case f.Instr == "":
		k.detail = f.Detail
	}
	if e := r.seen[k]; e != nil {
		e.Count++
		return true
	}
	if r.seen == nil {
		r.seen = map[key]*Error{}
	}
	e := &Error{Tool: ToolOf(f), Fault: f, Count: 1}
	r.seen[k] = e
	r.Errors = append(r.Errors, e)
	return true
}

func less(a, b ir.Pos) bool {
	if a.Line != b.Line {
		return a.Line < b.Line
	}
	return a.Col < b.Col
}

// Ended adds the fault that ended a launch or a read by the host. It returns the error if it is none, and nil for a fault.
func (r *Report) Ended(err error) error {
	if f, ok := errors.AsType[*sim.Fault](err); ok {
		r.Add(f)
		return nil
	}
	return err
}

const prefix = "========= "

// WriteText writes all errors and their number as compute-sanitizer does.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	files := &source.Files{Dirs: r.SourceDirs}
	b.WriteString(strings.TrimSpace(prefix) + " COMPUTE-SANITIZER (wavelane, software GPU)\n")
	for _, e := range r.Errors {
		for i, line := range e.lines(files) {
			if i > 0 {
				line = "    " + line
			}
			b.WriteString(prefix + line + "\n")
		}
		b.WriteString(strings.TrimSpace(prefix) + "\n")
	}
	fmt.Fprintf(&b, "%sERROR SUMMARY: %s\n", prefix, plural(len(r.Errors), "error"))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteAnnotations writes the errors as GitHub's workflow commands, which it shows beside the lines of the source.
func (r *Report) WriteAnnotations(w io.Writer) error {
	files := &source.Files{Dirs: r.SourceDirs}
	escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	for _, e := range r.Errors {
		p := files.Of(e.place())
		if _, err := fmt.Fprintf(w, "::error file=%s,line=%d,title=%s::%s\n", source.Short(p.File), p.Line, e.Tool, escape.Replace(e.headline())); err != nil {
			return err
		}
	}
	return nil
}

// place is where the error is: of a value that nobody wrote, where it was read.
func (e *Error) place() (ir.Pos, []ir.Pos) {
	if o := e.Fault.Other; o != nil && e.Fault.Kind == sim.Uninitialized {
		return o.Pos, o.Source
	}
	return e.Fault.Pos, e.Fault.Source
}

func (e *Error) headline() string {
	f := e.Fault
	switch f.Kind {
	case sim.OutOfBounds, sim.Misaligned:
		if f.Instr == "" {
			return "Invalid access of the host"
		}
		return fmt.Sprintf("Invalid %s %s of size %d bytes", spaceName(f.Space), accessName(f.Instr, f.Write), f.Size)
	case sim.Race:
		return fmt.Sprintf("Error: Race reported between %s and %s access", title(f.Write, f.Instr), title(f.Other.Write, f.Other.Instr))
	case sim.AsyncHazard:
		return "Error: Hazard with an asynchronous operation"
	case sim.ProxyFence:
		return "Error: Hazard between proxies, a fence is missing"
	case sim.Uninitialized:
		if o := f.Other; o != nil && o.Size > 0 {
			return fmt.Sprintf("Uninitialized %s memory read of size %d bytes", spaceName(o.Space), o.Size)
		}
		return "Uninitialized value"
	case sim.BarrierDivergence:
		return "Barrier error detected. Divergent thread(s)"
	case sim.WarpSync:
		return "Barrier error detected. Divergent thread(s) in warp"
	case sim.Deadlock:
		return "Barrier error detected. Deadlock"
	case sim.BadOperand:
		return "Invalid operand"
	}
	return "Program hit " + f.Kind.String()
}

// lines are the report of one error; all but the first are indented.
func (e *Error) lines(files *source.Files) []string {
	f := e.Fault
	list := []string{e.headline()}
	at := func(word, kernel, instr string, p ir.Pos, from []ir.Pos) {
		shown := files.Of(p, from)
		list = append(list, fmt.Sprintf("%s %s in %s", word, kernel, short(shown)))
		if text := strings.TrimSpace(files.Line(shown)); text != "" && len(from) > 0 {
			list = append(list, "    "+text)
		}
		for _, call := range from[min(len(from), 1):] {
			if call != shown {
				list = append(list, "    inlined at "+short(call).String())
			}
		}
		list = append(list, fmt.Sprintf("    %s (%s)", strings.TrimSpace(instr), p))
	}
	thread := func(t, b sim.Dim3) string {
		return fmt.Sprintf("thread (%d,%d,%d) in block (%d,%d,%d)", t.X, t.Y, t.Z, b.X, b.Y, b.Z)
	}
	switch o := f.Other; {
	case f.Kind == sim.Uninitialized && o != nil:
		at("at", o.Kernel, o.Instr, o.Pos, o.Source)
		list = append(list, "by "+thread(o.Thread, o.Block))
		if o.Size > 0 {
			list = append(list, fmt.Sprintf("Address %#x", o.Addr))
		}
		if f.Instr == "" {
			list = append(list, "the value reaches the host: "+f.Detail)
			break
		}
		if f.Pos != o.Pos {
			at("the value matters at", f.Kernel, f.Instr, f.Pos, f.Source)
		}
		list = append(list, f.Detail)
	case o != nil:
		at("at", f.Kernel, f.Instr, f.Pos, f.Source)
		at("and", f.Kernel, o.Instr, o.Pos, o.Source)
		list = append(list, "by "+thread(f.Thread, f.Block), "and "+thread(o.Thread, o.Block),
			fmt.Sprintf("Address %#x in %s memory: %s", f.Addr, spaceName(f.Space), f.Detail))
	case f.Instr == "":
		list = append(list, strings.Split(f.Detail, "\n")...)
	default:
		at("at", f.Kernel, f.Instr, f.Pos, f.Source)
		list = append(list, "by "+thread(f.Thread, f.Block))
		detail := strings.Split(f.Detail, "\n")
		switch f.Kind {
		case sim.OutOfBounds:
			list = append(list, fmt.Sprintf("Address %#x is out of bounds: %s", f.Addr, detail[0]))
		case sim.Misaligned:
			list = append(list, fmt.Sprintf("Address %#x is misaligned: %s", f.Addr, detail[0]))
		default:
			list = append(list, detail[0])
		}
		list = append(list, detail[1:]...)
	}
	if e.Count > 1 {
		list = append(list, fmt.Sprintf("[%s like it]", plural(e.Count-1, map[bool]string{true: "hazard", false: "access"}[e.Tool == Racecheck])))
	}
	return list
}

// spaceName is a space as compute-sanitizer writes it.
func spaceName(s ir.Space) string {
	switch s {
	case ir.SharedSpace, ir.SharedClusterSpace:
		return "__shared__"
	case ir.LocalSpace:
		return "__local__"
	case ir.ConstSpace:
		return "__constant__"
	case ir.ParamSpace:
		return "parameter"
	case ir.NoSpace:
		return "generic"
	}
	return "__global__"
}

// short is a position in a file of the current folder.
func short(p ir.Pos) ir.Pos {
	p.File = source.Short(p.File)
	return p
}

func accessName(instr string, write bool) string {
	if strings.HasPrefix(instr, "@") { // the guard
		_, instr, _ = strings.Cut(instr, " ")
	}
	switch {
	case strings.HasPrefix(instr, "atom"), strings.HasPrefix(instr, "red"):
		return "atomic"
	case write:
		return "write"
	}
	return "read"
}

func title(write bool, instr string) string {
	name := accessName(instr, write)
	return strings.ToUpper(name[:1]) + name[1:]
}

func plural(n int, word string) string {
	switch {
	case n == 1:
		return "1 " + word
	case strings.HasSuffix(word, "s"):
		return fmt.Sprintf("%d %ses", n, word)
	}
	return fmt.Sprintf("%d %ss", n, word)
}
