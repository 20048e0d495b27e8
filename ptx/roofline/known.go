package roofline

const (
	giga = 1e9
	tera = 1e12
	mib  = 1 << 20
)

// known are GPUs with the figures of public data sheets, dense ones throughout: where a sheet gives sparse figures, half of
// them.
var known = []Model{
	// NVIDIA A100 Tensor Core GPU data sheet (80 GB SXM), GA100 white paper for L2 and SMs.
	{Name: "A100", SM: 80, SMs: 108, Bandwidth: 2039 * giga, L2: 40 * mib, Peak: map[Rate]float64{
		F32: 19.5 * tera, F64: 9.7 * tera, D64: 19.5 * tera, TF32: 156 * tera, F16: 312 * tera, BF16: 312 * tera, Int8: 624 * tera}},
	// NVIDIA H100 Tensor Core GPU data sheet (SXM5), GH100 white paper for the decimals, L2 and SMs.
	{Name: "H100", SM: 90, SMs: 132, Bandwidth: 3350 * giga, L2: 50 * mib, Peak: hopper},
	// NVIDIA H200 Tensor Core GPU data sheet: H100's arithmetic with HBM3e.
	{Name: "H200", SM: 90, SMs: 132, Bandwidth: 4800 * giga, L2: 50 * mib, Peak: hopper},
	// NVIDIA L4 Tensor Core GPU data sheet; f64 is a 64th of f32 (Ada white paper).
	{Name: "L4", SM: 89, SMs: 58, Bandwidth: 300 * giga, L2: 48 * mib, Peak: map[Rate]float64{
		F32: 30.3 * tera, F64: 30.3 / 64 * tera, TF32: 60 * tera, F16: 121 * tera, BF16: 121 * tera, FP8: 242.5 * tera,
		Int8: 242.5 * tera}},
	// NVIDIA Ada GPU architecture white paper, appendix A: with accumulation in f32, which halves GeForce's tensor rates.
	{Name: "RTX 4090", SM: 89, SMs: 128, Bandwidth: 1008 * giga, L2: 72 * mib, Peak: map[Rate]float64{
		F32: 82.6 * tera, F64: 82.6 / 64 * tera, TF32: 82.6 * tera, F16: 165.2 * tera, BF16: 165.2 * tera, FP8: 330.3 * tera,
		Int8: 660.6 * tera}},
	// NVIDIA HGX B200 data sheet, an eighth of the board's; Blackwell tuning guide for L2, SMs as the driver reports them.
	{Name: "B200", SM: 100, SMs: 148, Bandwidth: 8000 * giga, L2: 126 * mib, Peak: map[Rate]float64{
		F32: 75 * tera, F64: 37 * tera, TF32: 1125 * tera, F16: 2250 * tera, BF16: 2250 * tera, FP8: 4500 * tera, Int8: 4500 * tera}},
	// NVIDIA Jetson AGX Orin technical brief (64 GB, 1.3 GHz): 170 sparse int8 TOPS of the GPU, without the DLAs. It does not
	// state f64.
	{Name: "Orin", SM: 87, SMs: 16, Bandwidth: 204.8 * giga, L2: 4 * mib, Peak: map[Rate]float64{
		F32: 5.3 * tera, TF32: 21 * tera, F16: 43 * tera, BF16: 43 * tera, Int8: 85 * tera}},
}

var hopper = map[Rate]float64{F32: 66.9 * tera, F64: 33.5 * tera, D64: 66.9 * tera, TF32: 494.7 * tera, F16: 989.4 * tera,
	BF16: 989.4 * tera, FP8: 1978.9 * tera, Int8: 1978.9 * tera}
