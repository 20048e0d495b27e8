package dist

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindLauncher(t *testing.T) {
	type env = map[string]string
	for _, c := range []struct {
		name       string
		env        env
		launcher   string
		rank, size int
		mpi        bool
		library    string // that is tried first
	}{
		{"nothing", env{}, "", 0, 1, false, libOpenMPI},
		{"mpirun of Open MPI", env{"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"}, "Open MPI", 2, 3, true, libOpenMPI},
		{"Hydra", env{"PMI_RANK": "0", "PMI_SIZE": "2"}, "PMI (Hydra, as of MPICH)", 0, 2, true, libMPICH},
		{"srun, pmix", env{"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "2", "PMIX_RANK": "1"}, slurm, 1, 2, true, libOpenMPI},
		{"srun, pmi2", env{"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "PMI_RANK": "1", "PMI_SIZE": "2"}, slurm, 1, 2, true, libMPICH},
		{"mpirun in a job of Slurm", env{"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "1", "OMPI_COMM_WORLD_RANK": "3",
			"OMPI_COMM_WORLD_SIZE": "4"}, "Open MPI", 3, 4, true, libOpenMPI},
		{"a script of sbatch", env{"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, "", 0, 1, false, libOpenMPI},
		{"torchrun", env{"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}, "torchrun or alike", 1, 2, false, ""},
		{"no numbers", env{"PMI_RANK": "one", "PMI_SIZE": "2"}, "", 0, 1, false, libOpenMPI},
		{"a rank too large", env{"PMI_RANK": "2", "PMI_SIZE": "2"}, "", 0, 1, false, libOpenMPI},
	} {
		l := findLauncher(func(name string) string { return c.env[name] })
		require.Equal(t, []any{c.launcher, c.rank, c.size, c.mpi}, []any{l.name, l.rank, l.size, l.mpi}, c.name)
		local := -1
		if c.name == "torchrun" {
			local = 1
		}
		require.True(t, c.launcher == "" || l.local == local, c.name)
		if c.library != "" {
			require.Equal(t, c.library, l.libraries[0], c.name)
		}
	}
}
