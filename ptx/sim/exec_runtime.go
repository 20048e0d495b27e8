package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// runtimeFunc is a function of CUDA's device runtime, which modules declare and nothing defines.
type runtimeFunc struct {
	params int
	result bool
	do     func(w *warp, lane int, r *runtimeCall, args []uint64) uint64
}

// externs are those that the software GPU provides.
var externs = map[string]runtimeFunc{
	"vprintf":      {2, true, printf},
	"__assertfail": {5, false, assertFailed},
	"malloc":       {1, true, deviceMalloc},
	"free":         {1, false, deviceFree},
}

// runtimeCall is a compiled call of one.
type runtimeCall struct {
	runtimeFunc
	name  string
	f     *ir.Func
	site  *callSite
	reads map[int]*memOp // of generic memory, by size
	stack map[int]*memOp // of the caller's frame, by size
}

func (c *compiler) runtimeCall(in *ir.Instr, f *ir.Func, site *callSite) (step, error) {
	r := &runtimeCall{runtimeFunc: externs[f.Name], name: f.Name, f: f, site: site, reads: map[int]*memOp{}, stack: map[int]*memOp{}}
	if len(f.Params) != r.params || len(f.Rets) != b2i(r.result) {
		return nil, c.errorf(in, compute.ErrArgument, "%s has %d parameters and %d results", f.Name, r.params, b2i(r.result))
	}
	for _, n := range []int{1, 4, 8} {
		r.reads[n], r.stack[n] = c.memOp(in, n, false), c.memOp(in, n, false)
		r.stack[n].space = ir.LocalSpace
	}
	for _, list := range [][]ir.Var{f.Params, f.Rets} {
		for i := range list {
			if n := list[i].Size(); r.stack[n] == nil || n == 1 {
				return nil, c.errorf(in, compute.ErrArgument, "%s of %s has %d bytes", list[i].Name, f.Name, n)
			}
		}
	}
	if f.Name == "malloc" || f.Name == "free" {
		c.prog.heap = true
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			r.call(w, first(m))
		}
	}, nil
}

func (r *runtimeCall) call(w *warp, l int) {
	args := make([]uint64, r.params)
	for i := range args {
		p := r.site.args[i]
		if p.at < 0 {
			if args[i] = w.get(p.reg, l); w.def != nil && p.reg.i >= 0 {
				w.demand(p.reg, 1<<l, "an argument of "+r.name)
			}
			continue
		}
		args[i] = r.load(w, l, r.stack, r.f.Params[i].Size(), uint64(w.lanes[l].frame+p.at), fmt.Sprintf("argument %d of %s", i, r.name))
	}
	v := r.do(w, l, r, args)
	if !r.result {
		return
	}
	p, n := r.site.rets[0], r.f.Rets[0].Size()
	if p.at < 0 {
		w.set(p.reg, l, v)
		w.define(p.reg, l)
		return
	}
	lane := &w.lanes[l]
	store(lane.local.data[lane.frame+p.at:], n, v)
	if w.mon != nil {
		w.mon.wrote(&lane.local, lane.frame+p.at, n)
	}
}

// load reads n bytes that have to have a value.
func (r *runtimeCall) load(w *warp, l int, from map[int]*memOp, n int, addr uint64, what string) uint64 {
	b, undef := w.bytes(l, from[n], addr, 0)
	if undef != 0 {
		f := w.faultOf(Uninitialized, l, from[n].space, addr, what+" has no value")
		if o := w.watched.loaded[l]; o != nil {
			f.Detail, f.Other = f.Detail+": "+o.what, o.by
		}
		f.Size = n
		w.report(f)
	}
	return load(b, n)
}

// text reads a string that ends with a zero.
func (r *runtimeCall) text(w *warp, l int, addr uint64) string {
	var b []byte
	for {
		c := byte(r.load(w, l, r.reads, 1, addr+uint64(len(b)), "a character"))
		if c == 0 {
			return string(b)
		}
		b = append(b, c)
	}
}

// assertFailed is __assertfail(message, file, line, function, size of a character).
func assertFailed(w *warp, l int, r *runtimeCall, a []uint64) uint64 {
	text := func(addr uint64) string {
		if addr == 0 {
			return "unknown"
		}
		return r.text(w, l, addr)
	}
	w.fault(Assertion, l, 0, 0, "%s:%d: %s: %q failed", text(a[1]), uint32(a[2]), text(a[3]), text(a[0]))
	return 0
}

