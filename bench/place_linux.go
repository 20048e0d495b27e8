package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// processors are those that this process may use; none if the system does not say.
var processors = func() (all []int) {
	var set unix.CPUSet
	unix.SchedGetaffinity(0, &set)
	for i := range 64 * len(set) {
		if set.IsSet(i) {
			all = append(all, i)
		}
	}
	return all
}()

// place has all threads of this process and of workers run on one of its processors, counted round them, or on any if turn is
// negative. Where other guests of a machine keep the second hardware thread of one core busy, what runs there takes up to twice as
// long, and processes stay on different cores for many rounds.
func place(workers []*worker, turn int) {
	n := len(processors)
	if n < 2 {
		return
	}
	var set unix.CPUSet
	for i, p := range processors {
		if turn < 0 || i == turn%n {
			set.Set(p)
		}
	}
	pids := []int{os.Getpid()}
	for _, w := range workers {
		pids = append(pids, w.cmd.Process.Pid)
	}
	for _, pid := range pids {
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		for _, t := range threads {
			if id, err := strconv.Atoi(t.Name()); err == nil {
				unix.SchedSetaffinity(id, &set) // fails for one that has just ended
			}
		}
	}
}
