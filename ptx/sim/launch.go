package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Dim3 is a position in, or the extent of, a grid, cluster or block. In extents 0 means 1.
type Dim3 struct{ X, Y, Z int }

// String is (x, y, z).
func (d Dim3) String() string { return fmt.Sprintf("(%d, %d, %d)", d.X, d.Y, d.Z) }

// Sized is the extent with 1 for 0.
func (d Dim3) Sized() Dim3 { return Dim3{cmp.Or(d.X, 1), cmp.Or(d.Y, 1), cmp.Or(d.Z, 1)} }

func (d Dim3) count() int { return d.X * d.Y * d.Z }

// at is the i-th position in an extent, x first.
func (d Dim3) at(i int) Dim3 { return Dim3{i % d.X, i / d.X % d.Y, i / d.X / d.Y} }

func (d Dim3) within(limit Dim3) bool {
	return d.X >= 1 && d.Y >= 1 && d.Z >= 1 && d.X <= limit.X && d.Y <= limit.Y && d.Z <= limit.Z
}

// Launch is how to run a kernel. Grid and Block count blocks and threads; Cluster is in blocks, all zeros for what the kernel
// asks for or none.
type Launch struct {
	Grid, Block, Cluster Dim3
	Shared               int // dynamic shared memory per block, in bytes
	// Cooperative lets the blocks wait for each other, as grid.sync of CUDA's cooperative groups does: %envreg1 and %envreg2 hold
	// the address of the grid's workspace.
	Cooperative bool
	Params      []byte // the parameter block; see [Kernel.Pack]
}

// The limits of a launch on every GPU since sm_30; clusters of more than 8 blocks need sm_90 and consent, which is given here.
var (
	maxGrid    = Dim3{math.MaxInt32, 65535, 65535}
	maxBlock   = Dim3{1024, 1024, 64}
	maxThreads = 1024
	maxCluster = 16
	// maxCooperative is more than what any GPU has room for at once.
	maxCooperative = 1 << 14
)

// workspaceSize is the number of bytes of a cooperative launch's workspace: cooperative groups count arrivals in its second word.
const workspaceSize = 64

// Params are the kernel's parameters.
func (k *Kernel) Params() []ir.Var { return append([]ir.Var(nil), k.ir.Params...) }

// Name is the kernel's name.
func (k *Kernel) Name() string { return k.ir.Name }

// StaticShared is the number of bytes of shared memory that each block has without asking, by the variables that the kernel
// mentions.
func (k *Kernel) StaticShared() int { return k.prog.shared.static }

// Pack makes the parameter block of arguments in the order of the parameters. An argument is a number of the parameter's size
// and class (integers for .u, .s and .b types, floats for .f, either for .b), or bytes of exactly its size. Errors wrap
// [compute.ErrArgument].
func (k *Kernel) Pack(arguments ...any) ([]byte, error) {
	list := make([]args.Arg, len(arguments))
	for i, v := range arguments {
		var err error
		if list[i], err = argument(v); err != nil {
			return nil, fmt.Errorf("sim: argument %d of kernel %s: %w", i, k.ir.Name, err)
		}
	}
	block := make([]byte, k.params.Size())
	if err := k.params.Pack(block, list...); err != nil {
		return nil, fmt.Errorf("sim: kernel %s: %w", k.ir.Name, err)
	}
	return block, nil
}

// argument is a number, or bytes, as an argument of a launch.
func argument(v any) (args.Arg, error) {
	if b, ok := v.([]byte); ok {
		return args.Bytes(b), nil
	}
	n := reflect.ValueOf(v)
	var bits uint64
	switch {
	case n.IsValid() && n.CanInt():
		bits = uint64(n.Int())
	case n.IsValid() && n.CanUint():
		bits = n.Uint()
	case n.IsValid() && n.Kind() == reflect.Float32:
		return args.F32(float32(n.Float())), nil
	case n.IsValid() && n.Kind() == reflect.Float64:
		return args.F64(n.Float()), nil
	default:
		return args.Arg{}, fmt.Errorf("%T is no number: %w", v, compute.ErrArgument)
	}
	switch size := n.Type().Bits() / 8; size {
	case 4:
		return args.U32(uint32(bits)), nil
	case 8:
		return args.Ptr(bits), nil // an address or a number
	default:
		b := make([]byte, size)
		store(b, size, bits)
		return args.Bytes(b), nil
	}
}

