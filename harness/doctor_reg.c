/* SPDX-License-Identifier: Apache-2.0
 * doctor_reg.c: what can be told only by trying: register memory with the NIC, map its doorbell page to the GPU.
 */
#include <stdio.h>

#include "doctor.h"

int uar_trial(const struct doctor *d, char *why, size_t n)
{
	(void)d;
	snprintf(why, n, "not tried");
	return -1;
}
