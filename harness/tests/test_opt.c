/* SPDX-License-Identifier: Apache-2.0
 * test_opt.c: every type of option, good and bad; a refusal names the key and the place; what outranks what.
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

static int start(void **state)
{
	*state = opts_new();
	return *state ? 0 : -1;
}

static int end(void **state)
{
	opts_free(*state);
	return 0;
}

static void says(const char *word)
{
	if (!strstr(err_last(), word))
		fail_msg("'%s' does not say '%s'", err_last(), word);
}

static void good(struct opts *o, const char *key, const char *value)
{
	if (opts_set(o, key, value, "-k"))
		fail_msg("%s = '%s': %s", key, value, err_last());
}

/* Refused, with key, place and `word` in the sentence; the old value stays. */
static void bad(struct opts *o, const char *key, const char *value, const char *word)
{
	json_t *before = opts_json(o), *after;

	err_say(0, "nothing");
	if (opts_set(o, key, value, "here.conf:12") != -EINVAL)
		fail_msg("%s = '%s' was taken", key, value);
	says("here.conf:12");
	says(key);
	says(word);
	after = opts_json(o);
	assert_true(json_equal(before, after));
	json_decref(before);
	json_decref(after);
}

/* Reads text as a .conf; the result of opts_load.  The path is left in `path`. */
static char path[64];
static int load(struct opts *o, const char *text)
{
	int fd, err;

	snprintf(path, sizeof path, "%s", "/tmp/test_opt.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	err = opts_load(o, path);
	unlink(path);
	return err;
}

static void at_line(int line)
{
	char where[96];

	snprintf(where, sizeof where, "%s:%d:", path, line);
	says(where);
}

static void defaults(void **state)
{
	struct opts *o = *state;

	assert_string_equal(opts_str(o, "bench"), "quick");
	assert_string_equal(opts_str(o, "out"), "");
	assert_string_equal(opts_str(o, "endpoints"), "auto");
	assert_int_equal(opts_int(o, "min_batches"), 10);
	assert_int_equal(opts_int(o, "min_samples"), 1000);
	assert_true(opts_dbl(o, "time") == 45);
	assert_true(opts_bool(o, "pin"));
	assert_int_equal(opts_sizes(o, "sizes")->n, 1);
	assert_int_equal(opts_sizes(o, "sizes")->v[0], 8);
	assert_int_equal(opts_check_used(o, ""),
			 0); /* a default is not something the user set */
}

static void numbers(void **state)
{
	static const char *const not_whole[] = {"1.5",
						"1e3",
						"ten",
						"",
						"5x",
						"-1",
						"0x10",
						"nan",
						"inf",
						"1,000",
						"9223372036854775808",
						"1e400"};
	static const char *const not_number[] = {
		"", "fast", "-1", "-0.5", "nan", "inf", "infinity", "5s", "1,5", "1e400"};
	struct opts *o = *state;

	good(o, "ops", "0");
	good(o, "ops", "123456");
	assert_int_equal(opts_int(o, "ops"), 123456);
	good(o, "seed", "9223372036854775807");
	assert_true(opts_int(o, "seed") == INT64_MAX);
	good(o, "time", "0.25");
	assert_true(opts_dbl(o, "time") == 0.25);
	good(o, "time", "1e2");
	assert_true(opts_dbl(o, "time") == 100);
	for (size_t i = 0; i < sizeof not_whole / sizeof *not_whole; i++)
		bad(o, "ops", not_whole[i], not_whole[i]);
	for (size_t i = 0; i < sizeof not_number / sizeof *not_number; i++)
		bad(o, "time", not_number[i], not_number[i]);
}

static void booleans(void **state)
{
	static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {
									     "no",
									     "false",
									     "off", "0"};
	struct opts *o = *state;

	for (int i = 0; i < 4; i++) {
		good(o, "pin", no[i]);
		assert_false(opts_bool(o, "pin"));
		good(o, "pin", yes[i]);
		assert_true(opts_bool(o, "pin"));
	}
	bad(o, "pin", "maybe", "maybe");
	bad(o, "pin", "", "yes nor no");
	bad(o, "pin", "2", "2");
}

static void choices(void **state)
{
	const char *got[OPT_LIST_MAX];
	struct opts *o = *state;

	good(o, "data", "gpu");
	assert_string_equal(opts_str(o, "data"), "gpu");
	bad(o, "data", "moon", "auto host gpu");
	bad(o, "data", "gp", "gp");
	bad(o, "data", "gpu host", "gpu host");
	bad(o, "data", "", "auto host gpu");
	good(o, "paths", "host, gpu");
	assert_int_equal(opts_list(o, "paths", got), 2);
	assert_string_equal(got[0], "host"); /* in the user's order */
	assert_string_equal(got[1], "gpu");
	assert_true(opts_has(o, "paths", "gpu"));
	assert_false(opts_has(o, "paths", "proxy"));
	bad(o, "paths", "gpu,cloud", "cloud");
	bad(o, "paths", "gpu,gpu", "twice");
	bad(o, "paths", "", "empty");
	bad(o, "paths", ",,", "empty");
	assert_int_equal(opts_list(o, "paths", got),
			 2); /* and its words are still whole */
	assert_string_equal(got[0], "host");
}

static void texts(void **state)
{
	struct opts *o = *state;
	char text[1100];

	good(o, "out", "a folder, with = and #");
	assert_string_equal(opts_str(o, "out"), "a folder, with = and #");
	good(o, "out", "");
	memset(text, 'x', sizeof text);
	text[1023] = 0;
	good(o, "out", text);
	assert_int_equal(strlen(opts_str(o, "out")), 1023);
	text[1023] = 'x';
	text[1024] = 0;
	bad(o, "out", text, "1023");
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} fine[] = {
		{"8", 8},
		{"8B", 8},
		{"4K", 4096},
		{"4k", 4096},
		{"4KiB", 4096},
		{"3M", 3u << 20},
		{"1MiB", 1u << 20},
		{"2G", 2ull << 30},
		{"2GiB", 2ull << 30},
		{"18446744073709551615", UINT64_MAX},
		{"17179869183G", 17179869183ull << 30},
		{"007", 7},
	};
	static const char *const wrong[] = {"",
					    "K",
					    "-8",
					    "+8",
					    " 8",
					    "8 K",
					    "8X",
					    "8KB",
					    "8kib",
					    "8Ki",
					    "8T",
					    "1.5K",
					    "0x10",
					    "18446744073709551616",
					    "17179869184G",
					    "18014398509481984K",
					    "0",
					    "0K",
					    "00"};
	struct opts *o = *state;
	uint64_t v;

	for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
		assert_int_equal(opts_parse_size(fine[i].text, &v), 0);
		assert_true(v == fine[i].bytes);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		err_say(0, "nothing");
		if (opts_parse_size(wrong[i], &v) != -EINVAL)
			fail_msg("size '%s' was taken", wrong[i]);
		says(wrong[i]);
		if (!strchr(wrong[i], ' ')) /* a list may have blanks between its sizes */
			bad(o, "sizes", wrong[i], wrong[i]);
	}
	assert_int_equal(opts_parse_size("8X", &v), -EINVAL);
	says("unknown suffix 'X'");
	says("KiB");
	assert_int_equal(opts_parse_size("0", &v), -EINVAL);
	says("no bytes");
	assert_int_equal(opts_parse_size("17179869184G", &v), -EINVAL);
	says("too large");
}

