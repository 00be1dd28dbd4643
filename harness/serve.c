/* SPDX-License-Identifier: Apache-2.0
 * serve.c: rank 0 asks, rank 1 answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine.h"
#include "err.h"
#include "facts.h"
#include "path/slots.h"
#include "serve.h"
#include "version.h"

#define MAGIC 0x70757432u /* "put2": moves with struct serve_msg */
#define TEXT_BYTES_MAX (4u << 20)
#define MEET_S \
	60.0 /* hello and meet: the other rank may still be starting, or opening its GPU */
#define ANSWER_S 4.0  /* all else is short work for a rank that is alive */
#define NEXT_S 300.0  /* rank 1: until the next question, while rank 0 measures */
#define GRACE_0_S 0.5 /* once a signal has come: a launcher kills soon after it */
#define GRACE_1_S 5.0 /* rank 1 serves on, so that rank 0 can end its batch */

static const char stranger[] =
	"rank %d does not speak as this putscope does: start the same binary on both sides";

static int send_with(struct env *e, struct serve_msg *m, const json_t *text)
{
	char *s = text ? json_dumps(text, JSON_COMPACT) : NULL;
	int err;

	if (text && !s)
		return err_say(-ENOMEM, "no memory for what the other rank is told");
	m->magic = MAGIC;
	m->text_bytes = s ? (uint32_t)strlen(s) : 0;
	OUR_TRY(ranks_send(&e->ranks, m, sizeof *m), err, out);
	if (s)
		OUR_TRY(ranks_send(&e->ranks, s, m->text_bytes), err, out);
out:
	free(s);
	return err;
}

static int recv_with(struct env *e, struct serve_msg *m, json_t **text, double deadline_s)
{
	const double grace_s = e->ranks.rank ? GRACE_1_S : GRACE_0_S;
	char *s = NULL;
	int err;

	*text = NULL;
	OUR_TRY(ranks_recv(&e->ranks, m, sizeof *m, deadline_s, grace_s), err, out);
	if (m->magic != MAGIC || m->text_bytes > TEXT_BYTES_MAX)
		return err_say(-EPROTO, stranger, !e->ranks.rank);
	if (!m->text_bytes)
		return 0;
	PTR_TRY(s = malloc(m->text_bytes), err, out);
	OUR_TRY(ranks_recv(&e->ranks, s, m->text_bytes, deadline_s, grace_s), err, out);
	*text = json_loadb(s, m->text_bytes, 0, NULL);
	if (!*text)
		err = err_say(-EPROTO, stranger, !e->ranks.rank);
out:
	free(s);
	return err;
}

/* The sentence in hand, with the other rank's host, ends the run; what ends anyway is not disturbed. */
static void lose_peer(struct env *e, const struct serve_msg *asked)
{
	const char *host = *e->peer.host ? e->peer.host : "host unknown";

	if (asked->what == SERVE_END || *e->peer.why_lost)
		return;
	snprintf(e->peer.why_lost, sizeof e->peer.why_lost, "lost rank 1 (%s): %.160s",
		 host, err_last());
	err_say(-EPIPE, "%s", e->peer.why_lost);
	run_stop = 1;
}

static int ask_with(struct env *e, struct serve_msg *m, const json_t *say, json_t **text)
{
	const struct serve_msg asked = *m;
	json_t *got = NULL;
	double deadline_s = m->what <= SERVE_MEET ? MEET_S : ANSWER_S;
	int err = send_with(e, m, say);

	if (!err)
		err = recv_with(e, m, &got, deadline_s);
	if (err && e->ranks.lost)
		lose_peer(e, &asked);
	if (!err && m->what != asked.what)
		err = err_say(-EPROTO, stranger, !e->ranks.rank);
	if (!err) {
		m->host[sizeof m->host - 1] = m->why[sizeof m->why - 1] = 0;
		snprintf(e->peer.host, sizeof e->peer.host, "%s", m->host);
		e->peer.ended |= m->gone != 0;
		if (m->err)
			err = err_say(m->err, "rank 1 (%s): %s", m->host, m->why);
	}
	if (text && !err)
		*text = got;
	else
		json_decref(got);
	return err;
}

int serve_ask(struct env *e, struct serve_msg *m, json_t **text)
{
	return ask_with(e, m, NULL, text);
}

static int reply(struct env *e, struct serve_msg *m, int err, const json_t *text)
{
	m->err = err;
	snprintf(m->why, sizeof m->why, "%s", err ? err_last() : "");
	gethostname(m->host, sizeof m->host - 1);
	return send_with(e, m, err ? NULL : text);
}

/* What must be the same on both sides; devices may be named differently, and only rank 0 writes. */
static json_t *greeting(const struct env *e)
{
	static const char *const own[] = {"nic", "gpu", "out"};
	json_t *options = opts_json(e->opts);

	for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
		json_object_del(options, own[i]);
	return json_pack("{s:s, s:o}", "version", PUTSCOPE_VERSION, "options", options);
}

