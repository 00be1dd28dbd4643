/* SPDX-License-Identifier: Apache-2.0
 * case.h: a case (one row of a result), the benches that list and measure cases, one batch of samples.
 *
 * A bench file lists its cases without touching hardware, then measures them batch by batch.  The engine
 * (run.c) decides how many batches, shuffles them over all cases, and hands the samples to record.c.
 */
#ifndef PUTSCOPE_CASE_H
#define PUTSCOPE_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct opts;
struct env;

enum case_status { CASE_OK, CASE_WAIVED, CASE_FAILED, CASE_INCOMPLETE };
const char *
case_status_name(enum case_status s); /* "ok", "waived", "failed", "incomplete" */

#define CASE_ID_CHARS 256
/* All the semantics of a case.  Strings are static or owned by the case list; "" or 0 = does not apply. */
struct case_desc {
	char id[CASE_ID_CHARS]; /* BENCH/PATH/...: unique in a run, the spelling used everywhere */
	const char *bench;
	const char *path; /* gpu, gpu-cpu-db, proxy, host, none */
	uint64_t size_bytes;
	const char *ordering; /* none, gpu-fence, ... sys-fence */
	const char *inlined;  /* inline, pointer */
	const char *queue;    /* host, gpu: where the send queue lies */
	const char *cq;
	const char *dbrec;
	const char *data;	/* host, gpu: where source and destination lie */
	const char *opcode;	/* hop experiments: nop, write, write-imm, read */
	const char *group;	/* hop experiments: base, or the virtual NIC's delays */
	const char *doorbell;	/* db, bf */
	const char *completion; /* cqe, counter, flag, cq-event ... */
	const char *
		method; /* host path: sync, event, callback, graph: how the CPU learns of a kernel's end */
	const char *endpoints; /* loopback, across, nodes */
	const char *sm;	       /* gpu, host-thread */
	const char *protocol;  /* of a proxy's ring: tuned, baseline */
	const char *state;     /* of the CPU before each batch: cold, warm */
	const char *nature;    /* hardware, virtual */
	uint32_t qps;
	uint32_t batch;		 /* WQEs per doorbell */
	uint32_t signalled;	 /* one signalled WQE every so many */
	uint32_t workers, rings; /* of a proxy */
	uint32_t window;	 /* messages that one sample of a rate is made over */
	char governor[32]; /* cpufreq's, of the worker's CPU when it was looked at last */
	double cpu_mhz;	   /* likewise its clock; 0: not known */
	uint32_t spinners; /* threads that spin at once, the virtual NIC's included */
	bool litmus; /* an order that promises the NIC nothing: its losses are the finding, not a failure */
	bool oversubscribed;	 /* spinners > CPUs: unpinned, every poll yields */
	const char *main_metric; /* the one whose interval decides when to stop */
	enum case_status status; /* CASE_OK also while it waits its turn: see done */
	bool done;		 /* the engine has ended with it */
	char reason[256];	 /* why waived or failed */
	double step_ns;		 /* step of the clock behind the samples */
	double timer_overhead_ns; /* already subtracted from each sample; 0 until measured */
	uint64_t puts, payload_errors, rerings, violations; /* counted by the bench */
	const void *arg;				    /* the bench's own, static */
};

struct case_list {
	struct case_desc *v;
	size_t n, cap;
};
/* Append a zeroed case (status CASE_OK), to be filled by the caller; NULL when out of memory. */
struct case_desc *case_add(struct case_list *l);
void case_list_free(struct case_list *l);

/* One metric's samples of one batch. */
struct series {
	const char *metric; /* static */
	double *ns;	    /* nanoseconds; rates for rate_* and goodput_* */
	size_t n;
};
#define BATCH_SERIES_MAX 24
struct batch {
	uint32_t index; /* 0.. within the case, warm-up included */
	bool warmup;
	struct series series[BATCH_SERIES_MAX];
	size_t series_count;
};
/* Room for n samples of `metric` in this batch (owned by the batch); NULL when out of memory. */
double *batch_series(struct batch *b, const char *metric, size_t n);
void batch_reset(struct batch *b); /* free the samples, keep index and warmup */

struct bench {
	const char *name;
	const char *question; /* one line for `list` */
	const char *uses;     /* option keys it reads, separated by spaces */
	bool needs_env;	      /* false: no NIC and no SM is opened for it */
	bool together; /* its cases are compared with each other: none ends before all may */
	/* List the cases for these options; cases that cannot run here are CASE_WAIVED with the reason. */
	int (*cases)(const struct opts *o, const struct env *env, struct case_list *out);
	/* Make ready; *state is handed to batch and close.  -errno fails this case only. */
	int (*open)(struct env *env, struct case_desc *c, void **state);
	/* Measure one batch.  -errno fails this case; what was recorded stays. */
	int (*batch)(void *state, struct batch *b);
	void (*close)(void *state);
};

#ifdef __cplusplus
}
#endif
#endif
