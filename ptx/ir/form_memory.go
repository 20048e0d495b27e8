package ir

const memoryForms = `
ld{.weak@70/6.0}$place$evict$hint$prefetch.($vec) v:~0 a $pol
ld{.weak@70/6.0}$place.(ca cg cs lu cv)$hint$prefetch.($vec) v:~0 a $pol
ld.volatile$common$prefetch.($vec) v:~0 a
ld.(relaxed acquire).($scope)$common$evict$hint$prefetch.($vec) v:~0 a $pol | 70 6.0
ld.mmio.relaxed.sys{.global}.($ld) v:~0 a | 70 8.2
ld.global.nc$evict$hint$prefetch.($vec) v:~0 a $pol
ld.global.(ca cg cs).nc$hint$prefetch.($vec) v:~0 a $pol
ld.const.($vec) v:~0 a
ld.(param param::entry@50/8.3 param::func@50/8.3).($vec) v:~0 a
ld{.weak}{.(global local shared)}.b128 v a | 70 8.3
ld.(global.nc const).b128 v a | 70 8.3
ld.global{.nc}$evict.v8.(b32 u32 s32 f32) v a | 100 8.8
ld.global{.nc}$evict.v4.(b64 u64 s64 f64) v a | 100 8.8
ldu{.global}.($vec) v:~0 a
st{.weak@70/6.0}$place$evict$hint.($vec) a V:~0 $pol
st{.weak@70/6.0}$place.(wb cg cs wt)$hint.($vec) a V:~0 $pol
st.volatile$common.($vec) a V:~0
st.(relaxed release).($scope)$common$evict$hint.($vec) a V:~0 $pol | 70 6.0
st.mmio.relaxed.sys{.global}.($ld) a V:~0 | 70 8.2
st.(param param::func@50/8.3).($vec) a V:~0
st{.weak}{.(global local shared)}.b128 a V | 70 8.3
st.global$evict.v8.(b32 u32 s32 f32) a V | 100 8.8
st.global$evict.v4.(b64 u64 s64 f64) a V | 100 8.8
st.async{.weak}{.shared::cluster}.$tx{.(v2 v4)}.(b32 u32 s32 f32) a V a | 90 8.1
st.async{.weak}{.shared::cluster}.$tx{.v2}.(b64 u64 s64 f64) a V a | 90 8.1
st.bulk{.weak}{.shared::cta} a s:u64 i:0 | 100 8.6
multimem.ld_reduce$reduced{.global}.add.(u32 s32 u64) v a | 90 8.1
multimem.ld_reduce$reduced{.global}.(min max).(u32 s32 u64 s64) v a | 90 8.1
multimem.ld_reduce$reduced{.global}.(and or xor).(b32 b64) v a | 90 8.1
multimem.ld_reduce{.(weak relaxed.gpu relaxed.sys)}{.global}.add{.(v2 v4)}.f32 v a | 90 8.1
multimem.ld_reduce{.(weak relaxed.gpu relaxed.sys)}{.global}.(add min max){.(v2 v4)}.(f16x2 bf16x2) v a | 90 8.1
multimem.st{.(weak relaxed.gpu relaxed.sys release.gpu release.sys)}{.global}.(b32 u32 s32 b64 u64 s64 f64) a V | 90 8.1
multimem.st{.(weak relaxed.gpu relaxed.sys)}{.global}{.(v2 v4)}.(f32 f16x2 bf16x2) a V | 90 8.1
multimem.red{.(relaxed.gpu relaxed.sys release.gpu release.sys)}{.global}.add.(u32 s32 u64) a V | 90 8.1
multimem.red{.(relaxed.gpu relaxed.sys release.gpu release.sys)}{.global}.(min max).(u32 s32 u64 s64) a V | 90 8.1
multimem.red{.(relaxed.gpu relaxed.sys release.gpu release.sys)}{.global}.(and or xor).(b32 b64) a V | 90 8.1
multimem.red{.(relaxed.gpu relaxed.sys)}{.global}.add{.(v2 v4)}.f32 a V | 90 8.1
multimem.red{.(relaxed.gpu relaxed.sys)}{.global}.add{.(v2 v4)}.(f16x2 bf16x2) a V | 90 8.1
prefetch{.(global local)}.(L1 L2) a
prefetch.global.(L2::evict_last L2::evict_normal) a | 80 7.4
prefetch{.(const param)}.tensormap a | 90 8.0
prefetchu.L1 a
discard{.global}.L2 a i:128 | 80 7.4
applypriority{.global}.L2::evict_normal a i:128 | 80 7.4
createpolicy.fractional.($priority){.(L2::evict_first L2::evict_unchanged)}.b64 d:u64 s:f32? | 80 7.4
createpolicy.range{.global}.($priority){.(L2::evict_first L2::evict_unchanged)}.b64 d:u64 a s:u32 s:u32 | 80 7.4
createpolicy.cvt.L2.b64 d:u64 s:u64 | 80 7.4`

const atomicForms = `
atom$order$common.(and or xor exch)$hint.(b32 b64) D a s $pol
atom$order$common.cas.b16 D a s s | 70 6.3
atom$order$common.cas.(b32 b64) D a s s
atom$order$common.add$hint.(u32 s32 u64 f32 f64@60/5.0) D a s $pol
atom$order$common.(inc dec)$hint.u32 D a s $pol
atom$order$common.(min max)$hint.(u32 s32 u64 s64) D a s $pol
atom$order$common.add.noftz$hint.(f16@70/6.3 f16x2@60/6.2 bf16@90/7.8 bf16x2@90/7.8) D a r $pol
atom{.(relaxed acquire release acq_rel)}{.(cta gpu sys@90/8.4 cluster)}{.(global shared)}.exch.b128 D a r | 90 8.3
atom{.(relaxed acquire release acq_rel)}{.(cta gpu sys@90/8.4 cluster)}{.(global shared)}.cas.b128 D a r r | 90 8.3
atom$order{.global}.add$hint.(v2 v4).f32 v a V $pol | 90 8.1
atom$order{.global}.(add min max).noftz$hint.(v2 v4 v8).(f16 bf16) v a V $pol | 90 8.1
atom$order{.global}.(add min max).noftz$hint.(v2 v4).(f16x2 bf16x2) v a V $pol | 90 8.1
red$releasing$common.(and or xor)$hint.(b32 b64) a s $pol
red$releasing$common.add$hint.(u32 s32 u64 f32 f64@60/5.0) a s $pol
red$releasing$common.(inc dec)$hint.u32 a s $pol
red$releasing$common.(min max)$hint.(u32 s32 u64 s64) a s $pol
red$releasing$common.add.noftz$hint.(f16@70/6.3 f16x2@60/6.2 bf16@90/7.8 bf16x2@90/7.8) a r $pol
red$releasing{.global}.add$hint.(v2 v4).f32 a V $pol | 90 8.1
red$releasing{.global}.(add min max).noftz$hint.(v2 v4 v8).(f16 bf16) a V $pol | 90 8.1
red$releasing{.global}.(add min max).noftz$hint.(v2 v4).(f16x2 bf16x2) a V $pol | 90 8.1
red.async.relaxed.cluster{.shared::cluster}.$tx.(inc dec).u32 a s a | 90 8.1
red.async.relaxed.cluster{.shared::cluster}.$tx.(min max).(u32 s32) a s a | 90 8.1
red.async.relaxed.cluster{.shared::cluster}.$tx.(and or xor).b32 a s a | 90 8.1
red.async.relaxed.cluster{.shared::cluster}.$tx.add.(u32 s32 u64) a s a | 90 8.1`
