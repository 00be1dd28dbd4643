/* SPDX-License-Identifier: Apache-2.0
 * virtual.h: does this run need the virtual NIC?  Then putscope starts itself under it.
 */
#ifndef PUTSCOPE_VIRTUAL_H
#define PUTSCOPE_VIRTUAL_H
#include <stdbool.h>

/* nic: the option's value.  1: this process must start itself under vcx; 0: go on as it is; -ENODEV: no such device. */
int virtual_needed(const char *nic);
#define VIRTUAL_OPTS_MAX 64
/* Run argv again under vcx with these KEY=VALUE options (at most VIRTUAL_OPTS_MAX); the exit status of that run. */
int virtual_start(char **argv, const char **vcx_opts, int n);
/* Was this process started by virtual_start (and not by `vcx` from outside)? */
bool virtual_started_here(void);
/* Is KEY=VALUE an option of vcx?  0 or -EINVAL. */
int virtual_check(const char *opt);
#endif
