package dist

import (
	"os"
	"strconv"

	"github.com/wavelane/wavelane/dist/internal/mpi"
)

// launcher is what the environment says about who started the process.
type launcher struct {
	name       string // for people; empty if there is none
	rank, size int
	local      int      // number on the machine; -1 if the launcher does not say
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

// Orders in which libraries are tried.
var (
	openMPIFirst = []string{libOpenMPI, libStandard, libMPICH, libMPICH4}
	mpichFirst   = []string{libMPICH, libMPICH4, libStandard, libOpenMPI}
)

const slurm = "Slurm (srun)"

// findLauncher reads the environment through getenv, first match.
//
// Of Slurm's variables those of a step count, which srun sets: a script under sbatch, and a program that it starts without srun, has
// SLURM_PROCID and SLURM_NTASKS too, but is alone. How srun brings processes together shows in what else is set: its plugin pmix, which
// Open MPI needs, sets PMIX_RANK, and pmi2, which MPICH needs, PMI_RANK.
func findLauncher(getenv func(string) string) launcher {
	underSlurm := getenv("SLURM_STEP_NUM_TASKS") != ""
	for _, known := range []struct {
		name, rank, size, local string
		mpi                     bool
		libraries               []string
	}{
		{mpi.OpenMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", true, openMPIFirst},
		{"PMI (Hydra, as of MPICH)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", true, mpichFirst},
		{slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", true, openMPIFirst},
		{"torchrun or alike", "RANK", "WORLD_SIZE", "LOCAL_RANK", false, nil},
	} {
		rank, err1 := strconv.Atoi(getenv(known.rank))
		size, err2 := strconv.Atoi(getenv(known.size))
		if err1 != nil || err2 != nil || rank < 0 || rank >= size {
			continue
		}
		l := launcher{known.name, rank, size, -1, known.libraries, known.mpi}
		if local, err := strconv.Atoi(getenv(known.local)); err == nil && local >= 0 && local < size {
			l.local = local
		}
		if known.rank == "PMI_RANK" && underSlurm {
			l.name = slurm
		}
		return l
	}
	return launcher{rank: 0, size: 1, libraries: openMPIFirst}
}

// LocalRank returns the rank on its machine that the launcher of this process says it has, before [Init]: which of several GPUs to open. It
// is 0 if there is no launcher, or one that does not say.
func LocalRank() int { return max(0, findLauncher(os.Getenv).local) }

// advice is what to do when the library does not find the processes of the launcher.
func (l launcher) advice() string {
	if l.name == slurm {
		return "start the program with srun --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH"
	}
	return "start the program with the mpirun of that library"
}
