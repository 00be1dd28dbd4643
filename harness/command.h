/* SPDX-License-Identifier: Apache-2.0
 * command.h: the commands; each parses its arguments and returns an exit status (err.h).
 */
#ifndef PUTSCOPE_COMMAND_H
#define PUTSCOPE_COMMAND_H
#include <stdbool.h>

int cmd_list(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
/* Print the sentence of the last failure; returns `status`. */
int command_fail(int status);
/* Exit status for a failed call: absent or malformed is usage, anything else a refusal. */
int command_status(int err);
/* `DIR [--json]` of report and check; 0, or an exit status + 1 to return (help included). */
int command_dir(int argc, char **argv, const char *usage, const char **dir, bool *json,
		bool *methods);
int report_print(const char *dir, bool json, bool methods);
#endif