static void size_lists(void **state)
{
	struct opts *o = *state;
	char text[1024] = "1";
	size_t at = 1;

	good(o, "sizes", "8, 4K\t1MiB,,7");
	assert_int_equal(opts_sizes(o, "sizes")->n, 4);
	assert_int_equal(opts_sizes(o, "sizes")->v[1], 4096);
	assert_int_equal(opts_sizes(o, "sizes")->v[3], 7);
	bad(o, "sizes", "8,4Q,16", "4Q");
	bad(o, "sizes", "8,0", "'0'");
	bad(o, "sizes", "", "empty");
	bad(o, "sizes", " , ", "empty");
	assert_int_equal(opts_sizes(o, "sizes")->n, 4);
	bad(o, "sizes", "8,16,8", "twice");
	for (int i = 2; i <= OPT_LIST_MAX; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, ",%d", i);
	good(o, "sizes", text);
	assert_int_equal(opts_sizes(o, "sizes")->n, OPT_LIST_MAX);
	strcat(text, ",65");
	bad(o, "sizes", text, "64");
}

static void unknown_keys(void **state)
{
	struct opts *o = *state;

	bad(o, "no_such_key", "1", "unknown");
	bad(o, "", "1", "unknown");
	bad(o, "size", "8", "unknown");
	bad(o, "Sizes", "8", "unknown");
}

static void unused_keys(void **state)
{
	struct opts *o = *state;

	assert_int_equal(opts_set(o, "sizes", "8", "my.conf:3"), 0);
	assert_int_equal(opts_set(o, "warmup", "1", "-k"),
			 0); /* the harness reads it in every run */
	assert_int_equal(opts_check_used(o, "paths sizes ops"), 0);
	assert_int_equal(opts_check_used(o, "fake"), -EINVAL);
	says("my.conf:3");
	says("sizes");
	assert_int_equal(opts_check_used(o, ""), -EINVAL);
	assert_int_equal(opts_check_used(o, "sizesx psizes"), -EINVAL);
}

static void later_outranks_earlier(void **state)
{
	struct opts *o = *state;

	assert_true(opts_dbl(o, "time") == 45);
	assert_int_equal(load(o, "time = 7\nseed = 5\n"), 0);
	assert_true(opts_dbl(o, "time") == 7);
	good(o, "time", "3");
	assert_true(opts_dbl(o, "time") ==
		    3); /* the command line is set after the CONFIG */
	assert_int_equal(opts_int(o, "seed"), 5);
	assert_int_equal(opts_int(o, "min_batches"), 10);
	good(o, "sizes", "8,16");
	good(o, "sizes", "32");
	assert_int_equal(opts_sizes(o, "sizes")->n, 1); /* replaced, not added to */
}

