package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// mapPiece is how many bytes of a tensor map are read or written at once.
const mapPiece = 32

// compileReplace compiles tensormap.replace.
func compileReplace(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) < 2 || len(in.Mods) < 2 {
		return nil, c.unsupported(in)
	}
	addr, err := c.addr(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	read, write := c.memOp(in, mapPiece, false), c.memOp(in, mapPiece, true)
	read.align, write.align = 1, 1
	field, dimension := string(in.Mods[1]), 0
	if len(in.Args) == 3 {
		dimension = int(in.Args[1].Bits)
	}
	value, err := c.arg(in, len(in.Args)-1, ir.B64)
	if err != nil {
		return nil, err
	}
	// Assemblers of PTX up to 8.5 left the division of strides to the program.
	shift := 0
	if v := c.prog.module.ir.Version; field == "global_stride" && v.Less(ir.Version{Major: 8, Minor: 6}) {
		shift = 4
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			at := addr.of(w, l)
			w.alignedTo(l, in.Space(), at, tensormap.Align)
			var b [tensormap.Size]byte
			var undef [tensormap.Size / mapPiece]uint32
			for i := 0; i < len(b); i += mapPiece {
				var p []byte
				p, undef[i/mapPiece] = w.bytes(l, read, at+uint64(i), 0)
				copy(b[i:], p)
			}
			if err := tensormap.Replace(&b, field, dimension, w.get(value, l)<<shift); err != nil {
				w.fault(BadOperand, l, in.Space(), at, "%v", err)
			}
			for i := 0; i < len(b); i += mapPiece {
				p, _ := w.bytes(l, write, at+uint64(i), undef[i/mapPiece])
				copy(p, b[i:])
			}
		}
	}, nil
}

// compileCopyFence compiles tensormap.cp_fenceproxy, which copies a tensor map from shared to global memory. The whole warp
// executes it together.
func compileCopyFence(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 3 || in.Args[2].Kind != ir.IntOperand || in.Args[2].Bits != tensormap.Size {
		return nil, c.errorf(in, compute.ErrArgument, "want two addresses and %d", tensormap.Size)
	}
	to, err := c.addr(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	from, err := c.addr(in, &in.Args[1])
	if err != nil {
		return nil, err
	}
	read, write := c.memOp(in, mapPiece, false), c.memOp(in, mapPiece, true)
	read.align, read.space, read.sem = 1, ir.SharedSpace, ""
	write.align, write.space, write.sem = 1, ir.GlobalSpace, ""
	return c.aligned(func(w *warp, m uint32) {
		l := first(m)
		dst, src := to.of(w, l), from.of(w, l)
		w.alignedTo(l, ir.GlobalSpace, dst, tensormap.Align)
		for i := uint64(0); i < tensormap.Size; i += mapPiece {
			p, undef := w.bytes(l, read, src+i, 0)
			q, _ := w.bytes(l, write, dst+i, undef)
			copy(q, p)
		}
		if w.mon != nil {
			w.mon.fence(w, m, ir.Release, in.First(ir.ScopeCTA, ir.ScopeCluster, ir.ScopeGPU, ir.ScopeSys))
		}
		w.proxyFence(m)
	}), nil
}
