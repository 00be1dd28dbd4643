/* SPDX-License-Identifier: Apache-2.0
 * t_hand.c: WQEs, records and doorbells written by hand, as a GPU would: past the 16-bit index, on shared doorbell pages,
 * under a pinned thread.
 */
#include <dirent.h>

#include "rig.h"

#define BYTES (1u << 16)
#define WRAP 70000u
#define MANY 64

/* Each put carries its number to a place of its own; one NOP for each 1000 puts. */
static void past_the_wrap(struct side *a, struct side *b)
{
	struct ibv_cq *cq = ibv_create_cq(a->ctx, 255, NULL, NULL, 0), *other = ibv_create_cq(b->ctx, 15, NULL, NULL, 0);
	struct mlx5_cqe64 *e;
	struct ibv_qp *qa, *qb;
	struct hand h;
	uint32_t wrong = 0;

	MUST(cq && other);
	pair_new(a, cq, b, other, 64, &qa, &qb);
	hand_open(&h, qa, cq);
	for (uint32_t i = 0; i < WRAP && !wrong; i++) {
		uint64_t v = 0x1234567800000000ull + i;
		size_t at = 8 * (i & 1023);
		uint16_t index = (uint16_t)h.pi;

		*(volatile uint64_t *)a->buf = v;
		if (i % 1000 == 999)
			mlx5dv_set_ctrl_seg((void *)hand_wqe(&h), (uint16_t)h.pi, MLX5_OPCODE_NOP, 0, h.qpn,
					    MLX5_WQE_CTRL_CQ_UPDATE, 1, 0, 0);
		else
			hand_write(&h, a, 0, b, at, 8);
		hand_ring(&h);
		wrong += hand_poll(&h, 5, &e) != MLX5_CQE_REQ || be16toh(e->wqe_counter) != index;
		wrong += i % 1000 != 999 && *(volatile uint64_t *)(b->buf + at) != v;
	}
	CHECK(!wrong);
	CHECK(!ibv_destroy_qp(qa) && !ibv_destroy_qp(qb) && !ibv_destroy_cq(cq) && !ibv_destroy_cq(other));
}

/* Many queue pairs of one process share doorbell pages, and registers: a burst over all of them, many times. */
static void all_progress(struct side *a, struct side *b)
{
	struct ibv_cq *cq[MANY], *other = ibv_create_cq(b->ctx, 15, NULL, NULL, 0);
	struct ibv_qp *qa[MANY], *qb[MANY];
	static struct hand h[MANY];
	int lost = 0;

	for (int i = 0; i < MANY; i++) {
		MUST(cq[i] = ibv_create_cq(a->ctx, 63, NULL, NULL, 0));
		pair_new(a, cq[i], b, other, 16, &qa[i], &qb[i]);
		hand_open(&h[i], qa[i], cq[i]);
	}
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < MANY; i++) {
			hand_write(&h[i], a, 8 * i, b, 8 * i, 8);
			hand_ring(&h[i]);
		}
		for (int i = 0; i < MANY; i++)
			lost += hand_poll(&h[i], 5, NULL) != MLX5_CQE_REQ;
	}
	CHECK(!lost);
	for (int i = 0; i < MANY; i++)
		CHECK(!ibv_destroy_qp(qa[i]) && !ibv_destroy_qp(qb[i]) && !ibv_destroy_cq(cq[i]));
	CHECK(!ibv_destroy_cq(other));
}

/* The NIC's thread was made by a thread that was pinned: it may use every CPU that the process could. */
static int nic_threads(int cpus)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int found = 0;

	while ((e = readdir(d))) {
		char path[300], name[32] = "";
		cpu_set_t set;
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(name, sizeof name, f) && !strncmp(name, "vcx-nic", 7))
			found += !sched_getaffinity(atoi(e->d_name), sizeof set, &set) && CPU_COUNT(&set) == cpus;
		fclose(f);
	}
	closedir(d);
	return found;
}

static void nic_is_not_pinned(int cpus)
{
	double end = now() + 5; /* the thread names and frees itself once it runs */

	while (nic_threads(cpus) != 1 && now() < end)
		usleep(1000);
	CHECK(nic_threads(cpus) == 1);
}

int main(void)
{
	cpu_set_t all, one;
	struct side a, b;
	int first = 0;

	MUST(!sched_getaffinity(0, sizeof all, &all));
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	MUST(!sched_setaffinity(0, sizeof one, &one));
	a = side_open("mlx5_0", BYTES);
	b = side_open("mlx5_1", BYTES);
	nic_is_not_pinned(CPU_COUNT(&all));
	past_the_wrap(&a, &b);
	all_progress(&a, &b);
	CHECK(!side_close(&a) && !side_close(&b));
	return done();
}
