// The thread pool of this process on a CPU. Its work is a list of levels of calls, one level after the other.
//
// A level is cut into pieces of parts. The size of a piece is a share of the remaining work, so that all threads finish
// at about the same time. A free thread takes the next piece of the current level; the thread that finishes the last
// piece opens the next level. A thread without a core therefore delays a level only while it has an unfinished piece. A
// waiting thread spins for `spin` nanoseconds, then sleeps: with longer spinning it could occupy the core that the
// thread it waits for needs. If other programs use the cores, so that the caller waits longer than the work of the
// other threads would take, the caller works alone for a while.
#include <atomic>
#include <climits>
#include <csignal>
#include <ctime>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long long integer;

// `parts` parts of a kernel; `first`: the number of parts before them in the level; `weight`: the approximate cost of
// one part, in points of a cheap kernel.
struct Call {
    void (*function)(const void *words, integer first, integer last);
    const void *words;
    integer first, parts, weight;
};

// Calls that do not depend on each other; `weight`: their total weight.
struct Level {
    const Call *calls;
    integer count, parts, weight;
};

namespace {
// Waking a thread and sharing a level cost some microseconds: the time of this many cheap points.
constexpr integer WORTH_WAKING = 4096, WORTH_SHARING = 1024, WORTH_TAKING = 256;
// WINDOW: nanoseconds of shared work between two judgements of its gain. WORTHWHILE: the smallest gain. Without it, the
// caller works alone for SHORTEST_REST nanoseconds, twice as long each further time, up to LONGEST_REST; a gain halves
// this time.
constexpr double WORTHWHILE = 1.1;
constexpr integer WINDOW = 10000000, SHORTEST_REST = 20000000, LONGEST_REST = 640000000;
constexpr int CALLER = 1, WORKER = 2;  // bits that select sleeping threads
constexpr int MOST = 4096;             // the largest number of threads
constexpr int MOST_PIECES = 1 << 16;   // the largest number of pieces of a level
constexpr unsigned DONE = ~0u;         // in place of the number of free pieces, after all levels

// Does parts first..last-1 of a level; returns their weight.
integer perform(const Level &level, integer first, integer last) {
    integer weight = 0;
    const Call *call = level.calls;
    for (integer low = 0, high = level.count; high - low > 1;) {  // the last call that begins at or before `first`
        const integer middle = (low + high) / 2;
        if (level.calls[middle].first <= first)
            call = level.calls + (low = middle);
        else
            high = middle;
    }
    for (; first < last; ++call) {
        const integer end = call->first + call->parts, stop = last < end ? last : end;
        if (first >= stop) continue;
        call->function(call->words, first - call->first, stop - call->first);
        weight += (stop - first) * call->weight;
        first = stop;
    }
    return weight;
}

integer now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return integer(t.tv_sec) * 1000000000 + t.tv_nsec;
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

struct ThreadPool {
    // The generation of the level, and the number of its free pieces, or DONE after all levels. DONE is the last write
    // of the thread that finishes them, as the caller continues when it sees it. A thread that decreases the number of
    // free pieces owns a piece of this level, and the level stays until that piece is done.
    alignas(64) std::atomic<unsigned long long> tickets{0};
    alignas(64) std::atomic<integer> left{0};  // unfinished pieces of the level
    alignas(64) std::atomic<int> sleepers{0};
    std::atomic<integer> spin{0};
    std::atomic<int> threads{1};
    std::atomic<bool> busy{false};
    const Level *level = nullptr, *end = nullptr;
    integer pieces = 0, starts[MOST_PIECES + 1];  // number of pieces of the level, and the first part of each
    pthread_t workers[MOST];
    int started = 0;
    std::atomic<integer> runs{0}, wakes{0};
    // Since the last judgement: the time of shared work, the waiting time of the caller, the weight of the work, and
    // the weight of the caller's part. Then the time until which the caller works alone, and the duration of the next
    // such period.
    integer lasted = 0, waited = 0, weighed = 0, done = 0, alone_until = 0, rest = SHORTEST_REST;

    unsigned *generation() { return reinterpret_cast<unsigned *>(&tickets) + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__); }

    void wake(int count, int who) {
        wakes.fetch_add(1, std::memory_order_relaxed);
        syscall(SYS_futex, generation(), FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, count, nullptr, nullptr, who);
    }

    void open(unsigned long long rest) {
        const unsigned long long next = (tickets.load(std::memory_order_relaxed) >> 32) + 1;
        tickets.store(next << 32 | rest, std::memory_order_seq_cst);
    }

    // Cuts the level into pieces of decreasing weight, as threads wait for the last ones.
    void cut() {
        const int there = threads.load(std::memory_order_relaxed), shares = 4 * (there < 1024 ? there : 1024);
        const Call *call = level->calls;
        integer part = 0, rest = level->weight;
        for (pieces = 0; part < level->parts && pieces < MOST_PIECES; ++pieces) {
            starts[pieces] = part;
            integer wanted = rest / shares < WORTH_TAKING ? WORTH_TAKING : rest / shares;
            while (part < level->parts && wanted > 0) {
                while (part >= call->first + call->parts) ++call;
                const integer left = call->first + call->parts - part, fit = call->weight ? wanted / call->weight : left;
                if (fit < 1 && part > starts[pieces]) break;
                const integer some = fit < 1 ? 1 : fit < left ? fit : left;
                part += some, rest -= some * call->weight, wanted -= some * call->weight;
            }
        }
        starts[pieces] = level->parts;
    }

