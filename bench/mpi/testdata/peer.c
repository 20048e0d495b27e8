// The loop that wavelane's collectives are compared with: all-reduces, each timed. Usage: peer SECONDS COUNT...
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double budget = atof(argv[1]);
  for (int a = 2; a < argc; a++) {
    int n = atoi(argv[a]);
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    memset(x, 0, n * sizeof *x);
    double start = MPI_Wtime();
    for (int i = 0; i < 3; i++) MPI_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    int rounds = (int)(3 * budget / (MPI_Wtime() - start));
    rounds = rounds < 5 ? 5 : rounds > 20000 ? 20000 : rounds;
    MPI_Bcast(&rounds, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    double *times = malloc(rounds * sizeof *times);
    for (int i = 0; i < rounds; i++) {
      start = MPI_Wtime();
      MPI_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      times[i] = MPI_Wtime() - start;
    }
    qsort(times, rounds, sizeof *times, ascending);
    if (rank == 0) printf("%d %.9f %.9f\n", n, times[0], times[rounds / 2]);
    free(x), free(y), free(times);
  }
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
