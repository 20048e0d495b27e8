package program

// Memory is the memory that one run of a compiled program needs, in bytes, without the tensors that it is given.
type Memory struct {
	Peak    int // memory of the device, which values share that are not needed at the same time, and steps' scratch memory
	Inputs  int // host data that the run reads
	Results int // host data that it writes, and the tensors that it makes
	Step    int // where most of Peak is in use, as an index of Program.Steps; −1 if Peak is 0
}

// Traffic returns the bytes of the program's inputs and results, as [Memory] counts them.
func (p *Program) Traffic() (inputs, results int) {
	for _, s := range p.Host {
		inputs += p.Values[s].Bytes()
	}
	for _, slots := range [][]Slot{p.Read, p.Keep} {
		for _, s := range slots {
			results += p.Values[s].Bytes()
		}
	}
	return inputs, results
}
