/* SPDX-License-Identifier: Apache-2.0
 * report.c: `putscope report`: the tables of a result folder, made anew from its samples.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "err.h"
#include "load.h"
#include "path/hop_virtual.h"
#include "report_hops.h"
#include "report_json.h"
#include "report_proxy.h"
#include "solve.h"

#define USAGE "usage: putscope report DIR [--json] [--methods]"

#define RESOLVABLE_STEPS 2.0
#define BUSY_LOAD 0.5 /* of the CPUs, before the run began: others use them */

static const char *str(const json_t *c, const char *key)
{
	const char *s = json_string_value(json_object_get(c, key));

	return s ? s : "";
}

/* Its samples are the waterfall's. */
static bool is_hop_case(const json_t *c)
{
	return *str(c, "opcode") != 0;
}

/* What stands in the column of orders: a kernel's end orders a host's put, which has a method instead. */
static const char *order_words(const json_t *c)
{
	return *str(c, "ordering") ? str(c, "ordering") : str(c, "method");
}

static void print_ns(double v, int width)
{
	if (isnan(v))
		printf("%*s", width, "-");
	else
		printf("%*.0f", width, v);
}

static bool is_baseline(const char *metric)
{
	return !strcmp(metric, "timer");
}

static void print_series(const json_t *c, const struct load_series *s)
{
	char interval[48];

	snprintf(interval, sizeof interval, "[%.0f, %.0f]", s->stats.p50_lo,
		 s->stats.p50_hi);
	printf("  %-10s %9llu  %-16s %-8s %-22s ", str(c, "path"),
	       (unsigned long long)s->size_bytes, order_words(c), str(c, "inline"),
	       s->metric);
	print_ns(s->stats.p50, 9);
	printf(" %-18s", interval);
	print_ns(s->stats.p99, 9);
	print_ns(s->stats.max, 10);
	printf(" %7zu  %s%s", s->n, str(c, "nature"),
	       json_is_true(json_object_get(c, "oversubscribed")) ? ", oversubscribed"
								  : "");
	if (*str(c, "state"))
		printf(", %s", str(c, "state"));
	if (!strcmp(str(c, "path"), "none"))
		printf(", bound: %s", str(c, "id"));
	if (s->stats.p50 <
	    RESOLVABLE_STEPS * json_number_value(json_object_get(c, "step_ns")))
		printf(", below what the clock can tell (step %.1f ns)",
		       json_number_value(json_object_get(c, "step_ns")));
	if (json_integer_value(json_object_get(c, "rerings")))
		printf(", %lld rung again after 50 us without a completion",
		       (long long)json_integer_value(json_object_get(c, "rerings")));
	if (json_integer_value(json_object_get(c, "violations")))
		printf(", %lld torn work requests",
		       (long long)json_integer_value(json_object_get(c, "violations")));
	if (json_integer_value(json_object_get(c, "payload_errors")))
		printf(", %lld payload errors",
		       (long long)json_integer_value(
			       json_object_get(c, "payload_errors")));
	putchar('\n');
}

static void print_latencies(const struct load *l)
{
	size_t k;
	json_t *c;

	printf("  %-10s %9s  %-16s %-8s %-22s %9s %-18s%9s%10s %7s  %s\n", "path",
	       "bytes", "ordering", "payload", "metric", "p50 ns", " 95 % interval",
	       "p99", "max", "n", "nature");
	json_array_foreach(json_object_get(l->run, "cases"), k, c)
	{
		const char *status = str(c, "status");

		for (size_t i = 0; i < l->n && !is_hop_case(c); i++)
			if (!strcmp(l->v[i].case_id, str(c, "id")) && l->v[i].n &&
			    !report_is_component(c, l->v[i].metric) &&
			    !is_baseline(l->v[i].metric) &&
			    !report_proxy_own(c, l->v[i].metric))
				print_series(c, &l->v[i]);
		if (strcmp(status, "ok"))
			printf("  %-10s %9lld  %s: %s (%s)\n", str(c, "path"),
			       (long long)json_integer_value(
				       json_object_get(c, "size_bytes")),
			       status, str(c, "reason"), str(c, "id"));
	}
}