// Run executes a kernel and waits for it. A fault of the kernel is a *[Fault]; a launch that no GPU would take wraps
// [compute.ErrArgument] or [compute.ErrTooLarge]. When ctx ends, so does the launch, with its error; what was written stays.
func (g *GPU) Run(ctx context.Context, k *Kernel, l Launch) (*Stats, error) {
	if k == nil || k.module.gpu != g {
		return nil, fmt.Errorf("sim: Run of a kernel of another GPU: %w", compute.ErrArgument)
	}
	if err := k.validate(&l); err != nil {
		return nil, fmt.Errorf("sim: launch of %s: %w", k.ir.Name, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g.run.Lock()
	defer g.run.Unlock()
	r := newGrid(ctx, g, k, l)
	if l.Cooperative {
		r.workspace = g.mem.add(workspaceSize, allocAlign, ir.GlobalSpace, "the workspace of the cooperative launch")
		defer g.mem.remove(r.workspace)
	}
	if g.mon != nil {
		g.known.Lock()
		defer g.known.Unlock()
		g.mon.begin(r)
		defer g.mon.end()
		if s := r.workspace; s != nil {
			g.mon.allocated(s)
			defer g.mon.freed(s)
			g.mon.wrote(s, 0, s.size)
		}
	}
	workers := make([]*worker, min(int64(g.cfg.Workers), r.total))
	if k.prog.heap {
		workers = workers[:1]
	}
	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for i := range workers {
		workers[i] = r.newWorker(i)
		if i > 0 {
			wg.Go(func() { errs[i] = workers[i].guarded() })
		}
	}
	errs[0] = workers[0].guarded()
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, errStopped) {
			return nil, err
		}
	}
	if err := g.printed; err != nil {
		g.printed = nil
		return nil, fmt.Errorf("sim: the output of %s: %w", k.ir.Name, err)
	}
	return r.stats(workers), nil
}

// validate checks a launch and sets the dimensions that were left out.
func (k *Kernel) validate(l *Launch) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), compute.ErrArgument)
	}
	b := k.ir.Bounds
	if l.Grid == (Dim3{}) || l.Block == (Dim3{}) {
		return bad("grid %v of blocks of %v threads: neither may be empty", l.Grid, l.Block)
	}
	if l.Cluster == (Dim3{}) && b.ReqCluster[0] > 0 {
		l.Cluster = Dim3{b.ReqCluster[0], b.ReqCluster[1], b.ReqCluster[2]}
	}
	l.Grid, l.Block, l.Cluster = l.Grid.Sized(), l.Block.Sized(), l.Cluster.Sized()
	req := Dim3{b.ReqThreads[0], b.ReqThreads[1], b.ReqThreads[2]}.Sized()
	cluster := Dim3{b.ReqCluster[0], b.ReqCluster[1], b.ReqCluster[2]}.Sized()
	switch {
	case !l.Grid.within(maxGrid):
		return bad("grid %v, the limit is %v", l.Grid, maxGrid)
	case !l.Block.within(maxBlock) || l.Block.count() > maxThreads:
		return bad("block of %v threads, the limits are %v and %d together", l.Block, maxBlock, maxThreads)
	case b.ReqThreads[0] > 0 && l.Block != req:
		return bad("block of %v threads, the kernel wants .reqntid %v", l.Block, req)
	case b.MaxThreads[0] > 0 && l.Block.count() > b.Threads() && b.ReqThreads[0] == 0:
		return bad("block of %d threads, the kernel allows .maxntid %d", l.Block.count(), b.Threads())
	case !l.Cluster.within(l.Grid) || l.Cluster.count() > maxCluster:
		return bad("cluster of %v blocks, the grid has %v, and %d are the limit", l.Cluster, l.Grid, maxCluster)
	case l.Grid.X%l.Cluster.X != 0 || l.Grid.Y%l.Cluster.Y != 0 || l.Grid.Z%l.Cluster.Z != 0:
		return bad("grid %v is no multiple of the cluster %v", l.Grid, l.Cluster)
	case b.ReqCluster[0] > 0 && l.Cluster != cluster:
		return bad("cluster of %v blocks, the kernel wants .reqnctapercluster %v", l.Cluster, cluster)
	case b.MaxClusterBlocks > 0 && l.Cluster.count() > b.MaxClusterBlocks:
		return bad("cluster of %d blocks, the kernel allows .maxclusterrank %d", l.Cluster.count(), b.MaxClusterBlocks)
	case k.module.gpu.cfg.Checks&CheckRace != 0 && float64(l.Grid.X)*float64(l.Grid.Y)*float64(l.Grid.Z)*1024 > 1<<32:
		return fmt.Errorf("grid %v, the check for races is for %d blocks at most: %w", l.Grid, 1<<22, compute.ErrTooLarge)
	case l.Cooperative && float64(l.Grid.X)*float64(l.Grid.Y)*float64(l.Grid.Z) > float64(maxCooperative):
		return fmt.Errorf("cooperative grid %v, at most %d blocks can be resident: %w", l.Grid, maxCooperative, compute.ErrTooLarge)
	case l.Shared < 0:
		return bad("%d bytes of shared memory", l.Shared)
	case k.sharedSize(l.Shared) > k.module.gpu.cfg.SharedLimit:
		return fmt.Errorf("%d bytes of dynamic and %d of static shared memory, the limit is %d: %w", l.Shared, k.prog.shared.static,
			k.module.gpu.cfg.SharedLimit, compute.ErrTooLarge)
	case len(l.Params) != k.params.Size():
		return bad("%d bytes of parameters, the kernel's take %d; see Kernel.Pack", len(l.Params), k.params.Size())
	}
	return nil
}

