// The threads of this process on a CPU, and how they share work: lists of levels of calls, one level after the other.
//
// A level is cut into pieces of parts, each about a share of what is left, so that all threads come to an end together.
// Who comes takes pieces of the current level, as long as there are any, and whoever ends the last one opens the next. So
// a thread that has no core at the moment is waited for only if it has begun something, and a level ends when its parts
// do, however few threads came. Waiting is looking for `spin` nanoseconds, then sleeping: a thread that looks for long
// would keep a core from the one that it waits for. And where other programs hold the cores so that the caller waits for
// longer than it would take to do the others' share itself, it works alone for a while.
#include <atomic>
#include <climits>
#include <csignal>
#include <ctime>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long long integer;

// `parts` parts of a kernel, `first` of them before it in its level; `weight`: about the cost of one part, in points of
// a cheap kernel.
struct Call {
    void (*function)(const void *words, integer first, integer last);
    const void *words;
    integer first, parts, weight;
};

// Calls that do not depend on each other; `weight` of all of them.
struct Level {
    const Call *calls;
    integer count, parts, weight;
};

namespace {
// Waking a thread, and handing a level from one to the other, cost some microseconds: the time of so many cheap points.
constexpr integer WORTH_WAKING = 4096, WORTH_SHARING = 1024, WORTH_TAKING = 256;
// Nanoseconds of shared work after which it is judged, what it must have gained, and for how long the caller works alone
// if it did not: twice as long each time, so that trying again costs little, up to the last number; after a gain half as
// long.
constexpr double WORTHWHILE = 1.1;
constexpr integer WINDOW = 10000000, SHORTEST_REST = 20000000, LONGEST_REST = 640000000;
constexpr int CALLER = 1, WORKER = 2;  // bits of those that sleep
constexpr int MOST = 4096;             // threads
constexpr int MOST_PIECES = 1 << 16;   // of a level
constexpr unsigned DONE = ~0u;         // pieces of no level

// Does parts first..last-1 of a level; returns what they weigh.
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
    // Generation of the level, and how many of its pieces nobody has taken, or DONE: that all levels are done is said by
    // the last write of who ended them, for the caller goes on as soon as it sees it. A thread that changed the second of
    // them has a piece of just this level, which therefore stays until the piece is done.
    alignas(64) std::atomic<unsigned long long> tickets{0};
    alignas(64) std::atomic<integer> left{0};  // pieces of it that are not done
    alignas(64) std::atomic<int> sleepers{0};
    std::atomic<integer> spin{0};
    std::atomic<int> threads{1};
    std::atomic<bool> busy{false};
    const Level *level = nullptr, *end = nullptr;
    integer pieces = 0, starts[MOST_PIECES + 1];  // of the level: their number, and the first part of each
    pthread_t workers[MOST];
    int started = 0;
    std::atomic<integer> runs{0}, wakes{0};
    // Of the shared work since the last judgement: how long it took, for how long of that the caller waited, what all of it
    // weighed and what of that the caller did. Until when it works alone, and for how long the next time.
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

    // Cuts the level: fewer and fewer, by weight, for what is left at the end is what threads wait for.
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

    // Opens `next`, or what follows it: levels too small to be shared are done here and now.
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

    // Takes a piece, of those left at `seen`. Returns what it weighs.
    integer take(unsigned long long seen) {
        if (!tickets.compare_exchange_strong(seen, seen - 1, std::memory_order_acq_rel)) return 0;
        const Level *mine = level;
        const integer *piece = starts + (pieces - unsigned(seen));
        const integer weight = perform(*mine, piece[0], piece[1]);
        if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) go_on(mine + 1);
        return weight;
    }

    // Until the generation is another one than in `seen`.
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

    // Where fewer threads can be had, fewer do the work.
    void resize(int wanted) {
        const int before = threads.exchange(wanted);
        if (wanted < before) {
            open(0);
            wake(INT_MAX, WORKER);
            for (; started >= wanted; --started) pthread_join(workers[started - 1], nullptr);
        }
        sigset_t all, usual;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &usual);  // signals are for the thread that called
        while (started + 1 < wanted && !pthread_create(workers + started, nullptr, begin, reinterpret_cast<void *>(
                                                                                          integer(started + 1))))
            ++started;
        pthread_sigmask(SIG_SETMASK, &usual, nullptr);
    }

    static void *begin(void *number);

    // Whether the caller alone, at its own pace, would have been done sooner or hardly later.
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

ThreadPool *pool = new ThreadPool;  // never destroyed: threads may look at it until the process has ended

void *ThreadPool::begin(void *number) {
    pool->work(int(reinterpret_cast<integer>(number)));
    return nullptr;
}

void after_fork() { pool = new ThreadPool; }  // its threads stayed behind
const int registered = pthread_atfork(nullptr, nullptr, after_fork);
}  // namespace

// The `count` levels in order, by at most `threads` threads, this one included; returns when all is done. A second
// thread of the program that comes meanwhile works for itself.
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

// One call of `function`; `shape` says into how many parts it is cut.
extern "C" void hx_launch(void (*function)(const void *, integer, integer), Shape (*shape)(const void *),
                          const void *words, int threads, integer spin) {
    const Shape found = shape(words);
    const Call call{function, words, 0, found.parts, found.weight};
    const Level level{&call, 1, found.parts, found.parts * found.weight};
    hx_run(&level, 1, threads, spin);
}

// How often work was shared, and sleepers were woken, since the process began.
extern "C" void hx_counts(integer *counts) {
    counts[0] = pool->runs.load();
    counts[1] = pool->wakes.load();
}
