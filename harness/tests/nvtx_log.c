/* SPDX-License-Identifier: Apache-2.0
 * nvtx_log.c: what the tests load in place of a profiler (NVTX_INJECTION64_PATH): it writes each push and pop of a domain's
 * ranges to the file that NVTX_LOG names, as "push THREAD DOMAIN CATEGORY PAYLOAD NAME" or "pop THREAD DOMAIN".
 */
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE_MAX_CHARS 512

static char domains[8][64]; /* handles are their addresses */
static unsigned domain_count;
static int fd = -1;

/* One write a line: it stands whole even if the process is killed right after. */
static void put_line(const char *line, int n)
{
	if (n > 0 && n < LINE_MAX_CHARS && write(fd, line, (size_t)n) != n)
		abort();
}

static nvtxDomainHandle_t domain_create(const char *name)
{
	if (domain_count == sizeof domains / sizeof *domains)
		abort();
	snprintf(domains[domain_count], sizeof *domains, "%s", name);
	return (nvtxDomainHandle_t)domains[domain_count++];
}

static int range_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
	char line[LINE_MAX_CHARS];
	int n = snprintf(line, sizeof line, "push %ld %s %u %u %s\n", syscall(SYS_gettid),
			 (const char *)domain, a->category,
			 a->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT32
				 ? a->payload.uiValue
				 : 0,
			 a->message.ascii);

	put_line(line, n);
	return 0;
}

static int range_pop(nvtxDomainHandle_t domain)
{
	char line[LINE_MAX_CHARS];

	put_line(line, snprintf(line, sizeof line, "pop %ld %s\n", syscall(SYS_gettid),
				(const char *)domain));
	return 0;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
	const NvtxExportTableCallbacks *t = get(NVTX_ETID_CALLBACKS);
	const char *path = getenv("NVTX_LOG");
	NvtxFunctionTable table;
	unsigned size;

	if (!t || !path ||
	    !t->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
	    size <= NVTX_CBID_CORE2_DomainCreateA)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return 0;
	*table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domain_create;
	*table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)range_push;
	*table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)range_pop;
	return 1;
}
