package wgsl

// Access says how a kernel uses a storage binding.
type Access uint8

// Accesses.
const (
	Read      Access = iota // var<storage, read>
	ReadWrite               // var<storage, read_write>
)

// Kernel is one specialised compute shader. Storage buffers are bindings 0, 1, … of group 0, in the order of Bindings; when
// Uniform is not zero, a uniform buffer of that many bytes with a dynamic offset follows as the next binding.
// Dimensions are never part of a kernel: they arrive in the uniform.
type Kernel struct {
	// Key identifies the specialisation: two kernels with the same key have the same text.
	Key       string
	Source    string // WGSL text; parsed only when no pipeline is cached under Key
	Entry     string // entry point, normally "main"
	Bindings  []Access
	Uniform   int // bytes, a multiple of 16, at most 256
	Workgroup [3]uint32
	Shared    int // bytes of workgroup memory, for checking against the limit
	// Finite says that its loops end whatever the data are, so that a compiler need not count their iterations. Those of the library's own
	// operations do; of the kernels of users it is not known.
	Finite bool
}

// Caps is what code selection depends on: the granted limits and features of a device.
type Caps struct {
	MaxWorkgroups     uint32    `json:"max_workgroups"`  // per grid dimension
	MaxInvocations    uint32    `json:"max_invocations"` // per workgroup
	MaxWorkgroupSize  [3]uint32 `json:"max_workgroup_size"`
	MaxShared         uint32    `json:"max_shared"`          // bytes of workgroup memory
	MaxStorageBuffers uint32    `json:"max_storage_buffers"` // per stage
	MaxBinding        uint64    `json:"max_binding"`         // bytes of one storage binding
	MaxBuffer         uint64    `json:"max_buffer"`          // bytes of one buffer
	StorageAlign      uint32    `json:"storage_align"`       // of binding offsets

	Subgroups bool `json:"subgroups,omitempty"` // shaders may enable subgroups
	F16       bool `json:"f16,omitempty"`       // shaders may enable f16

	IntegerDots bool `json:"integer_dots,omitempty"` // shaders may require packed_4x8_integer_dot_product

	Software bool `json:"software,omitempty"` // the processor computes: workgroup memory is no faster than buffers

	// CountedLoops says that the compiler refuses barriers unless it sees that all threads come to them: loops around barriers, and
	// beside them, go round a number of times that is the same for all threads, by a constant or a uniform. Direct3D's older one does.
	CountedLoops bool `json:"counted_loops,omitempty"`
}

// DefaultCaps are the limits that every WebGPU implementation grants.
var DefaultCaps = Caps{
	MaxWorkgroups: 65535, MaxInvocations: 256, MaxWorkgroupSize: [3]uint32{256, 256, 64}, MaxShared: 16384,
	MaxStorageBuffers: 8, MaxBinding: 128 << 20, MaxBuffer: 256 << 20, StorageAlign: 256,
}

// BufferSize returns the size of the buffer that holds n bytes: at least 16, and a multiple of 16 so that any storage buffer
// can be accessed as vec4. The contents beyond the elements are undefined.
func BufferSize(n int) uint64 { return max(16, (uint64(n)+15)&^15) }
