/* SPDX-License-Identifier: Apache-2.0
 * report_json.h: the machine-readable form of `putscope report`.
 */
#ifndef PUTSCOPE_REPORT_JSON_H
#define PUTSCOPE_REPORT_JSON_H
#include <jansson.h>

#include "load.h"

#define COMPONENT_COUNT 6u
extern const char *const component_names[COMPONENT_COUNT];
bool report_is_component(const char *metric);
json_t *report_json(const struct load *l); /* new reference */
const char *nic_words(const json_t *rank); /* "mlx5_0 (virtual)", "none"; static */
#endif
