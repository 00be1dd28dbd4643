/* SPDX-License-Identifier: Apache-2.0
 * t_delay.c: the virtual NIC as an instrument: delays at each hop, its stamps, BlueFlame, its clock.
 *
 *	t_delay hops|order|blueflame|clock|gone
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "rig.h"
#include "vcx/vcx.h"

#define BYTES 65536u
#define HALF (BYTES / 2)
#define PUTS 60u
#define BLOCKS 6u

static struct end a, b;
static int (*delay)(const char *, uint64_t);
static void (*stamping)(int);
static int (*stamps)(struct vcx_stamp *, int);

static void open_pair(void)
{
	*(void **)&delay = dlsym(RTLD_DEFAULT, "vcx_delay");
	*(void **)&stamping = dlsym(RTLD_DEFAULT, "vcx_stamping");
	*(void **)&stamps = dlsym(RTLD_DEFAULT, "vcx_stamps");
	MUST(delay && stamping && stamps);
	a = rig_end(0, BYTES, 255, 64);
	b = rig_end(1, BYTES, 255, 64);
	rig_connect(a.qp, b.qp, 7);
}

static int close_pair(void)
{
	rig_end_close(&a);
	rig_end_close(&b);
	return rig_done();
}

static int by_value(const void *x, const void *y)
{
	double p = *(const double *)x, q = *(const double *)y;

	return (p > q) - (p < q);
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof *v, by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static uint64_t word(const uint8_t *p)
{
	return __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_ACQUIRE);
}

/* ---- hops: with and without, in turn ---- */
#define H(id, name) name,
static const char *const names[VCX_HOPS] = {VCX_HOP_LIST(H)};
#undef H

struct series {
	double hop[VCX_HOPS][PUTS * BLOCKS], cqe[PUTS * BLOCKS], flag[PUTS * BLOCKS];
	unsigned n;
};

/* One write of 8 B from memory: nanoseconds until its data was seen, and its CQE. */
static void put(struct series *s, uint64_t v)
{
	struct ibv_sge sge = rig_sge(&a, 0, 8);
	struct ibv_send_wr wr = rig_wr(IBV_WR_RDMA_WRITE, &sge, &b, HALF);
	double t0, flag = 0, cqe = 0;
	struct vcx_stamp st;
	struct ibv_wc wc;

	memcpy(a.buf, &v, 8);
	t0 = rig_now();
	MUST(!rig_post(a.qp, &wr));
	while ((!flag || !cqe) && rig_now() - t0 < RIG_DEADLINE_S) {
		if (!flag && word(b.buf + HALF) == v)
			flag = rig_now();
		if (!cqe && ibv_poll_cq(a.cq, 1, &wc) == 1)
			cqe = rig_now();
	}
	MUST(flag && cqe && wc.status == IBV_WC_SUCCESS);
	for (double t = rig_now(); stamps(&st, 1) != 1;)
		MUST(rig_now() - t < RIG_DEADLINE_S);
	for (int h = 0; h < VCX_HOPS; h++)
		s->hop[h][s->n] = st.ns[h];
	s->cqe[s->n] = 1e9 * (cqe - t0);
	s->flag[s->n++] = 1e9 * (flag - t0);
}

static double within(double ns)
{
	return 0.02 * ns > 150 ? 0.02 * ns : 150;
}

/* What moved otherwise than it was told to, in words; "" for nothing.  The virtual NIC may share a core here: what the program
 * sees is held to less than what the NIC stamps. */