/* ---- the paths side by side, under equal semantics ---- */
static const char *const paths[] = {"gpu", "gpu-cpu-db", "proxy", "host"};
#define PATHS (sizeof paths / sizeof *paths)

/* The series of this path, size, payload and metric whose order is a system-scope one (or needs none). */
static const struct load_series *find_equal(const struct load *l, const char *path,
					    json_int_t bytes, const char *inlined,
					    const char *metric)
{
	size_t k;
	json_t *c;

	json_array_foreach(json_object_get(l->run, "cases"), k, c)
	{
		const struct load_series *s;

		if (is_hop_case(c) || *str(c, "state") || strcmp(str(c, "path"), path) ||
		    json_integer_value(json_object_get(c, "size_bytes")) != bytes ||
		    strcmp(str(c, "inline"), inlined) ||
		    (*str(c, "method") && strcmp(str(c, "method"), "sync")) ||
		    (*str(c, "ordering") && strcmp(str(c, "ordering"), "sys-fence")))
			continue;
		s = load_find(l, str(c, "id"), metric);
		if (s && s->n)
			return s;
	}
	return NULL;
}

/* The three paths of every table; the fourth where it was asked for. */
static bool has_column(const struct load *l, const char *path)
{
	bool optional = !strcmp(path, "gpu-cpu-db");
	size_t k;
	json_t *c;

	json_array_foreach(json_object_get(l->run, "cases"), k, c)
	{
		if (!optional || !strcmp(str(c, "path"), path))
			return true;
	}
	return false;
}

static void print_equal_head(const struct load *l)
{
	printf("Paths side by side: p50 ns (p99), same payload, order at system scope\n  %9s  %-8s %-16s",
	       "bytes", "payload", "metric");
	for (unsigned p = 0; p < PATHS; p++)
		if (has_column(l, paths[p]))
			printf(" %22s", paths[p]);
	putchar('\n');
}

static void print_equal_row(const struct load *l, json_int_t bytes, const char *inlined,
			    const char *metric, bool *head)
{
	const struct load_series *s[PATHS];
	char text[64];
	unsigned found = 0;

	for (unsigned p = 0; p < PATHS; p++)
		found += (s[p] = find_equal(l, paths[p], bytes, inlined, metric)) != NULL;
	if (found < 2)
		return;
	if (!*head)
		print_equal_head(l);
	*head = true;
	printf("  %9lld  %-8s %-16s", (long long)bytes, inlined, metric);
	for (unsigned p = 0; p < PATHS; p++) {
		if (!has_column(l, paths[p]))
			continue;
		snprintf(text, sizeof text, "-");
		if (s[p] && isnan(s[p]->stats.p99))
			snprintf(text, sizeof text, "%.0f", s[p]->stats.p50);
		else if (s[p])
			snprintf(text, sizeof text, "%.0f (%.0f)", s[p]->stats.p50,
				 s[p]->stats.p99);
		printf(" %22s", text);
	}
	putchar('\n');
}

static void print_side_by_side(const struct load *l)
{
	static const char *const metrics[] = {"issue", "put_completion", "rtt"};
	const json_t *cases = json_object_get(l->run, "cases");
	bool head = false;
	size_t k, m;
	json_t *c, *d;

	json_array_foreach(cases, k, c)
	{
		json_int_t bytes = json_integer_value(json_object_get(c, "size_bytes"));
		bool seen = false;

		json_array_foreach(cases, m, d) seen |=
			m < k &&
			json_integer_value(json_object_get(d, "size_bytes")) == bytes &&
			!strcmp(str(d, "inline"), str(c, "inline"));
		for (unsigned i = 0; !seen && i < sizeof metrics / sizeof *metrics; i++)
			print_equal_row(l, bytes, str(c, "inline"), metrics[i], &head);
	}
	if (head)
		putchar('\n');
}

