package dist

import (
	"strconv"

	"github.com/wavelane/wavelane/dist/internal/mpi"
)

// launcher is what the environment says about who started the process.
type launcher struct {
	name       string // for people; empty if there is none
	rank, size int
	libraries  []string // of MPI, in the order in which to try them
	mpi        bool     // whether it can start processes of MPI
}

// Names of libraries. The last one is MPICH on systems that name it so.
const (
	libOpenMPI  = "libmpi.so.40"
	libStandard = "libmpi_abi.so.1"
	libMPICH    = "libmpich.so.12"
	libMPICH4   = "libmpi.so.12"
)

// findLauncher reads the environment through getenv, first match.
func findLauncher(getenv func(string) string) launcher {
	for _, known := range []struct {
		name, rank, size string
		mpi              bool
		libraries        []string
	}{
		{mpi.OpenMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true, []string{libOpenMPI, libStandard, libMPICH, libMPICH4}},
		{"PMI (Hydra, as of MPICH)", "PMI_RANK", "PMI_SIZE", true, []string{libMPICH, libMPICH4, libStandard, libOpenMPI}},
		{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", true, []string{libOpenMPI, libStandard, libMPICH, libMPICH4}},
		{"torchrun or alike", "RANK", "WORLD_SIZE", false, nil},
	} {
		rank, err1 := strconv.Atoi(getenv(known.rank))
		size, err2 := strconv.Atoi(getenv(known.size))
		if err1 == nil && err2 == nil && rank >= 0 && rank < size {
			return launcher{known.name, rank, size, known.libraries, known.mpi}
		}
	}
	return launcher{rank: 0, size: 1, libraries: []string{libOpenMPI, libStandard, libMPICH, libMPICH4}}
}
