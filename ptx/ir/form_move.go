package ir

const moveForms = `
mov.(b16 b32 b64 $int f32 f64) d S
mov.(b32 b64 u32 u64 s32 s64) d y
mov.pred q p
mov.b128 d r | 70 8.3
# packing and unpacking
mov.(b32 b64) d 2s:h
mov.(b32 b64) d 4s:k
mov.b128 d 2r:b64 | 70 8.3
mov.(b32 b64) 2D:h r
mov.(b32 b64) 4D:k r
mov.b128 2D:b64 r | 70 8.3
selp.($sel) d s s p
slct.($sel).s32 d s s s:1
slct{.ftz}.($sel).f32 d s s s:1

# comparisons
setp.(eq ne).(b16 b32 b64) Q s s
setp.(eq ne lt le gt ge).(s16 s32 s64) Q s s
setp.(eq ne lt le gt ge lo ls hi hs).(u16 u32 u64) Q s s
setp.($fcmp){.ftz}.f32 Q s s
setp.($fcmp).f64 Q s s
setp.($fcmp){.ftz}.f16 Q r r | 53 4.2
setp.($fcmp){.ftz}.f16x2 P r r | 53 4.2
setp.($fcmp).bf16 Q r r | 90 7.8
setp.($fcmp).bf16x2 P r r | 90 7.8
setp.(eq ne).(and or xor).(b16 b32 b64) Q s s p
setp.(eq ne lt le gt ge).(and or xor).(s16 s32 s64) Q s s p
setp.(eq ne lt le gt ge lo ls hi hs).(and or xor).(u16 u32 u64) Q s s p
setp.($fcmp).(and or xor){.ftz}.f32 Q s s p
setp.($fcmp).(and or xor).f64 Q s s p
setp.($fcmp).(and or xor){.ftz}.f16 Q r r p | 53 4.2
setp.($fcmp).(and or xor){.ftz}.f16x2 P r r p | 53 4.2
setp.($fcmp).(and or xor).bf16 Q r r p | 90 7.8
setp.($fcmp).(and or xor).bf16x2 P r r p | 90 7.8
set.(eq ne).(u32 s32 f32).(b16 b32 b64) d s:1 s:1
set.(eq ne lt le gt ge).(u32 s32 f32).(s16 s32 s64) d s:1 s:1
set.(eq ne lt le gt ge lo ls hi hs).(u32 s32 f32).(u16 u32 u64) d s:1 s:1
set.($fcmp){.ftz}.(u32 s32 f32).f32 d s:1 s:1
set.($fcmp).(u32 s32 f32).f64 d s:1 s:1
set.($fcmp){.ftz}.f16.f16 d r:1 r:1 | 53 4.2
set.($fcmp){.ftz}.(u16 s16 u32 s32).f16 d r:1 r:1 | 53 6.5
set.($fcmp){.ftz}.f16x2.f16x2 d r:1 r:1 | 53 4.2
set.($fcmp){.ftz}.(u32 s32).f16x2 d r:1 r:1 | 53 6.5
set.($fcmp).(bf16 u16 s16 u32 s32).bf16 d r:1 r:1 | 90 7.8
set.($fcmp).(bf16x2 u32 s32).bf16x2 d r:1 r:1 | 90 7.8
set.(eq ne).(and or xor).(u32 s32 f32).(b16 b32 b64) d s:1 s:1 p
set.(eq ne lt le gt ge).(and or xor).(u32 s32 f32).(s16 s32 s64) d s:1 s:1 p
set.(eq ne lt le gt ge lo ls hi hs).(and or xor).(u32 s32 f32).(u16 u32 u64) d s:1 s:1 p
set.($fcmp).(and or xor){.ftz}.(u32 s32 f32).f32 d s:1 s:1 p
set.($fcmp).(and or xor).(u32 s32 f32).f64 d s:1 s:1 p
set.($fcmp).(and or xor){.ftz}.f16.f16 d r:1 r:1 p | 53 4.2
set.($fcmp).(and or xor){.ftz}.(u16 s16 u32 s32).f16 d r:1 r:1 p | 53 6.5
set.($fcmp).(and or xor){.ftz}.f16x2.f16x2 d r:1 r:1 p | 53 4.2
set.($fcmp).(and or xor){.ftz}.(u32 s32).f16x2 d r:1 r:1 p | 53 6.5
testp.(finite infinite number notanumber normal subnormal).(f32 f64) q r

# addresses
cvta.(const global local $shared shared::cluster@90/7.8 param@70/7.7).u64 d r
cvta.(const global local $shared shared::cluster@90/7.8 param@70/7.7).u64 d y
cvta.to.(const global local $shared shared::cluster@90/7.8 param@70/7.7).u64 d r
isspacep.(const@50/3.1 global local $shared shared::cluster@90/7.8 param@70/7.7) q r:u64
isspacep.(const@50/3.1 global local $shared shared::cluster@90/7.8 param@70/7.7) q r:u32
mapa{.shared::cluster}.(u32 u64) d r s:u32 | 90 7.8
getctarank{.shared::cluster}.(u32 u64) d:u32 r | 90 7.8`

