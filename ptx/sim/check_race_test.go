package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
)

// treeSum adds the words of x for each block, in shared memory.
var treeSum = sample{name: "tree reduction", shared: 1024, grid: 3, block: 256, ptx: `
	ld.global.u32 %r1, [%xi];
	st.shared.u32 [%sm], %r1;
	bar.sync 0;
	mov.u32 %r2, 128;
LOOP:
	setp.ge.u32 %p1, %t, %r2;
	@%p1 bra SKIP;
	shl.b32 %r3, %r2, 2;
	add.u32 %r3, %r3, %sm;
	ld.shared.u32 %r4, [%r3];
	ld.shared.u32 %r5, [%sm];
	add.u32 %r5, %r5, %r4;
	st.shared.u32 [%sm], %r5;
SKIP:
	bar.sync 1;
	shr.u32 %r2, %r2, 1;
	setp.ne.u32 %p2, %r2, 0;
	@%p2 bra LOOP;
	ld.shared.u32 %r6, [buf];
	st.global.u32 [%yi], %r6;`, check: blockSums}

func blockSums(t *testing.T, x, y []uint32) {
	for i := range y {
		sum := uint32(0)
		for _, v := range x[i/256*256:][:256] {
			sum += v
		}
		require.Equal(t, sum, y[i])
	}
}

// shuffleSum is the same by shuffles, and one word of shared memory for each warp.
var shuffleSum = sample{name: "warp reduction", shared: 1024, grid: 2, block: 256, ptx: `
	ld.global.u32 %r1, [%xi];
	shfl.sync.down.b32 %r2, %r1, 16, 31, -1; add.u32 %r1, %r1, %r2;
	shfl.sync.down.b32 %r2, %r1, 8, 31, -1; add.u32 %r1, %r1, %r2;
	shfl.sync.down.b32 %r2, %r1, 4, 31, -1; add.u32 %r1, %r1, %r2;
	shfl.sync.down.b32 %r2, %r1, 2, 31, -1; add.u32 %r1, %r1, %r2;
	shfl.sync.down.b32 %r2, %r1, 1, 31, -1; add.u32 %r1, %r1, %r2;
	shr.u32 %r3, %t, 5; shl.b32 %r3, %r3, 2; mov.u32 %r4, buf; add.u32 %r3, %r3, %r4;
	setp.eq.u32 %p1, %l, 0;
	@%p1 st.shared.u32 [%r3], %r1;
	bar.sync 0;
	ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [buf];
	ld.shared.v4.u32 {%r9, %r10, %r11, %r12}, [buf+16];
	add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; add.u32 %r5, %r5, %r8; add.u32 %r5, %r5, %r9;
	add.u32 %r5, %r5, %r10; add.u32 %r5, %r5, %r11; add.u32 %r5, %r5, %r12;
	st.global.u32 [%yi], %r5;`, check: blockSums}

// warpTranspose hands words from lane to lane through shared memory, within a warp.
var warpTranspose = sample{name: "through shared memory within a warp", shared: 1024, block: 64, ptx: `
	ld.global.u32 %r1, [%xi];
	st.shared.u32 [%sm], %r1;
	bar.warp.sync -1;
	xor.b32 %r2, %t, 5; shl.b32 %r2, %r2, 2; mov.u32 %r3, buf; add.u32 %r2, %r2, %r3;
	ld.shared.u32 %r4, [%r2];
	bar.warp.sync -1;
	st.shared.u32 [%sm], 0;
	st.global.u32 [%yi], %r4;`,
	check: func(t *testing.T, x, y []uint32) {
		for i := range y {
			require.Equal(t, x[i^5], y[i])
		}
	}}

// lastBlock is the reduction whose last block adds the others' sums: y[0] counts, y[1…] are the sums, y[16] is the result.
var lastBlock = sample{name: "last block done", shared: 1024, grid: 8, block: 32, zero: 256, ptx: `
	ld.global.u32 %r1, [%xi];
	redux.sync.add.s32 %r2, %r1, -1;
	setp.ne.u32 %p1, %t, 0;
	@%p1 bra MEET;
	mul.wide.u32 %d1, %b, 4; add.u64 %d1, %d1, %y;
	st.global.u32 [%d1+4], %r2;
	membar.gl;
	atom.global.add.u32 %r3, [%y], 1;
	membar.gl;
	st.shared.u32 [buf], %r3;
MEET:
	bar.sync 0;
	ld.shared.u32 %r3, [buf];
	setp.ne.u32 %p2, %r3, 7;
	@%p2 exit;
	mov.u32 %r4, 0;
	setp.gt.u32 %p3, %t, 7;
	mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %y;
	@!%p3 ld.global.u32 %r4, [%d1+4];
	redux.sync.add.s32 %r5, %r4, -1;
	setp.eq.u32 %p4, %t, 0;
	@%p4 st.global.u32 [%y+64], %r5;`,
	check: func(t *testing.T, x, y []uint32) {
		sum := uint32(0)
		for _, v := range x[:256] {
			sum += v
		}
		require.Equal(t, sum, y[16])
	}}