static void one_hop(int hop, uint64_t ns, struct series *off, struct series *on,
		    char *out, size_t n)
{
	const bool on_flag = hop != HOP_WIRE_BACK && hop != HOP_CQE_WRITE;
	const bool on_cqe = hop != HOP_REMOTE_WRITE;
	const double slow = getenv("SAN") && *getenv("SAN")
				    ? 10
				    : 1; /* a sanitizer's build is slower */
	double d;

	*out = 0;
	off->n = on->n = 0;
	for (unsigned i = 0; i < BLOCKS; i++) {
		delay(names[hop], i % 2 ? 0 : ns);
		for (unsigned k = 0; k < PUTS; k++)
			put(i % 2 ? off : on, 1 + ns + i * PUTS + k);
	}
	delay(names[hop], 0);
	for (int h = 0; h < VCX_HOPS; h++) {
		d = median(on->hop[h], on->n) - median(off->hop[h], off->n);
		if (fabs(d - (h == hop ? (double)ns : 0)) >
		    slow * (h == hop ? within((double)ns) : 300))
			snprintf(out, n, "delay.%s=%llu moved %s by %.0f", names[hop],
				 (unsigned long long)ns, names[h], d);
	}
	d = median(on->cqe, on->n) - median(off->cqe, off->n);
	if (on_cqe != (d > 0.8 * (double)ns))
		snprintf(out, n, "delay.%s: the CQE moved by %.0f", names[hop], d);
	d = median(on->flag, on->n) - median(off->flag, off->n);
	if (on_flag != (d > 0.8 * (double)ns))
		snprintf(out, n, "delay.%s: the data moved by %.0f", names[hop], d);
}

static void hops(void)
{
	static struct series off, on;
	char wrong[160] = "";

	stamping(1);
	for (int h = 0; h < VCX_HOPS; h++) {
		for (int tries = 0; tries < 3;
		     tries++) { /* a machine's bad moment is not ours */
			one_hop(h, 20000, &off, &on, wrong, sizeof wrong);
			if (!*wrong)
				break;
		}
		CHECK(!*wrong, "%s", wrong);
	}
	CHECK(delay("nowhere", 1) < 0, "a hop that does not exist");
}

/* ---- order: delays that change under a stream of writes ---- */
static _Atomic bool flipping;

/* Switches every delay as fast as it can: between any two looks of the NIC at the same one. */
static void *flip(void *arg)
{
	(void)arg;
	for (unsigned i = 0; flipping; i++)
		delay(names[i / 2 % VCX_HOPS], i % 2 ? 0 : 300);
	return NULL;
}

static void stream(bool random_delays)
{
	uint64_t rng = 1, posted = 0, done = 0, wrong = 0, seen = 0;
	struct ibv_wc wc;

	while (done < 20000) {
		struct ibv_sge sge = rig_sge(&a, 8 * (posted % 32), 8);
		struct ibv_send_wr wr = rig_wr(IBV_WR_RDMA_WRITE, &sge, &b, HALF);

		rng = rng * 6364136223846793005ull + 1442695040888963407ull;
		if (posted < 20000 && posted - done < 32) {
			posted++;
			memcpy(a.buf + 8 * ((posted - 1) % 32), &posted, 8);
			wr.wr_id = posted;
			MUST(!rig_post(a.qp, &wr));
		}
		if (random_delays && rng >> 60 == 0)
			delay(names[rng >> 40 & 7], rng >> 43 & 1 ? rng >> 44 & 8191 : 0);
		while (ibv_poll_cq(a.cq, 1, &wc) == 1) {
			MUST(wc.status == IBV_WC_SUCCESS);
			wrong += wc.wr_id != ++done;
		}
		if (word(b.buf + HALF) < seen)
			wrong++; /* all go to one word: it never steps back */
		seen = word(b.buf + HALF);
	}
	for (double t = rig_now(); word(b.buf + HALF) != 20000;)
		MUST(rig_now() - t < RIG_DEADLINE_S);
	CHECK(!wrong, "%llu completions or data out of order", (unsigned long long)wrong);
}

static void order(void)
{
	pthread_t flipper;

	stream(true);
	for (int h = 0; h < VCX_HOPS; h++)
		delay(names[h], 0);
	memset(b.buf, 0, BYTES);
	flipping = true;
	MUST(!pthread_create(&flipper, NULL, flip, NULL));
	stream(false);
	flipping = false;
	pthread_join(flipper, NULL);
	for (int h = 0; h < VCX_HOPS; h++)
		delay(names[h], 0);
}

