package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
)

type checked = program.KernelCheck

// Kernel is a kernel of a [Module], ready for launches. It is safe for concurrent use, and valid until its module is closed.
type Kernel struct {
	checked
	module     *Module
	name       string
	function   driver.Function
	layout     *args.Layout
	bounds     ir.Bounds
	required   [3]uint32 // threads of a block, along each axis; zeros if any will do
	attributes Attributes

	bigShared, bigClusters atomic.Bool // enabled in the driver
}

// Attributes are what the compiler made of a kernel.
type Attributes struct {
	Registers     int // of a thread
	Shared        int // bytes of a block, declared by the kernel; dynamic shared memory comes on top
	Local         int // bytes of a thread: spilled registers, indexed arrays
	MaxThreads    int // of a block
	PTXVersion    int // of the text: 80 for 8.0
	BinaryVersion int // architecture of the code: 90 for sm_90
}

// newKernel looks up a kernel in a module, loads it and compares its parameters with the declaration. The context has been
// entered.
func (m *Module) newKernel(f *ir.Func) (*Kernel, error) {
	p, drv := m.l.p, m.l.p.drv
	k := &Kernel{module: m, name: f.Name, layout: args.LayoutOf(f.Params), bounds: f.Bounds}
	k.checked = k.check
	if r := f.Bounds.ReqThreads; r[0] > 0 {
		k.required = [3]uint32{uint32(r[0]), uint32(max(1, r[1])), uint32(max(1, r[2]))}
	}
	var r driver.Result
	if k.function, r = drv.ModuleGetFunction(m.handle, f.Name); r != driver.Success {
		return nil, p.check("cuModuleGetFunction", r)
	}
	if err := p.check("cuFuncLoad", drv.FuncLoad(k.function)); err != nil {
		return nil, err
	}
	a := &k.attributes
	for _, x := range []struct {
		attribute driver.FuncAttribute
		to        *int
	}{
		{driver.FuncRegisters, &a.Registers}, {driver.FuncStaticShared, &a.Shared}, {driver.FuncLocalBytes, &a.Local},
		{driver.FuncMaxThreads, &a.MaxThreads}, {driver.FuncPTXVersion, &a.PTXVersion},
		{driver.FuncBinaryVersion, &a.BinaryVersion},
	} {
		if *x.to, r = drv.FuncGetAttribute(x.attribute, k.function); r != driver.Success {
			return nil, p.check("cuFuncGetAttribute", r)
		}
	}
	return k, k.compareParams()
}

// compareParams compares the sizes of the parameters with the driver's, if the driver reports them. Where they lie is the driver's
// business: on Hopper it aligns them by their address among all constants, which begin at 528.
func (k *Kernel) compareParams() error {
	p := k.module.l.p
	for i := range k.layout.Len() + 1 {
		_, size, r := p.drv.FuncGetParamInfo(k.function, i)
		switch {
		case r == driver.NotSupported:
			return nil
		case r == driver.InvalidValue && i == k.layout.Len():
			return nil
		case r == driver.InvalidValue || i == k.layout.Len() && r == driver.Success:
			return fmt.Errorf("%d parameters, the driver has more or fewer: %w", k.layout.Len(), compute.ErrArgument)
		case r != driver.Success:
			return p.check("cuFuncGetParamInfo", r)
		}
		if a := k.layout.Param(i); uint64(a.Size) != size {
			return fmt.Errorf("parameter %s has %d bytes, for the driver it has %d: %w", a.Name, a.Size, size, compute.ErrArgument)
		}
	}
	return nil
}

// Name is the kernel's name in the module.
func (k *Kernel) Name() string { return k.name }

// Params are the parameters in their order.
func (k *Kernel) Params() []args.Param {
	list := make([]args.Param, k.layout.Len())
	for i := range list {
		list[i] = k.layout.Param(i)
	}
	return list
}

// Attributes are what the compiler made of the kernel.
func (k *Kernel) Attributes() Attributes { return k.attributes }

// RequiredBlock is the block size that the kernel declares, or zeros if it accepts any.
func (k *Kernel) RequiredBlock() [3]uint32 { return k.required }

// prepare converts a launch for the driver, without its parameters, and checks it against the limits of the kernel and of the
// device. Unless it fails, it retains the kernel's module, for the caller to release. It allocates nothing.
func (k *Kernel) prepare(d *state, l *Launch, out *driver.Launch) error {
	switch {
	case k == nil:
		return fmt.Errorf("nil kernel: %w", compute.ErrArgument)
	case k.module.d != d:
		return fmt.Errorf("kernel %s: %w", k.name, compute.ErrForeignTensor)
	}
	if err := k.module.retain(); err != nil {
		return fmt.Errorf("kernel %s: %w", k.name, err)
	}
	if err := k.fill(l, out); err != nil {
		k.module.release()
		return err
	}
	return nil
}

