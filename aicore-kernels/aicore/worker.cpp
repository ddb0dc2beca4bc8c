/* The worker loop of an AICore: the same loop as `aicore-kernels/src/worker.rs`, on the registers of a2a3.
 *
 *   EXITED --greet/introduce--> in service --doorbell/run, finish--> in service --exit signal/leave--> EXITED
 *
 * The source is compiled once for each kind of core. AICPU writes the core's scheduler line in GM and its doorbell (DATA_MAIN_BASE); the core writes its
 * worker line in GM and its status (COND). Nobody keeps the core's cache coherent, so each access says what it needs:
 *
 *   fresh        before a load of what AICPU wrote since the last look
 *   drop_cache   before a kernel reads its arguments and what other cores wrote
 *   write_back   behind stores that AICPU or the host reads
 *
 * Writing a line back writes all its 64 bytes; the worker line has one writer, this core. Between two dispatches the core holds no line that it has
 * written and not written back, because `drop_cache` would lose it.
 */
#include "machine.h"

namespace {

using machine::fresh;
using machine::load;
using machine::store;
using machine::write_back;

/* What a step did: as `WorkerStep`. */
enum Step : uint32_t { IDLE, WORKED, LEFT };

/* The ticks of the counter have 20 ns. */
constexpr uint64_t NS_A_TICK = 20;
/* A word of no block: number 0 of one, lane 0. */
constexpr uint64_t ONLY_BLOCK = UINT64_C(1) << 32;

constexpr uint32_t next_id(uint32_t id) { return id >= PTO_LAST_DISPATCH_ID ? 0 : id + 1; }
constexpr uint32_t previous_id(uint32_t id) { return id == 0 ? PTO_LAST_DISPATCH_ID : id - 1; }

/* This core, from its launch to its exit. */
struct Core {
    PTO_GM pto_handshake *lines;
    uint32_t number;
    /* Whether AICPU has been answered, and the id of the dispatch that comes next then. */
    bool in_service;
    uint32_t expected;
    /* The epoch that was answered last, in this launch or an earlier one. */
    uint32_t answered;
    /* Counted since the launch; written when the core leaves. */
    uint64_t tasks, busy_ticks;
};

struct Dispatch {
    uint32_t id;
    uint64_t kernel, args;
};

/* ---- Chains: `abi/src/chain.rs` ---- */

/* How often each link of a chain runs, and what of its arguments varies: in the order of `ChainReader`. */
struct ChainReader {
    const PTO_GM uint64_t *words;
    uint32_t end, links;
    uint32_t at, turn, times;
    bool in_group;
    uint32_t group_at, group_links;

    PTO_AICORE uint64_t word(uint32_t index) const { return load(words + index); }
    PTO_AICORE uint32_t shape_times() const { return static_cast<uint32_t>(word(at + 1)); }
    PTO_AICORE bool with_next() const { return times > 0 && (shape_times() & PTO_CHAIN_WITH_NEXT) != 0; }

    PTO_AICORE explicit ChainReader(uint64_t address)
        : words(reinterpret_cast<const PTO_GM uint64_t *>(address)), times(0) {
        const uint64_t header = word(0);
        end = static_cast<uint32_t>(header);
        const bool is_known = (header >> 56) == PTO_CHAIN_VERSION;
        links = is_known ? static_cast<uint32_t>(header >> 32) & 0xFFFFFF : 0;
        begin(1);
    }

    /* Goes to the link that begins at `start`, the first one of its group. */
    PTO_AICORE void begin(uint32_t start) {
        turn = 0;
        group_at = start;
        group_links = links;
        enter(start);
        in_group = with_next();
    }

    /* Goes to the link that begins at `start`, in this turn. */
    PTO_AICORE void enter(uint32_t start) {
        at = start;
        times = 0;
        if (links > 0 && at + 2 <= end) {
            links -= 1;
            times = shape_times() & ~PTO_CHAIN_WITH_NEXT;
        }
    }