// printf is vprintf(format, arguments), where the arguments are in memory as C aligns them.
func printf(w *warp, l int, r *runtimeCall, a []uint64) uint64 {
	f := formatter{w: w, l: l, r: r, at: a[1]}
	text := f.format(r.text(w, l, a[0]))
	g := w.block.grid.gpu
	g.print.Lock()
	defer g.print.Unlock()
	if g.cfg.Output != nil && g.printed == nil {
		_, g.printed = g.cfg.Output.Write([]byte(text))
	}
	return uint64(f.n)
}

// formatter formats as C's printf does.
type formatter struct {
	w  *warp
	l  int
	r  *runtimeCall
	at uint64 // of the next argument
	n  int    // arguments read
}

// arg is the next argument, of so many bytes.
func (f *formatter) arg(n int) uint64 {
	f.at = (f.at + uint64(n) - 1) &^ uint64(n-1)
	v := f.r.load(f.w, f.l, f.r.reads, n, f.at, fmt.Sprintf("argument %d of printf", f.n+1))
	f.at += uint64(n)
	f.n++
	return v
}

func (f *formatter) format(s string) string {
	var b strings.Builder
	for {
		text, rest, more := strings.Cut(s, "%")
		b.WriteString(text)
		if !more {
			return b.String()
		}
		spec := conversion{precision: -1}
		left := spec.read(rest, f)
		if left == rest[:0] && spec.verb == 0 { // the text ends in the middle of one
			return b.String() + "%" + rest
		}
		s = left
		b.WriteString(spec.text(f))
	}
}

// conversion is what stands between % and the letter.
type conversion struct {
	left, plus, space, alternate, zero bool
	width, precision                   int // precision -1: none
	wide                               bool
	verb                               byte
}

// read takes a conversion from the beginning of s and returns what follows it.
func (c *conversion) read(s string, f *formatter) string {
	for ; s != ""; s = s[1:] {
		i := strings.IndexByte("-+ #0'", s[0])
		if i < 0 {
			break
		}
		for j, flag := range []*bool{&c.left, &c.plus, &c.space, &c.alternate, &c.zero} {
			*flag = *flag || i == j
		}
	}
	number := func() (n int) {
		if strings.HasPrefix(s, "*") {
			s = s[1:]
			return int(int32(f.arg(4)))
		}
		for ; s != "" && s[0] >= '0' && s[0] <= '9'; s = s[1:] {
			n = min(10*n+int(s[0]-'0'), maxWidth)
		}
		return n
	}
	if c.width = number(); c.width < 0 {
		c.left, c.width = true, -c.width
	}
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		c.precision = max(-1, number())
	}
	c.width, c.precision = min(c.width, maxWidth), min(c.precision, maxWidth)
	for ; s != "" && strings.IndexByte("hlLqjzt", s[0]) >= 0; s = s[1:] {
		c.wide = c.wide || s[0] != 'h'
	}
	if s == "" {
		return s
	}
	c.verb = s[0]
	return s[1:]
}

// maxWidth bounds what one conversion can print.
const maxWidth = 1 << 16

// text is the next argument as the conversion says.
func (c *conversion) text(f *formatter) string {
	integer := func() uint64 {
		if c.wide {
			return f.arg(8)
		}
		return f.arg(4)
	}
	sign := func(negative bool) string {
		switch {
		case negative:
			return "-"
		case c.plus:
			return "+"
		case c.space:
			return " "
		}
		return ""
	}
	switch c.verb {
	case '%':
		return "%"
	case 'd', 'i':
		v := int64(integer())
		if !c.wide {
			v = int64(int32(v))
		}
		u := uint64(v)
		if v < 0 {
			u = -u
		}
		return c.digits(sign(v < 0), strconv.FormatUint(u, 10))
	case 'u':
		return c.digits("", strconv.FormatUint(integer(), 10))
	case 'o', 'x', 'X':
		v, base, prefix := integer(), 16, "0"+string(c.verb)
		if c.verb == 'o' {
			base, prefix = 8, "0"
		}
		if !c.alternate || v == 0 {
			prefix = ""
		}
		s := strconv.FormatUint(v, base)
		if c.verb == 'X' {
			s = strings.ToUpper(s)
		}
		return c.digits(prefix, s)
	case 'p':
		return c.digits("0x", strconv.FormatUint(f.arg(8), 16))
	case 'c':
		return c.pad("", string([]byte{byte(f.arg(4))}), false)
	case 's':
		s := "(null)"
		if addr := f.arg(8); addr != 0 {
			s = f.r.text(f.w, f.l, addr)
		}
		if c.precision >= 0 {
			s = s[:min(len(s), c.precision)]
		}
		return c.pad("", s, false)
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		v := math.Float64frombits(f.arg(8))
		return c.float(sign(math.Signbit(v)), math.Abs(v))
	}
	return "%" + string(c.verb)
}

