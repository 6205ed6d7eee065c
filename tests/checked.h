// The shim of kernels that are to be checked (sanitize_backend.py): one thread of the grid after the other as in
// shim.h, but in any order that CUDA allows, and what is on its way is nowhere until it is waited for.
#include <cstdio>
#include <cstdlib>
#include <cstring>

// The order of blocks, threads and lanes. 0: ascending; 1: descending; other values: random, with this seed.
extern "C" __attribute__((visibility("default"))) unsigned hx_order;
unsigned hx_order = 0;

static thread_local unsigned hx_chance = 0;

static long long hx_drawn(long long count) {
    hx_chance = hx_chance * 1664525u + 1013904223u;
    return (long long)(hx_chance >> 8) % count;
}

// The numbers 0..count-1 in an order: shift + n stride, stride and count having no common factor.
struct hx_turns {
    long long count, stride = 1, shift = 0;
    explicit hx_turns(long long n) : count(n > 0 ? n : 1) {
        if (hx_order == 1) stride = shift = count - 1;
        if (hx_order < 2) return;
        stride = 1 + hx_drawn(count), shift = hx_drawn(count);
        while (common(stride, count) != 1) ++stride;
    }
    static long long common(long long a, long long b) { return b ? common(b, a % b) : a; }
    long long operator()(long long n) const { return (shift + n % count * (stride % count)) % count; }
};

// The copies that each lane has started and not yet waited for.
struct hx_fetch {
    void *to;
    const void *from;
    unsigned long size;
    int group;
};
struct hx_way {
    hx_fetch fetched[1024];
    int count = 0, groups = 0;
};
static thread_local hx_way hx_ways[HX_TILE_THREADS];
static thread_local int hx_lane = 0;

template <class R> static void hx_begin_fetch(R &to, const R *from) {
    hx_way &way = hx_ways[hx_lane];
    if (way.count == 1024) std::fprintf(stderr, "checked kernel: a lane waits for none of 1024 fetches\n"), std::abort();
    way.fetched[way.count++] = {&to, from, sizeof(R), way.groups};
    std::memset(static_cast<void *>(&to), 0xff, sizeof(R));  // NaNs, also in a struct of numbers
}

// Those of all groups but the last `but` are there; of all for -1, also of one that has not ended.
static void hx_end_fetch(int but = -1) {
    hx_way &way = hx_ways[hx_lane];
    int left = 0;
    for (int n = 0; n < way.count; ++n) {
        const hx_fetch &one = way.fetched[n];
        if (one.group < way.groups - but) std::memcpy(one.to, one.from, one.size);
        else way.fetched[left++] = one;
    }
    way.count = left;
}

// The lanes of a warp, or the threads of a block, once.
struct hx_lanes {
    int count, done = 0;
    hx_turns turns{count};
    explicit hx_lanes(int count) : count(count) {}
    bool more() { return done < count || (hx_lane = 0); }
    int next() { return hx_lane = int(turns(done++)); }
};

#define SHARED
#define LANES \
    for (hx_lanes hx_warp(32); hx_warp.more();) \
        for (int lane = hx_warp.next(), hx_once = 1; hx_once; hx_once = 0)
#define THREADS \
    for (hx_lanes hx_block(HX_TILE_THREADS); hx_block.more();) \
        for (int thread = hx_block.next(), hx_once = 1; hx_once; hx_once = 0)
#define BLOCK_MEMORY(name, count) real name[count]
#define PRIVATE(type, name, count) type name[HX_TILE_THREADS][count]
#define MINE(name) name[thread]
#define OWN_MEMORY(type, name, count) type name[count]
#define OWN(name, at) name[at]
#define FETCH(to, from) hx_begin_fetch(to, from)
#define FETCHED hx_end_fetch()
#define FETCH_ENDS ++hx_ways[hx_lane].groups
#define FETCHED_BUT(count) hx_end_fetch(count)

template <class Kernel>
static void hx_visit(dim3 grid, dim3 block, long long first, long long last, Kernel kernel) {
    gridDim = grid;
    blockDim = block;
    if (!hx_chance) hx_chance = hx_order;
    const hx_turns blocks(last - first);
    for (long long n = 0; n < last - first; ++n) {
        const long long b = first + blocks(n);
        blockIdx = {int(b % grid.x), int(b / grid.x % grid.y), int(b / grid.x / grid.y)};
        const hx_turns threads((long long)block.x * block.y * block.z);
        for (long long m = 0; m < threads.count; ++m) {
            const int t = int(threads(m));
            threadIdx = {t % block.x, t / block.x % block.y, t / block.x / block.y};
            for (hx_way &way : hx_ways) way.count = 0;
            hx_lane = 0;
            kernel();
        }
    }
}