    // Opens `next` or a later level. Levels too small to be shared are done here.
    void go_on(const Level *next) {
        for (; next != end && next->weight < WORTH_SHARING; ++next) perform(*next, 0, next->parts);
        if (next == end) {
            open(DONE);
            if (sleepers.load(std::memory_order_seq_cst)) wake(1, CALLER);
            return;
        }
        level = next;
        cut();
        left.store(pieces, std::memory_order_relaxed);
        open(pieces);
        const int asleep = sleepers.load(std::memory_order_seq_cst);
        const integer wanted = next->weight / WORTH_WAKING;
        if (asleep && wanted) wake(wanted < asleep ? int(wanted) : asleep, CALLER | WORKER);
    }

    // Takes a free piece of `seen` and does it. Returns its weight.
    integer take(unsigned long long seen) {
        if (!tickets.compare_exchange_strong(seen, seen - 1, std::memory_order_acq_rel)) return 0;
        const Level *mine = level;
        const integer *piece = starts + (pieces - unsigned(seen));
        const integer weight = perform(*mine, piece[0], piece[1]);
        if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) go_on(mine + 1);
        return weight;
    }

    // Waits until the generation differs from that of `seen`.
    void wait(unsigned long long seen, int who) {
        const integer begun = now(), patience = spin.load(std::memory_order_relaxed);
        do
            for (int n = 0; n < 32; ++n) {
                if (tickets.load(std::memory_order_acquire) >> 32 != seen >> 32) return;
                relax();
            }
        while (now() - begun < patience);
        sleepers.fetch_add(1, std::memory_order_seq_cst);
        syscall(SYS_futex, generation(), FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, unsigned(seen >> 32), nullptr, nullptr,
                who);
        sleepers.fetch_sub(1, std::memory_order_seq_cst);
    }

    void work(int number) {
        while (number < threads.load(std::memory_order_acquire)) {
            const unsigned long long seen = tickets.load(std::memory_order_acquire);
            if (unsigned(seen) && unsigned(seen) != DONE)
                take(seen);
            else
                wait(seen, WORKER);
        }
    }

    // Changes the number of threads. If the system allows fewer threads, fewer do the work.
    void resize(int wanted) {
        const int before = threads.exchange(wanted);
        if (wanted < before) {
            open(0);
            wake(INT_MAX, WORKER);
            for (; started >= wanted; --started) pthread_join(workers[started - 1], nullptr);
        }
        sigset_t all, usual;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &usual);  // signals go to the calling thread
        while (started + 1 < wanted && !pthread_create(workers + started, nullptr, begin, reinterpret_cast<void *>(
                                                                                          integer(started + 1))))
            ++started;
        pthread_sigmask(SIG_SETMASK, &usual, nullptr);
    }

    static void *begin(void *number);

    // Lets the caller work alone for a while if sharing gained too little.
    void judge(integer now) {
        if (lasted < WINDOW) return;
        if (double(lasted - waited) * double(weighed) < WORTHWHILE * double(lasted) * double(done)) {
            alone_until = now + rest;
            rest = rest < LONGEST_REST ? 2 * rest : rest;
        } else {
            rest = rest > SHORTEST_REST ? rest / 2 : rest;
        }
        lasted = waited = weighed = done = 0;
    }

    void run(const Level *first, const Level *last, int wanted, integer patience) {
        if (wanted != threads.load(std::memory_order_relaxed) || started + 1 < wanted) resize(wanted);
        spin.store(patience, std::memory_order_relaxed);
        runs.fetch_add(1, std::memory_order_relaxed);
        end = last;
        go_on(first);
        for (;;) {
            const unsigned long long seen = tickets.load(std::memory_order_acquire);
            if (unsigned(seen) == DONE) return;
            if (unsigned(seen)) {
                done += take(seen);
            } else {
                const integer since = now();
                wait(seen, CALLER);
                waited += now() - since;
            }
        }
    }
};

ThreadPool *pool = new ThreadPool;  // never destroyed: threads may use it until the process has ended

void *ThreadPool::begin(void *number) {
    pool->work(int(reinterpret_cast<integer>(number)));
    return nullptr;
}

void after_fork() { pool = new ThreadPool; }  // a child process has none of the threads
const int registered = pthread_atfork(nullptr, nullptr, after_fork);
}  // namespace

// Does the `count` levels in order, with at most `threads` threads including this one; returns when all is done. If
// another thread of the program uses the pool, this one works alone.
extern "C" void hx_run(const Level *levels, integer count, int threads, integer spin) {
    integer weight = 0;
    for (integer n = 0; n < count; ++n) weight += levels[n].weight;
    threads = threads < MOST ? threads : MOST;
    if (threads > 1 && weight >= WORTH_WAKING && !pool->busy.exchange(true, std::memory_order_acquire)) {
        const integer begun = now();
        const bool share = begun >= pool->alone_until;
        if (share) {
            pool->run(levels, levels + count, threads, spin);
            const integer ended = now();
            pool->lasted += ended - begun;
            pool->weighed += weight;
            pool->judge(ended);
        }
        pool->busy.store(false, std::memory_order_release);
        if (share) return;
    }
    for (integer n = 0; n < count; ++n) perform(levels[n], 0, levels[n].parts);
}

struct Shape {
    integer parts, weight;
};

// Makes one call of `function`; `shape` returns its number of parts.
extern "C" void hx_launch(void (*function)(const void *, integer, integer), Shape (*shape)(const void *),
                          const void *words, int threads, integer spin) {
    const Shape found = shape(words);
    const Call call{function, words, 0, found.parts, found.weight};
    const Level level{&call, 1, found.parts, found.parts * found.weight};
    hx_run(&level, 1, threads, spin);
}

// Returns the numbers of shared runs and of wake-ups since the process began.
extern "C" void hx_counts(integer *counts) {
    counts[0] = pool->runs.load();
    counts[1] = pool->wakes.load();
}
