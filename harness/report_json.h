/* SPDX-License-Identifier: Apache-2.0
 * report_json.h: the machine-readable form of `putscope report`.
 */
#ifndef PUTSCOPE_REPORT_JSON_H
#define PUTSCOPE_REPORT_JSON_H
#include <jansson.h>

#include "load.h"

#define COMPONENT_COUNT 6u
extern const char *const component_names[COMPONENT_COUNT];
/* A part of the wall time of a put: not a metric of the same name that a case is there to measure (a launch's wall). */
bool report_is_component(const json_t *c, const char *metric);
json_t *report_json(const struct load *l); /* new reference */
const char *nic_words(const json_t *rank); /* "mlx5_0 (virtual)", "none"; static */
#endif
