package ptx

// Dim is a dimension of the grid.
type Dim string

// The dimensions.
const (
	X Dim = "x"
	Y Dim = "y"
	Z Dim = "z"
)

func (k *Kernel) special32(name string) Reg[uint32] {
	return def[uint32](k, "mov.u32", raw(specialOperand(name)))
}
func (k *Kernel) special64(name string) Reg[uint64] {
	return def[uint64](k, "mov.u64", raw(specialOperand(name)))
}

// Tid is the thread's index in its block.
func (k *Kernel) Tid(d Dim) Reg[uint32] { return k.special32("tid." + string(d)) }

// Ntid is the number of threads of a block.
func (k *Kernel) Ntid(d Dim) Reg[uint32] { return k.special32("ntid." + string(d)) }

// Ctaid is the block's index in the grid.
func (k *Kernel) Ctaid(d Dim) Reg[uint32] { return k.special32("ctaid." + string(d)) }

// Nctaid is the number of blocks of the grid.
func (k *Kernel) Nctaid(d Dim) Reg[uint32] { return k.special32("nctaid." + string(d)) }

// GlobalID is the thread's index in the grid: Ctaid · Ntid + Tid.
func (k *Kernel) GlobalID(d Dim) Reg[uint32] { return k.Ctaid(d).Mad(k.Ntid(d), k.Tid(d)) }

// LaneID is the thread's index in its warp.
func (k *Kernel) LaneID() Reg[uint32] { return k.special32("laneid") }

// WarpID is where the warp runs. It may change and says nothing of the thread's index: for that, divide [Kernel.Tid] by 32.
func (k *Kernel) WarpID() Reg[uint32] { return k.special32("warpid") }

// NWarpID is the number of warps that WarpID distinguishes.
func (k *Kernel) NWarpID() Reg[uint32] { return k.special32("nwarpid") }

// SMID is the multiprocessor on which the thread runs. It may change.
func (k *Kernel) SMID() Reg[uint32] { return k.special32("smid") }

// NSMID bounds SMID.
func (k *Kernel) NSMID() Reg[uint32] { return k.special32("nsmid") }

// GridID tells launches apart.
func (k *Kernel) GridID() Reg[uint64] { return k.special64("gridid") }

// LaneMask names a mask of lanes by their relation to the thread's own.
type LaneMask string

// The masks of lanes.
const (
	LanesEqual    LaneMask = "lanemask_eq"
	LanesBelow    LaneMask = "lanemask_lt"
	LanesUpTo     LaneMask = "lanemask_le"
	LanesAbove    LaneMask = "lanemask_gt"
	LanesFromHere LaneMask = "lanemask_ge"
)

// Lanes is a mask of lanes.
func (k *Kernel) Lanes(m LaneMask) Reg[uint32] { return k.special32(string(m)) }

// Clock counts cycles, and wraps.
func (k *Kernel) Clock() Reg[uint32] { return k.special32("clock") }

// Clock64 counts cycles.
func (k *Kernel) Clock64() Reg[uint64] { return k.special64("clock64") }

// GlobalTimer counts nanoseconds, in steps of up to a few microseconds.
func (k *Kernel) GlobalTimer() Reg[uint64] { return k.special64("globaltimer") }

// DynamicSharedSize is the bytes of shared memory that the launch gave.
func (k *Kernel) DynamicSharedSize() Reg[uint32] { return k.special32("dynamic_smem_size") }

// TotalSharedSize is the bytes of shared memory of the block.
func (k *Kernel) TotalSharedSize() Reg[uint32] { return k.special32("total_smem_size") }

// ClusterID is the cluster's index in the grid.
func (k *Kernel) ClusterID(d Dim) Reg[uint32] { return k.special32("clusterid." + string(d)) }

// NClusterID is the number of clusters of the grid.
func (k *Kernel) NClusterID(d Dim) Reg[uint32] { return k.special32("nclusterid." + string(d)) }

// ClusterCtaid is the block's index in its cluster.
func (k *Kernel) ClusterCtaid(d Dim) Reg[uint32] { return k.special32("cluster_ctaid." + string(d)) }

// ClusterNctaid is the number of blocks of a cluster.
func (k *Kernel) ClusterNctaid(d Dim) Reg[uint32] { return k.special32("cluster_nctaid." + string(d)) }

// ClusterRank is the block's index in its cluster, over all dimensions.
func (k *Kernel) ClusterRank() Reg[uint32] { return k.special32("cluster_ctarank") }

// ClusterSize is the number of blocks of a cluster, over all dimensions.
func (k *Kernel) ClusterSize() Reg[uint32] { return k.special32("cluster_nctarank") }

// IsExplicitCluster tells whether the launch has clusters.
func (k *Kernel) IsExplicitCluster() Reg[bool] {
	return def[bool](k, "mov.pred", raw(specialOperand("is_explicit_cluster")))
}
