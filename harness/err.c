/* SPDX-License-Identifier: Apache-2.0
 * err.c: the sentence of the last failure, per thread.
 */
#include <stdarg.h>
#include <stdio.h>

#include "err.h"

static __thread char sentence[512];

int err_say(int err, const char *fmt, ...)
{
	char fresh[sizeof sentence]; /* an argument may be err_last() itself */
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fresh, sizeof fresh, fmt, ap);
	va_end(ap);
	memcpy(sentence, fresh, sizeof sentence);
	return err;
}

const char *err_last(void)
{
	return sentence;
}
