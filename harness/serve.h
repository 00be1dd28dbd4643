/* SPDX-License-Identifier: Apache-2.0
 * serve.h: what rank 0 asks of rank 1, and rank 1's loop that answers.
 *
 * One fixed message each way, so that both sides can refuse a stranger; some carry a JSON text behind it.  Rank 1 holds
 * endpoint B's memory and queue pairs; it makes no decision and records nothing.
 */
#ifndef PUTSCOPE_SERVE_H
#define PUTSCOPE_SERVE_H
#include <jansson.h>

#include "nic/nic.h"

struct env;

enum serve_what {
	SERVE_HELLO, /* version and options, before any device is opened */
	SERVE_MEET,  /* endpoint B's memory; text: facts of rank 1 */
	SERVE_PAIR,
	SERVE_POISON,
	SERVE_CHECK,
	SERVE_END /* text: evidence of rank 1 */
};
struct serve_msg {
	uint32_t magic, what;
	int32_t err;	      /* of the answer */
	uint32_t gone;	      /* the answer is the last one: rank 1 ends */
	uint32_t by_sm;	      /* PAIR */
	struct nic_addr addr; /* PAIR, both ways */
	uint64_t dst_addr;    /* MEET's answer: endpoint B's destination */
	uint32_t dst_rkey;
	uint32_t inl; /* POISON, CHECK: the puts that will land or have landed */
	uint32_t bytes, stride, ops;
	uint32_t text_bytes; /* JSON that follows this message */
	uint64_t seq0, bad;  /* CHECK's answer: puts with wrong bytes */
	char host[64];	     /* the answer's */
	char why[256];	     /* the answer's sentence when err */
};
/* Both ranks, first of all: are they the same putscope with the same options (nic, gpu and out may differ)?
 * -EINVAL on both sides with the option that differs. */
int serve_hello(struct env *e);
/* Rank 0: ask and wait for the answer; errors of the other side are said here.  *text (may be NULL) is the JSON that
 * came with it, a new reference, or NULL.  A rank that does not answer is lost: the run is told to stop. */
int serve_ask(struct env *e, struct serve_msg *m, json_t **text);
/* Rank 1: answer until SERVE_END. */
int serve_loop(struct env *e);
/* Rank 1 could not open what it was asked to: rank 0's next question is answered with err and its sentence. */
void serve_refuse(struct env *e, int err);
#endif
