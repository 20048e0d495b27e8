package compute

// CumSumOptions parametrises cumsum over the last axis. The zero value sums from the first element up to and with each.
type CumSumOptions struct {
	Exclusive bool // without the element itself: the first sum is 0
	Reverse   bool // from the last element down
}

// TopKOptions parametrises top_k.
type TopKOptions struct {
	K int // elements of each row, 1 to 1024 and at most as many as the row has
}