static void print_components(const struct load *l)
{
	bool head = false;
	size_t k;
	json_t *c;

	json_array_foreach(json_object_get(l->run, "cases"), k, c)
	{
		const struct load_series *wall = load_find(l, str(c, "id"), "wall");

		if (!wall || !wall->n || !report_is_component(c, wall->metric))
			continue;
		if (!head)
			puts("\nComponents of one put, ns: medians over batches (in each batch wall = kernel + exposed_comm + cpu_wait + unaccounted)\n"
			     "  path           bytes  payload       wall    kernel  exposed_comm  cpu_wait  unaccounted  ordering");
		head = true;
		printf("  %-10s %9llu  %-8s", str(c, "path"),
		       (unsigned long long)wall->size_bytes, str(c, "inline"));
		for (unsigned i = 0; i < COMPONENT_COUNT; i++) {
			static const int widths[] = {10, 10, 0, 14, 10, 13};
			const struct load_series *s =
				load_find(l, str(c, "id"), component_names[i]);

			if (widths[i])
				print_ns(s && s->n ? s->stats.p50 : NAN, widths[i]);
		}
		printf("  %s\n", order_words(c));
	}
}

/* What shows that no CPU rang for the GPU, beside anybody's bookkeeping. */
static void print_guard(const json_t *guard)
{
	const char *state = json_string_value(json_object_get(guard, "state"));
	const long long launches = json_integer_value(json_object_get(guard, "launches"));

	if (state && !strcmp(state, "holds"))
		printf("Proof: in %lld launches that the GPU submitted, the CPU's own mapping of the doorbell pages was "
		       "inaccessible; the CPU touched them %lld times\n",
		       launches,
		       (long long)json_integer_value(
			       json_object_get(guard, "cpu_touches")));
	else if (state && !strcmp(state, "breaks"))
		printf("No proof beside the counts: this driver's GPU mapping of the doorbell page does not survive that the "
		       "CPU's is taken away\n");
}

/* Who submitted, by the posters' own counts, and what a virtual NIC saw of it. */
static void print_evidence(const struct load *l)
{
	const json_t *e = json_object_get(l->run, "evidence");
	json_t *nic = json_object_get(e, "virtual_nic"), *v;
	const char *kind, *sep = "";

	if (!json_is_object(e))
		return;
	printf("\nEvidence: the SM rang %lld doorbells, the CPU forwarded %lld, the CPU posted %lld puts, %lld doorbells were rung again, %lld puts "
	       "arrived wrong",
	       (long long)json_integer_value(json_object_get(e, "doorbells_by_sm")),
	       (long long)json_integer_value(json_object_get(e, "doorbells_by_cpu")),
	       (long long)json_integer_value(json_object_get(e, "posts_by_cpu")),
	       (long long)json_integer_value(json_object_get(e, "rerings")),
	       (long long)json_integer_value(json_object_get(e, "payload_errors")));
	if (json_is_object(nic)) {
		printf("; the virtual NIC executed %lld work requests; violations: ",
		       (long long)json_integer_value(json_object_get(nic, "wqes")));
		json_object_foreach(json_object_get(nic, "violations"), kind, v)
		{
			if (!json_integer_value(v))
				continue;
			printf("%s%s %lld", sep, kind, (long long)json_integer_value(v));
			sep = ", ";
		}
		printf("%s", *sep ? "" : "none");
	}
	putchar('\n');
	print_guard(json_object_get(e, "uar_guard"));
}

static void print_dirty(const char *rank, const json_t *evidence)
{
	size_t i;
	json_t *line;

	json_array_foreach(json_object_get(evidence, "dirty"), i, line)
		printf("DIRTY: rank %s, %s\n", rank, json_string_value(line));
}