// lookBack is a prefix sum over blocks of one warp: each block waits for its predecessor's flag (y[512+i]) and takes its sum (y[256+i]).
var lookBack = sample{name: "decoupled look-back", grid: 8, block: 32, zero: 1024, ptx: `
	ld.global.u32 %r1, [%xi];
	mov.u32 %r10, 1;
SCAN:
	shfl.sync.up.b32 %r2|%p1, %r1, %r10, 0, -1;
	@%p1 add.u32 %r1, %r1, %r2;
	shl.b32 %r10, %r10, 1;
	setp.lt.u32 %p2, %r10, 32;
	@%p2 bra SCAN;
	mov.u32 %r5, 0;
	mul.wide.u32 %d1, %b, 4; add.u64 %d1, %d1, %y;
	setp.ne.u32 %p3, %l, 31;
	@%p3 bra GO;
	setp.eq.u32 %p4, %b, 0;
	@%p4 bra PUBLISH;
WAIT:
	ld.relaxed.gpu.global.u32 %r4, [%d1+2044];
	setp.eq.u32 %p5, %r4, 0;
	@%p5 bra WAIT;
	fence.acq_rel.gpu;
	ld.global.u32 %r5, [%d1+1020];
PUBLISH:
	add.u32 %r6, %r5, %r1;
	st.global.u32 [%d1+1024], %r6;
	fence.acq_rel.gpu;
	st.relaxed.gpu.global.u32 [%d1+2048], 1;
GO:
	shfl.sync.idx.b32 %r5, %r5, 31, 31, -1;
	add.u32 %r1, %r1, %r5;
	st.global.u32 [%yi], %r1;`,
	check: func(t *testing.T, x, y []uint32) {
		sum := uint32(0)
		for i := range 256 {
			sum += x[i]
			require.Equal(t, sum, y[i])
		}
	}}

// spinlock counts in y[1] under the lock y[0]; one thread of each warp, as lanes of one would wait for each other in order.
var spinlock = sample{name: "spin lock", grid: 4, block: 64, zero: 256, ptx: `
	setp.ne.u32 %p1, %l, 0;
	@%p1 bra END;
LOCK:
	atom.acquire.gpu.global.cas.b32 %r1, [%y], 0, 1;
	setp.ne.u32 %p2, %r1, 0;
	@%p2 bra LOCK;
	ld.global.u32 %r2, [%y+4];
	add.u32 %r2, %r2, 1;
	st.global.u32 [%y+4], %r2;
	atom.release.gpu.global.exch.b32 %r3, [%y], 0;
END:`,
	check: func(t *testing.T, _, y []uint32) { require.Equal(t, uint32(8), y[1]) }}

// pipeline hands a tile from a warp that produces to one that consumes, by named barriers: 1 says full, 2 empty.
var pipeline = sample{name: "named barriers", shared: 512, block: 64, words: 1024, ptx: `
	mov.u32 %r1, 0;
	shl.b32 %r2, %l, 2; mov.u32 %r3, buf; add.u32 %r2, %r2, %r3;
	mul.wide.u32 %d1, %l, 4; add.u64 %d2, %d1, %x; add.u64 %d3, %d1, %y;
	mov.u32 %r6, 0;
	setp.ge.u32 %p1, %t, 32;
	@%p1 bra CONSUME;
PRODUCE:
	bar.sync 2, 64;
	ld.global.u32 %r4, [%d2];
	st.shared.u32 [%r2], %r4;
	bar.arrive 1, 64;
	add.u64 %d2, %d2, 128;
	add.u32 %r1, %r1, 1;
	setp.lt.u32 %p2, %r1, 8;
	@%p2 bra PRODUCE;
	bra END;
CONSUME:
	xor.b32 %r5, %r2, 4;
	bar.arrive 2, 64;
MORE:
	bar.sync 1, 64;
	ld.shared.u32 %r4, [%r5];
	add.u32 %r6, %r6, %r4;
	add.u32 %r1, %r1, 1;
	setp.lt.u32 %p2, %r1, 8;
	@%p2 bar.arrive 2, 64;
	@%p2 bra MORE;
	st.global.u32 [%d3], %r6;
	st.global.u32 [%d3+128], 0;
END:`,
	check: func(t *testing.T, x, y []uint32) {
		for i := range 32 {
			sum := uint32(0)
			for j := range 8 {
				sum += x[32*j+i^1]
			}
			require.Equal(t, sum, y[i])
		}
	}}