// sharedSize is the shared memory of a block, with so many dynamic bytes.
func (k *Kernel) sharedSize(dynamic int) int {
	if dynamic == 0 {
		return k.prog.shared.static
	}
	return k.prog.shared.dyn + dynamic
}

func newGrid(ctx context.Context, g *GPU, k *Kernel, l Launch) *grid {
	c := l.Cluster
	r := &grid{ctx: ctx, gpu: g, kernel: k, prog: k.prog, launch: l, shared: k.sharedSize(l.Shared)}
	r.shape = Dim3{l.Grid.X / c.X, l.Grid.Y / c.Y, l.Grid.Z / c.Z}
	r.total = int64(r.shape.X) * int64(r.shape.Y) * int64(r.shape.Z)
	r.clustered = l.Cluster.count() > 1 || k.ir.Bounds.ReqCluster[0] > 0
	data := append([]byte(nil), l.Params...)
	r.params = segment{data: data, size: len(data), space: ir.ParamSpace, name: "the kernel's parameters", readOnly: true}
	return r
}

func (r *grid) newWorker(i int) *worker {
	n := len(r.prog.code)
	k := &worker{grid: r, cache: make([]*segment, r.prog.caches), count: make([]uint64, n), lanes: make([]uint64, n),
		stretches: make([]uint64, n), stretchLanes: make([]uint64, n)}
	if r.gpu.cfg.Counters {
		k.extra = make([]Counts, n)
	}
	if seed := r.gpu.cfg.Seed; seed != 0 {
		k.rng = rand.New(rand.NewPCG(seed, 0x6a09e667f3bcc908))
		if r.total <= 1<<20 { // the order of more blocks is the fixed one
			k.order = make([]int64, r.total)
			for i, v := range k.rng.Perm(int(r.total)) {
				k.order[i] = int64(v)
			}
		}
	}
	return k
}

// errStopped ends the other workers when one has met a fault.
var errStopped = errors.New("another block has met a fault")

// guarded runs the worker and turns panics with faults into errors.
func (k *worker) guarded() (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Fault:
			err = r
			k.grid.failed.Store(true)
		case stopped:
			err = r.err
			k.grid.failed.Store(true)
		default:
			panic(r)
		}
	}()
	k.run()
	return nil
}

// countStretches counts the instructions of stretches.
func (k *worker) countStretches() {
	code := k.grid.prog.code
	for pc, n := range k.stretches {
		for i := 0; n > 0 && i < int(code[pc].stretch.n); i++ {
			k.count[pc+i] += n
			k.lanes[pc+i] += k.stretchLanes[pc]
		}
	}
}

// stats sums up what the workers counted.
func (r *grid) stats(workers []*worker) *Stats {
	s := &Stats{Kernel: r.prog.name, Blocks: r.launch.Grid.count(), Threads: r.launch.Grid.count() * r.launch.Block.count(),
		Shared: r.shared, Classes: map[string]uint64{}}
	for _, k := range workers {
		k.countStretches()
	}
	for pc := range r.prog.code {
		in := &r.prog.code[pc]
		line := LineStats{Pos: in.in.Pos}
		for _, k := range workers {
			line.Instructions += k.count[pc]
			line.Lanes += k.lanes[pc]
			if k.extra != nil {
				line.Counts.Add(&k.extra[pc])
			}
		}
		if line.Instructions == 0 {
			continue
		}
		if in.label == "" { // the GPU runs one launch at a time
			in.label, in.class = in.text(), classOf(in.in)
		}
		line.Instr, line.Class = in.label, in.class
		in.cost.add(&line.Counts, line.Lanes, line.Instructions)
		s.Instructions += line.Instructions
		s.Lanes += line.Lanes
		s.Classes[line.Class] += line.Instructions
		s.Counts.Add(&line.Counts)
		s.Lines = append(s.Lines, line)
	}
	return s
}
