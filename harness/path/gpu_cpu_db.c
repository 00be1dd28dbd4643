/* SPDX-License-Identifier: Apache-2.0
 * gpu_cpu_db.c: the put that the SM builds and the CPU rings: WQE, record and CQE are the SM's, a host thread forwards the
 * doorbell.  For machines whose driver does not map the NIC's registers to the GPU.
 *
 * The device code is that of the gpu path (gpu_dev.c), told a word in host memory for a doorbell register: it stores WQE and
 * record, fences at system scope, and stores there what it would ring with.  The forwarder sees the word change, rings the
 * NIC's register with it and counts; between batches it sleeps.  A word is free again once its put has completed, so none is
 * written over; two in a row differ, since they hold the index of the WQE.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "err.h"
#include "path/put.h"
#include "rig.h"

#pragma weak put_kernels_cuda

#define LOOKS_PATIENT 4096u /* looks that found nothing; see dev_give_way */
#define MAIL_BYTES 4096u    /* the SM uses the half of the register that is next */

struct forwarder {
	pthread_t tid;
	sem_t go, parked;
	bool started;
	volatile bool running, leave;
	uint8_t *mail;	     /* SM_HOST: the SM's register */
	const uint8_t *word; /* where in it the SM stores, in this launch */
	uint8_t *reg;	     /* the NIC's register */
	uint32_t reg_off, reg_toggle;
	uint64_t rung;
};

/* SM and NIC, by way of this thread: what the SM stored before the word is in memory before the register is written.  The SM's
 * fence has put it there; here the register must not be written before the word was read.  It does not wait for the NIC. */
static void word_before_register(void)
{
#ifdef __aarch64__
	__asm__ volatile("dmb osh" ::: "memory"); /* the NIC is no inner observer */
#else
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

static void forward(struct forwarder *f)
{
	uint64_t last = 0, word;
	uint32_t idle = 0;

	while (f->running) {
		word = dev_ld8b(f->word);
		if (word == last) {
			if (++idle > LOOKS_PATIENT && idle % 16 == 0)
				dev_give_way();
			else
				dev_relax();
			continue;
		}
		word_before_register();
		dev_st_mmio8b(f->reg + f->reg_off, word);
		f->reg_off ^= f->reg_toggle;
		f->rung++;
		last = word;
		idle = 0;
	}
}

static void *forwarder_main(void *arg)
{
	struct forwarder *f = arg;

	pthread_setname_np(pthread_self(), "doorbell");
	for (;;) {
		while (sem_wait(&f->go))
			;
		if (f->leave)
			return NULL;
		sm_pin_self(1);
		forward(f);
		sem_post(&f->parked);
	}
}

/* From here until it parks the register is the forwarder's, which goes on with the half that is next. */
static void forwarder_go(struct forwarder *f, const struct nic_qp *qp)
{
	memset(f->mail, 0, MAIL_BYTES);
	f->reg = qp->reg;
	f->reg_off = qp->cursor->reg_off;
	f->reg_toggle = qp->q.reg_toggle;
	f->word = f->mail + f->reg_off;
	f->rung = 0;
	f->running = true;
	sem_post(&f->go);
}

/* Before anybody closes the queue pair whose register it is. */
static void forwarder_park(struct put *p)
{
	struct forwarder *f = p->impl;

	f->running = false;
	while (sem_wait(&f->parked))
		;
	p->env->count.cpu_doorbells += f->rung;
}

static void db_close(struct put *p)
{
	struct forwarder *f = p->impl;

	if (f->started) {
		f->leave = true;
		sem_post(&f->go);
		pthread_join(f->tid, NULL);
	}
	sm_free(p->env->sm, f->mail, MAIL_BYTES, SM_HOST);
	sem_destroy(&f->go);
	sem_destroy(&f->parked);
	free(f);
}

static int db_open(struct put *p)
{
	struct forwarder *f = calloc(1, sizeof *f);
	int err, rc;

	if (!f)
		return err_say(-ENOMEM, "no memory for a forwarder of doorbells");
	p->impl = f;
	sem_init(&f->go, 0, 0);
	sem_init(&f->parked, 0, 0);
	err = sm_alloc(p->env->sm, MAIL_BYTES, SM_HOST, (void **)&f->mail);
	if (!err) {
		rc = pthread_create(&f->tid, NULL, forwarder_main, f);
		f->started = !rc;
		if (rc)
			err = err_say(-rc, "cannot start the forwarder of doorbells: %s",
				      strerror(rc));
	}
	if (err)
		db_close(p);
	return err;
}

static const struct dev_kernel *kernel(const struct put *p, bool stamped)
{
	return sm_is_gpu(p->env->sm)
		       ? &put_kernels_cuda[ORDER_SYS_FENCE][p->slots.inl][stamped]
		       : &put_kernels_host[ORDER_SYS_FENCE][p->slots.inl][stamped];
}

/* Each put that ended was rung by the forwarder, once. */
static int check_rung(const struct put *p)
{
	const struct forwarder *f = p->impl;

	if (f->rung == p->slots.ops)
		return 0;
	return err_say(-EPROTO, "the CPU forwarded %llu doorbells for %u puts (%s)",
		       (unsigned long long)f->rung, p->slots.ops, p->c->id);
}

static int db_launch(struct put *p, struct batch *b, bool stamped)
{
	struct forwarder *f = p->impl;
	struct env *e = p->env;
	struct put_args a = {.rering_ticks = RERING_NONE};
	struct nic_qp *qp;
	double wall;
	void *mail;
	int err;

	OUR_TRY(rig_pair(e, true, p->pair), err, out);
	OUR_TRY(put_prepare(p, &a.l), err, out);
	OUR_TRY(sm_map(e->sm, f->mail, MAIL_BYTES, false, &mail), err, out);
	qp = p->pair[END_A];
	a.q = qp->q;
	a.q.reg = mail;
	a.q.reg_toggle = 0;
	forwarder_go(f, qp);
	err = put_launch(p, true, kernel(p, stamped), &a, &wall);
	if (err)
		return err; /* the pair is closed */
	qp->cursor->reg_off = f->reg_off;
	OUR_TRY(check_rung(p), err, out);
	err = put_samples(p, b, stamped, wall);
out:
	return err;
}

/* Stamped and plain in turn, the order swapped from batch to batch. */
static int db_puts(struct put *p, struct batch *b)
{
	bool first = b->index & 1;
	int err = db_launch(p, b, first);

	return err ? err : db_launch(p, b, !first);
}

const struct path_ops path_gpu_cpu_db = {
	.name = "gpu-cpu-db",
	.open = db_open,
	.puts = db_puts,
	.close = db_close,
	.kernel_ended = forwarder_park,
};
