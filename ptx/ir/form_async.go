package ir

const asyncForms = `
cp.async.ca.($shared).global$hint$prefetch a a i:4,8,16 s:u32? $pol | 80 7.0
cp.async.cg.($shared).global$hint$prefetch a a i:16 s:u32? $pol | 80 7.0
cp.async.ca.($shared).global$hint$prefetch a a i:4,8,16 p $pol | 80 7.5
cp.async.cg.($shared).global$hint$prefetch a a i:16 p $pol | 80 7.5
cp.async.commit_group | 80 7.0
cp.async.wait_group i:0..4294967295 | 80 7.0
cp.async.wait_all | 80 7.0
cp.async.mbarrier.arrive{.noinc}{.($shared)}.b64 a | 80 7.0

# bulk copies
cp.async.bulk.shared::cluster.global.$tx$hint a a s:u32 a $pol | 90 8.0
cp.async.bulk.shared::cluster.global.$tx.multicast::cluster$hint a a s:u32 a s:u16 $pol | 90 8.0
cp.async.bulk.shared::cta.global.$tx$hint a a s:u32 a $pol | 90 8.6
cp.async.bulk.shared::cluster.shared::cta.$tx a a s:u32 a | 90 8.0
cp.async.bulk.global.shared::cta.bulk_group$hint a a s:u32 $pol | 90 8.0
cp.async.bulk.prefetch.L2.global$hint a s:u32 $pol | 90 8.0
cp.async.bulk.commit_group | 90 8.0
cp.async.bulk.wait_group{.read} i:0..4294967295 | 90 8.0
cp.reduce.async.bulk.shared::cluster.shared::cta.$tx.(and or xor).b32 a a s:u32 a | 90 8.0
cp.reduce.async.bulk.shared::cluster.shared::cta.$tx.(add min max).(u32 s32) a a s:u32 a | 90 8.0
cp.reduce.async.bulk.shared::cluster.shared::cta.$tx.(inc dec).u32 a a s:u32 a | 90 8.0
cp.reduce.async.bulk.shared::cluster.shared::cta.$tx.add.u64 a a s:u32 a | 90 8.0
cp.reduce.async.bulk.global.shared::cta.bulk_group$hint.(and or xor).(b32 b64) a a s:u32 $pol | 90 8.0
cp.reduce.async.bulk.global.shared::cta.bulk_group$hint.(add min max).(u32 s32 u64) a a s:u32 $pol | 90 8.0
cp.reduce.async.bulk.global.shared::cta.bulk_group$hint.(min max).s64 a a s:u32 $pol | 90 8.0
cp.reduce.async.bulk.global.shared::cta.bulk_group$hint.(inc dec).u32 a a s:u32 $pol | 90 8.0
cp.reduce.async.bulk.global.shared::cta.bulk_group$hint.add.(f32 f64) a a s:u32 $pol | 90 8.0
cp.reduce.async.bulk.global.shared::cta.bulk_group$hint.add.noftz.(f16 bf16) a a s:u32 $pol | 90 8.0
cp.reduce.async.bulk.global.shared::cta.bulk_group$hint.(min max).(f16 bf16) a a s:u32 $pol | 90 8.0

# tensors
cp.async.bulk.tensor.($dim).shared::cluster.global{.tile}.$tx$hint a A a $pol | 90 8.0
cp.async.bulk.tensor.($dim).shared::cluster.global{.tile}.$tx.multicast::cluster$hint a A a s:u16 $pol | 90 8.0
cp.async.bulk.tensor.($dim).$group.shared::cluster.global{.tile}.$tx$hint a A a $pol | 100a 8.6
cp.async.bulk.tensor.($dim).$group.shared::cluster.global{.tile}.$tx.multicast::cluster$hint a A a s:u16 $pol | 100a 8.6
cp.async.bulk.tensor.($dim).shared::cluster.global{.tile}.$tx.$group$hint a A a $pol | 100a 8.6
cp.async.bulk.tensor.($dim).shared::cluster.global{.tile}.$tx.multicast::cluster.$group$hint a A a s:u16 $pol | 100a 8.6
cp.async.bulk.tensor.($dim).shared::cta.global{.tile}.$tx$hint a A a $pol | 90 8.6
cp.async.bulk.tensor.(3d 4d 5d).shared::cluster.global.im2col.$tx$hint a A a o:u16 $pol | 90 8.0
cp.async.bulk.tensor.(3d 4d 5d).shared::cluster.global.im2col.$tx.multicast::cluster$hint a A a o:u16 s:u16 $pol | 90 8.0
cp.async.bulk.tensor.($dim).global.shared::cta{.tile}.bulk_group$hint A a $pol | 90 8.0
cp.async.bulk.tensor.(3d 4d 5d).global.shared::cta.im2col_no_offs.bulk_group$hint A a $pol | 90 8.0
cp.reduce.async.bulk.tensor.($dim).global.shared::cta.(add min max inc dec and or xor){.tile}.bulk_group$hint A a $pol | 90 8.0
cp.async.bulk.prefetch.tensor.($dim).L2.global{.tile}$hint A $pol | 90 8.0
cp.async.bulk.prefetch.tensor.(3d 4d 5d).L2.global.im2col$hint A o:u16 $pol | 90 8.0
tensormap.replace.tile.global_address{.(global shared::cta)}.b1024.b64 a s:b64 | 90a 8.3
tensormap.replace.tile.rank{.(global shared::cta)}.b1024.b32 a s:b32 | 90a 8.3
tensormap.replace.tile.(box_dim global_dim element_stride){.(global shared::cta)}.b1024.b32 a i:0..4 s:b32 | 90a 8.3
tensormap.replace.tile.global_stride{.(global shared::cta)}.b1024.b64 a i:0..4 s:b64 | 90a 8.3
tensormap.replace.tile.(elemtype interleave_layout swizzle_mode fill_mode){.(global shared::cta)}.b1024.b32 a i:0..15 | 90a 8.3
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.($scope).sync.aligned a a i:128 | 90 8.3`