// histogram counts the words' low 4 bits in shared memory, then in y[0…15].
var histogram = sample{name: "histogram", shared: 1024, grid: 4, block: 128, zero: 512, ptx: `
	st.shared.u32 [%sm], 0;
	bar.sync 0;
	ld.global.u32 %r1, [%xi];
	and.b32 %r1, %r1, 15; shl.b32 %r1, %r1, 2; mov.u32 %r2, buf; add.u32 %r1, %r1, %r2;
	red.shared.add.u32 [%r1], 1;
	bar.sync 0;
	setp.ge.u32 %p1, %t, 16;
	@%p1 exit;
	ld.shared.u32 %r3, [%sm];
	mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %y;
	red.global.add.u32 [%d1], %r3;`,
	check: func(t *testing.T, x, y []uint32) {
		var want [16]uint32
		for _, v := range x[:512] {
			want[v&15]++
		}
		require.Equal(t, want[:], y[:16])
	}}

// mailbox hands a word from block 0 to block 1 by release and acquire.
var mailbox = sample{name: "release and acquire", grid: 2, block: 32, zero: 64, ptx: `
	setp.ne.u32 %p1, %t, 0;
	@%p1 bra END;
	setp.eq.u32 %p2, %b, 1;
	@%p2 bra RECEIVE;
	st.global.u32 [%y+8], 42;
	st.release.gpu.global.u32 [%y], 1;
	bra END;
RECEIVE:
	ld.acquire.gpu.global.u32 %r1, [%y];
	setp.eq.u32 %p3, %r1, 0;
	@%p3 bra RECEIVE;
	ld.global.u32 %r2, [%y+8];
	st.global.u32 [%y+12], %r2;
END:`,
	check: func(t *testing.T, _, y []uint32) { require.Equal(t, uint32(42), y[3]) }}

// chain hands it on through a third block that only adds to the flag.
var chain = sample{name: "release through a third one's atomic", grid: 3, block: 32, zero: 96, ptx: `
	setp.ne.u32 %p1, %t, 0;
	@%p1 bra END;
	setp.eq.u32 %p2, %b, 2;
	@%p2 bra RECEIVE;
	setp.eq.u32 %p2, %b, 1;
	@%p2 bra BETWEEN;
	st.global.u32 [%y+8], 42;
	st.release.gpu.global.u32 [%y], 1;
	bra END;
BETWEEN:
	ld.relaxed.gpu.global.u32 %r1, [%y];
	setp.eq.u32 %p3, %r1, 0;
	@%p3 bra BETWEEN;
	atom.relaxed.gpu.global.add.u32 %r1, [%y], 1;
	st.relaxed.gpu.global.u32 [%y+4], 1;
	bra END;
RECEIVE:
	ld.relaxed.gpu.global.u32 %r1, [%y+4];
	setp.eq.u32 %p3, %r1, 0;
	@%p3 bra RECEIVE;
	ld.acquire.gpu.global.u32 %r1, [%y];
	ld.global.u32 %r2, [%y+8];
	st.global.u32 [%y+12], %r2;
END:`,
	check: func(t *testing.T, _, y []uint32) { require.Equal(t, uint32(42), y[3]) }}

// neighbours reads another block's shared memory, within a cluster.
var neighbours = sample{name: "cluster", shared: 128, grid: 4, group: 2, block: 32, ptx: `
	ld.global.u32 %r1, [%xi];
	st.shared.u32 [%sm], %r1;
	barrier.cluster.arrive.aligned;
	barrier.cluster.wait.aligned;
	mov.u32 %r2, %cluster_ctarank; xor.b32 %r2, %r2, 1;
	mapa.shared::cluster.u32 %r3, %sm, %r2;
	ld.shared::cluster.u32 %r4, [%r3];
	st.global.u32 [%yi], %r4;
	barrier.cluster.arrive.aligned;
	barrier.cluster.wait.aligned;
	st.shared.u32 [%sm], 0;`,
	check: func(t *testing.T, x, y []uint32) {
		for i := range y {
			require.Equal(t, x[i^32], y[i])
		}
	}}

