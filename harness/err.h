/* SPDX-License-Identifier: Apache-2.0
 * err.h: one way to fail.
 *
 * Functions return 0 or -errno and leave a sentence with err_say(): what failed, on what, why, what to
 * do next.  The sentence is per thread and stays until the next err_say().  Only main() exits.
 */
#ifndef PUTSCOPE_ERR_H
#define PUTSCOPE_ERR_H

#include <errno.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Exit status of every command. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,   /* a case or a check failed */
	EXIT_USAGE = 2,	   /* usage or config error, or a named device is absent */
	EXIT_REFUSED = 3,  /* a device that is there refused what was asked */
	EXIT_NOTHING = 77, /* nothing could run */
};

/* Store the sentence; returns `err` (a negative errno), so that `return err_say(-EINVAL, ..)` works. */
int err_say(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The last sentence of this thread, "" when none. */
const char *err_last(void);

/* Each runs CALL; on failure it stores a sentence, sets ERR to -errno and jumps to OUT. */
#define SYS_TRY(call, err, out)                                                  \
	do {                                                                     \
		if ((call) < 0) {                                                \
			err = err_say(-errno, "%s: %s", #call, strerror(errno)); \
			goto out;                                                \
		}                                                                \
	} while (0)
/* For calls that return NULL and set errno. */
#define PTR_TRY(ptr, err, out)                                                  \
	do {                                                                    \
		errno = 0;                                                      \
		if (!(ptr)) {                                                   \
			err = err_say(errno ? -errno : -ENOMEM, "%s: %s", #ptr, \
				      strerror(errno ? errno : ENOMEM));        \
			goto out;                                               \
		}                                                               \
	} while (0)
/* For verbs calls that return 0 or an errno (or -1 with errno set). */
#define IBV_TRY(call, err, out)                                              \
	do {                                                                 \
		int rc_ = (call);                                            \
		if (rc_) {                                                   \
			rc_ = rc_ > 0 ? rc_ : errno;                         \
			err = err_say(-rc_, "%s: %s", #call, strerror(rc_)); \
			goto out;                                            \
		}                                                            \
	} while (0)
/* For our own functions, which have said their sentence already. */
#define OUR_TRY(call, err, out)   \
	do {                      \
		err = (call);     \
		if (err)          \
			goto out; \
	} while (0)

#ifdef __cplusplus
}
#endif
#endif