static int compare(const json_t *theirs, const json_t *ours)
{
	const char *version = json_string_value(json_object_get(theirs, "version")), *key;
	json_t *options = json_object_get(ours, "options"), *v;

	if (!version || strcmp(version, PUTSCOPE_VERSION))
		return err_say(
			-EINVAL,
			"rank 0 runs putscope %s and rank 1 %s: start the same build on both sides",
			version ? version : "?", PUTSCOPE_VERSION);
	json_object_foreach(options, key, v)
	{
		const json_t *w =
			json_object_get(json_object_get(theirs, "options"), key);
		char *a, *b;

		if (json_equal(v, w))
			continue;
		a = json_dumps(w, JSON_ENCODE_ANY | JSON_COMPACT);
		b = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
		err_say(-EINVAL,
			"option %s is %.60s at rank 0 and %.60s at rank 1: give both ranks the same "
			"options (nic, gpu and out may differ)",
			key, a ? a : "absent", b ? b : "absent");
		free(a);
		free(b);
		return -EINVAL;
	}
	return 0;
}

static int answer_hello(struct env *e, const json_t *ours)
{
	struct serve_msg m;
	json_t *theirs;
	int err = recv_with(e, &m, &theirs, MEET_S), differ;

	if (err)
		return err;
	differ = m.what == SERVE_HELLO ? compare(theirs, ours)
				       : err_say(-EPROTO, stranger, !e->ranks.rank);
	m.gone = differ != 0;
	json_decref(theirs);
	err = reply(e, &m, differ, NULL);
	return differ ? differ : err;
}

int serve_hello(struct env *e)
{
	struct serve_msg m = {.what = SERVE_HELLO};
	json_t *ours;
	int err;

	if (e->ranks.count == 1)
		return 0;
	ours = greeting(e);
	err = e->ranks.rank ? answer_hello(e, ours) : ask_with(e, &m, ours, NULL);
	e->peer.joined = !err;
	json_decref(ours);
	return err;
}

static int answer_pair(struct env *e, struct serve_msg *m)
{
	struct nic_qp **own = m->by_sm ? e->sm_qp : e->cpu_qp;
	struct nic_addr peer = m->addr;
	int err;

	nic_qp_close(own[END_B]);
	own[END_B] = NULL;
	/* Rank 1's queue pair only receives: no SM drives it. */
	OUR_TRY(nic_qp_open(&own[END_B], e->end[END_B].nic, NULL, QUEUE_DEPTH, 0), err,
		out);
	OUR_TRY(nic_qp_connect(own[END_B], &peer), err, out);
	nic_qp_addr(own[END_B], &m->addr);
out:
	return err;
}

static int answer(struct env *e, struct serve_msg *m, json_t **text)
{
	const struct slots s = {m->seq0, m->bytes, m->stride, m->ops, m->inl};

	switch (m->what) {
	case SERVE_MEET:
		m->dst_addr = e->end[END_B].dst_addr;
		m->dst_rkey = e->end[END_B].dst_rkey;
		*text = facts_rank(e->ranks.rank, e);
		return 0;
	case SERVE_PAIR:
		return answer_pair(e, m);
	case SERVE_POISON:
	case SERVE_CHECK:
		if ((uint64_t)s.stride * s.ops > DATA_BYTES || s.bytes > s.stride)
			return err_say(
				-EINVAL,
				"asked for %u slots of %u B: more than this side has",
				s.ops, s.stride);
		return m->what == SERVE_POISON ? slots_poison(e, END_B, &s)
					       : slots_bad(e, END_B, &s, &m->bad);
	case SERVE_END:
		*text = env_evidence(e);
		m->gone = 1;
		return 0;
	}
	return err_say(-EPROTO, "unknown request %u", m->what);
}

int serve_loop(struct env *e)
{
	struct serve_msg m;
	int err;

	sm_spinners(0, e->virtual_nic, false); /* this rank sleeps between requests */
	do {
		json_t *asked, *text = NULL;

		OUR_TRY(recv_with(e, &m, &asked, NEXT_S), err, out);
		json_decref(asked);
		err = answer(e, &m, &text);
		err = reply(e, &m, err, text);
		json_decref(text);
	} while (!err && m.what != SERVE_END);
out:
	return err;
}

void serve_refuse(struct env *e, int err)
{
	char why[256];
	struct serve_msg m;
	json_t *asked;

	if (!e->ranks.rank || !e->peer.joined)
		return;
	snprintf(why, sizeof why, "%s", err_last());
	if (!recv_with(e, &m, &asked, MEET_S)) {
		json_decref(asked);
		err_say(err, "%s", why);
		m.gone = 1;
		reply(e, &m, m.what == SERVE_END ? 0 : err, NULL);
	}
	err_say(err, "%s", why);
}
