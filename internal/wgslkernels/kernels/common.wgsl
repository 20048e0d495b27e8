// Number of this workgroup when a one-dimensional grid was spread over several dimensions; see linear in lower.go.
fn linear_id(workgroup: vec3<u32>, grid: vec3<u32>) -> u32 {
    return (workgroup.z * grid.y + workgroup.y) * grid.x + workgroup.x;
}

// WGSL may assume that NaN and Inf do not occur, so they are told apart by their bits.
fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn is_inf(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
}