const convertForms = `
cvt.(u8 u16 u32 u64 s8 s16 s32 s64).(u8 u16 u32 u64 s8 s16 s32 s64) d:~0 S:~1
cvt.sat.u8.(s8 u16 s16 u32 s32 u64 s64) d:~0 S:~1
cvt.sat.s8.(u8 u16 s16 u32 s32 u64 s64) d:~0 S:~1
cvt.sat.u16.(s8 s16 u32 s32 u64 s64) d:~0 S:~1
cvt.sat.s16.(u16 u32 s32 u64 s64) d:~0 S:~1
cvt.sat.u32.(s8 s16 s32 u64 s64) d:~0 S:~1
cvt.sat.s32.(u32 u64 s64) d:~0 S:~1
cvt.sat.u64.(s8 s16 s32 s64) d:~0 S:~1
cvt.sat.s64.(u64) d:~0 S:~1
cvt.($rint){.ftz}{.sat}.(u8 u16 u32 u64 s8 s16 s32 s64).f32 d:~0 s:~1
cvt.($rint){.sat}.(u8 u16 u32 u64 s8 s16 s32 s64).(f16 f64) d:~0 r:~1
cvt.($rnd){.sat}.(f16 f32 f64).(u8 u16 u32 u64 s8 s16 s32 s64) d:~0 s:~1
cvt{.ftz}{.sat}.f64.f32 d:~0 s:~1
cvt.($rnd){.ftz}{.sat}.f32.f64 d:~0 s:~1
cvt{.($rint)}{.ftz}{.sat}.f32.f32 d:~0 s:~1
cvt{.($rint)}{.sat}.f64.f64 d:~0 s:~1
cvt{.ftz}{.sat}.f32.f16 d:~0 r:~1
cvt{.sat}.f64.f16 d:~0 r:~1
cvt{.($rint)}{.sat}.f16.f16 d:~0 r:~1
cvt.($rnd){.ftz}{.sat}.f16.f32 d:~0 s:~1
cvt.($rnd){.sat}.f16.f64 d:~0 s:~1
cvt.(rn rz).relu.f16.f32 d:~0 s:~1 | 80 7.0
cvt.(rn rz){.relu}{.satfinite@80/8.1}.f16x2.f32 d:~0 s:~1 s:~1 | 80 7.0
cvt.(rn rz){.relu}{.satfinite@80/8.1}.bf16x2.f32 d s:1 s:1 | 80 7.0
cvt.(rn rz){.relu}{.satfinite@80/8.1}.bf16.f32 d s:1 | 80 7.0
cvt.f32.bf16 d r:1 | 80 7.1
cvt.rna.tf32.f32 d s:1 | 80 7.0
cvt.(rn rz){.relu}.tf32.f32 d s:1 | 90 7.8
cvt.rn.satfinite{.relu}.(e4m3x2 e5m2x2).f32 d s:1 s:1 | 89 8.1
cvt.rn.satfinite{.relu}.(e4m3x2 e5m2x2).f16x2 d r:1 | 89 8.1
cvt.rn{.relu}.f16x2.(e4m3x2 e5m2x2) d r:1 | 89 8.1
cvt.($rint).($int).bf16 d r:1 | 90 7.8
cvt.($rnd).bf16.($int) d s:1 | 90 7.8
cvt.f64.bf16 d r:1 | 90 7.8
cvt.($rnd).bf16.f64 d s:1 | 90 7.8
cvt.($rnd).bf16.f16 d r:1 | 90 7.8
cvt.f16.bf16 d r:1 | 90 7.8
cvt.($rint).bf16.bf16 d r:1 | 90 7.8
cvt.pack.sat.(u16 s16).s32 d:~s32 s:~1 s:~1 | 72 6.5
cvt.pack.sat.(u8 s8).s32.b32 d:~s32 s:~1 s:~1 s:~2 | 72 6.5`