/* ---- BlueFlame by libmlx5 and by hand ---- */
static void ring_with_wqe(struct hand *h, const uint8_t *from)
{
	uint8_t *to = (uint8_t *)h->q.bf.reg + (h->second ? h->q.bf.size : 0);

	h->pi++;
	hand_record(h, htobe32(h->pi & 0xffff));
	for (unsigned i = 0; i < 64; i += 8)
		*(volatile uint64_t *)(void *)(to + i) =
			*(const uint64_t *)(const void *)(from + i);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	h->second = !h->second;
}

static void blueflame(void)
{
	struct hand h = rig_hand(a.qp, a.cq);
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < 200000; i++) {
		uint64_t v = (i + 1) * 0x9e3779b97f4a7c15ull;
		uint8_t *w;

		memcpy(a.buf + 8 * (i % 64), &v, 8);
		w = hand_write(&h, &a, 8 * (i % 64), 8,
			       (uintptr_t)b.buf + HALF + 8 * (i % 64), b.mr->rkey);
		if (i % 7 == 6)
			hand_ring(&h); /* a plain one between */
		else
			ring_with_wqe(&h, w);
		MUST(hand_poll(&h, RIG_DEADLINE_S));
		hand_release(&h);
		wrong += word(b.buf + HALF + 8 * (i % 64)) != v;
	}
	CHECK(!wrong, "%u of 200000 writes arrived wrong", wrong);
}

/* ---- the device's clock, as programs read it ---- */
static uint64_t now_raw(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void clocks(void)
{
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_device_attr_ex attr;
	struct mlx5dv_clock_info info;
	uint64_t before, after, got;

	MUST(!ibv_query_device_ex(a.ctx, NULL, &attr));
	CHECK(attr.hca_core_clock == 1000000, "%llu kHz",
	      (unsigned long long)attr.hca_core_clock);
	for (int i = 0; i < 1000; i++) {
		before = now_raw();
		MUST(!ibv_query_rt_values_ex(a.ctx, &v));
		after = now_raw();
		got = (uint64_t)v.raw_clock.tv_nsec;
		CHECK(got >= before && got <= after, "%llu is outside %llu .. %llu",
		      (unsigned long long)got, (unsigned long long)before,
		      (unsigned long long)after);
	}
	MUST(!mlx5dv_get_clock_info(a.ctx, &info));
	CHECK(mlx5dv_ts_to_ns(&info, got) == got, "the clock's page converts otherwise");
}

/* ---- gone: queue pairs that end while requests are on their way ---- */
static void gone(void)
{
	struct ibv_sge sge = rig_sge(&a, 0, 8);
	struct ibv_send_wr wr = rig_wr(IBV_WR_RDMA_WRITE, &sge, &b, HALF);
	struct ibv_wc wc;

	delay("wire_out", 2000000);
	for (int i = 0; i < 50; i++) {
		struct ibv_qp *qa = rig_qp(&a, a.cq, 8), *qb = rig_qp(&b, b.cq, 8);

		rig_connect(qa, qb, 7);
		MUST(!rig_post(qa, &wr));
		if (i % 2)
			MUST(!ibv_destroy_qp(qb));
		MUST(!ibv_destroy_qp(qa));
		if (!(i % 2))
			MUST(!ibv_destroy_qp(qb));
	}
	usleep(10000);
	CHECK(!ibv_poll_cq(a.cq, 1, &wc), "a completion of a queue pair that is gone");
	CHECK(!word(b.buf + HALF), "data of a queue pair that is gone");
	delay("wire_out", 0);
	MUST(!rig_post(a.qp, &wr));
	MUST(rig_poll(a.cq, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS, "the NIC works on");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {{"hops", hops},
		   {"order", order},
		   {"blueflame", blueflame},
		   {"clock", clocks},
		   {"gone", gone}};

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		if (strcmp(what, all[i].name))
			continue;
		if (all[i].run ==
		    hops) /* plain doorbells: with BlueFlame there is no wqe_fetch */
			setenv("MLX5_SHUT_UP_BF", "1", 1);
		open_pair();
		all[i].run();
		return close_pair();
	}
	fprintf(stderr, "usage: t_delay hops|order|blueflame|clock|gone\n");
	return 2;
}
