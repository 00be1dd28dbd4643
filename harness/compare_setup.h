/* SPDX-License-Identifier: Apache-2.0
 * compare_setup.h: what a run was made with: version, options, machine, devices.
 */
#ifndef PUTSCOPE_COMPARE_SETUP_H
#define PUTSCOPE_COMPARE_SETUP_H
#include <jansson.h>

/* A line "options.ops 20 / 50" for each thing that differs between two run.json; new reference.  Left out: what differs from
 * launch to launch anyway (folder, seed, time, pid, load, cores, clock fits). */
json_t *setup_differ(const json_t *run_a, const json_t *run_b);
#endif