// digits is an integer with its sign or prefix.
func (c *conversion) digits(prefix, s string) string {
	if c.precision == 0 && s == "0" {
		s = ""
	}
	if n := c.precision - len(s); n > 0 {
		s = strings.Repeat("0", n) + s
	}
	return c.pad(prefix, s, c.precision < 0)
}

// float is a number that is not negative, with its sign.
func (c *conversion) float(sign string, v float64) string {
	verb, precision := c.verb|0x20, c.precision
	if precision < 0 && verb != 'a' {
		precision = 6
	}
	if precision == 0 && verb == 'g' {
		precision = 1
	}
	zeros := true
	var s string
	switch {
	case math.IsNaN(v):
		s, zeros = "nan", false
	case math.IsInf(v, 0):
		s, zeros = "inf", false
	case verb == 'a':
		s = strconv.FormatFloat(v, 'x', precision, 64)
		mantissa, exponent, _ := strings.Cut(s, "p")
		s = mantissa[2:] + "p" + exponent[:1] + strings.TrimLeft(exponent[1:len(exponent)-1], "0") + exponent[len(exponent)-1:]
		sign += "0x"
	default:
		s = strconv.FormatFloat(v, verb, precision, 64)
	}
	if c.verb&0x20 == 0 {
		s, sign = strings.ToUpper(s), strings.ToUpper(sign)
	}
	return c.pad(sign, s, zeros)
}

// pad fills up to the width, with zeros after the sign if they are asked for and zeros is set.
func (c *conversion) pad(sign, s string, zeros bool) string {
	n := max(0, c.width-len(sign)-len(s))
	switch {
	case c.left:
		return sign + s + strings.Repeat(" ", n)
	case c.zero && zeros:
		return sign + strings.Repeat("0", n) + s
	}
	return strings.Repeat(" ", n) + sign + s
}

// Leak is memory that a kernel has taken with malloc and none has given back with free. It lasts as long as the GPU.
type Leak struct {
	Addr uint64
	Size int
	By   Access // the call of malloc
}

// String says how much was taken where.
func (l *Leak) String() string {
	return fmt.Sprintf("%d bytes that nothing frees, taken by %s", l.Size, l.By.String())
}

// Leaks are those of all kernels so far, by address.
func (g *GPU) Leaks() []Leak {
	g.mem.mu.RLock()
	defer g.mem.mu.RUnlock()
	var list []Leak
	for _, s := range g.mem.segments {
		if s.heap != nil {
			list = append(list, Leak{s.base, s.size, *s.heap})
		}
	}
	return list
}

// deviceMalloc gives an address, or 0 where the heap has no room.
func deviceMalloc(w *warp, l int, _ *runtimeCall, a []uint64) uint64 {
	g := w.block.grid.gpu
	if n := a[0]; n == 0 || n > g.cfg.HeapLimit-min(g.heap, g.cfg.HeapLimit) {
		return 0
	}
	by := w.access(l)
	s := g.mem.add(int(a[0]), allocAlign, ir.GlobalSpace, fmt.Sprintf("the %d bytes that malloc gave thread %s of block %s at %s",
		a[0], by.Thread, by.Block, by.Pos))
	s.heap = by
	g.heap += a[0]
	if w.mon != nil {
		w.mon.allocated(s)
	}
	return s.base
}

func deviceFree(w *warp, l int, _ *runtimeCall, a []uint64) uint64 {
	g := w.block.grid.gpu
	if a[0] == 0 {
		return 0
	}
	s := g.mem.find(a[0])
	if s == nil || s.heap == nil || s.base != a[0] {
		w.report(w.faultOf(InvalidFree, l, ir.GlobalSpace, a[0],
			"free of what malloc has not given, or of what is free already: "+g.mem.describe(a[0])))
		return 0
	}
	if w.mon != nil {
		w.mon.freed(s)
	}
	g.heap -= uint64(s.size)
	s.heap = nil
	g.mem.remove(s)
	return 0
}