    /* A kernel of a group was given out: goes to the next one of this turn, or to the first one of the next turn. */
    PTO_AICORE void take_turns(uint32_t next) {
        if (with_next() && links > 0) {
            return enter(next);
        }
        turn += 1;
        if (turn == times) {
            return begin(next);
        }
        links = group_links;
        enter(group_at);
    }

    /* The code of the next kernel, its arguments and its block in `args`; 0: there is none. */
    PTO_AICORE uint64_t next(uint64_t *args) {
        if (turn >= times) {
            return 0;
        }
        const uint64_t code = word(at), shape = word(at + 1);
        const uint32_t variations = static_cast<uint32_t>(shape >> 32) & 0xFF;
        uint32_t count = static_cast<uint32_t>(shape >> 40) & 0xFF;
        count = count < PTO_MAX_CHAIN_ARGS ? count : PTO_MAX_CHAIN_ARGS;
        const uint32_t first = at + 2, column = first + count + variations;
        if (column > end) {
            return 0;
        }
        for (uint32_t index = 0; index < count; ++index) {
            args[index] = word(first + index);
        }
        uint32_t columns = 0;
        for (uint32_t variation = first + count; variation < column; ++variation) {
            columns += vary(args, word(variation), column + columns);
        }
        args[count] = ONLY_BLOCK;
        if (in_group) {
            take_turns(column + columns);
        } else if (++turn == times) {
            begin(column + columns);
        }
        return code;
    }

