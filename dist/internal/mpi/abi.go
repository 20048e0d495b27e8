package mpi

// Names of the three binary interfaces of MPI.
const (
	OpenMPI  = "Open MPI"
	MPICH    = "MPICH"
	Standard = "MPI 5 ABI"
)

// Type is an element type that the library reduces.
type Type int

// The types.
const (
	Byte Type = iota
	Float32
	Int32
)

// size returns the bytes of an element.
func (t Type) size() int {
	if t == Byte {
		return 1
	}
	return 4
}

// Op is a reduction.
type Op int

// The reductions.
const (
	Sum Op = iota
	Max
	Min
)

// abi has the values of a library's handles and constants.
type abi struct {
	family       string
	world        uintptr
	types        [3]uintptr // by Type
	ops          [3]uintptr // by Op
	errorsReturn uintptr
	infoNull     uintptr
	inPlace      uintptr
	shared       int // MPI_COMM_TYPE_SHARED
	serialized   int // MPI_THREAD_SERIALIZED

}

// openMPI is filled with addresses of the library's globals.
var openMPI = abi{family: OpenMPI, inPlace: 1, shared: 0, serialized: 2}

// Names of the globals of Open MPI, in the order of the fields.
var (
	openMPITypes = [3]string{"ompi_mpi_byte", "ompi_mpi_float", "ompi_mpi_int32_t"}
	openMPIOps   = [3]string{"ompi_mpi_op_sum", "ompi_mpi_op_max", "ompi_mpi_op_min"}
)

var mpich = abi{
	family:       MPICH,
	world:        0x44000000,
	types:        [3]uintptr{0x4c00010d, 0x4c00040a, 0x4c000439},
	ops:          [3]uintptr{0x58000003, 0x58000001, 0x58000002},
	errorsReturn: 0x54000001,
	infoNull:     0x1c000000,
	inPlace:      ^uintptr(0),
	shared:       1,
	serialized:   2,
}

var standard = abi{
	family:       Standard,
	world:        0x101,
	types:        [3]uintptr{0x247, 0x210, 0x250},
	ops:          [3]uintptr{0x21, 0x23, 0x22},
	errorsReturn: 0x143,
	infoNull:     0x130,
	inPlace:      1,
	shared:       221,
	serialized:   2048,
}
