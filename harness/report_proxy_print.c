/* SPDX-License-Identifier: Apache-2.0
 * report_proxy_print.c: tables of the proxy: hops of several cases side by side, rates, enqueue, hand-off.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report_proxy.h"

#define COLUMNS 4u /* cases side by side */
#define WIDTH 26
#define MEGA 1e-6
#define RESOLVABLE_STEPS 2.0

static const char *str(const json_t *c, const char *key)
{
	const char *s = json_string_value(json_object_get(c, key));

	return s ? s : "";
}

static double num(const json_t *c, const char *key)
{
	const json_t *v = json_object_get(c, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static const char *ns(double v, char *room, size_t size)
{
	snprintf(room, size, isfinite(v) ? "%.0f" : "-", v);
	return room;
}

/* ---- hops, a column a case ---- */
static void head_row(const json_t *closure, size_t from, size_t to)
{
	static const char *const keys[] = {"state", "ordering", "protocol"};

	for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) {
		bool any = false;

		for (size_t k = from; k < to; k++)
			any |= *str(json_array_get(closure, k), keys[i]) != 0;
		if (!any)
			continue;
		printf("  %-15s", i == 0 ? "state" : i == 1 ? "order" : "protocol");
		for (size_t k = from; k < to; k++)
			printf("%*s", WIDTH, str(json_array_get(closure, k), keys[i]));
		putchar('\n');
	}
	printf("  %-15s", "bytes, payload");
	for (size_t k = from; k < to; k++) {
		const json_t *c = json_array_get(closure, k);
		char text[64];

		snprintf(text, sizeof text, "%.0f %s", num(c, "size_bytes"),
			 str(c, "inline"));
		printf("%*s", WIDTH, text);
	}
	putchar('\n');
}

static void hop_rows(const json_t *hops, size_t per, size_t from, size_t to)
{
	for (size_t h = 0; h < per; h++) {
		const json_t *first = json_array_get(hops, from * per + h);

		printf("  %-15s", str(first, "hop"));
		for (size_t k = from; k < to; k++) {
			const json_t *r = json_array_get(hops, k * per + h);
			char text[64];

			snprintf(text, sizeof text, "%.0f [%.0f, %.0f]%s",
				 num(r, "est_ns"), num(r, "lo_ns"), num(r, "hi_ns"),
				 strcmp(str(r, "how"), "bound") ? "" : "*");
			printf("%*s", WIDTH, text);
		}
		printf("  %s\n", str(first, "from_to"));
	}
}

static void whole_rows(const json_t *closure, size_t from, size_t to)
{
	static const struct {
		const char *words, *key, *more;
		double factor;
	} rows[] = {
		{"sum", "sum_ns", "medians added up", 1},
		{"put_completion", "measured_ns", "measured without the worker's stamps",
		 1},
		{"off by, %", "residual", "medians need not add up: each put's hops do",
		 100},
		{"stamped", "stamped_ns", "put_completion of the launches with stamps",
		 1},
		{"p99", "p99_ns", "of put_completion", 1},
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		printf("  %-15s", rows[i].words);
		for (size_t k = from; k < to; k++) {
			char text[32];
			double v = num(json_array_get(closure, k), rows[i].key);

			printf("%*s", WIDTH, ns(rows[i].factor * v, text, sizeof text));
		}
		printf("  %s\n", rows[i].more);
	}
}

static void state_rows(const json_t *states, const json_t *closure, size_t from,
		       size_t to)
{
	static const char *const keys[] = {"core_mhz", "cpu_mhz", "governor"};
	static const char *const words[] = {
		"worker's core clock, MHz: a chain of instructions timed as it woke",
		"cpufreq's reading, MHz", "cpufreq's governor"};

	for (unsigned i = 0; i < 3 && json_array_size(states); i++) {
		printf("  %-15s", keys[i]);
		for (size_t k = from; k < to; k++) {
			const char *id = str(json_array_get(closure, k), "case");
			char text[64] = "-";
			size_t m;
			json_t *s;

			json_array_foreach(states, m, s)
			{
				if (strcmp(str(s, "case"), id))
					continue;
				if (*str(s, keys[i]))
					snprintf(text, sizeof text, "%s",
						 str(s, keys[i]));
				else
					ns(num(s, keys[i]), text, sizeof text);
			}
			printf("%*s", WIDTH, text);
		}
		printf("  %s\n", words[i]);
	}
}

static void print_hops(const json_t *proxy)
{
	const json_t *hops = json_object_get(proxy, "hops"),
		     *closure = json_object_get(proxy, "closure"),
		     *states = json_object_get(proxy, "states");
	const size_t n = json_array_size(closure);
	const size_t per = n ? json_array_size(hops) / n : 0;
	bool bound = false;
	size_t k;
	json_t *c;

	if (!n)
		return;
	printf("Hops of the proxy, ns: p50 [95 %% interval]%s\n",
	       *str(json_array_get(hops, 0), "nature") &&
			       strcmp(str(json_array_get(hops, 0), "nature"), "virtual")
		       ? ""
		       : ", virtual");
	for (size_t from = 0; from < n; from += COLUMNS) {
		const size_t to = from + COLUMNS < n ? from + COLUMNS : n;

		head_row(closure, from, to);
		state_rows(states, closure, from, to);
		hop_rows(hops, per, from, to);
		whole_rows(closure, from, to);
		putchar('\n');
	}
	json_array_foreach(hops, k, c) bound |= !strcmp(str(c, "how"), "bound");
	if (bound)
		puts("  * between two clocks: its interval is widened by what they may be apart (bound_ns)\n");
}

/* ---- cold beside warm ---- */
static const json_t *state_of(const json_t *states, const char *state, const char *metric)
{
	size_t k;
	json_t *s;

	json_array_foreach(states, k, s)
	{
		if (!strcmp(str(s, "state"), state) && !strcmp(str(s, "metric"), metric))
			return s;
	}
	return NULL;
}

static void print_states(const json_t *states)
{
	static const char *const metrics[] = {"put_completion", "rtt"};

	if (!json_array_size(states))
		return;
	printf("The proxy cold and warm, ns\n  %-16s %26s %10s %26s %10s %12s\n",
	       "metric", "cold p50", "p99", "warm p50", "p99", "cold / warm");
	for (unsigned m = 0; m < sizeof metrics / sizeof *metrics; m++) {
		const json_t *s[] = {state_of(states, "cold", metrics[m]),
				     state_of(states, "warm", metrics[m])};

		if (!s[0] || !s[1])
			continue;
		printf("  %-16s", metrics[m]);
		for (unsigned i = 0; i < 2; i++) {
			char text[64], p99[32];

			snprintf(text, sizeof text, "%.0f [%.0f, %.0f]",
				 num(s[i], "est_ns"), num(s[i], "lo_ns"),
				 num(s[i], "hi_ns"));
			printf(" %26s %10s", text,
			       ns(num(s[i], "p99_ns"), p99, sizeof p99));
		}
		printf(" %12.2f\n", num(s[0], "est_ns") / num(s[1], "est_ns"));
	}
	for (unsigned i = 0; i < 2; i++)
		printf("  %s: %s\n", i ? "warm" : "cold",
		       str(state_of(states, i ? "warm" : "cold", metrics[0]), "note"));
	putchar('\n');
}

/* ---- rates ---- */
static void print_times(const json_t *t)
{
	char text[48] = "-";

	if (json_is_object(t))
		snprintf(text, sizeof text, "%.2f [%.2f, %.2f]", num(t, "ratio"),
			 num(t, "lo"), num(t, "hi"));
	printf(" %20s", text);
}

static void print_rates(const json_t *rates)
{
	size_t k;
	json_t *r;

	if (!json_array_size(rates))
		return;
	printf("Message rate of the proxy, 8 B, window of %.0f messages; workers T, rings R, at most B work requests a post\n"
	       "  protocol    T   R   B %12s  %-18s %20s %20s %5s  what the workers did\n",
	       num(json_array_get(rates, 0), "window"), "Mmsg/s", "95 % interval",
	       "x that of B = 1", "x that of T = 1", "n");
	json_array_foreach(rates, k, r)
	{
		char interval[48];

		snprintf(interval, sizeof interval, "[%.3f, %.3f]",
			 MEGA * num(r, "lo_per_s"), MEGA * num(r, "hi_per_s"));
		printf("  %-9s %3.0f %3.0f %3.0f %12.3f  %-18s", str(r, "protocol"),
		       num(r, "workers"), num(r, "rings"), num(r, "batch"),
		       MEGA * num(r, "rate_msgs_per_s"), interval);
		print_times(json_object_get(r, "over_batch_1"));
		print_times(json_object_get(r, "over_worker_1"));
		printf(" %5.0f  %s; %s%s\n", num(r, "n"), str(r, "note"),
		       str(r, "nature"),
		       json_is_true(json_object_get(r, "oversubscribed"))
			       ? ", oversubscribed"
			       : "");
	}
	putchar('\n');
}

/* ---- enqueue, hand-off ---- */
static const json_t *first_of(const json_t *rows, const char *protocol, const char *order)
{
	size_t k;
	json_t *r;

	json_array_foreach(rows, k, r)
	{
		if (!strcmp(str(r, "protocol"), protocol) &&
		    !strcmp(str(r, "ordering"), order) && !*str(r, "state"))
			return r;
	}
	return NULL;
}

/* The absolutes stand beside the ratio; below a step of the clock there is none. */
static void print_enqueue(const json_t *enqueue)
{
	const json_t *base = first_of(enqueue, "baseline", "sys-release"),
		     *tuned = first_of(enqueue, "tuned", "settled");
	double a = num(base, "est_ns"), b = num(tuned, "est_ns"),
	       step = num(tuned, "step_ns");

	if (!base || !tuned)
		return;
	printf("Enqueue: baseline %.0f ns [%.0f, %.0f], tuned %.0f ns [%.0f, %.0f]: ", a,
	       num(base, "lo_ns"), num(base, "hi_ns"), b, num(tuned, "lo_ns"),
	       num(tuned, "hi_ns"));
	if (b > RESOLVABLE_STEPS * step)
		printf("%.1f times\n\n", a / b);
	else
		printf("at least %.1f times (tuned is below what the clock can tell, step %.0f ns)\n\n",
		       a / num(tuned, "hi_ns"), step);
}

static void print_handoff(const json_t *handoff)
{
	size_t k;
	json_t *r;

	json_array_foreach(handoff, k, r)
	{
		printf("Hand-off SM -> worker -> SM without a NIC, %s: %.0f ns [%.0f, %.0f], p99 %.0f",
		       str(r, "protocol"), num(r, "est_ns"), num(r, "lo_ns"),
		       num(r, "hi_ns"), num(r, "p99_ns"));
		if (isfinite(num(r, "floor_ns")))
			printf("; floor %.0f (one read of host memory %.0f, load/host, + one posted write %.0f, posted-write, "
			       "its flight not seen): %.2f times",
			       num(r, "floor_ns"), num(r, "read_ns"), num(r, "write_ns"),
			       num(r, "over_floor"));
		else
			printf("; no floor: load and posted-write were not run beside it");
		if (isfinite(num(r, "flag_rtt_ns")))
			printf("; %.2f times a bare flag's round trip (%.0f, gpu-cpu-flag)",
			       num(r, "over_flag_rtt"), num(r, "flag_rtt_ns"));
		puts(json_is_true(json_object_get(r, "oversubscribed"))
			     ? "; oversubscribed"
			     : "");
	}
	if (json_array_size(handoff))
		putchar('\n');
}

void report_proxy_print(const json_t *proxy)
{
	print_hops(proxy);
	print_states(json_object_get(proxy, "states"));
	print_rates(json_object_get(proxy, "rates"));
	print_enqueue(json_object_get(proxy, "enqueue"));
	print_handoff(json_object_get(proxy, "handoff"));
}
