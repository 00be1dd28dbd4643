/* SPDX-License-Identifier: Apache-2.0
 * test_opt.c: every type of option, and what a bad one is told.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "opt.h"

static void says(const char *words)
{
	if (!strstr(err_last(), words))
		fail_msg("'%s' is not in: %s", words, err_last());
}

static void sizes(void **state)
{
	const struct {
		const char *text;
		uint64_t bytes;
	} good[] = { { "1", 1 },	      { "8B", 8 },	 { "4K", 4096 },	  { "4k", 4096 },
		     { "64KiB", 65536 }, { "1M", 1 << 20 }, { "4MiB", 4 << 20 }, { "2G", 2ull << 30 } };
	static const char *const bad[] = { "", "0", "0K", "x", "-1", "8 B", "4KB", "1T", "18446744073709551616",
					   "17179869184G" };
	uint64_t v;

	(void)state;
	for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(opts_parse_size(good[i].text, &v), 0);
		assert_true(v == good[i].bytes);
	}
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(opts_parse_size(bad[i], &v), -EINVAL);
}

static void values(void **state)
{
	struct opts *o = opts_new();
	const char *list[OPT_LIST_MAX];

	(void)state;
	assert_non_null(o);
	assert_int_equal(opts_set(o, "sizes", "1, 7,4K", "-k"), 0);
	assert_int_equal(opts_sizes(o, "sizes")->n, 3);
	assert_true(opts_sizes(o, "sizes")->v[2] == 4096);
	assert_int_equal(opts_set(o, "paths", "host,gpu", "-k"), 0);
	assert_int_equal(opts_list(o, "paths", list), 2);
	assert_string_equal(list[0], "host");
	assert_true(opts_has(o, "paths", "gpu"));
	assert_false(opts_has(o, "paths", "proxy"));
	assert_int_equal(opts_set(o, "pin", "no", "-k"), 0);
	assert_false(opts_bool(o, "pin"));
	assert_int_equal(opts_set(o, "time", "2.5", "-k"), 0);
	assert_true(opts_dbl(o, "time") == 2.5);
	assert_int_equal(opts_set(o, "ops", "12", "-k"), 0);
	assert_int_equal(opts_int(o, "ops"), 12);
	opts_free(o);
}

static void bad_values(void **state)
{
	static const char *const bad[][2] = {
		{ "ops", "many" },    { "ops", "1.5" },	     { "ops", "-1" },	  { "time", "soon" },
		{ "time", "nan" },    { "time", "-1" },	     { "pin", "maybe" },  { "endpoints", "moon" },
		{ "paths", "gpu,x" }, { "paths", "gpu,gpu" }, { "paths", "" },	   { "sizes", "8,0" },
		{ "sizes", "" },      { "ops", "99999999999999999999" },
	};
	struct opts *o = opts_new();

	(void)state;
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(opts_set(o, bad[i][0], bad[i][1], "here:3"), -EINVAL);
		says(bad[i][0]);
		says("here:3");
	}
	assert_int_equal(opts_int(o, "ops"), 100); /* a bad value leaves the old one */
	assert_int_equal(opts_set(o, "sizse", "8", "-k"), -EINVAL);
	says("sizse");
	opts_free(o);
}

static int load_text(struct opts *o, const char *text)
{
	char path[] = "/tmp/putscope-test-XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	rc = opts_load(o, path);
	unlink(path);
	return rc;
}

static void files(void **state)
{
	struct opts *o = opts_new();

	(void)state;
	assert_int_equal(load_text(o, "# a comment\n[run]\nops = 7\n\nsizes = 1K, 2K\n"), 0);
	assert_int_equal(opts_int(o, "ops"), 7);
	assert_int_equal(load_text(o, "ops = 7\n\nbogus = 1\n"), -EINVAL);
	says(":3:");
	says("bogus");
	assert_int_equal(load_text(o, "ops = 7\nnonsense\n"), -EINVAL);
	says(":2:");
	assert_int_equal(opts_load(o, "no-such-config"), -ENOENT);
	says("no-such-config");
	opts_free(o);
}

static void unused(void **state)
{
	struct opts *o = opts_new();

	(void)state;
	assert_int_equal(opts_check_used(o, ""), 0); /* defaults need no reader */
	opts_set(o, "seed", "3", "-k");
	assert_int_equal(opts_check_used(o, ""), 0); /* the harness reads it */
	opts_set(o, "ops", "3", "quick.conf:9");
	assert_int_equal(opts_check_used(o, "paths sizes"), -EINVAL);
	says("ops");
	says("quick.conf:9");
	assert_int_equal(opts_check_used(o, "paths ops sizes"), 0);
	opts_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes), cmocka_unit_test(values), cmocka_unit_test(bad_values),
		cmocka_unit_test(files), cmocka_unit_test(unused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
