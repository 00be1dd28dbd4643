/* SPDX-License-Identifier: Apache-2.0
 * test_wqe.c: the bytes that device code writes are those that mlx5dv.h's own structures say.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "nic/wqe.h"
#include "path/dev_path.h"
#include "path/payload.h"

#define QPN 0xabcdefu
#define INDEX 0x12345u /* past 16 bits: the WQE carries the low ones */

static const struct wqe_put put = {0x1122334455667788ull, 0x99aabbccddeeff00ull,
				   0x01020304, 0x0a0b0c0d, 24};

static void control_is(const struct mlx5_wqe_ctrl_seg *c, unsigned ds)
{
	struct mlx5_wqe_ctrl_seg want;

	memset(&want, 0, sizeof want);
	mlx5dv_set_ctrl_seg(&want, INDEX & 0xffff, MLX5_OPCODE_RDMA_WRITE, 0, QPN,
			    MLX5_WQE_CTRL_CQ_UPDATE, (uint8_t)ds, 0, 0);
	assert_memory_equal(c, &want, sizeof want);
}

static void pointer_wqe(void **state)
{
	uint8_t w[64] __attribute__((aligned(64)));
	const struct mlx5_wqe_raddr_seg *r = (const void *)(w + 16);
	struct mlx5_wqe_data_seg want;

	(void)state;
	memset(w, 0xee, sizeof w);
	wqe_write_pointer(w, wqe_ctrl(INDEX, WQE_OP_WRITE, QPN, 3), &put);
	control_is((const void *)w, 3);
	assert_int_equal(be64toh(r->raddr), put.raddr);
	assert_int_equal(be32toh(r->rkey), put.rkey);
	assert_int_equal(r->reserved, 0);
	mlx5dv_set_data_seg(&want, put.bytes, put.lkey, put.laddr);
	assert_memory_equal(w + 32, &want, sizeof want);
	assert_int_equal(w[48], 0xee); /* the last 16 bytes are not of this WQE */
}

static void inline_wqe(void **state)
{
	uint8_t w[64] __attribute__((aligned(64)));
	uint64_t d[4];
	uint8_t want[32];

	(void)state;
	for (int k = 0; k < 4; k++)
		d[k] = payload_word(77, (uint64_t)k);
	memcpy(want, d, sizeof want);
	for (uint32_t bytes = 1; bytes <= WQE_INLINE_MAX; bytes++) {
		struct wqe_put p = put;
		uint32_t ds = wqe_inline_ds(bytes);

		p.bytes = bytes;
		wqe_write_inline(w, wqe_ctrl(INDEX, WQE_OP_WRITE, QPN, ds), &p, d);
		control_is((const void *)w, ds);
		assert_true(ds == (bytes <= 12 ? 3u : 4u));
		assert_int_equal(be32toh(*(uint32_t *)(w + 32)), MLX5_INLINE_SEG | bytes);
		assert_memory_equal(w + 36, want, bytes);
	}
}

static void completions(void **state)
{
	static uint8_t cq[4 * CQE_BYTES] __attribute__((aligned(64)));
	static uint32_t record;
	struct nic_queue q;
	struct mlx5_cqe64 *e = (void *)cq;
	struct mlx5_err_cqe *bad = (void *)cq;

	(void)state;
	memset(&q, 0, sizeof q);
	q.cq = cq;
	q.cq_count = 4;
	q.cq_rec = (void *)&record;
	e->op_own = MLX5_CQE_INVALID << 4 | 1;
	assert_int_equal(cqe_look(&q, 0), 0);
	e->op_own = MLX5_CQE_REQ << 4; /* owner 0: first lap */
	assert_int_equal(cqe_look(&q, 0), 1);
	assert_int_equal(cqe_look(&q, 4), 0); /* second lap wants owner 1 */
	e->op_own = MLX5_CQE_REQ << 4 | 1;
	assert_int_equal(cqe_look(&q, 4), 1);
	assert_int_equal(cqe_look(&q, 8), 0);
	memset(bad, 0, sizeof *bad);
	bad->op_own = MLX5_CQE_REQ_ERR << 4;
	bad->syndrome = 0x13;
	bad->vendor_err_synd = 0x88;
	assert_int_equal(cqe_look(&q, 0), -1);
	assert_int_equal(cqe_syndrome(&q, 0), 0x8813);
	cqe_release(&q, 0x1000005);
	assert_int_equal(be32toh(record), 5); /* 24 bits */
}

static void payload_tells_iteration_and_offset(void **state)
{
	uint8_t b[8] __attribute__((aligned(8)));

	(void)state;
	for (uint64_t seq = 0; seq < 2000; seq++)
		for (uint64_t k = 0; k < 8; k++) {
			assert_true(payload_word(seq, k) != payload_word(seq + 1, k));
			assert_true(payload_word(seq, k) != payload_word(seq, k + 1));
		}
	for (uint32_t bytes = 1; bytes <= 8; bytes++) {
		memset(b, 0x5a, sizeof b);
		payload_store_head(b, 0x8877665544332211ull, bytes);
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(b[i], i < bytes ? 0x11 * (i + 1) : 0x5a);
		assert_int_equal(__builtin_popcountll(payload_head_mask(bytes)),
				 8 * bytes);
	}
}

static void proxy_descriptor(void **state)
{
	(void)state;
	for (uint32_t bytes = 1; bytes < 1u << 23; bytes = bytes * 3 + 1) {
		uint64_t lo = proxy_desc_word(0xfedcba98, 0x1ffff, bytes),
			 hi = proxy_desc_word(7, 0x1ffff, bytes >> 16 | PROXY_FLAG);

		assert_int_equal(lo >> 32, 0xfedcba98);
		assert_int_equal(lo >> 16 & 0xffff,
				 0xffff); /* the tag's low 16 bits, in both halves */
		assert_int_equal(hi >> 16 & 0xffff, 0xffff);
		assert_int_equal((lo & 0xffff) | (hi & (0xffff & ~PROXY_FLAG)) << 16,
				 bytes);
		assert_true(hi & PROXY_FLAG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pointer_wqe),
		cmocka_unit_test(inline_wqe),
		cmocka_unit_test(completions),
		cmocka_unit_test(payload_tells_iteration_and_offset),
		cmocka_unit_test(proxy_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