func (k *Kernel) fill(l *Launch, out *driver.Launch) error {
	out.Grid, out.Block, out.Cluster, out.Shared, out.Cooperative = l.Grid, l.Block, l.Cluster, l.Shared, l.Cooperative
	out.Offsets = k.layout.Offsets()
	if out.Block == ([3]uint32{}) {
		out.Block = k.required
	}
	if out.Block == ([3]uint32{}) {
		return fmt.Errorf("kernel %s: a launch without a block: %w", k.name, compute.ErrArgument)
	}
	ones(&out.Grid)
	ones(&out.Block)
	if err := k.checkGrid(out); err != nil {
		return err
	}
	if err := k.checkBlock(out.Block); err != nil {
		return err
	}
	if err := k.checkShared(out.Shared); err != nil {
		return err
	}
	if info := &k.module.l.info; out.Cooperative && !info.Cooperative {
		return fmt.Errorf("kernel %s: %s has no cooperative launches: %w", k.name, info.Name, compute.ErrUnsupported)
	}
	return k.checkCluster(out)
}

// ones makes axes of 0 one long.
func ones(axes *[3]uint32) {
	for i := range axes {
		axes[i] = max(1, axes[i])
	}
}

func (k *Kernel) checkGrid(l *driver.Launch) error {
	most := &k.module.l.info.MaxGrid
	for i, n := range l.Grid {
		if int64(n) > int64(most[i]) {
			return fmt.Errorf("kernel %s: grid %v, at most %v: %w", k.name, l.Grid, *most, compute.ErrTooLarge)
		}
	}
	return nil
}

func (k *Kernel) checkBlock(block [3]uint32) error {
	if k.required[0] > 0 && block != k.required {
		return fmt.Errorf("kernel %s: block %v, it needs %v: %w", k.name, block, k.required, compute.ErrArgument)
	}
	most, threads := &k.module.l.info.MaxBlock, uint64(1)
	for i, n := range block {
		if int64(n) > int64(most[i]) {
			return fmt.Errorf("kernel %s: block %v, at most %v: %w", k.name, block, *most, compute.ErrTooLarge)
		}
		threads *= uint64(n) // at most 1024·1024·64
	}
	if threads > uint64(k.attributes.MaxThreads) {
		return fmt.Errorf("kernel %s: block %v of %d threads, at most %d: %w", k.name, block, threads, k.attributes.MaxThreads,
			compute.ErrTooLarge)
	}
	return nil
}

// checkShared allows the kernel more dynamic shared memory than every device has, if that is needed.
func (k *Kernel) checkShared(dynamic uint32) error {
	info := &k.module.l.info
	static, most := int64(k.attributes.Shared), int64(max(info.Shared, info.SharedOptin))
	if static+int64(dynamic) > most {
		return fmt.Errorf("kernel %s: %d bytes of shared memory and %d of dynamic, at most %d: %w", k.name, static, dynamic,
			most, compute.ErrTooLarge)
	}
	if static+int64(dynamic) <= int64(info.Shared) {
		return nil
	}
	return k.enable(&k.bigShared, driver.FuncMaxDynamicShared, int(most-static))
}

// enable sets an attribute once; twice does no harm.
func (k *Kernel) enable(done *atomic.Bool, a driver.FuncAttribute, value int) error {
	if done.Load() {
		return nil
	}
	if err := k.module.l.p.enter(); err != nil {
		return err
	}
	defer k.module.l.p.leave()
	if err := k.failed("cuFuncSetAttribute", k.module.l.p.drv.FuncSetAttribute(a, k.function, value)); err != nil {
		return err
	}
	done.Store(true)
	return nil
}

const (
	portableCluster = 8  // blocks that every device with clusters takes
	largestCluster  = 16 // blocks that some take, for kernels that allow it
)

func (k *Kernel) checkCluster(l *driver.Launch) error {
	var required [3]uint32
	for i, n := range k.bounds.ReqCluster {
		required[i] = uint32(n)
	}
	if required != ([3]uint32{}) {
		ones(&required)
	}
	cluster := l.Cluster
	if cluster == ([3]uint32{}) {
		cluster = required // which the driver knows
	} else {
		ones(&l.Cluster)
		cluster = l.Cluster
	}
	if cluster == ([3]uint32{}) {
		return nil
	}
	if !k.module.l.info.Clusters {
		return fmt.Errorf("kernel %s: %s has no clusters: %w", k.name, k.module.l.info.Name, compute.ErrUnsupported)
	}
	if required != ([3]uint32{}) && cluster != required {
		return fmt.Errorf("kernel %s: cluster %v, it needs %v: %w", k.name, cluster, required, compute.ErrArgument)
	}
	most, blocks := uint64(largestCluster), uint64(1)
	if n := k.bounds.MaxClusterBlocks; n > 0 {
		most = uint64(n)
	}
	for i, n := range cluster {
		if l.Grid[i]%n != 0 {
			return fmt.Errorf("kernel %s: grid %v is not made of clusters %v: %w", k.name, l.Grid, cluster, compute.ErrArgument)
		}
		blocks *= min(uint64(n), 1<<20)
	}
	if blocks > most {
		return fmt.Errorf("kernel %s: cluster %v of %d blocks, at most %d: %w", k.name, cluster, blocks, most,
			compute.ErrTooLarge)
	}
	if blocks > portableCluster {
		return k.enable(&k.bigClusters, driver.FuncNonPortableCluster, 1)
	}
	return nil
}
