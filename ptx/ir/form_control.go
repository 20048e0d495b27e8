package ir

const controlForms = `
bra{.uni} l
brx.idx{.uni} r:u32 l | 50 6.0
call{.uni} c
ret{.uni}
exit
trap
brkpt
pmevent i:0..15
pmevent.mask i:0..65535
nanosleep.u32 s | 70 6.2
setmaxnreg.(inc dec).sync.aligned.u32 i:24..256 | 90a 8.0
griddepcontrol.(launch_dependents wait) | 90 7.8
alloca.u64 d s i:8,16? | 52 7.3
stacksave.u64 d | 52 7.3
stackrestore.u64 r | 52 7.3

# barriers of the block
bar.sync s:u32 s:u32?
bar.arrive s:u32 s:u32
bar.red.popc.u32 d s:u32 s:u32? p
bar.red.(and or).pred q s:u32 s:u32? p
bar.cta.sync s:u32 s:u32? | 50 7.8
bar.cta.arrive s:u32 s:u32 | 50 7.8
bar.cta.red.popc.u32 d s:u32 s:u32? p | 50 7.8
bar.cta.red.(and or).pred q s:u32 s:u32? p | 50 7.8
barrier.sync{.aligned} s:u32 s:u32? | 50 6.0
barrier.arrive{.aligned} s:u32 s:u32 | 50 6.0
barrier.red.popc{.aligned}.u32 d s:u32 s:u32? p | 50 6.0
barrier.red.(and or){.aligned}.pred q s:u32 s:u32? p | 50 6.0
barrier.cta.sync{.aligned} s:u32 s:u32? | 50 7.8
barrier.cta.arrive{.aligned} s:u32 s:u32 | 50 7.8
barrier.cta.red.popc{.aligned}.u32 d s:u32 s:u32? p | 50 7.8
barrier.cta.red.(and or){.aligned}.pred q s:u32 s:u32? p | 50 7.8
barrier.cluster.arrive{.(release@90/8.0 relaxed@90/8.0)}{.aligned} | 90 7.8
barrier.cluster.wait{.acquire@90/8.0}{.aligned} | 90 7.8

# fences
membar.(cta gl sys)
fence{.(sc acq_rel)}.($scope) | 70 6.0
fence.proxy.alias | 70 7.5
fence.proxy.(async async.global async.shared::cta async.shared::cluster) | 90 8.0
fence.proxy.tensormap::generic.release.($scope) | 90 8.3
fence.proxy.tensormap::generic.acquire.($scope) a i:128 | 90 8.3
fence.mbarrier_init.release.cluster | 90 8.0`

const warpForms = `
bar.warp.sync s:u32 | 50 6.0
shfl.(up down bfly idx).b32 e s s:b32 s:b32
shfl.sync.(up down bfly idx).b32 e s s:b32 s:b32 s:u32 | 50 6.0
vote.(all any uni).pred q p
vote.ballot.b32 d p
vote.sync.(all any uni).pred q p s:u32 | 50 6.0
vote.sync.ballot.b32 d p s:u32 | 50 6.0
match.any.sync.(b32 b64) d:u32 s s:u32 | 70 6.0
match.all.sync.(b32 b64) e:u32 s s:u32 | 70 6.0
redux.sync.(add min max).(u32 s32) d s s:u32 | 80 7.0
redux.sync.(and or xor).b32 d:u32 s:u32 s:u32 | 80 7.0
redux.sync.(min max){.abs}{.NaN}.f32 d s s:u32 | 100a 8.6
elect.sync E:u32 s:u32 | 90 8.0
activemask.b32 d | 50 6.2`
