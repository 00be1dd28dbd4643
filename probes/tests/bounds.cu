/* SPDX-License-Identifier: Apache-2.0
 * bounds.cu: the bounds measured once more, with nothing but the CUDA runtime: a check of the probes from outside.
 *
 * It shares no line with putscope and differs where it can: walks are laid out on the GPU, a window ends at a branch on
 * the value (the empty window has the same branch), the rate of the clock comes from the timed loop itself.
 * Prints one line each, NAME P50_NS.  Exit: 0 done, 1 failed, 77 no GPU.
 */
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef unsigned long long u64;
typedef std::chrono::steady_clock Clock;

#define CHECK(call)                                                                  \
	do {                                                                         \
		cudaError_t rc_ = (call);                                            \
		if (rc_ != cudaSuccess) {                                            \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(rc_)); \
			exit(1);                                                     \
		}                                                                    \
	} while (0)

static const int TURNS = 4096;
static const size_t NODE_WORDS = 32; /* 256 B */
static const size_t SMALL = (size_t)1 << 20, LARGE = (size_t)512 << 20;
/* No operation returns it; the branch on it is what waits for the value. */
static const u64 NEVER = ~0ull;
static const int RUNS = 5;

enum Op { EMPTY, LOAD_GPU, LOAD_SYS, STORE, STORE_FENCE, ATOMIC, ATOMIC_SYS, FLAG };

/* p: node of a walk, or the word to store to.  pong, first: FLAG's answer by the CPU, value of its first turn.  warm: loads
 * before the timed ones.  span: clock64 and globaltimer at both ends of the loop, then the turns done. */
struct Args {
	u64 *p, *pong, first;
	int warm;
	long long *ticks, *span;
};

__device__ static long long wall()
{
	long long t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
	return t;
}

template <int OP> __device__ static u64 operation(u64 *&p, const Args &a, int i)
{
	if (OP == LOAD_GPU)
		return (u64)(p = (u64 *)__ldcg(p));
	if (OP == LOAD_SYS)
		return (u64)(p = (u64 *)*(volatile u64 *)p);
	if (OP == STORE || OP == STORE_FENCE)
		*(volatile u64 *)p = i;
	if (OP == STORE_FENCE)
		__threadfence_system();
	/* An addend that is alike in all lanes would make ptxas elect a lane first: 20 instructions more. */
	if (OP == ATOMIC)
		return atomicAdd(p, (u64)threadIdx.x + 1);
	if (OP == ATOMIC_SYS)
		return atomicAdd_system(p, (u64)threadIdx.x + 1);
	if (OP == FLAG) {
		const long long start = clock64();

		*(volatile u64 *)p = a.first + i;
		while (*(volatile u64 *)a.pong != a.first + i)
			if (clock64() - start > 2000000000ll)
				return NEVER;
	}
	return i;
}

template <int OP> __global__ void measure(Args a)
{
	__shared__ long long dt[TURNS];
	u64 *p = a.p;
	int i;

	for (i = 0; i < a.warm; i++)
		operation<OP>(p, a, i);
	a.span[0] = clock64();
	a.span[1] = wall();
	for (i = 0; i < TURNS; i++) {
		long long t0 = clock64(), t1;
		u64 v;

		v = operation<OP>(p, a, i);
		asm volatile("" : "+l"(v)); /* also where the compiler knows v */
		if (v == NEVER)
			break;
		t1 = clock64();
		dt[i] = t1 - t0;
	}
	a.span[2] = clock64();
	a.span[3] = wall();
	a.span[4] = i;
	for (int k = 0; k < i; k++)
		a.ticks[k] = dt[k];
}

/* Node i leads to node (i * factor + 1) mod n, n a power of two: one cycle through all. */
__global__ void lay_out(u64 *p, u64 n)
{
	for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n;
	     i += (u64)gridDim.x * blockDim.x)
		p[i * NODE_WORDS] =
			(u64)(p + (i * 0x5851f42d4c957f2dull + 1) % n * NODE_WORDS);
}

__global__ void nothing()
{
}

static double median(std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	return v.size() % 2 ? v[v.size() / 2]
			    : (v[v.size() / 2 - 1] + v[v.size() / 2]) / 2;
}

static long long *ticks, *span;
static volatile u64 *ping, *pong;
static u64 next_flag = 1;

/* The CPU's side of FLAG.  It gives up after the SM has. */
static void answer(u64 first)
{
	Clock::time_point start = Clock::now();

	for (u64 i = first; i < first + TURNS; *pong = i++)
		for (unsigned spins = 1; *ping != i; spins++)
			if (spins % 4096 == 0 &&
			    Clock::now() - start > std::chrono::seconds(5))
				return;
}

