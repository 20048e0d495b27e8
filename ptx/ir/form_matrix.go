package ir

const matrixForms = `
ldmatrix.sync.aligned.m8n8.x1{.trans}{.($shared)}.b16 1d:b32 a | 75 6.5
ldmatrix.sync.aligned.m8n8.x2{.trans}{.($shared)}.b16 2d:b32 a | 75 6.5
ldmatrix.sync.aligned.m8n8.x4{.trans}{.($shared)}.b16 4d:b32 a | 75 6.5
stmatrix.sync.aligned.m8n8.x1{.trans}{.($shared)}.b16 a 1r:b32 | 90 7.8
stmatrix.sync.aligned.m8n8.x2{.trans}{.($shared)}.b16 a 2r:b32 | 90 7.8
stmatrix.sync.aligned.m8n8.x4{.trans}{.($shared)}.b16 a 4r:b32 | 90 7.8
movmatrix.sync.aligned.m8n8.trans.b16 d:b32 r:b32 | 75 7.8

mma.sync.aligned.m8n8k4.(row col).(row col).f32.f16.f16.f32 8d:f32 2r:f16x2 2r:f16x2 8r:f32 | 70 6.4
mma.sync.aligned.m8n8k4.(row col).(row col).f32.f16.f16.f16 8d:f32 2r:f16x2 2r:f16x2 4r:f16x2 | 70 6.4
mma.sync.aligned.m8n8k4.(row col).(row col).f16.f16.f16.f16 4d:f16x2 2r:f16x2 2r:f16x2 4r:f16x2 | 70 6.4
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 4d:f32 2r:f16x2 1r:f16x2 4r:f32 | 75 6.5
mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 2d:f16x2 2r:f16x2 1r:f16x2 2r:f16x2 | 75 6.5
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 4d:f32 4r:f16x2 2r:f16x2 4r:f32 | 80 7.0
mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 2d:f16x2 4r:f16x2 2r:f16x2 2r:f16x2 | 80 7.0
mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 4d:f32 2r:bf16x2 1r:bf16x2 4r:f32 | 80 7.0
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 4d:f32 4r:bf16x2 2r:bf16x2 4r:f32 | 80 7.0
mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 4d:f32 2r:tf32 1r:tf32 4r:f32 | 80 7.0
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 4d:f32 4r:tf32 2r:tf32 4r:f32 | 80 7.0
mma.sync.aligned.m16n8k32.row.col.f32.(e4m3 e5m2).(e4m3 e5m2).f32 4d:f32 4r:bf16x2 2r:bf16x2 4r:f32 | 89 8.4
mma.sync.aligned.m16n8k32.row.col.f16.(e4m3 e5m2).(e4m3 e5m2).f16 2d:f16x2 4r:bf16x2 2r:bf16x2 2r:f16x2 | 89 8.7
mma.sync.aligned.m16n8k16.row.col.f32.(e4m3 e5m2).(e4m3 e5m2).f32 4d:f32 2r:bf16x2 1r:bf16x2 4r:f32 | 89 8.7
mma.sync.aligned.m16n8k16.row.col.f16.(e4m3 e5m2).(e4m3 e5m2).f16 2d:f16x2 2r:bf16x2 1r:bf16x2 2r:f16x2 | 89 8.7
mma.sync.aligned.m8n8k4.row.col{.($rnd)}.f64.f64.f64.f64 2d:f64 1r:f64 1r:f64 2r:f64 | 80 7.0
mma.sync.aligned.m16n8k4.row.col{.($rnd)}.f64.f64.f64.f64 4d:f64 2r:f64 1r:f64 4r:f64 | 90 7.8
mma.sync.aligned.m16n8k8.row.col{.($rnd)}.f64.f64.f64.f64 4d:f64 4r:f64 2r:f64 4r:f64 | 90 7.8
mma.sync.aligned.m16n8k16.row.col{.($rnd)}.f64.f64.f64.f64 4d:f64 8r:f64 4r:f64 4r:f64 | 90 7.8
mma.sync.aligned.m8n8k16.row.col{.satfinite}.s32.(u8 s8).(u8 s8).s32 2d:s32 1r:u32 1r:u32 2r:s32 | 75 6.5
mma.sync.aligned.m16n8k16.row.col{.satfinite}.s32.(u8 s8).(u8 s8).s32 4d:s32 2r:u32 1r:u32 4r:s32 | 80 7.0
mma.sync.aligned.m16n8k32.row.col{.satfinite}.s32.(u8 s8).(u8 s8).s32 4d:s32 4r:u32 2r:u32 4r:s32 | 80 7.0
mma.sync.aligned.m8n8k32.row.col{.satfinite}.s32.(u4 s4).(u4 s4).s32 2d:s32 1r:u32 1r:u32 2r:s32 | 75 6.5
mma.sync.aligned.m16n8k32.row.col{.satfinite}.s32.(u4 s4).(u4 s4).s32 4d:s32 2r:u32 1r:u32 4r:s32 | 80 7.0
mma.sync.aligned.m16n8k64.row.col{.satfinite}.s32.(u4 s4).(u4 s4).s32 4d:s32 4r:u32 2r:u32 4r:s32 | 80 7.0
mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.(xor.popc and.popc@80/7.1) 2d:s32 1r:u32 1r:u32 2r:s32 | 75 7.0
mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.(xor.popc and.popc@80/7.1) 4d:s32 2r:u32 1r:u32 4r:s32 | 80 7.0
mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.(xor.popc and.popc@80/7.1) 4d:s32 4r:u32 2r:u32 4r:s32 | 80 7.0

wmma.load.a.sync.aligned.(row col).($wshape){.(global $shared)}.f16 8d:f16x2 a s:u32? | 70 6.3
wmma.load.b.sync.aligned.(row col).($wshape){.(global $shared)}.f16 8d:f16x2 a s:u32? | 70 6.3
wmma.load.c.sync.aligned.(row col).($wshape){.(global $shared)}.f16 4d:f16x2 a s:u32? | 70 6.3
wmma.load.c.sync.aligned.(row col).($wshape){.(global $shared)}.f32 8d:f32 a s:u32? | 70 6.3
wmma.store.d.sync.aligned.(row col).($wshape){.(global $shared)}.f16 a 4r:f16x2 s:u32? | 70 6.3
wmma.store.d.sync.aligned.(row col).($wshape){.(global $shared)}.f32 a 8r:f32 s:u32? | 70 6.3
wmma.mma.sync.aligned.(row col).(row col).($wshape).f32.f32{.satfinite} 8d:f32 8r:f16x2 8r:f16x2 8r:f32 | 70 6.3
wmma.mma.sync.aligned.(row col).(row col).($wshape).f32.f16{.satfinite} 8d:f32 8r:f16x2 8r:f16x2 4r:f16x2 | 70 6.3
wmma.mma.sync.aligned.(row col).(row col).($wshape).f16.f32{.satfinite} 4d:f16x2 8r:f16x2 8r:f16x2 8r:f32 | 70 6.3
wmma.mma.sync.aligned.(row col).(row col).($wshape).f16.f16{.satfinite} 4d:f16x2 8r:f16x2 8r:f16x2 4r:f16x2 | 70 6.3
wmma.load.a.sync.aligned.(row col).m16n16k16{.(global $shared)}.(u8 s8) 2d:u32 a s:u32? | 72 6.3
wmma.load.b.sync.aligned.(row col).m16n16k16{.(global $shared)}.(u8 s8) 2d:u32 a s:u32? | 72 6.3
wmma.load.c.sync.aligned.(row col).m16n16k16{.(global $shared)}.s32 8d:s32 a s:u32? | 72 6.3
wmma.store.d.sync.aligned.(row col).m16n16k16{.(global $shared)}.s32 a 8r:s32 s:u32? | 72 6.3
wmma.mma.sync.aligned.(row col).(row col).m16n16k16.s32.u8.u8.s32{.satfinite} 8d:s32 2r:u32 2r:u32 8r:s32 | 72 6.3
wmma.mma.sync.aligned.(row col).(row col).m16n16k16.s32.s8.s8.s32{.satfinite} 8d:s32 2r:u32 2r:u32 8r:s32 | 72 6.3
wmma.load.a.sync.aligned.(row col).m8n32k16{.(global $shared)}.(u8 s8) 1d:u32 a s:u32? | 72 6.3
wmma.load.b.sync.aligned.(row col).m8n32k16{.(global $shared)}.(u8 s8) 4d:u32 a s:u32? | 72 6.3
wmma.load.c.sync.aligned.(row col).m8n32k16{.(global $shared)}.s32 8d:s32 a s:u32? | 72 6.3
wmma.store.d.sync.aligned.(row col).m8n32k16{.(global $shared)}.s32 a 8r:s32 s:u32? | 72 6.3
wmma.mma.sync.aligned.(row col).(row col).m8n32k16.s32.u8.u8.s32{.satfinite} 8d:s32 1r:u32 4r:u32 8r:s32 | 72 6.3
wmma.mma.sync.aligned.(row col).(row col).m8n32k16.s32.s8.s8.s32{.satfinite} 8d:s32 1r:u32 4r:u32 8r:s32 | 72 6.3
wmma.load.a.sync.aligned.(row col).m32n8k16{.(global $shared)}.(u8 s8) 4d:u32 a s:u32? | 72 6.3
wmma.load.b.sync.aligned.(row col).m32n8k16{.(global $shared)}.(u8 s8) 1d:u32 a s:u32? | 72 6.3
wmma.load.c.sync.aligned.(row col).m32n8k16{.(global $shared)}.s32 8d:s32 a s:u32? | 72 6.3
wmma.store.d.sync.aligned.(row col).m32n8k16{.(global $shared)}.s32 a 8r:s32 s:u32? | 72 6.3
wmma.mma.sync.aligned.(row col).(row col).m32n8k16.s32.u8.u8.s32{.satfinite} 8d:s32 4r:u32 1r:u32 8r:s32 | 72 6.3
wmma.mma.sync.aligned.(row col).(row col).m32n8k16.s32.s8.s8.s32{.satfinite} 8d:s32 4r:u32 1r:u32 8r:s32 | 72 6.3
wmma.load.a.sync.aligned.(row col).m16n16k16{.(global $shared)}.bf16 4d:bf16x2 a s:u32? | 80 7.0
wmma.load.b.sync.aligned.(row col).m16n16k16{.(global $shared)}.bf16 4d:bf16x2 a s:u32? | 80 7.0
wmma.mma.sync.aligned.(row col).(row col).m16n16k16.f32.bf16.bf16.f32 8d:f32 4r:bf16x2 4r:bf16x2 8r:f32 | 80 7.0
wmma.load.a.sync.aligned.(row col).m8n32k16{.(global $shared)}.bf16 2d:bf16x2 a s:u32? | 80 7.0
wmma.load.b.sync.aligned.(row col).m8n32k16{.(global $shared)}.bf16 8d:bf16x2 a s:u32? | 80 7.0
wmma.mma.sync.aligned.(row col).(row col).m8n32k16.f32.bf16.bf16.f32 8d:f32 2r:bf16x2 8r:bf16x2 8r:f32 | 80 7.0
wmma.load.a.sync.aligned.(row col).m32n8k16{.(global $shared)}.bf16 8d:bf16x2 a s:u32? | 80 7.0
wmma.load.b.sync.aligned.(row col).m32n8k16{.(global $shared)}.bf16 2d:bf16x2 a s:u32? | 80 7.0
wmma.mma.sync.aligned.(row col).(row col).m32n8k16.f32.bf16.bf16.f32 8d:f32 8r:bf16x2 2r:bf16x2 8r:f32 | 80 7.0
wmma.load.a.sync.aligned.(row col).m16n16k8{.(global $shared)}.tf32 4d:bf16x2 a s:u32? | 80 7.0
wmma.load.b.sync.aligned.(row col).m16n16k8{.(global $shared)}.tf32 4d:bf16x2 a s:u32? | 80 7.0
wmma.load.c.sync.aligned.(row col).m16n16k8{.(global $shared)}.f32 8d:f32 a s:u32? | 80 7.0
wmma.store.d.sync.aligned.(row col).m16n16k8{.(global $shared)}.f32 a 8r:f32 s:u32? | 80 7.0
wmma.mma.sync.aligned.(row col).(row col).m16n16k8.f32.tf32.tf32.f32 8d:f32 4r:bf16x2 4r:bf16x2 8r:f32 | 80 7.0
wmma.load.a.sync.aligned.(row col).m8n8k4{.(global $shared)}.f64 1d:f64 a s:u32? | 80 7.0
wmma.load.b.sync.aligned.(row col).m8n8k4{.(global $shared)}.f64 1d:f64 a s:u32? | 80 7.0
wmma.load.c.sync.aligned.(row col).m8n8k4{.(global $shared)}.f64 2d:f64 a s:u32? | 80 7.0
wmma.store.d.sync.aligned.(row col).m8n8k4{.(global $shared)}.f64 a 2r:f64 s:u32? | 80 7.0
wmma.mma.sync.aligned.(row col).(row col).m8n8k4{.($rnd)}.f64.f64.f64.f64 2d:f64 1r:f64 1r:f64 2r:f64 | 80 7.0
wmma.load.a.sync.aligned.row.m8n8k32{.(global $shared)}.(u4 s4) 1d:u32 a s:u32? | 75 6.3
wmma.load.b.sync.aligned.col.m8n8k32{.(global $shared)}.(u4 s4) 1d:u32 a s:u32? | 75 6.3
wmma.load.c.sync.aligned.(row col).m8n8k32{.(global $shared)}.s32 2d:s32 a s:u32? | 75 6.3
wmma.store.d.sync.aligned.(row col).m8n8k32{.(global $shared)}.s32 a 2r:s32 s:u32? | 75 6.3
wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32{.satfinite} 2d:s32 1r:u32 1r:u32 2r:s32 | 75 6.3
wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32{.satfinite} 2d:s32 1r:u32 1r:u32 2r:s32 | 75 6.3
wmma.load.a.sync.aligned.row.m8n8k128{.(global $shared)}.b1 1d:u32 a s:u32? | 75 6.3
wmma.load.b.sync.aligned.col.m8n8k128{.(global $shared)}.b1 1d:u32 a s:u32? | 75 6.3
wmma.load.c.sync.aligned.(row col).m8n8k128{.(global $shared)}.s32 2d:s32 a s:u32? | 75 6.3
wmma.store.d.sync.aligned.(row col).m8n8k128{.(global $shared)}.s32 a 2r:s32 s:u32? | 75 6.3
wmma.mma.(xor.popc and.popc@80/7.1).sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 2d:s32 1r:u32 1r:u32 2r:s32 | 75 6.3

wgmma.mma_async.sync.aligned.($wk16).f32.f16.f16 n/2d:f32 r:u64 r:u64 p i:-1,1 i:-1,1 i:0,1 i:0,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wk16).f16.f16.f16 n/4d:f16x2 r:u64 r:u64 p i:-1,1 i:-1,1 i:0,1 i:0,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wk16).f32.bf16.bf16 n/2d:f32 r:u64 r:u64 p i:-1,1 i:-1,1 i:0,1 i:0,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wk8).f32.tf32.tf32 n/2d:f32 r:u64 r:u64 p i:-1,1 i:-1,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wk32).f32.(e4m3 e5m2).(e4m3 e5m2) n/2d:f32 r:u64 r:u64 p i:-1,1 i:-1,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wk32).f16.(e4m3 e5m2).(e4m3 e5m2) n/4d:f16x2 r:u64 r:u64 p i:-1,1 i:-1,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wi32).s32.($s8){.satfinite} n/2d:s32 r:u64 r:u64 p | 90a 8.0
wgmma.mma_async.sync.aligned.($wi256).s32.b1.b1.and.popc n/2d:s32 r:u64 r:u64 p | 90a 8.0
wgmma.mma_async.sync.aligned.($wk16).f32.f16.f16 n/2d:f32 4r:f16x2 r:u64 p i:-1,1 i:-1,1 i:0,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wk16).f16.f16.f16 n/4d:f16x2 4r:f16x2 r:u64 p i:-1,1 i:-1,1 i:0,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wk16).f32.bf16.bf16 n/2d:f32 4r:bf16x2 r:u64 p i:-1,1 i:-1,1 i:0,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wk8).f32.tf32.tf32 n/2d:f32 4r:bf16x2 r:u64 p i:-1,1 i:-1,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wk32).f32.(e4m3 e5m2).(e4m3 e5m2) n/2d:f32 4r:bf16x2 r:u64 p i:-1,1 i:-1,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wk32).f16.(e4m3 e5m2).(e4m3 e5m2) n/4d:f16x2 4r:bf16x2 r:u64 p i:-1,1 i:-1,1 | 90a 8.0
wgmma.mma_async.sync.aligned.($wi32).s32.($s8){.satfinite} n/2d:s32 4r:bf16x2 r:u64 p | 90a 8.0
wgmma.mma_async.sync.aligned.($wi256).s32.b1.b1.and.popc n/2d:s32 4r:bf16x2 r:u64 p | 90a 8.0
wgmma.fence.sync.aligned | 90a 8.0
wgmma.commit_group.sync.aligned | 90a 8.0
wgmma.wait_group.sync.aligned i:0..7 | 90a 8.0`
