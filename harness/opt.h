/* SPDX-License-Identifier: Apache-2.0
 * opt.h: one table (opt.def) feeds the command line, .conf files, --help and run.json.
 *
 * Precedence: default < CONFIG file < command line (-k KEY=VALUE and the long options).  An unknown key, a bad
 * value, or a key that no chosen bench reads is an error that names the key and where it was given.
 */
#ifndef PUTSCOPE_OPT_H
#define PUTSCOPE_OPT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

enum opt_type {
	OPT_STR,
	OPT_INT,
	OPT_DBL,
	OPT_BOOL,
	OPT_CHOICE,
	OPT_CHOICES,
	OPT_SIZES,
	OPT_COUNTS
};

#define OPT_LIST_MAX 64
struct opt_sizes {
	uint64_t v[OPT_LIST_MAX];
	size_t n;
};

struct opts; /* opaque: values and where each was set */

struct opts *opts_new(void); /* all defaults; NULL when out of memory */
void opts_free(struct opts *o);
/* Set one key from text; `where` for messages ("configs/quick.conf:3", "-k").  0 or -EINVAL with err_say. */
int opts_set(struct opts *o, const char *key, const char *value, const char *where);
/* Read a .conf (inih).  A name without '/' and '.conf' is looked for in configs/.  -ENOENT, -EINVAL. */
int opts_load(struct opts *o, const char *config);

const char *opts_str(const struct opts *o, const char *key); /* STR and CHOICE */
int64_t opts_int(const struct opts *o, const char *key);
double opts_dbl(const struct opts *o, const char *key);
bool opts_bool(const struct opts *o, const char *key);
const struct opt_sizes *opts_sizes(const struct opts *o,
				   const char *key); /* SIZES, COUNTS */
bool opts_has(const struct opts *o, const char *key,
	      const char *choice); /* CHOICES: is it in the list? */
size_t opts_list(const struct opts *o, const char *key,
		 const char *out[OPT_LIST_MAX]); /* CHOICES, in order */
/* Every key set by the user must be read by a chosen bench (`uses`, space separated, of all of them) or by the
 * harness itself.  -EINVAL names the first that is not. */
int opts_check_used(const struct opts *o, const char *uses);
json_t *opts_json(const struct opts *o); /* {key: value} resolved, new reference */
void opts_help(void (*line)(const char *key, const char *type, const char *def,
			    const char *help));
/* "4K" "1MiB" "8": bytes; suffixes K M G and KiB MiB GiB (powers of two).  -EINVAL with err_say. */
int opts_parse_size(const char *s, uint64_t *out);

#ifdef __cplusplus
}
#endif
#endif