static void conf_files(void **state)
{
	struct opts *o = *state;

	assert_int_equal(load(o, ""), 0);
	assert_int_equal(load(o, "# only a comment\n\n"), 0);
	assert_int_equal(load(o, "# c\n[part]\nsizes = 8, 4K\nout=/a/b\n\n  pin : no\n"),
			 0);
	assert_int_equal(opts_sizes(o, "sizes")->n, 2);
	assert_string_equal(opts_str(o, "out"), "/a/b");
	assert_false(opts_bool(
		o, "pin")); /* an indented line is a line, not more of the key before */
	assert_int_equal(load(o, "seed = 3"), 0); /* no newline at the end */
	assert_int_equal(opts_int(o, "seed"), 3);
	assert_int_equal(load(o, "seed = 4\r\n"), 0);
	assert_int_equal(opts_int(o, "seed"), 4);
}

static void conf_errors_name_their_line(void **state)
{
	struct opts *o = *state;

	assert_int_equal(load(o, "# one\n\nseed = 1\nsizes = 8, 4Q\nwrong = 1\n"),
			 -EINVAL);
	at_line(4);
	says("sizes");
	says("4Q");
	assert_int_equal(load(o, "seed = 1\nwrong = 1\nsizes = 0\n"), -EINVAL);
	at_line(2);
	says("wrong");
	assert_int_equal(load(o, "seed = 1\n\n\nthis is no pair\n"), -EINVAL);
	at_line(4);
	assert_int_equal(load(o, "[open\nseed = 1\n"), -EINVAL);
	at_line(1);
	assert_int_equal(load(o, "time = -4\n"), -EINVAL);
	at_line(1);
	assert_int_equal(load(o, "= 4\n"), -EINVAL);
	at_line(1);
}

/* A list that goes on in the next line is taken whole or refused; it is never cut in silence. */
static void conf_continued_line(void **state)
{
	struct opts *o = *state;

	if (!load(o, "sizes = 8,\n  4096\n"))
		assert_int_equal(opts_sizes(o, "sizes")->n, 2);
	else
		says("2");
}

/* So is a long line. */
static void conf_long_line(void **state)
{
	struct opts *o = *state;
	char text[1200] = "seed = 2\nsizes = 1";
	int n = 1, err;

	for (size_t at = strlen(text); n < 60; n++)
		at += (size_t)snprintf(text + at, sizeof text - at, ", %d", 1048576 + n);
	strcat(text, "\nbad = 1\n");
	err = load(o, text);
	assert_int_equal(err, -EINVAL);
	if (strstr(err_last(), "bad")) {
		at_line(3);
		assert_int_equal(opts_sizes(o, "sizes")->n, n);
	} else {
		at_line(2);
	}
}

static void missing_config(void **state)
{
	struct opts *o = *state;

	assert_int_equal(opts_load(o, "/no/such/file.conf"), -ENOENT);
	says("/no/such/file.conf");
	assert_int_equal(opts_load(o, "no-such-config"), -ENOENT);
	says("no-such-config");
	says("configs/");
	assert_int_equal(opts_load(o, ""), -ENOENT);
	assert_int_equal(opts_load(o, "/dev/null"), 0);
}

static void folder_as_config(void **state)
{
	assert_int_not_equal(opts_load(*state, "/tmp"), 0);
	says("/tmp");
}

static void json_holds_every_key(void **state)
{
	struct opts *o = *state;
	json_t *j;

	good(o, "sizes", "8,4K");
	good(o, "pin", "off");
	good(o, "time", "2.5");
	j = opts_json(o);
	assert_string_equal(json_string_value(json_object_get(j, "sizes")), "8,4K");
	assert_true(json_is_false(json_object_get(j, "pin")));
	assert_true(json_real_value(json_object_get(j, "time")) == 2.5);
	assert_int_equal(json_integer_value(json_object_get(j, "min_batches")), 10);
#define OPT(key, type, def, choices, scope, help) \
	assert_non_null(json_object_get(j, #key));
#include "opt.def"
#undef OPT
	json_decref(j);
}

static int lines;
static void line(const char *key, const char *type, const char *def, const char *help)
{
	assert_true(*key && *type && *help && def && strcmp(key, "fake"));
	lines++;
}

static void help_lists_every_key(void **state)
{
	json_t *j = opts_json(*state);

	opts_help(line);
	assert_int_equal(lines, json_object_size(j) -
					1); /* all but `fake`, the key of the tests */
	json_decref(j);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(defaults),
		TEST(numbers),
		TEST(booleans),
		TEST(choices),
		TEST(texts),
		TEST(sizes),
		TEST(size_lists),
		TEST(unknown_keys),
		TEST(unused_keys),
		TEST(later_outranks_earlier),
		TEST(conf_files),
		TEST(conf_errors_name_their_line),
		TEST(conf_continued_line),
		TEST(conf_long_line),
		TEST(missing_config),
		TEST(folder_as_config),
		TEST(json_holds_every_key),
		TEST(help_lists_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
