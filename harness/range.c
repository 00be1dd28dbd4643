/* SPDX-License-Identifier: Apache-2.0
 * range.c: NVTX 3, which is headers alone: a profiler's library is loaded at the first call if there is one.
 */
#include "range.h"

#if HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

#define RANGE_DOMAIN "putscope"

/* Only the thread that runs the engine comes here. */
static nvtxDomainHandle_t domain(void)
{
	static nvtxDomainHandle_t d;
	static int made;

	if (made)
		return d;
	made = 1;
	d = nvtxDomainCreateA(RANGE_DOMAIN);
	nvtxDomainNameCategoryA(d, RANGE_PHASE, "phase");
	nvtxDomainNameCategoryA(d, RANGE_CASE, "case");
	nvtxDomainNameCategoryA(d, RANGE_WARMUP, "warm-up");
	nvtxDomainNameCategoryA(d, RANGE_BATCH, "batch");
	return d;
}

static nvtxEventAttributes_t attributes(enum range_kind kind, const char *name)
{
	static const uint32_t argb[] = {0, 0xff808080, 0xff0072b2, 0xffe69f00,
					0xff009e73};
	nvtxEventAttributes_t a = {.version = NVTX_VERSION,
				   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
				   .category = kind,
				   .colorType = NVTX_COLOR_ARGB,
				   .color = argb[kind],
				   .messageType = NVTX_MESSAGE_TYPE_ASCII};

	a.message.ascii = name; /* copied by whoever receives it */
	return a;
}

void range_push(enum range_kind kind, const char *name)
{
	const nvtxEventAttributes_t a = attributes(kind, name);

	nvtxDomainRangePushEx(domain(), &a);
}

void range_push_batch(uint32_t index, int warmup)
{
	char name[32];
	nvtxEventAttributes_t a = attributes(warmup ? RANGE_WARMUP : RANGE_BATCH, name);

	snprintf(name, sizeof name, "%s %u", warmup ? "warm-up" : "batch", index);
	a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
	a.payload.uiValue = index;
	nvtxDomainRangePushEx(domain(), &a);
}

void range_pop(void)
{
	nvtxDomainRangePop(domain());
}
#endif
