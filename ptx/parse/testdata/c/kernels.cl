// Kernels, vectors, local memory and barriers, in OpenCL C without its library.
typedef unsigned int uint;
typedef float float4 __attribute__((ext_vector_type(4)));
typedef int int2 __attribute__((ext_vector_type(2)));
typedef unsigned char uchar4 __attribute__((ext_vector_type(4)));

constant int filter[4] = {1, 2, 3, 4};

kernel void saxpy(global float *y, global const float *restrict x, float a, uint n) {
	uint i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
	if (i < n)
		y[i] += a * x[i];
}

kernel void vectors(global float4 *y, global const float4 *x, global int2 *z, global uchar4 *w) {
	int i = __nvvm_read_ptx_sreg_tid_x();
	y[i] = x[i] * x[i + 1] + (float4)(1, 2, 3, 4);
	z[i] = z[i].yx + filter[i & 3];
	w[i] = w[i].wzyx;
}

kernel __attribute__((reqd_work_group_size(128, 1, 1))) void reduce(global float *y, global const float *x) {
	local float part[128];
	int t = __nvvm_read_ptx_sreg_tid_x();
	part[t] = x[t];
	__syncthreads();
	for (int s = 64; s > 0; s >>= 1) {
		if (t < s)
			part[t] += part[t + s];
		__syncthreads();
	}
	if (t == 0)
		y[0] = part[0];
}

kernel void warps(global int *y, global unsigned long *z) {
	int v = y[0];
	v += __nvvm_shfl_sync_bfly_i32(-1, v, 1, 31);
	v += __nvvm_vote_any_sync(-1, v > 3);
	v += __nvvm_vote_ballot_sync(-1, v > 4);
	v += __nvvm_match_any_sync_i32(-1, v);
	__nvvm_bar_warp_sync(-1);
	v += __nvvm_atom_add_gen_i(&y[1], v);
	v += __nvvm_atom_cas_gen_i(&y[2], v, 7);
	v += __nvvm_read_ptx_sreg_laneid() + __nvvm_read_ptx_sreg_warpid();
	z[0] = __nvvm_read_ptx_sreg_clock64();
	__nvvm_membar_gl();
	y[3] = v + __nvvm_mul24_i(v, 3) + __nvvm_sad_i(v, 1, 2);
}

kernel void approximate(global float *y, global double *z) {
	float f = y[0];
	y[1] = __nvvm_rcp_rz_ftz_f(f) + __nvvm_sin_approx_f(f) + __nvvm_ex2_approx_f(f) + __nvvm_lg2_approx_ftz_f(f);
	y[2] = __nvvm_div_rz_f(f, 3.0f) + __nvvm_fma_rp_f(f, f, f) + __nvvm_sqrt_rn_f(f) + __nvvm_rsqrt_approx_f(f);
	y[3] = __nvvm_fmin_f(f, 1.0f) + __nvvm_fmax_ftz_f(f, 2.0f) + __nvvm_saturate_f(f) + __nvvm_f2i_rz(f);
	z[0] = __nvvm_fma_rm_d(z[0], z[1], z[2]) + __nvvm_ceil_d(z[0]) + __nvvm_d2i_rn(z[1]);
}
