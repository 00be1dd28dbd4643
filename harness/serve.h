/* SPDX-License-Identifier: Apache-2.0
 * serve.h: what rank 0 asks of rank 1, and rank 1's loop that answers.
 *
 * One fixed message each way, so that both sides can refuse a stranger.  Rank 1 holds endpoint B's memory and queue
 * pairs; it makes no decision and records nothing.
 */
#ifndef PUTSCOPE_SERVE_H
#define PUTSCOPE_SERVE_H
#include "nic/nic.h"

struct env;

enum serve_what { SERVE_HELLO, SERVE_PAIR, SERVE_POISON, SERVE_CHECK, SERVE_END };
struct serve_msg {
	uint32_t magic, what;
	int32_t err;	      /* of the answer */
	uint32_t by_sm;	      /* PAIR */
	struct nic_addr addr; /* PAIR, both ways */
	uint64_t dst_addr;    /* HELLO's answer: endpoint B's destination */
	uint32_t dst_rkey;
	uint32_t inl; /* POISON, CHECK: the puts that will land or have landed */
	uint32_t bytes, stride, ops;
	uint64_t seq0, bad;	     /* CHECK's answer: puts with wrong bytes */
	char host[64], options[256]; /* HELLO, both ways */
	char why[256];		     /* the answer's sentence when err */
};
/* Rank 0: ask and wait for the answer; errors of the other side are said here. */
int serve_ask(struct env *e, struct serve_msg *m);
/* Rank 1: answer until SERVE_END. */
int serve_loop(struct env *e);
#endif