const mbarrierForms = `
mbarrier.init{.($shared)}.b64 a s:u32 | 80 7.0
mbarrier.inval{.($shared)}.b64 a | 80 7.0
mbarrier.arrive{.($released)}{.($shared)}.b64 D:u64 a | 80 7.0
mbarrier.arrive{.($released)}{.($shared)}.b64 D:u64 a s:u32 | 90 7.8
mbarrier.arrive{.($released)}.shared::cluster.b64 _ a s:u32? | 90 8.0
mbarrier.arrive.noComplete{.release.cta@80/8.0}{.($shared)}.b64 D:u64 a s:u32 | 80 7.0
mbarrier.arrive.expect_tx{.($released)}{.($shared)}.b64 D:u64 a s:u32 | 90 8.0
mbarrier.arrive.expect_tx{.($released)}.shared::cluster.b64 _ a s:u32 | 90 8.0
mbarrier.arrive_drop{.($released)}{.($shared)}.b64 D:u64 a | 80 7.0
mbarrier.arrive_drop{.($released)}{.($shared)}.b64 D:u64 a s:u32 | 90 7.8
mbarrier.arrive_drop{.($released)}.shared::cluster.b64 _ a s:u32? | 90 8.0
mbarrier.arrive_drop.noComplete{.release.cta@80/8.0}{.($shared)}.b64 D:u64 a s:u32 | 80 7.0
mbarrier.arrive_drop.expect_tx{.($released)}{.($shared)}.b64 D:u64 a s:u32 | 90 8.0
mbarrier.arrive_drop.expect_tx{.($released)}.shared::cluster.b64 _ a s:u32 | 90 8.0
mbarrier.expect_tx{.(relaxed.cta relaxed.cluster)}{.($shared shared::cluster)}.b64 a s:u32 | 90 8.0
mbarrier.complete_tx{.(relaxed.cta relaxed.cluster)}{.($shared shared::cluster)}.b64 a s:u32 | 90 8.0
mbarrier.test_wait{.($acquired)}{.($shared)}.b64 q a r:u64 | 80 7.0
mbarrier.test_wait.parity{.($acquired)}{.($shared)}.b64 q a s:u32 | 80 7.1
mbarrier.try_wait{.($acquired)}{.($shared)}.b64 q a r:u64 s:u32? | 90 7.8
mbarrier.try_wait.parity{.($acquired)}{.($shared)}.b64 q a s:u32 s:u32? | 90 7.8
mbarrier.pending_count.b64 d:u32 r:u64 | 80 7.0`
