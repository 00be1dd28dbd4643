/* SPDX-License-Identifier: Apache-2.0
 * ranks.c: find the launcher, load the MPI plugin, refuse half-launches.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config.h"
#include "engine.h"
#include "err.h"
#include "ranks.h"

/* Number of ranks as launchers leave it in the environment: Open MPI, MPICH and Slurm's PMI, srun.  Open MPI's comes
 * first: mpirun under Slurm starts its daemons by srun, one a node. */
int ranks_launched(void)
{
	static const char *const vars[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
					   "SLURM_STEP_NUM_TASKS"};

	for (unsigned i = 0; i < sizeof vars / sizeof *vars; i++) {
		const char *v = getenv(vars[i]);

		if (v && atoi(v) > 0)
			return atoi(v);
	}
	return 1;
}

static int load_plugin(struct ranks *r)
{
	char exe[4096], path[4200];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	ranks_plugin_fn *start;
	void *h;

	if (n < 0)
		return err_say(-errno, "readlink /proc/self/exe: %s", strerror(errno));
	exe[n] = 0;
	snprintf(path, sizeof path, "%s/%s", dirname(exe), RANKS_PLUGIN_FILE);
	/* Open MPI must not take the NIC under test for its own traffic. */
	setenv("OMPI_MCA_pml", "ob1", 0);
	setenv("OMPI_MCA_btl", "tcp,self", 0);
	h = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!h)
		return err_say(
			-EINVAL,
			"the launcher started %d ranks, but this putscope has no MPI (%s): install libopenmpi-dev "
			"and run make again",
			ranks_launched(), dlerror());
	*(void **)&start = dlsym(h, RANKS_PLUGIN_SYMBOL);
	if (!start)
		return err_say(-EINVAL, "%s holds no %s: run make again", path,
			       RANKS_PLUGIN_SYMBOL);
	r->ops = start(&r->rank, &r->count);
	return r->ops ? 0 : err_say(-EINVAL, "MPI did not start");
}

int ranks_open(struct ranks *r)
{
	int launched = ranks_launched(), err;

	r->rank = 0;
	r->count = 1;
	r->ops = NULL;
	r->lost = false;
	if (launched == 1)
		return 0;
	if (launched % 2)
		return err_say(-EINVAL,
			       "%d ranks cannot be paired: start 1 or an even number",
			       launched);
	if (launched > 2)
		return err_say(-EINVAL,
			       "%d ranks: this version measures one pair; start 2",
			       launched);
	err = load_plugin(r);
	if (err)
		return err;
	if (r->count != launched) {
		ranks_close(r);
		return err_say(
			-EINVAL,
			"the launcher says %d ranks but MPI sees %d: it belongs to another MPI than this putscope; start "
			"it with the mpirun of the Open MPI that it was built with, or srun with --mpi=pmix",
			launched, r->count);
	}
	return 0;
}

void ranks_close(struct ranks *r)
{
	/* With a rank that is gone MPI would wait for ever; the launcher clears up after this one. */
	if (r->ops && !r->lost)
		r->ops->finish();
	r->ops = NULL;
}

int ranks_send(struct ranks *r, const void *p, size_t bytes)
{
	int err = r->lost ? -ENOTCONN : r->ops->send(!r->rank, p, bytes);

	r->lost |= err != 0;
	return err ? err_say(err, "cannot reach rank %d: %s", !r->rank, strerror(-err))
		   : 0;
}

int ranks_recv(struct ranks *r, void *p, size_t bytes, double deadline_s, double grace_s)
{
	int err = r->lost ? -ENOTCONN
			  : r->ops->recv(!r->rank, p, bytes, deadline_s, &run_stop,
					 grace_s);

	r->lost |= err != 0;
	if (err == -ETIMEDOUT)
		return err_say(err, "rank %d did not answer within %.0f s", !r->rank,
			       deadline_s);
	if (err == -EINTR)
		return err_say(
			err,
			"rank %d did not answer any more when a signal came (a launcher sends one when another rank has ended)",
			!r->rank);
	return err ? err_say(err, "rank %d does not answer: %s", !r->rank, strerror(-err))
		   : 0;
}
