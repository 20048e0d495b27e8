package ir

const videoForms = `
vadd.$word.$word.$word{.sat} d s:1 s:2
vadd.$word.$word.$word{.sat}.(add min max) d s:1 s:2 s
vsub.$word.$word.$word{.sat} d s:1 s:2
vsub.$word.$word.$word{.sat}.(add min max) d s:1 s:2 s
vabsdiff.$word.$word.$word{.sat} d s:1 s:2
vabsdiff.$word.$word.$word{.sat}.(add min max) d s:1 s:2 s
vmin.$word.$word.$word{.sat} d s:1 s:2
vmin.$word.$word.$word{.sat}.(add min max) d s:1 s:2 s
vmax.$word.$word.$word{.sat} d s:1 s:2
vmax.$word.$word.$word{.sat}.(add min max) d s:1 s:2 s
vadd2.$word.$word.$word{.(sat add)} d s:1 s:2 s
vsub2.$word.$word.$word{.(sat add)} d s:1 s:2 s
vavrg2.$word.$word.$word{.(sat add)} d s:1 s:2 s
vabsdiff2.$word.$word.$word{.(sat add)} d s:1 s:2 s
vmin2.$word.$word.$word{.(sat add)} d s:1 s:2 s
vmax2.$word.$word.$word{.(sat add)} d s:1 s:2 s
vset2.$word.$word.(eq ne lt le gt ge){.add} d:u32 s:0 s:1 s:u32
vadd4.$word.$word.$word{.(sat add)} d s:1 s:2 s
vsub4.$word.$word.$word{.(sat add)} d s:1 s:2 s
vavrg4.$word.$word.$word{.(sat add)} d s:1 s:2 s
vabsdiff4.$word.$word.$word{.(sat add)} d s:1 s:2 s
vmin4.$word.$word.$word{.(sat add)} d s:1 s:2 s
vmax4.$word.$word.$word{.(sat add)} d s:1 s:2 s
vset4.$word.$word.(eq ne lt le gt ge){.add} d:u32 s:0 s:1 s:u32`
