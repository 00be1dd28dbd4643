/* SPDX-License-Identifier: Apache-2.0
 * counters.c: port counters from sysfs.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "rig.h"

/* Names: Documentation/ABI/stable/sysfs-class-infiniband; drivers/infiniband/hw/mlx5/counters.c;
 * drivers/infiniband/sw/rxe/rxe_hw_counters.c. */
static const struct {
	const char *name, *means;
} losses[] = {
	{"completer_retry_err", "requests sent again"},		      /* rxe */
	{"duplicate_request", "requests that came twice"},	      /* rxe, mlx5 */
	{"out_of_seq_request", "requests with a gap before them"},    /* rxe */
	{"rcvd_seq_err", "NAKs for a gap"},			      /* rxe */
	{"retry_exceeded_err", "requests given up"},		      /* rxe */
	{"retry_rnr_exceeded_err", "requests given up, not ready"},   /* rxe */
	{"out_of_sequence", "requests with a gap before them"},	      /* mlx5 */
	{"packet_seq_err", "NAKs for a gap"},			      /* mlx5 */
	{"local_ack_timeout_err", "acknowledgements that were late"}, /* mlx5 */
	{"rnr_nak_retry_err", "receivers that were not ready"},	      /* mlx5 */
	{"roce_adp_retrans", "adaptive retransmissions"},	      /* mlx5 */
	{"roce_adp_retrans_to", "adaptive retransmission timeouts"},  /* mlx5 */
	{"symbol_error", "symbol errors"},
	{"link_error_recovery", "link recoveries"},
	{"link_downed", "link failures"},
	{"port_rcv_errors", "packets that came in damaged"},
	{"port_xmit_discards", "packets thrown away before the wire"},
};

static void read_folder(json_t *to, const char *device, int port, const char *folder)
{
	char path[640];
	struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof path, "/sys/class/infiniband/%.63s/ports/%d/%s", device,
		 port, folder);
	d = opendir(path);
	while (d && (entry = readdir(d))) {
		char file[1024], line[64], *end;
		long long v;
		FILE *f;

		snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
		f = entry->d_name[0] == '.' ? NULL : fopen(file, "r");
		if (!f)
			continue;
		errno = 0;
		if (fgets(line, sizeof line, f)) {
			v = strtoll(line, &end, 10);
			if (!errno && end != line && (!*end || *end == '\n'))
				json_object_set_new(to, entry->d_name, json_integer(v));
		}
		fclose(f);
	}
	if (d)
		closedir(d);
}

json_t *counters_read(const struct env *e)
{
	json_t *all = json_object();

	for (unsigned i = 0; all && i < e->nic_count; i++) {
		json_t *mine = json_object();

		read_folder(mine, e->nics[i]->name, e->nics[i]->port, "counters");
		read_folder(mine, e->nics[i]->name, e->nics[i]->port, "hw_counters");
		json_object_set_new(all, e->nics[i]->name, mine);
	}
	return all;
}

json_t *counters_grown(const json_t *before, const struct env *e)
{
	json_t *all = counters_read(e), *mine, *v;
	const char *device, *name;
	void *next;

	json_object_foreach(all, device, mine)
	{
		const json_t *old = json_object_get(before, device);

		json_object_foreach_safe(mine, next, name, v)
		{
			json_int_t grown = json_integer_value(v) -
					   json_integer_value(json_object_get(old, name));

			if (grown)
				json_object_set_new(mine, name, json_integer(grown));
			else
				json_object_del(mine, name);
		}
	}
	return all;
}

json_t *counters_dirty(const json_t *grown)
{
	json_t *out = json_array(), *mine;
	const char *device;

	json_object_foreach((json_t *)grown, device, mine)
	{
		for (unsigned i = 0; i < sizeof losses / sizeof *losses; i++) {
			json_int_t n =
				json_integer_value(json_object_get(mine, losses[i].name));

			if (n > 0)
				json_array_append_new(
					out, json_sprintf("%s: %lld %s (%s)", device,
							  (long long)n, losses[i].means,
							  losses[i].name));
		}
	}
	return out;
}