/* Wait for the launch; append its turns in nanoseconds. */
static void keep(std::vector<double> *ns)
{
	double rate;

	CHECK(cudaDeviceSynchronize());
	if (span[4] != TURNS) {
		fprintf(stderr, "a loop ended after %lld turns\n", span[4]);
		exit(1);
	}
	rate = (double)(span[3] - span[1]) / (double)(span[2] - span[0]);
	for (int i = 0; ns && i < TURNS; i++)
		ns->push_back(ticks[i] * rate);
}

/* Median of RUNS launches; the one before them warms up. */
template <int OP> static double raw(u64 *p, int warm)
{
	std::vector<double> ns;

	for (int run = 0; run <= RUNS; run++) {
		measure<OP><<<1, 1>>>({p, (u64 *)pong, next_flag, warm, ticks, span});
		CHECK(cudaGetLastError());
		if (OP == FLAG)
			answer(next_flag);
		next_flag += OP == FLAG ? TURNS : 0;
		keep(run ? &ns : NULL);
	}
	return median(ns);
}

/* A cold walk must not meet a line again: each launch goes on elsewhere, the L2 swept before it. */
static double cold(u64 *p)
{
	std::vector<double> ns;
	u64 *other;

	CHECK(cudaMalloc(&other, LARGE));
	for (size_t k = 1; k <= RUNS; k++) {
		CHECK(cudaMemset(other, (int)k, LARGE));
		measure<LOAD_GPU>
			<<<1, 1>>>({p + k * 65537 * NODE_WORDS, NULL, 0, 0, ticks, span});
		keep(&ns);
	}
	CHECK(cudaFree(other));
	return median(ns);
}

static double launch_sync()
{
	std::vector<double> v;
	cudaStream_t s;

	CHECK(cudaStreamCreate(&s));
	for (int i = 0; i < 2000; i++) {
		Clock::time_point t0 = Clock::now();

		nothing<<<1, 1, 0, s>>>();
		CHECK(cudaStreamSynchronize(s));
		std::chrono::duration<double, std::nano> d = Clock::now() - t0;
		if (i >= 100)
			v.push_back(d.count());
	}
	CHECK(cudaStreamDestroy(s));
	return median(v);
}

int main()
{
	int count = 0, small_nodes = (int)(SMALL / NODE_WORDS / sizeof(u64));
	u64 *small, *large, *host, *flags;
	double empty;

	if (cudaGetDeviceCount(&count) != cudaSuccess || !count) {
		fprintf(stderr, "bounds: no GPU here\n");
		return 77;
	}
	CHECK(cudaMalloc(&small, SMALL));
	CHECK(cudaMalloc(&large, LARGE));
	CHECK(cudaHostAlloc(&host, SMALL, 0));
	CHECK(cudaHostAlloc(&flags, 4096, 0));
	CHECK(cudaHostAlloc(&ticks, TURNS * sizeof *ticks, 0));
	CHECK(cudaHostAlloc(&span, 5 * sizeof *span, 0));
	ping = flags;
	pong = flags + 128;
	*ping = *pong = 0;
	lay_out<<<64, 256>>>(small, SMALL / NODE_WORDS / sizeof(u64));
	lay_out<<<64, 256>>>(large, LARGE / NODE_WORDS / sizeof(u64));
	lay_out<<<64, 256>>>(host, SMALL / NODE_WORDS / sizeof(u64));
	CHECK(cudaDeviceSynchronize());
	empty = raw<EMPTY>(small, 0);
	printf("empty %.1f\n", empty);
	printf("l2-hit %.1f\n", raw<LOAD_GPU>(small, small_nodes) - empty);
	printf("hbm %.1f\n", cold(large) - empty);
	printf("host-load %.1f\n", raw<LOAD_SYS>(host, 0) - empty);
	printf("store-device %.1f\n", raw<STORE>(small, 0) - empty);
	printf("store-fence-sys-device %.1f\n", raw<STORE_FENCE>(small, 0) - empty);
	printf("store-fence-sys-host %.1f\n", raw<STORE_FENCE>(host, 0) - empty);
	printf("atomic-device %.1f\n", raw<ATOMIC>(small, 0) - empty);
	printf("atomic-host %.1f\n", raw<ATOMIC_SYS>(host, 0) - empty);
	printf("gpu-cpu-flag %.1f\n", raw<FLAG>(flags, 0) - empty);
	printf("launch-sync %.1f\n", launch_sync());
	return 0;
}
