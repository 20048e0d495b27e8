package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// allowed are the processors that this process may use.
var allowed = func() (s unix.CPUSet) {
	unix.SchedGetaffinity(0, &s) // none if it fails, and then place does nothing
	return s
}()

// place has all threads of this process and of workers run on one of its processors, counted round them, or on any if turn is
// negative. Where other guests of a machine keep the second hardware thread of one core busy, what runs there takes up to twice as
// long, and processes stay on different cores for many rounds.
func place(workers []*worker, turn int) {
	set, n := allowed, allowed.Count()
	if n < 2 {
		return
	}
	if turn >= 0 {
		set.Zero()
		for i, left := 0, turn%n; set.Count() == 0; i++ {
			if !allowed.IsSet(i) {
				continue
			}
			if left == 0 {
				set.Set(i)
			}
			left--
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