    /* Changes one argument; how many words its column has. */
    PTO_AICORE uint32_t vary(uint64_t *args, uint64_t variation, uint32_t column) const {
        const uint32_t arg = static_cast<uint32_t>(variation >> 56) & 0x7F;
        const bool is_column = (variation >> 63) != 0;
        const uint32_t turns = static_cast<uint32_t>(variation >> 40) & 0xFFFF;
        const uint32_t kind = turns >> 14, number = turns & 0x3FFF;
        uint32_t now = turn, all = times;
        if (kind == 1 && number > 0) {
            now = turn / number;
            all = (times + number - 1) / number;
        } else if (kind == 2 && number > 0) {
            now = turn % number;
            all = number;
        }
        if (arg > PTO_MAX_CHAIN_ARGS) {
            return 0;
        }
        if (is_column) {
            args[arg] = column + now < end ? word(column + now) : 0;
            return all;
        }
        const int64_t step = static_cast<int64_t>(variation << 24) >> 24;
        args[arg] += static_cast<uint64_t>(step) * now;
        return 0;
    }
};

/* ---- The protocol: `abi/src/handshake`, over registers ---- */

/* Answers a greeting: the core is in service, with no dispatch behind it. The status comes first, because AICPU reads it when it sees the answer. */
PTO_AICORE void introduce(Core &core, uint32_t epoch) {
    machine::status(PTO_STATUS_IDLE);
    core.in_service = true;
    core.expected = 0;
    core.answered = epoch;
    PTO_GM pto_worker_line *mine = &core.lines->worker;
    store(&mine->core_id, core.number);
    store(&mine->kind, IS_CUBE ? PTO_CORE_KIND_AIC : PTO_CORE_KIND_AIV);
    store(&mine->status, PTO_STATUS_IDLE);
    store(&mine->aicore_done, epoch);
    write_back(mine);
}

/* Calls a kernel, and waits until its pipes have written what it gives. */
PTO_AICORE void run(Core &core, uint64_t kernel, uint64_t args) {
    const uint64_t start = machine::ticks();
    machine::call(kernel, args);
    machine::pipes_idle();
    core.busy_ticks += machine::ticks() - start;
}

/* Runs the kernels of a chain, one after another. Each finds its arguments in words of this core's own. */
PTO_AICORE void run_chain(Core &core, uint64_t chain) {
    ChainReader reader(chain);
    uint64_t own[PTO_MAX_CHAIN_ARGS + 1] = {};
    while (const uint64_t code = reader.next(own)) {
        run(core, code, reinterpret_cast<uint64_t>(own));
    }
}

PTO_AICORE void run_dispatch(Core &core, const Dispatch &dispatch) {
    /* AICPU may give the core its next dispatch as soon as it sees that this one has begun. */
    machine::status(dispatch.id);
    machine::drop_cache();
    if (dispatch.kernel == PTO_CHAIN_KERNEL) {
        run_chain(core, dispatch.args);
    } else {
        run(core, dispatch.kernel, dispatch.args);
    }
    core.tasks += 1;
    machine::status(PTO_FINISHED | dispatch.id);
}

/* Says that the core has left its loop. The line is there before the status that AICPU waits for. */
PTO_AICORE void leave(Core &core) {
    PTO_GM pto_worker_line *mine = &core.lines->worker;
    store(&mine->tasks_run, load(&mine->tasks_run) + core.tasks);
    store(&mine->busy_ns, load(&mine->busy_ns) + core.busy_ticks * NS_A_TICK);
    store(&mine->status, PTO_STATUS_EXITED);
    write_back(mine);
    core.in_service = false;
    machine::status(PTO_STATUS_EXITED);
}

/* Before the core is in service: answers a greeting that it has not answered. The doorbell is 0 from the launch on until AICPU has opened the window, and
 * the core writes no status before that. A greeting may be older than the launch: then AICPU rings again. */
PTO_AICORE Step wait_for_greeting(Core &core) {
    if (machine::doorbell() == 0) {
        return IDLE;
    }
    fresh(&core.lines->scheduler);
    const uint32_t epoch = load(&core.lines->scheduler.aicpu_ready);
    if (epoch == core.answered) {
        return IDLE;
    }
    introduce(core, epoch);
    return WORKED;
}

/* One turn of the loop; as long as the kernel takes, if there is one to run. */
PTO_AICORE Step step(Core &core) {
    if (!core.in_service) {
        return wait_for_greeting(core);
    }
    const uint32_t rung = machine::doorbell();
    if (rung == PTO_DOORBELL_EXIT) {
        leave(core);
        return LEFT;
    }
    if (rung > PTO_LAST_DISPATCH_ID || rung == previous_id(core.expected)) {
        return IDLE;
    }
    /* The doorbell may be one dispatch ahead: then the one before it comes first. */
    const uint32_t id = core.expected;
    core.expected = next_id(id);
    PTO_GM pto_scheduler_line *line = &core.lines->scheduler;
    fresh(line);
    const PTO_GM pto_dispatch_words *words = &line->dispatches[id & 1];
    run_dispatch(core, Dispatch{id, load(&words->kernel), load(&words->args)});
    return WORKED;
}

/* The core of this launch: `words` are the launch words that the host gives to AICPU and AICore. */
PTO_AICORE Core enter(const PTO_GM pto_launch_words *words) {
    const uint32_t number = IS_CUBE ? machine::block()
                                    : machine::blocks() + machine::block() * machine::subs() + machine::sub();
    fresh(&words->plan);
    PTO_GM pto_runtime *runtime = reinterpret_cast<PTO_GM pto_runtime *>(load(&words->plan.arena_address));
    PTO_GM pto_handshake *lines = &runtime->workers[number];
    fresh(&lines->worker);
    return Core{lines, number, false, 0, load(&lines->worker.aicore_done), 0, 0};
}

} // namespace

/* The entry of one kind of core. Its arguments are where the flags of a cluster are, and the launch words. */
#ifdef __DAV_CUBE__
#define PTO_WORKER pto_worker_0_mix_aic
#else
#define PTO_WORKER pto_worker_0_mix_aiv
#endif

PTO_ENTRY void PTO_WORKER(uint64_t flags_base, PTO_GM pto_launch_words *words) {
    machine::flags_base(flags_base);
    Core core = enter(words);
    while (step(core) != LEFT) {
    }
}
