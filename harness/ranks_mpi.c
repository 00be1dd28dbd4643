/* SPDX-License-Identifier: Apache-2.0
 * ranks_mpi.c: the MPI plugin: point-to-point between two ranks, with a deadline on every receive.
 */
#include <errno.h>
#include <mpi.h>
#include <time.h>

#include "ranks.h"

#define TAG 7

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int mpi_send(int to, const void *p, size_t bytes)
{
	return MPI_Send(p, (int)bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD) == MPI_SUCCESS
		       ? 0
		       : -EIO;
}

/* Sleeps between looks: a waiting rank is no spinner beside the one that measures. */
static int mpi_recv(int from, void *p, size_t bytes, double deadline_s,
		    const volatile sig_atomic_t *stop, double grace_s)
{
	const struct timespec nap = {0, 50000};
	double end = now_s() + deadline_s;
	bool stopped = false;
	MPI_Request req;
	int done = 0;

	if (MPI_Irecv(p, (int)bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &req) !=
	    MPI_SUCCESS)
		return -EIO;
	for (;;) {
		if (MPI_Test(&req, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return -EIO;
		if (done)
			return 0;
		if (*stop && !stopped) {
			stopped = true;
			if (now_s() + grace_s < end)
				end = now_s() + grace_s;
		}
		if (now_s() > end) {
			MPI_Cancel(&req);
			MPI_Request_free(&req);
			return stopped ? -EINTR : -ETIMEDOUT;
		}
		nanosleep(&nap, NULL);
	}
}

static void mpi_finish(void)
{
	MPI_Finalize();
}

static const struct ranks_ops ops = {mpi_send, mpi_recv, mpi_finish};

const struct ranks_ops *putscope_ranks_mpi(int *rank, int *count);
const struct ranks_ops *putscope_ranks_mpi(int *rank, int *count)
{
	int provided;

	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
		return NULL;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, rank);
	MPI_Comm_size(MPI_COMM_WORLD, count);
	return &ops;
}