static void print_head(const struct load *l, const char *dir)
{
	const json_t *rank = json_array_get(json_object_get(l->run, "ranks"), 0);
	const json_t *sm =
		json_object_get(rank, "sm"); /* none was opened: no such facts */
	const json_t *peer = json_array_get(json_object_get(l->run, "ranks"), 1);

	printf("putscope %s  %s  seed %lld  %s\n", str(l->run, "putscope"),
	       str(l->run, "start"),
	       (long long)json_integer_value(json_object_get(l->run, "seed")), dir);
	printf("host %s, %s, %lld CPUs", str(rank, "host"), str(rank, "cpu"),
	       (long long)json_array_size(json_object_get(rank, "cpus_allowed")));
	if (sm)
		printf("; SM: %s%s%s; NIC: %s", str(sm, "kind"),
		       *str(sm, "name") ? " " : "", str(sm, "name"), nic_words(rank));
	putchar('\n');
	if (peer)
		printf("puts go to host %s, %s; NIC: %s\n", str(peer, "host"),
		       str(peer, "cpu"), nic_words(peer));
	if (json_number_value(json_object_get(rank, "load_1min")) >
	    BUSY_LOAD * (double)json_array_size(json_object_get(rank, "cpus_allowed")))
		printf("WARNING: the machine was busy when this run began (load %.1f): tails are the scheduler's\n",
		       json_number_value(json_object_get(rank, "load_1min")));
	print_dirty("0", json_object_get(l->run, "evidence"));
	print_dirty("1", json_object_get(json_object_get(l->run, "evidence"), "peer"));
	if (!l->complete)
		printf("INCOMPLETE: %s%s\n", str(l->run, "why_incomplete"),
		       l->cut ? "; the last line of samples.csv was cut and left out"
			      : "");
	putchar('\n');
}

static void print_methods(const struct load *l)
{
	size_t k;
	json_t *c;

	puts("\nHow each number was made\n"
	     "  Samples are of single puts. p50: median (Hyndman-Fan 7) of all samples after warm-up, none cut. Interval: 95 %,\n"
	     "  bootstrap over batches (1000 resamples; 200 at least for over 100,000 samples in batches under 40) with the run's seed,\n"
	     "  never narrower than one timer step on each side. p99.9 only with ten samples beyond it. The cost of reading the\n"
	     "  clock has been subtracted from each sample; add it back for the raw window. Its own samples are the series 'timer'.");
	if (l->launches > 1)
		printf("  %u launches put together: the interval draws launches, then batches of each, and is widened by Student's t for so\n"
		       "  few; step and overhead below are the coarsest and the mean of them.\n",
		       l->launches);
	printf("  %-56s %10s %12s  %s\n", "case", "step ns", "overhead ns", "ends at");
	json_array_foreach(json_object_get(l->run, "cases"), k, c)
		printf("  %-56s %10.2f %12.2f  %s, %s\n", str(c, "id"),
		       json_number_value(json_object_get(c, "step_ns")),
		       json_number_value(json_object_get(c, "timer_overhead_ns")),
		       str(c, "completion"), str(c, "endpoints"));
}

/* A virtual NIC that was told how long its hops take must not be read as one that has been measured. */
static void print_pace(const struct load *l, const json_t *solved)
{
	const json_t *rank = json_array_get(json_object_get(l->run, "ranks"), 0);
	const json_t *nic = json_array_get(json_object_get(rank, "nics"), 0);
	const json_t *base =
		json_object_get(json_object_get(l->run, "options"), "vcx_base");

	if (json_array_size(json_object_get(solved, "hops")) &&
	    json_is_true(json_object_get(nic, "virtual")) && json_number_value(base) > 0)
		printf("The virtual NIC was told to take %.0f ns for each hop (%.0f for remote_write): what follows shows the method, not a ConnectX\n",
		       json_number_value(base),
		       HOP_VIRTUAL_REMOTE * json_number_value(base));
}

int report_print(const char *dir, bool json, bool methods)
{
	struct load *l;
	json_t *solved, *proxy;
	int err = load_open(&l, dir, LOAD_READER);

	if (err)
		return err;
	solved = json ? NULL : solve_hops(l);
	if (json) {
		json_t *j = report_json(l);

		json_dumpf(j, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
		putchar('\n');
		json_decref(j);
	} else {
		print_head(l, dir);
		print_pace(l, solved);
		report_hops_print(solved, methods);
		proxy = report_proxy(l);
		report_proxy_print(proxy);
		json_decref(proxy);
		print_side_by_side(l);
		print_latencies(l);
		print_components(l);
		print_evidence(l);
		if (methods)
			print_methods(l);
	}
	json_decref(solved);
	load_close(l);
	return 0;
}

int cmd_report(int argc, char **argv)
{
	bool json = false, methods = false;
	const char *dir = NULL;
	int rc = command_dir(argc, argv, USAGE, &dir, &json, &methods);

	if (rc)
		return rc - 1;
	rc = report_print(dir, json, methods);
	return rc ? command_fail(EXIT_USAGE) : EXIT_DONE;
}
