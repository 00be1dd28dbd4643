/* SPDX-License-Identifier: Apache-2.0
 * put.h: one case of puts on one path: its semantics resolved, its payload made and checked, its samples filled.
 *
 * Equal semantics on every path: the SM decides to send; put_completion ends when an SM knows that the data has been
 * acknowledged.  gpu, gpu-cpu-db: SM polls the CQE.  proxy: SM polls the worker's counter.  host: from the kernel's last act to the
 * next kernel's first.
 */
#ifndef PUTSCOPE_PUT_H
#define PUTSCOPE_PUT_H
#include "case.h"
#include "path/slots.h"

struct put {
	struct env *env;
	struct case_desc *c;
	const struct path_ops *path;
	enum put_order order;
	bool rtt;
	uint32_t ops;		 /* puts of one launch */
	struct slots slots;	 /* of the launch in hand */
	uint64_t deadline_ticks; /* of the SM clock */
	bool overhead_known; /* the case's timer overhead was taken from its first launch */
	struct nic_qp *pair[END_COUNT];
	void *impl; /* the path's own */
	/* Brings the machine into a state before each launch (proxy only); NULL: it is taken as it is. */
	int (*before)(struct put *p);
};

struct path_ops {
	const char *name;
	int (*open)(struct put *p);
	/* One batch: payload is in place before, checked after by the caller's put_check calls. */
	int (*puts)(struct put *p, struct batch *b);
	int (*rtts)(struct put *p, struct batch *b);
	void (*close)(struct put *p);
	/* In put_launch, as soon as the kernel has ended, well or not; NULL: nothing to do then. */
	void (*kernel_ended)(struct put *p);
};
extern const struct path_ops path_gpu, path_gpu_cpu_db, path_proxy, path_host;

/* Bench entry points shared by every bench of puts (struct bench's open, batch, close). */
int put_open(struct env *env, struct case_desc *c, void **state);
int put_batch(void *state, struct batch *b);
void put_close(void *state);
/* One put on a path, data checked, nothing recorded. */
int put_self_test(struct env *env, const char *path);
/* Append a case: path, metric ("put_completion" or "rtt"), size, ordering ("" off the gpu path), inline or pointer.
 * Waives it with the reason where it cannot run. */
int put_case_add(struct case_list *l, const struct env *env, const char *bench,
		 const char *path, const char *metric, uint64_t bytes,
		 const char *ordering, bool inl);
/* The same for every benched way of this path: host once for each host_method, else one case. */
int put_cases_add(struct case_list *l, const struct opts *o, const struct env *env,
		  const char *bench, const char *path, const char *metric, uint64_t bytes,
		  const char *ordering, bool inl);
/* Sizes 1 .. PUT_BYTES_MAX, ops 1 .. PUT_OPS_MAX, else -EINVAL with the sentence. */
int put_opts_check(const struct opts *o);
extern const char *const put_order_names[ORDER_COUNT];

/* For the paths.  A new launch: source filled, destination poisoned, *l told (NULL: nobody). */
int put_prepare(struct put *p, struct dev_launch *l);
/* Every byte that was put is compared; errors are counted in the case.  -EBADMSG, but not of a litmus case. */
int put_check(struct put *p);
void put_reply(const struct put *p, struct dev_reply *r);
uint8_t *
put_flag(const struct put *p,
	 enum end at); /* where a side polls: the first slot, or the flag word if big */
/* Run kernel k and check what arrived.  An error has its sentence, and the pair (of the SM or of the CPU) is opened anew at
 * the next rig_pair.  slots.ops says how many puts have samples.  wall_ns: launch to sync return. */
int put_launch(struct put *p, bool by_sm, const struct dev_kernel *k, const void *args,
	       double *wall_ns);
/* Samples of one launch of single-direction puts, from stamps and result. */
int put_samples(struct put *p, struct batch *b, bool stamped, double wall_ns);
int put_rtt_samples(struct put *p, struct batch *b);
/* Components of a batch: nanoseconds per put, disjoint; unaccounted is what wall has left. */
struct put_components {
	double wall, kernel, comm, exposed_comm, cpu_wait;
};
int put_components(struct batch *b, const struct put_components *c);
#endif
