package batch

// Option changes how a batch is compiled; see [New].
type Option func(*options)

type options struct {
	memoryLimit uint64
	apart       bool
}