// fencedNeighbours arrives relaxed, after a fence.
var fencedNeighbours = neighbours.replaced("cluster with fences and relaxed arrivals", 0, "barrier.cluster.arrive.aligned",
	"fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned")

// asyncCopy brings words by cp.async.
var asyncCopy = sample{name: "cp.async", shared: 512, block: 64, ptx: `
	cp.async.ca.shared.global [%sm], [%xi], 4;
	cp.async.commit_group;
	cp.async.wait_group 0;
	bar.sync 0;
	xor.b32 %r1, %sm, 128;
	ld.shared.u32 %r2, [%r1];
	st.global.u32 [%yi], %r2;`,
	check: func(t *testing.T, x, y []uint32) {
		for i := range y {
			require.Equal(t, x[i^32], y[i])
		}
	}}

// phases is a barrier of the block made of an mbarrier, twice.
var phases = sample{name: "mbarrier", shared: 512, block: 64, ptx: `
	ld.global.u32 %r1, [%xi];
	mov.u32 %r9, buf; add.u32 %r9, %r9, 256;
	setp.eq.u32 %p1, %t, 0;
	@%p1 mbarrier.init.shared.b64 [%r9], 64;
	bar.sync 0;
	st.shared.u32 [%sm], %r1;
	mbarrier.arrive.shared.b64 %d1, [%r9];
W1:	mbarrier.try_wait.shared.b64 %p2, [%r9], %d1;
	@!%p2 bra W1;
	xor.b32 %r2, %sm, 132;
	ld.shared.u32 %r3, [%r2];
	mbarrier.arrive.shared.b64 %d1, [%r9];
W2:	mbarrier.try_wait.shared.b64 %p2, [%r9], %d1;
	@!%p2 bra W2;
	st.shared.u32 [%sm], 0;
	st.global.u32 [%yi], %r3;`,
	check: func(t *testing.T, x, y []uint32) {
		for i := range y {
			require.Equal(t, x[i^33], y[i])
		}
	}}

// resetting is lastBlock whose last block sets the count to zero again, plainly: it has observed that all others have counted.
func resetting(name, by string, want FaultKind) sample {
	s := lastBlock.replaced(name, want, "setp.eq.u32 %p4, %t, 0;",
		"setp.eq.u32 %p4, %t, "+by+"; @%p4 st.global.u32 [%y], 0; setp.eq.u32 %p4, %t, 0;")
	if want == 0 {
		s.check = lastBlock.check
	}
	return s
}

var orderly = []sample{treeSum, shuffleSum, warpTranspose, lastBlock, lookBack, spinlock, pipeline, histogram, mailbox, chain,
	resetting("count reset by who counted", "0", 0), resetting("count reset by who met it", "5", 0),
	neighbours, fencedNeighbours, asyncCopy, phases,
	{name: "bytes of one word", block: 128, shared: 128, ptx: `
		mov.u32 %r1, buf; add.u32 %r1, %r1, %t;
		st.shared.u8 [%r1], %t;
		bar.sync 0;
		shl.b32 %r2, %t, 2; and.b32 %r2, %r2, 127; mov.u32 %r1, buf; add.u32 %r2, %r2, %r1;
		ld.shared.u32 %r3, [%r2];
		bar.sync 0;
		setp.lt.u32 %p1, %t, 32;
		@%p1 st.shared.u32 [%r2], %r3;
		st.global.u32 [%yi], %r3;`},
	{name: "one value from all lanes", block: 32, zero: 32, ptx: `st.global.u32 [%y], 7;`,
		check: func(t *testing.T, _, y []uint32) { require.Equal(t, uint32(7), y[0]) }},
	{name: "one value from all warps", grid: 2, block: 64, zero: 128, ptx: `st.global.v2.u32 [%y], {7, 8}; st.global.u8 [%y+8], 9;`,
		check: func(t *testing.T, _, y []uint32) { require.Equal(t, []uint32{7, 8, 9}, y[:3]) }},
	{name: "strong stores", grid: 2, block: 64, zero: 128, ptx: `st.volatile.global.u32 [%y], %t;`},
	{name: "reads only", grid: 4, block: 256, words: 1024, ptx: `
		ld.global.u32 %r1, [%x]; ld.global.u32 %r2, [%x+128]; add.u32 %r1, %r1, %r2; st.global.u32 [%yi], %r1;`},
}

