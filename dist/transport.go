package dist

import "github.com/wavelane/wavelane/dist/internal/mpi"

// bufferSize is the size of a buffer in bytes. Larger data are sent in several parts.
const bufferSize = mpi.BufferSize

// buffer is memory for messages.
type buffer struct {
	data   []byte
	native *mpi.Buffer // of transports that have memory of their own
}

// transport is a group as an engine sees it. Sizes are in bytes. What is called with a channel returns
// errAbandoned when it is closed, and may use its buffers for ever after that.
type transport interface {
	rank() int
	size() int
	buffer(stop <-chan struct{}) (*buffer, error)
	release(*buffer)
	reduces(e element, r Reduction) bool // the library has an all-reduce for this
	messages() bool                      // there are send and receive
	ordered() bool                       // messages take turns with collectives: they go on while one waits otherwise
	direct() bool                        // allReduce takes large memory that is not a buffer's
	allReduce(stop <-chan struct{}, dst, src []byte, e element, r Reduction) error
	allGather(stop <-chan struct{}, dst, src *buffer, n int) error // n of each member
	allToAll(stop <-chan struct{}, dst, src *buffer, n int) error  // n for each member
	broadcast(stop <-chan struct{}, b *buffer, n, root int) error
	send(stop <-chan struct{}, b *buffer, n, to int) error
	receive(stop <-chan struct{}, b *buffer, n, from int) error
	barrier(stop <-chan struct{}) error
	split(stop <-chan struct{}, color, key int) (transport, error)
	free(stop <-chan struct{}) error
	streams() *ncclTransport // the transport, if streams of CUDA devices carry collectives out; nil otherwise
}

// reducedByLibraries leaves maxima of floats out: which of a NaN and a number a library takes depends on their order.
func reducedByLibraries(e element, r Reduction) bool {
	return e == float32s && r == Sum || e == int32s && r != Mean
}
