package ir

import "strings"

// Products whose matrix A has zeros in half of its places: the metadata in the fifth operand says where the others are, and the last
// operand which lanes of four have the metadata.
const sparseForms = `
mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 4d:f32 2r:f16x2 2r:f16x2 4r:f32 r:b32 i:0..3 | 80 7.1
mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 2d:f16x2 2r:f16x2 2r:f16x2 2r:f16x2 r:b32 i:0..3 | 80 7.1
mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 4d:f32 4r:f16x2 4r:f16x2 4r:f32 r:b32 i:0..1 | 80 7.1
mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 2d:f16x2 4r:f16x2 4r:f16x2 2r:f16x2 r:b32 i:0..1 | 80 7.1
mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 4d:f32 2r:bf16x2 2r:bf16x2 4r:f32 r:b32 i:0..3 | 80 7.1
mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 4d:f32 4r:bf16x2 4r:bf16x2 4r:f32 r:b32 i:0..1 | 80 7.1
mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 4d:f32 2r:tf32 2r:tf32 4r:f32 r:b32 i:0..3 | 80 7.1
mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 4d:f32 4r:tf32 4r:tf32 4r:f32 r:b32 i:0..1 | 80 7.1
mma.sp.sync.aligned.m16n8k64.row.col.f32.(e4m3 e5m2).(e4m3 e5m2).f32 4d:f32 4r:bf16x2 4r:bf16x2 4r:f32 r:b32 i:0 | 89 8.4
mma.sp.sync.aligned.m16n8k32.row.col{.satfinite}.s32.(u8 s8).(u8 s8).s32 4d:s32 2r:u32 2r:u32 4r:s32 r:b32 i:0..1 | 80 7.1
mma.sp.sync.aligned.m16n8k64.row.col{.satfinite}.s32.(u8 s8).(u8 s8).s32 4d:s32 4r:u32 4r:u32 4r:s32 r:b32 i:0 | 80 7.1
mma.sp.sync.aligned.m16n8k64.row.col{.satfinite}.s32.(u4 s4).(u4 s4).s32 4d:s32 2r:u32 2r:u32 4r:s32 r:b32 i:0..1 | 80 7.1
mma.sp.sync.aligned.m16n8k128.row.col{.satfinite}.s32.(u4 s4).(u4 s4).s32 4d:s32 4r:u32 4r:u32 4r:s32 r:b32 i:0 | 80 7.1`

// orderedForms are those with indices in ascending order, which newer GPUs prefer.
var orderedForms = strings.NewReplacer("mma.sp.", "mma.sp::ordered_metadata.", "80 7.1", "80 8.5", "89 8.4", "89 8.5").Replace(sparseForms)