func TestOrderly(t *testing.T) { runSamples(t, orderly) }

func TestRaces(t *testing.T) {
	runSamples(t, []sample{
		treeSum.replaced("tree without its barrier in the loop", Race, "bar.sync 1;", ""),
		treeSum.replaced("tree without its first barrier", Race, "bar.sync 0;", ""),
		treeSum.replaced("tree that adds the wrong half", Race, "shl.b32 %r3, %r2, 2;", "shl.b32 %r3, %r2, 1;"),
		shuffleSum.replaced("warps without barrier", Race, "bar.sync 0;", ""),
		shuffleSum.replaced("shuffles order nothing", Race, "bar.sync 0;", "shfl.sync.idx.b32 %r20, %r1, 0, 31, -1;"),
		warpTranspose.replaced("warp without bar.warp.sync", Race, "bar.warp.sync -1;", ""),
		warpTranspose.replaced("a shuffle instead of bar.warp.sync", Race, "bar.warp.sync -1;", "shfl.sync.idx.b32 %r20, %r1, 0, 31, -1;"),
		warpTranspose.replaced("bar.warp.sync of half warps", Race, "xor.b32 %r2, %t, 5;", "xor.b32 %r2, %t, 32;"),
		lastBlock.replaced("last block without fence", Race, "membar.gl;", ""),
		lastBlock.replaced("last block with the block's fence", Race, "membar.gl;", "membar.cta;"),
		lastBlock.replaced("last block without release", Race, "membar.gl;\n\tatom", "atom"),
		lastBlock.replaced("last block without acquire", Race, "membar.gl;\n\tst", "st"),
		resetting("count reset by a block that is not the last", "0", Race).replaced("count reset too early", Race, "%r3, 7;", "%r3, 4;"),
		resetting("count reset without the barrier", "5", Race).replaced("count reset by who did not meet it", Race,
			"bar.sync 0;\n\tld.shared.u32 %r3, [buf];", "mov.u32 %r3, 7;"),
		lastBlock.replaced("last block that counts alone", Race, "bar.sync 0;", "bar.warp.sync -1;").replaced(
			"last block that does not count", Race, "atom.global.add.u32 %r3, [%y], 1;", "mov.u32 %r3, 7;"),
		lookBack.replaced("look-back without fences", Race, "fence.acq_rel.gpu;", ""),
		lookBack.replaced("look-back without release", Race, "fence.acq_rel.gpu;\n\tst", "st"),
		lookBack.replaced("look-back without acquire", Race, "fence.acq_rel.gpu;\n\tld", "ld"),
		lookBack.replaced("look-back with a plain flag", Race, "st.relaxed.gpu.global", "st.global"),
		lookBack.replaced("look-back that reads the flag plainly", Race, "ld.relaxed.gpu.global", "ld.global"),
		lookBack.replaced("look-back in the wrong scope", Race, "fence.acq_rel.gpu;", "fence.acq_rel.cta;"),
		lookBack.replaced("look-back with a flag in the wrong scope", Race, "st.relaxed.gpu.global", "st.relaxed.cta.global"),
		spinlock.replaced("lock without acquire", Race, "atom.acquire.gpu", "atom.relaxed.gpu"),
		spinlock.replaced("lock without release", Race, "atom.release.gpu", "atom.relaxed.gpu"),
		spinlock.replaced("lock given back plainly", Race, "atom.release.gpu.global.exch.b32 %r3, [%y], 0;", "st.global.u32 [%y], 0;"),
		pipeline.replaced("pipeline that says full too early", Race, "st.shared.u32 [%r2], %r4;\n\tbar.arrive 1, 64;",
			"bar.arrive 1, 64;\n\tst.shared.u32 [%r2], %r4;"),
		pipeline.replaced("pipeline that says empty too early", Race, "bar.sync 1, 64;\n\tld.shared.u32 %r4, [%r5];", "bar.sync 1, 64;").
			replaced("pipeline that says empty too early", Race, "@%p2 bra MORE;", "ld.shared.u32 %r4, [%r5];\n\t@%p2 bra MORE;"),
		histogram.replaced("histogram without atomics", Race, "red.shared.add.u32 [%r1], 1;",
			"ld.shared.u32 %r9, [%r1]; add.u32 %r9, %r9, 1; st.shared.u32 [%r1], %r9;"),
		histogram.replaced("histogram without the second barrier", Race, "bar.sync 0;\n\tsetp", "setp"),
		histogram.replaced("histogram without the first barrier", Race, "bar.sync 0;\n\tld", "ld").or(Uninitialized),
		mailbox.replaced("mailbox without release", Race, "st.release.gpu", "st.relaxed.gpu"),
		mailbox.replaced("mailbox without acquire", Race, "ld.acquire.gpu", "ld.relaxed.gpu"),
		mailbox.replaced("mailbox in the wrong scope", Race, "st.release.gpu", "st.release.cta"),
		chain.replaced("chain broken by a store", Race, "atom.relaxed.gpu.global.add.u32 %r1, [%y], 1;", "st.relaxed.gpu.global.u32 [%y], 2;"),
		neighbours.replaced("cluster without its second barrier", Race,
			"%r4;\n\tbarrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;", "%r4;"),
		neighbours.replaced("cluster with relaxed arrivals", Race, "arrive.aligned", "arrive.relaxed.aligned"),
		fencedNeighbours.replaced("cluster with a store after the fence", Race, "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;\n\tmov",
			"fence.acq_rel.cluster; st.shared.u32 [%sm], %r1; barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;\n\tmov"),
		fencedNeighbours.replaced("cluster with the fence of a block", Race, "fence.acq_rel.cluster", "fence.acq_rel.cta"),
		neighbours.replaced("cluster with the block's barrier", Race,
			"barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;", "bar.sync 0;"),
		asyncCopy.replaced("cp.async without barrier", Race, "bar.sync 0;", "").or(AsyncHazard),
		asyncCopy.replaced("cp.async without wait", AsyncHazard, "cp.async.wait_group 0;", ""),
		phases.replaced("mbarrier without its second phase", Race,
			"mbarrier.arrive.shared.b64 %d1, [%r9];\nW2:	mbarrier.try_wait.shared.b64 %p2, [%r9], %d1;\n\t@!%p2 bra W2;", ""),
		{name: "different values from lanes of one instruction", block: 32, zero: 32, want: Race, ptx: `st.global.u32 [%y], %t;`},
		{name: "one value from all warps, by two instructions", block: 64, zero: 64, want: Race, ptx: `
			setp.lt.u32 %p1, %t, 32; @%p1 st.global.u32 [%y], 7; @!%p1 st.global.u32 [%y], 7;`},
		{name: "one value from each warp", block: 64, zero: 64, want: Race, ptx: `shr.u32 %r1, %t, 5; st.global.v2.u32 [%y], {7, %r1};`},
		{name: "one value from all lanes, twice", block: 32, zero: 32, want: Race,
			ptx: `st.global.u32 [%y], 7; st.global.u32 [%y], 8;`},
		{name: "overlapping halves", block: 32, zero: 40, want: Race, ptx: `shl.b32 %r1, %t, 1; cvt.u64.u32 %d1, %r1;
			add.u64 %d1, %d1, %y; st.global.u16 [%d1], 1; ld.global.u16 %h1, [%d1+2];`},
		{name: "strong and weak stores", grid: 2, block: 32, zero: 64, want: Race, ptx: `
			setp.eq.u32 %p1, %b, 0;
			@%p1 st.volatile.global.u32 [%y], 5;
			@!%p1 st.global.u32 [%y], 5;`},
	})
}

// TestRaceReport looks at what a race says.
func TestRaceReport(t *testing.T) {
	rng := ptxtest.Random(t)
	s := sample{name: "report", block: 64, shared: 256, ptx: `
		st.shared.u32 [%sm], 1;
		ld.shared.u32 %r1, [buf+8];
		st.global.u32 [%yi], %r1;`}
	_, _, _, err := execute(t, &s, Config{Checks: AllChecks}, rng)
	var f *Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, Race, f.Kind)
	require.Equal(t, "report.ptx", f.Pos.File)
	require.Positive(t, f.Pos.Line)
	require.NotNil(t, f.Other)
	require.Equal(t, f.Pos.File, f.Other.Pos.File)
	require.Equal(t, uint64(8), f.Addr)
	require.NotEqual(t, f.Thread, f.Other.Thread)
	require.True(t, f.Thread.X == 2 || f.Other.Thread.X == 2, err)
	require.Contains(t, err.Error(), "ld.shared.u32 %r1, [buf+8];")
	require.Contains(t, err.Error(), "st.shared.u32 [%sm], 1;")
}
