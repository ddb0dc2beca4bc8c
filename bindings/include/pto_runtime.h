/* The host side of the PTO Runtime for C11 and C++17: link with -lpto_runtime.
 *
 * Generated from bindings/c by `cargo xtask generate`; do not edit.
 *
 * Functions return 0, or a status: a fault of the runtime (pto_abi.h, below 0x40000000) or an error of the host (below,
 * PTO_ERROR_*). Then nothing was done unless it says so, and pto_last_error tells name, message and remedy.
 * A handle that is null, closed or of another kind is INVALID_HANDLE; it is never followed. Pointers that a function is
 * given are valid for its duration, except where it says more. */

#ifndef PTO_RUNTIME_H
#define PTO_RUNTIME_H

#include <stddef.h>
#include <stdint.h>
#include "pto_abi.h"
#include "pto_range.h"

/* Errors of the host: what happened, and what to do */
/* A handle is null, of another kind, or was closed. Pass what the function that opens such a handle returned, and close it once. */
#define PTO_ERROR_INVALID_HANDLE 0x40000001
/* A pointer is null where one is needed. Pass a valid pointer. */
#define PTO_ERROR_NULL_ARGUMENT 0x40000002
/* An argument has a value that it cannot have. The message names the argument and what it may be. */
#define PTO_ERROR_INVALID_ARGUMENT 0x40000003
/* The device is running, and the call comes from its own builder. Call it before or after the run. */
#define PTO_ERROR_BUSY 0x40000004
/* The library met an error of its own. Report it, with the message. */
#define PTO_ERROR_PANIC 0x40000005
/* A builder's function is called outside of that builder. Call it on the builder's own thread, before the builder returns. */
#define PTO_ERROR_OUTSIDE_BUILDER 0x40000006
/* A child of fork uses what its parent has opened. Open a device in the child, or fork before you open one. */
#define PTO_ERROR_OTHER_PROCESS 0x40000007
/* The device's memory cannot be mapped. Open the device with less memory. */
#define PTO_ERROR_MAP_GM 0x40000010
/* A device cannot have this number of cores. Use 1 to 128 cores of both kinds together. */
#define PTO_ERROR_WORKERS 0x40000011
/* An allocation of zero bytes. Ask for at least one byte. */
#define PTO_ERROR_ZERO_SIZE 0x40000012
/* A size that 64 bits do not hold. Check the shape. */
#define PTO_ERROR_SIZE_OVERFLOW 0x40000013
/* The device's memory is full. Free buffers, or open the device with more memory (gm_bytes). */
#define PTO_ERROR_OUT_OF_MEMORY 0x40000014
/* An address is freed twice. Free each allocation once. */
#define PTO_ERROR_DOUBLE_FREE 0x40000015
/* An address is freed that no allocation starts at. Free what the allocation returned. */
#define PTO_ERROR_FOREIGN_POINTER 0x40000016
/* A copy does not lie in one live allocation. Check address and size. */
#define PTO_ERROR_COPY_OUT_OF_RANGE 0x40000017
/* There is no library kernel of this name. Use a name of the library; `pto info kernels` shows them. */
#define PTO_ERROR_UNKNOWN_KERNEL 0x40000020
/* A kernel cannot run on this device. Use a library kernel, or the simulator. */
#define PTO_ERROR_KERNEL_NOT_FOR_DEVICE 0x40000021
/* The flashed kernels do not have a kernel. Build and flash those of this release. */
#define PTO_ERROR_KERNEL_NOT_FLASHED 0x40000022
/* A func id is above the limit. Use 0 to 1023. */
#define PTO_ERROR_FUNC_ID_LIMIT 0x40000023
/* A func id has a kernel already. Use another func id, or unregister the kernel first. */
#define PTO_ERROR_DUPLICATE_FUNC_ID 0x40000024
/* A func id has no kernel. Unregister what is registered. */
#define PTO_ERROR_FUNC_ID_NOT_REGISTERED 0x40000025
/* A task or a launch calls a kernel with what the kernel does not take. The message names task, kernel and argument, and what to give; `pto info kernels` shows what kernels take. */
#define PTO_ERROR_KERNEL_CALL 0x40000026
/* A shared object cannot be loaded. Link it with -shared -fPIC for this machine, with everything that it uses. */
#define PTO_ERROR_LOAD_FAILED 0x40000030
/* A shared or relocatable object has no function of this name. Define it as extern "C", with default visibility. */
#define PTO_ERROR_SYMBOL_MISSING 0x40000031
/* Bytes are not an object file of this machine. Compile with -c -fPIC for this machine. */
#define PTO_ERROR_OBJECT_FORMAT 0x40000032
/* A relocatable object needs something that cannot be provided in memory. Compile it with -fPIC, without constructors and thread-local variables; or link it as a shared object. */
#define PTO_ERROR_OBJECT_RELOCATION 0x40000033
/* The operating system gives no executable memory. Allow it, or link the kernel as a shared object. */
#define PTO_ERROR_EXECUTABLE_MEMORY 0x40000034
/* A capacity is above its limit. Run a smaller graph, or lower the capacity. */
#define PTO_ERROR_CAPACITY 0x40000040
/* Tasks, edges and arguments of a run do not fit the device's memory. Free buffers, open the device with more memory (gm_bytes), or lower the capacities. */
#define PTO_ERROR_ARENA_MEMORY 0x40000041
/* The arena does not hold the graph. This is an error of the runtime: report it. */
#define PTO_ERROR_IMAGE_REGION 0x40000042
/* The environment variable of the build mode has another value than 0 or 1. Set PTO_AICPU_BUILD_GRAPH_BUILD_MODE to 0 (sequential) or 1 (concurrent). */
#define PTO_ERROR_BUILD_MODE_VARIABLE 0x40000043
/* An image cannot be used. The message says what is wrong with it; build it again with this release. */
#define PTO_ERROR_IMAGE 0x40000050
/* The store of flashed images cannot be used. The message names the file; flash the device again. */
#define PTO_ERROR_STORE 0x40000051
/* The emulated machine cannot be used. The message says why. */
#define PTO_ERROR_QEMU 0x40000052
/* The device takes builders from its firmware image only. Link the builder into the image (pto fw build --builder NAME=FILE), flash that, and name it in the run. */
#define PTO_ERROR_BUILDER_NOT_FOR_DEVICE 0x40000053
/* An orchestration function failed. The message has its return value, or the signal that it raised. */
#define PTO_ERROR_ORCHESTRATION_FAILED 0x40000060
/* An AICPU builder is needed, and the orchestration embedded none. Call try_set_aicpu_orch_so in the orchestration, or define AICPU_ORCHESTRATION in kernel_config.py. */
#define PTO_ERROR_PLUGIN_MISSING 0x40000061
/* An AICPU builder plugin is larger than the limit. Link it with -O2 -s; the limit is RUNTIME_MAX_AICPU_ORCH_SO_SIZE. */
#define PTO_ERROR_PLUGIN_TOO_LARGE 0x40000062
/* Too many Runtime objects live at once. Finalise those that are done. */
#define PTO_ERROR_RUNTIMES_LIMIT 0x40000063
/* An AICPU builder raised a signal. Debug the builder that the message names; allocations that it held are lost. */
#define PTO_ERROR_BUILDER_SIGNAL 0x40000064
/* A program followed an address of the device's memory as a pointer. Read through pto::Table (pto_table.hpp), pto::Stream::get, or pto_builder_read_u32 in C; in an orchestration also through copy_from_device. */
#define PTO_ERROR_RAW_ACCESS 0x40000065
/* A program file cannot be used, or there is none to write. The message says what is wrong; `pto program inspect` shows what a file holds. */
#define PTO_ERROR_PROGRAM 0x40000070
/* A program is given something that does not fit it. Give the tensors and numbers that the program has; the message names them. */
#define PTO_ERROR_PROGRAM_ARGUMENT 0x40000071
/* A program ended with a fault. The message names the program and the cause; reset the session, and run again. */
#define PTO_ERROR_PROGRAM_FAULT 0x40000072
/* A tensor is in another layout than a program needs, or cannot be converted. Convert it to the program's layout of that tensor: to_layout (in C pto_tensor_to_layout). */
#define PTO_ERROR_TENSOR_LAYOUT 0x40000073
/* A tensor is used that was given to a run. Lend a tensor that is used again, and give only one that is not. */
#define PTO_ERROR_TENSOR_MOVED 0x40000074
/* A tensor of another stream is used. Take it over first: take_over (in C pto_tensor_take_over). */
#define PTO_ERROR_OTHER_STREAM 0x40000075
/* Something of another session is used. Use what this session has loaded and computed. */
#define PTO_ERROR_OTHER_SESSION 0x40000076
/* A session refuses a call. The message says why. */
#define PTO_ERROR_SESSION 0x40000078
/* A stream has stopped because a command failed. Reset the session; the message has the cause. */
#define PTO_ERROR_STREAM_STOPPED 0x40000079
/* Commands were dropped because their stream was aborted. Submit them again. */
#define PTO_ERROR_STREAM_ABORTED 0x4000007a
/* The time to wait is over. Wait longer, or abort the stream. */
#define PTO_ERROR_TIMED_OUT 0x4000007b
/* A command of a stream failed. The message says which one, and why. */
#define PTO_ERROR_COMMAND_FAILED 0x4000007c


/*
 In `ProgramArgument::tensor`: the argument is a word.
 */
#define PTO_PROGRAM_WORD UINT32_MAX

/*
 Version of this header.
 */
#define PTO_INTERFACE_VERSION 1

/*
 The graph that a builder program builds; valid on its thread until it returns.
 */
typedef struct pto_builder pto_builder;

/*
 A run's remote control. Created by `pto_control_create`, destroyed by `pto_control_destroy`; serves one run at a time.
 */
typedef struct pto_control pto_control;

/*
 A device. Opened by `pto_device_open`, closed by `pto_device_close`.
 */
typedef struct pto_device pto_device;

/*
 An event of a session. Opened by `pto_event_open`, closed by `pto_event_close`.
 */
typedef struct pto_event pto_event;

/*
 A graph that is being built. Created by `pto_graph_create`, destroyed by `pto_graph_destroy`; it can be run any
 number of times, on any device, and tasks can be added between runs.
 */
typedef struct pto_graph pto_graph;

/*
 A stream of a session that launches kernels. Opened by `pto_kernel_stream_open`, closed by `pto_kernel_stream_close`.
 */
typedef struct pto_kernel_stream pto_kernel_stream;

/*
 A program in the memory of a device. Made by `pto_program_load`, let go by `pto_loaded_program_release`.
 */
typedef struct pto_loaded_program pto_loaded_program;

/*
 A flag on the device of a session: one stream raises it, and one waits for it and lowers it. Opened by `pto_notify_open`, closed by `pto_notify_close`.
 */
typedef struct pto_notify pto_notify;

/*
 A program: what a file `.ptop` holds. Made by `pto_program_read`, `pto_program_of_text` or `pto_program_of_tasks`, destroyed by `pto_program_destroy`.
 */
typedef struct pto_program pto_program;

/*
 A stream of a session that runs programs. Opened by `pto_program_stream_open`, closed by `pto_program_stream_close`.
 */
typedef struct pto_program_stream pto_program_stream;

/*
 What was captured of kernel streams. Made by `pto_kernel_stream_end_capture`, closed by `pto_recording_close`.
 */
typedef struct pto_recording pto_recording;

/*
 A device that stays up. Opened by `pto_session_open`, closed by `pto_session_close`.
 */
typedef struct pto_session pto_session;

/*
 A tensor on the device. Each handle is let go once, by `pto_tensor_release`; with its last handle the tensor's memory goes to the next tensor
 of its stream.
 */
typedef struct pto_tensor pto_tensor;

/*
 A builder program: 0, or an error of its own, which ends the run with BUILD_FAILED. The first call on `builder` that
 fails is the fault of the run, whatever it returns.
 */
typedef int32_t (*pto_builder_program)(struct pto_builder *builder, void *user);

/*
 What a device is opened with; `pto_device_options_init` fills it in.
 */
typedef struct pto_device_options {
  /*
   sizeof(pto_device_options).
   */
  uint32_t size;
  /*
   Cube cores.
   */
  uint32_t aic;
  /*
   Vector cores.
   */
  uint32_t aiv;
  /*
   How a2a3sim is hosted: 0 a pool of OS threads, 1 one OS thread for each core and AICPU instance.
   */
  uint32_t hosting;
  /*
   OS threads of the pool; 0: one for each CPU.
   */
  uint32_t os_threads;
  /*
   AICPU instances of qemu.
   */
  uint32_t aicpu;
  /*
   Bytes of global memory; they are used as they are touched.
   */
  uint64_t gm_bytes;
} pto_device_options;

/*
 What a device is and holds.
 */
typedef struct pto_device_description {
  /*
   Cube cores.
   */
  uint32_t aic;
  /*
   Vector cores.
   */
  uint32_t aiv;
  /*
   Bytes of global memory.
   */
  uint64_t gm_bytes;
  /*
   Bytes of it that are free.
   */
  uint64_t gm_free_bytes;
  /*
   Kernels that are registered.
   */
  uint32_t kernels;
  /*
   Builder programs that it knows.
   */
  uint32_t builders;
  /*
   Its name, with a zero at its end.
   */
  char name[16];
} pto_device_description;

/*
 What went wrong in the last call of this thread that failed. The texts are valid until the next call of this
 thread that fails, or `pto_clear_error`.
 */
typedef struct pto_error {
  /*
   The status that the call returned; 0: no call failed.
   */
  int32_t code;
  /*
   Not used; zero.
   */
  uint32_t reserved;
  /*
   The code's name, such as "OUT_OF_MEMORY"; empty if no call failed.
   */
  const char *name;
  /*
   What happened, where.
   */
  const char *message;
  /*
   What to do.
   */
  const char *remedy;
} pto_error;

/*
 One generation of a device's images. Texts end with a zero; an image that is not there has an empty name.
 */
typedef struct pto_flashed_image {
  /*
   Counts the generations; the first is 1.
   */
  uint32_t generation;
  /*
   1: the next run uses it.
   */
  uint32_t is_current;
  /*
   When it was flashed, in seconds since 1970.
   */
  uint64_t flashed_at_s;
  /*
   File name of the firmware.
   */
  char firmware[64];
  /*
   SHA-256 of the firmware.
   */
  char firmware_sha256[72];
  /*
   File name of the kernels.
   */
  char kernels[64];
  /*
   SHA-256 of the kernels.
   */
  char kernels_sha256[72];
} pto_flashed_image;

/*
 A kernel: `args` are the words of its task.
 */
typedef void (*pto_kernel_function)(int64_t *args);

/*
 A function that a stream calls.
 */
typedef void (*pto_stream_function)(void *user);

/*
 An argument of a recording, and what replaces it in one launch.
 */
typedef struct pto_recording_binding {
  /*
   The address that was an argument while the stream was captured.
   */
  uint64_t from;
  /*
   The address instead.
   */
  uint64_t to;
} pto_recording_binding;

/*
 Gets a message. `instance` is the AICPU instance that logged it, or UINT32_MAX for the host; `time_ns` is the
 instance's clock, or 0; `text` is valid until the callback returns.
 */
typedef void (*pto_log_callback)(void *user, uint32_t level, uint32_t instance, uint64_t time_ns, const char *text);

/*
 How a run is done; `pto_run_options_init` fills it in.
 */
typedef struct pto_run_options {
  /*
   sizeof(pto_run_options).
   */
  uint32_t size;
  /*
   1 concurrent, 0 sequential: whether schedulers wait for the builder.
   */
  uint32_t build_mode;
  /*
   1 lock-free, 0 locked.
   */
  uint32_t fanout;
  /*
   AICPU instances: 1 to 16; with a builder at least 2. 0: as many as find a cluster of cores to schedule, 4 at most.
   */
  uint32_t aicpu_instances;
  /*
   Tasks that a builder may add. A graph brings its own need.
   */
  uint32_t tasks;
  /*
   1: kernel times are not measured.
   */
  uint32_t skip_kernel_times;
  /*
   Argument words that a builder may add.
   */
  uint64_t arg_words;
  /*
   Edges that a builder may add.
   */
  uint64_t edges;
  /*
   How long one task may run on a core.
   */
  uint64_t task_budget_ns;
  /*
   How long the run may go without progress while no core is busy.
   */
  uint64_t stall_budget_ns;
  /*
   How long a core may take to answer the greeting.
   */
  uint64_t bring_up_budget_ns;
  /*
   How long the whole run may take; 0: no limit.
   */
  uint64_t run_budget_ns;
  /*
   Where the timeline of the run is written, for `pto view`, `pto analyze` and Perfetto; null: it is not recorded.
   */
  const char *trace_file;
  /*
   A remote control of the run; null: none.
   */
  struct pto_control *control;
  /*
   Task slots of a streaming run: a power of two. 0: 4,096; sequential, as many as `tasks`.
   */
  uint32_t window;
  /*
   Entries of its tensor map: a power of two, at least 256. 0: as usual, as below.
   */
  uint32_t map_entries;
  /*
   Bytes of each of its heap rings: a multiple of 64. 0: 64 MiB.
   */
  uint64_t heap_bytes;
  /*
   How many heap rings it has, one for each depth of scopes: 1 to 8. 0: 4.
   */
  uint32_t heap_rings;
  /*
   Not used; zero.
   */
  uint32_t reserved;
} pto_run_options;

/*
 A layout as a text, such as "device, row-major", with a zero at its end.
 */
typedef struct pto_layout {
  /*
   The text, with a zero at its end.
   */
  char text[192];
} pto_layout;

/*
 What a tensor is.
 */
typedef struct pto_tensor_description {
  /*
   Of a program's tensor its name; otherwise empty.
   */
  char name[136];
  /*
   Of a program's tensor "input", "output", "updated", "temporary" or "constant"; otherwise empty.
   */
  char role[16];
  /*
   The element type: "f32", "bf16", "i32", ..
   */
  char element[8];
  /*
   Dimensions.
   */
  uint64_t rank;
  /*
   The extents; of dimensions that there are not, zero.
   */
  uint64_t shape[5];
  /*
   Bytes that it takes on the device, those that fill up tiles among them.
   */
  uint64_t bytes;
  /*
   The layout.
   */
  struct pto_layout layout;
} pto_tensor_description;

/*
 A tensor for a run.
 */
typedef struct pto_program_tensor_argument {
  /*
   The name that the program has for it.
   */
  const char *name;
  /*
   The tensor.
   */
  struct pto_tensor *tensor;
  /*
   0: it is lent. The program reads it, updates it or writes it, as its role says. 1: it is given for good; its handles are released all the
   same. A tensor that is given and updated is among the outputs.
   */
  uint32_t is_given;
  /*
   Not used; zero.
   */
  uint32_t reserved;
} pto_program_tensor_argument;

/*
 A number for a size or a symbol of a program.
 */
typedef struct pto_program_number {
  /*
   Its name.
   */
  const char *name;
  /*
   0: `integer` counts. 1: `real` counts.
   */
  uint32_t kind;
  /*
   For symbols of type f32.
   */
  float real;
  /*
   For sizes of axes and integer symbols.
   */
  uint64_t integer;
} pto_program_number;

/*
 An output of a run.
 */
typedef struct pto_program_output {
  /*
   The name that the program has for it: the caller's.
   */
  const char *name;
  /*
   The tensor: the run's. To be released.
   */
  struct pto_tensor *tensor;
} pto_program_output;

/*
 A tensor of a program of tasks.
 */
typedef struct pto_program_tensor_spec {
  /*
   Its name.
   */
  const char *name;
  /*
   "input", "output", "updated" or "temporary".
   */
  const char *role;
  /*
   The element type: "f32", "bf16", "i32", ..
   */
  const char *element;
  /*
   The layout: "row-major", "nz", "on-chip, row-major", ..
   */
  const char *layout;
  /*
   The extents.
   */
  const uint64_t *shape;
  /*
   How many of them: 1 to 5.
   */
  uint32_t rank;
  /*
   Not used; zero.
   */
  uint32_t reserved;
} pto_program_tensor_spec;

/*
 An argument of a task.
 */
typedef struct pto_program_argument {
  /*
   The number of a tensor, or `PTO_PROGRAM_WORD`.
   */
  uint32_t tensor;
  /*
   Not used; zero.
   */
  uint32_t reserved;
  /*
   Of a tensor the byte whose address is the argument. Otherwise the word; a float has its bits in the low half.
   */
  uint64_t value;
} pto_program_argument;

/*
 A task of a program.
 */
typedef struct pto_program_task {
  /*
   The name of its kernel.
   */
  const char *kernel;
  /*
   Its arguments.
   */
  const struct pto_program_argument *args;
  /*
   The numbers of the tasks that it waits for; each is below its own.
   */
  const uint32_t *after;
  /*
   How many arguments.
   */
  uint32_t arg_count;
  /*
   How many tasks it waits for.
   */
  uint32_t after_count;
  /*
   The cores that its kernel runs on, as in `pto_kernel_register`: 0 AIC, 1 AIV.
   */
  uint32_t kind;
  /*
   Not used; zero.
   */
  uint32_t reserved;
} pto_program_task;

/*
 What a run that succeeded reports.
 */
typedef struct pto_run_report {
  /*
   Tasks that the program submitted: a chain is one.
   */
  uint64_t tasks;
  /*
   Edges of the graph.
   */
  uint64_t edges;
  /*
   Edges whose producer had completed when they were added.
   */
  uint64_t edges_satisfied;
  /*
   From the launch to the last instance's return.
   */
  uint64_t makespan_ns;
  /*
   Time in kernels, summed over the cores of a kind (0 AIC, 1 AIV).
   */
  uint64_t busy_ns[2];
  /*
   Parts run by the cores of a kind: kernels of chains, and of each block of other tasks.
   */
  uint64_t tasks_run[2];
  /*
   Log entries that were overwritten before they were read.
   */
  uint64_t logs_dropped;
} pto_run_report;

/*
 How far a run is. The counts are later than the run.
 */
typedef struct pto_run_progress {
  /*
   1: the run is on. 0: it has not begun, or it is over; the counts are zero.
   */
  uint32_t running;
  /*
   Not used; zero.
   */
  uint32_t reserved;
  /*
   Tasks added.
   */
  uint64_t added;
  /*
   Tasks published.
   */
  uint64_t published;
  /*
   Tasks completed.
   */
  uint64_t completed;
} pto_run_progress;

/*
 What was copied, converted, bounced and allocated since the device was opened.
 */
typedef struct pto_counters {
  /*
   Bytes that were copied from the host to the device.
   */
  uint64_t copied_to_device_bytes;
  /*
   Bytes that were copied from the device to the host.
   */
  uint64_t copied_to_host_bytes;
  /*
   Bytes that were copied on the device.
   */
  uint64_t copied_on_device_bytes;
  /*
   Bytes that were filled.
   */
  uint64_t filled_bytes;
  /*
   Bytes of the tensors that conversions wrote.
   */
  uint64_t converted_bytes;
  /*
   Conversions.
   */
  uint64_t conversions;
  /*
   Bytes of tensors that should have been on the chip and found no room there.
   */
  uint64_t bounced_bytes;
  /*
   Blocks that were taken from the memory of the device.
   */
  uint64_t allocations;
  /*
   Blocks that were taken from the pool of tensors that were let go.
   */
  uint64_t pool_hits;
  /*
   Runs of programs, those of conversions among them.
   */
  uint64_t runs;
  /*
   Runs whose bindings were in the memory of the device already.
   */
  uint64_t binding_hits;
  /*
   Launches: one expands one program, or several of a stream that overlaps them.
   */
  uint64_t launches;
} pto_counters;

/*
 Versions of the library.
 */
typedef struct pto_library_versions {
  /*
   Of this header: raised when a function or structure changes its meaning.
   */
  uint32_t interface;
  /*
   Of the interface that host and firmware share; firmware must have the same.
   */
  uint32_t abi_major;
  /*
   Of the interface that host and firmware share; firmware must have at least this.
   */
  uint32_t abi_minor;
  /*
   Not used; zero.
   */
  uint32_t reserved;
  /*
   Hash of the layouts that host and firmware share.
   */
  uint64_t layout_hash;
} pto_library_versions;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Gives a builder program to a device: runs name it. One of the same name before it is replaced. `user` is passed to
 it as it is.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, BUILDER_NOT_FOR_DEVICE on qemu, whose builders are part of the image (`pto fw
 build --builder`). Thread safety: any thread, also during a run, for the next run.
 */
int32_t pto_register_builder(const struct pto_device *device,
                             const char *name,
                             pto_builder_program program,
                             void *user);

/*
 Takes a builder program away.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT when the device has none of this name. Thread safety: any
 thread, also during a run, which keeps it until its end.
 */
int32_t pto_unregister_builder(const struct pto_device *device, const char *name);

/*
 Gives the words that the run was started with; they are valid until the builder returns.

 Fails with OUTSIDE_BUILDER, NULL_ARGUMENT. Thread safety: the builder's own thread.
 */
int32_t pto_builder_words(const struct pto_builder *builder, const uint64_t **words, uint32_t *count);

/*
 Adds a task, unpublished, as `pto_graph_add_task`.

 Fails with OUTSIDE_BUILDER, NULL_ARGUMENT, KERNEL_CALL for a kernel of the library that does not take these words, or a fault of the build; the last two
 end the run. Thread safety: the builder's own thread.
 */
int32_t pto_builder_add_task(const struct pto_builder *builder,
                             int32_t func_id,
                             int32_t core_type,
                             const uint64_t *args,
                             uint32_t num_args,
                             int32_t *task);

/*
 Makes task `consumer`, which is not published yet, wait for task `producer`, unless that has completed already.

 Fails with OUTSIDE_BUILDER, or a fault of the build, which ends the run. Thread safety: the builder's own thread.
 */
int32_t pto_builder_add_edge(const struct pto_builder *builder, int32_t producer, int32_t consumer);

/*
 Makes a task visible to the schedulers; every task must be published.

 Fails with OUTSIDE_BUILDER, or a fault of the build, which ends the run. Thread safety: the builder's own thread.
 */
int32_t pto_builder_publish(const struct pto_builder *builder, int32_t task);

/*
 Reads a word of global memory, aligned to 4 bytes, such as an entry of a block table.

 Fails with OUTSIDE_BUILDER, NULL_ARGUMENT, BUILD_GM_RANGE, which ends the run. Thread safety: the builder's own
 thread.
 */
int32_t pto_builder_read_u32(const struct pto_builder *builder, uint64_t address, uint32_t *word);

/*
 Fills in the options of a full a2a3 die with 4 GiB.

 Fails when `options` is null. Thread safety: any thread.
 */
int32_t pto_device_options_init(struct pto_device_options *options);

/*
 Opens a device: "a2a3sim", the simulator in this process, or "qemu", the image that is flashed to it on an emulated
 machine (with `options` null: 4 AIC, 8 AIV, 1 GiB). `options` null: the defaults.

 Fails with WORKERS, MAP_GM, INVALID_ARGUMENT for an unknown name or option; for qemu also with IMAGE, STORE, QEMU.
 Thread safety: any thread. Devices do not disturb each other.
 */
int32_t pto_device_open(const char *name, const struct pto_device_options *options, struct pto_device **device);

/*
 Closes a device. Memory that is still allocated on it goes with it, when the calls that use it have returned.

 Fails with INVALID_HANDLE. Thread safety: any thread; a run of another thread ends first.
 */
int32_t pto_device_close(struct pto_device *device);

/*
 Says what a device is and holds.

 Fails with INVALID_HANDLE, BUSY (from a builder of its run). Thread safety: any thread; waits for a run to end.
 */
int32_t pto_device_describe(const struct pto_device *device, struct pto_device_description *description);

/*
 Gives the last error of this thread.

 Fails when `error` is null. Thread safety: any thread; each has its own last error.
 */
int32_t pto_last_error(struct pto_error *error);

/*
 Forgets the last error of this thread.

 Thread safety: any thread; each has its own last error.
 */
void pto_clear_error(void);

/*
 The name of a status, such as "OUT_OF_MEMORY"; empty if there is no such status.

 Thread safety: any thread. The text is valid for ever.
 */
const char *pto_error_name(int32_t code);

/*
 What a status means; empty if there is no such status.

 Thread safety: any thread. The text is valid for ever.
 */
const char *pto_error_sentence(int32_t code);

/*
 What to do about a status; empty if there is no such status.

 Thread safety: any thread. The text is valid for ever.
 */
const char *pto_error_remedy(int32_t code);

/*
 Creates an empty graph.

 Fails when `graph` is null. Thread safety: any thread.
 */
int32_t pto_graph_create(struct pto_graph **graph);

/*
 Destroys a graph.

 Fails with INVALID_HANDLE. Thread safety: any thread; a run that uses the graph keeps it.
 */
int32_t pto_graph_destroy(struct pto_graph *graph);

/*
 Adds a task: `args` are `num_args` addresses and scalars, at most 128; `core_type` is 0 (AIC) or 1 (AIV). Its id,
 which counts from 0, is in `task`.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, BUILD_UNKNOWN_FUNC, BUILD_UNKNOWN_KIND, BUILD_TOO_MANY_ARGS,
 BUILD_TASKS_FULL; nothing was added. Thread safety: any thread; calls on one graph follow one another.
 */
int32_t pto_graph_add_task(const struct pto_graph *graph,
                           int32_t func_id,
                           int32_t core_type,
                           const uint64_t *args,
                           uint32_t num_args,
                           int32_t *task);

/*
 Makes task `consumer` wait for task `producer`.

 Fails with INVALID_HANDLE, BUILD_UNKNOWN_TASK, BUILD_SELF_EDGE; nothing was added. A cycle is found when the graph is
 run. Thread safety: any thread; calls on one graph follow one another.
 */
int32_t pto_graph_add_edge(const struct pto_graph *graph, int32_t producer, int32_t consumer);

/*
 Says how many tasks and edges a graph has; either pointer may be null.

 Fails with INVALID_HANDLE. Thread safety: any thread; calls on one graph follow one another.
 */
int32_t pto_graph_size(const struct pto_graph *graph, uint64_t *tasks, uint64_t *edges);

/*
 Verifies images and makes them the ones of a device ("qemu", "a2a3"), all together: a firmware, a blob of kernels, or
 both. What is not given stays; interrupted, it leaves what was there. `generation` may be null.

 Fails with INVALID_ARGUMENT, NULL_ARGUMENT, IMAGE, STORE. Thread safety: any thread, and any process: one flashes at
 a time.
 */
int32_t pto_flash(const char *device, const char *const *paths, uint32_t count, uint32_t *generation);

/*
 Lists the generations of a device, oldest first: at most `capacity` of them in `list`, and how many there are in
 `count`.

 Fails with INVALID_ARGUMENT, NULL_ARGUMENT, STORE. Thread safety: any thread.
 */
int32_t pto_flashed(const char *device, struct pto_flashed_image *list, uint32_t capacity, uint32_t *count);

/*
 Makes the generation before the current one current again; its number is in `generation`, which may be null.

 Fails with INVALID_ARGUMENT, STORE, IMAGE. Thread safety: any thread, and any process: one at a time.
 */
int32_t pto_rollback(const char *device, uint32_t *generation);

/*
 Registers a function of this process. `name` is what reports call it.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, BUILD_UNKNOWN_FUNC, BUILD_UNKNOWN_KIND, DUPLICATE_FUNC_ID,
 KERNEL_NOT_FOR_DEVICE (qemu), BUSY. Thread safety: any thread; waits for a run to end.
 */
int32_t pto_register_kernel_function(const struct pto_device *device,
                                     int32_t func_id,
                                     int32_t core_type,
                                     const char *name,
                                     pto_kernel_function entry);

/*
 Registers the function `symbol` (null: "kernel_entry") of a shared or relocatable object, given as bytes. The text
 of a relocatable object is loaded into executable memory. Code is loaded once for its content, and stays loaded.

 Fails with those of `pto_register_kernel_function`, and LOAD_FAILED, SYMBOL_MISSING, OBJECT_FORMAT,
 OBJECT_RELOCATION, EXECUTABLE_MEMORY. Thread safety: any thread; waits for a run to end.
 */
int32_t pto_register_kernel_object(const struct pto_device *device,
                                   int32_t func_id,
                                   int32_t core_type,
                                   const char *name,
                                   const void *object,
                                   uint64_t bytes,
                                   const char *symbol);

/*
 As `pto_register_kernel_object`, from a file.

 Fails with those of `pto_register_kernel_object`; LOAD_FAILED also when the file cannot be read. Thread safety: any
 thread; waits for a run to end.
 */
int32_t pto_register_kernel_file(const struct pto_device *device,
                                 int32_t func_id,
                                 int32_t core_type,
                                 const char *name,
                                 const char *path,
                                 const char *symbol);

/*
 Registers every kernel of the library under its own func id (`pto info kernels`); all of them or none.

 Fails with INVALID_HANDLE, DUPLICATE_FUNC_ID, BUSY. Thread safety: any thread; waits for a run to end.
 */
int32_t pto_register_library(const struct pto_device *device);

/*
 Registers the library kernel `kernel` under a func id of the caller's choice.

 Fails with INVALID_HANDLE, UNKNOWN_KERNEL, BUILD_UNKNOWN_FUNC, DUPLICATE_FUNC_ID, BUSY. Thread safety: any thread;
 waits for a run to end.
 */
int32_t pto_register_library_kernel(const struct pto_device *device, int32_t func_id, const char *kernel);

/*
 Takes the kernel of a func id away.

 Fails with INVALID_HANDLE, BUILD_UNKNOWN_FUNC, FUNC_ID_NOT_REGISTERED, BUSY. Thread safety: any thread; waits for a
 run to end.
 */
int32_t pto_unregister_kernel(const struct pto_device *device, int32_t func_id);

/*
 Opens a stream that launches kernels, one after the other.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, OUT_OF_MEMORY, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_open(const struct pto_session *session, struct pto_kernel_stream **stream);

/*
 Closes a stream; what was launched still runs.

 Fails with INVALID_HANDLE. Thread safety: any thread.
 */
int32_t pto_kernel_stream_close(struct pto_kernel_stream *stream);

/*
 Launches a kernel that the device has, in so many blocks. The kernels of the library have the func ids that `pto info kernels` shows; tensors are given by their
 addresses (`pto_tensor_address`). While the stream is captured, the launch is written down and not done.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread; launches are in the order of the calls.
 */
int32_t pto_kernel_stream_launch(const struct pto_kernel_stream *stream,
                                 uint32_t func_id,
                                 uint32_t blocks,
                                 const uint64_t *args,
                                 uint32_t arg_count);

/*
 Copies `bytes` bytes at `from` to the device. They are read when the copy's turn comes, of a recording in each launch: they have to live, and must not be written, until
 the copy is over, and of a recording until it is closed and its launches are over.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT (the range is not in one allocation of the device), STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_copy_to_device(const struct pto_kernel_stream *stream,
                                         uint64_t to,
                                         const void *from,
                                         uint64_t bytes);

/*
 Copies `bytes` bytes of the device to `to`. Of a recording, each launch writes them.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT (the range is not in one allocation of the device), STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_copy_from_device(const struct pto_kernel_stream *stream,
                                           uint64_t from,
                                           void *to,
                                           uint64_t bytes);

/*
 Copies `bytes` bytes on the device; the two ranges do not overlap.

 Fails with INVALID_HANDLE, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_copy(const struct pto_kernel_stream *stream, uint64_t from, uint64_t to, uint64_t bytes);

/*
 Fills `bytes` bytes of the device with `byte`.

 Fails with INVALID_HANDLE, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_fill(const struct pto_kernel_stream *stream, uint64_t to, uint8_t byte, uint64_t bytes);

/*
 Reduces `bytes` bytes at `from` on the device into those at `to`: `how` is "sum", "max" or "min", `dtype` an element type such as "f32".

 Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_reduce(const struct pto_kernel_stream *stream,
                                 const char *how,
                                 const char *dtype,
                                 uint64_t from,
                                 uint64_t to,
                                 uint64_t bytes);

/*
 Calls `function` with `user` on a thread of the session; the stream waits for its return. Of a recording, each launch calls it. The function must not wait for this stream.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_call(const struct pto_kernel_stream *stream,
                               pto_stream_function function,
                               void *user);

/*
 Writes a word of 64 bits of the device.

 Fails with INVALID_HANDLE, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_write_value(const struct pto_kernel_stream *stream, uint64_t at, uint64_t value);

/*
 Makes the stream wait until a word of 64 bits of the device has this value. A stream, a kernel or the host may write it.

 Fails with INVALID_HANDLE, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_wait_value(const struct pto_kernel_stream *stream,
                                     uint64_t at,
                                     uint64_t value);

/*
 Makes the stream wait until a word of 64 bits of the device is as `test` says: "equal", "at least" (both with a sign), "and" (the word and the value have a bit in
 common) or "nor" (some bit is set in neither).

 Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_wait_value_test(const struct pto_kernel_stream *stream,
                                          uint64_t at,
                                          const char *test,
                                          uint64_t value);

/*
 Raises a flag.

 Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_notify(const struct pto_kernel_stream *stream, const struct pto_notify *notify);

/*
 Waits until a flag is raised, and lowers it. One stream at a time may wait for it.

 Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_wait_notify(const struct pto_kernel_stream *stream, const struct pto_notify *notify);

/*
 Records an event when everything before it is over.

 Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_record(const struct pto_kernel_stream *stream, const struct pto_event *event);

/*
 Waits for the last record of an event. A stream that waits for an event of a capture takes part in the capture.

 Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_kernel_stream_wait(const struct pto_kernel_stream *stream, const struct pto_event *event);

/*
 Resets an event when everything before it is over: it is not complete until it is recorded again.

 Fails with INVALID_HANDLE, OTHER_SESSION, STREAM_STOPPED, SESSION (the stream is captured). Thread safety: any thread.
 */
int32_t pto_kernel_stream_reset(const struct pto_kernel_stream *stream, const struct pto_event *event);

/*
 Whether everything is over that was asked of the stream: `is_idle` is 1 then, and 0 otherwise. It waits for nothing, and reports no failure.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, SESSION (the stream is captured). Thread safety: any thread.
 */
int32_t pto_kernel_stream_query(const struct pto_kernel_stream *stream,
                                uint32_t *is_idle);

/*
 Drops the commands that have not begun; a wait for the stream fails with STREAM_ABORTED.

 Fails with INVALID_HANDLE. Thread safety: any thread.
 */
int32_t pto_kernel_stream_abort(const struct pto_kernel_stream *stream);

/*
 From here on, what the stream is asked is written down and not done.

 Fails with INVALID_HANDLE, SESSION (the stream is captured already). Thread safety: any thread.
 */
int32_t pto_kernel_stream_begin_capture(const struct pto_kernel_stream *stream);

/*
 Ends the capture that was begun on this stream: `recording` is what was asked meanwhile, on this stream and on those that joined by events.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, SESSION (no capture was begun, or a stream that takes part was not waited for). Thread safety: any thread.
 */
int32_t pto_kernel_stream_end_capture(const struct pto_kernel_stream *stream,
                                      struct pto_recording **recording);

/*
 Launches a recording: as one command if it consists of launches, and as one command after the other otherwise. Each binding replaces an address that was an argument while the stream was captured. The memory at the
 addresses has to live until the launch is over.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT (the recording does not name this address), OTHER_SESSION, OUT_OF_MEMORY, STREAM_STOPPED, SESSION. Thread
 safety: any thread.
 */
int32_t pto_kernel_stream_launch_recording(const struct pto_kernel_stream *stream,
                                           const struct pto_recording *recording,
                                           const struct pto_recording_binding *bindings,
                                           uint32_t binding_count);

/*
 Waits until everything is over that was asked of the stream, at most for `limit_ns` nanoseconds; `UINT64_MAX`: without a limit.

 Fails with INVALID_HANDLE, TIMED_OUT (what was asked goes on), COMMAND_FAILED, STREAM_ABORTED, a fault of the runtime with its post-mortem. A failure is reported
 once. Thread safety: any thread.
 */
int32_t pto_kernel_stream_synchronize(const struct pto_kernel_stream *stream,
                                      uint64_t limit_ns);

/*
 Closes a recording; launches of it still run.

 Fails with INVALID_HANDLE. Thread safety: any thread.
 */
int32_t pto_recording_close(struct pto_recording *recording);

/*
 Opens an event that was never recorded.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, OUT_OF_MEMORY, SESSION. Thread safety: any thread.
 */
int32_t pto_event_open(const struct pto_session *session, struct pto_event **event);

/*
 Closes an event.

 Fails with INVALID_HANDLE. Thread safety: any thread.
 */
int32_t pto_event_close(struct pto_event *event);

/*
 Whether the last record of an event is complete: `is_complete` is 1 then, and 0 otherwise. An event that was never recorded is complete, and one that was reset is not.

 Fails with INVALID_HANDLE, NULL_ARGUMENT. Thread safety: any thread.
 */
int32_t pto_event_query(const struct pto_event *event,
                        uint32_t *is_complete);

/*
 Opens a flag that is not raised.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, OUT_OF_MEMORY, SESSION. Thread safety: any thread.
 */
int32_t pto_notify_open(const struct pto_session *session, struct pto_notify **notify);

/*
 Where the word of a flag is on the device: 1 means raised. A kernel may raise it as well.

 Fails with INVALID_HANDLE, NULL_ARGUMENT. Thread safety: any thread.
 */
int32_t pto_notify_address(const struct pto_notify *notify, uint64_t *address);

/*
 Closes a flag. The commands that use it have to be over.

 Fails with INVALID_HANDLE. Thread safety: any thread.
 */
int32_t pto_notify_close(struct pto_notify *notify);

/*
 Sets the callback that gets messages up to `level` (0 none, 1 error, 2 warning, 3 information, 4 debug, 5 trace) of all
 devices of this process; null: messages are dropped. What the firmware logs in a run comes when the run has ended, on
 the thread that called it; what the host logs comes as it happens, on any thread.

 Fails with INVALID_ARGUMENT for another level. Thread safety: any thread. A callback that is being called when it is
 replaced still finishes.
 */
int32_t pto_set_log_callback(pto_log_callback callback, void *user, uint32_t level);

/*
 Allocates global memory, aligned to 64 bytes and not initialised; its address is in `address`.

 Fails with INVALID_HANDLE, ZERO_SIZE, OUT_OF_MEMORY. Thread safety: any thread, also during a run.
 */
int32_t pto_device_malloc(const struct pto_device *device, uint64_t bytes, uint64_t *address);

/*
 Frees what `pto_device_malloc` gave. It is invalid at once: a second call fails, and so do copies. During a run, which
 may use it, it can be allocated again only when that run has ended.

 Fails with INVALID_HANDLE, DOUBLE_FREE, FOREIGN_POINTER. Thread safety: any thread, also during a run.
 */
int32_t pto_device_free(const struct pto_device *device, uint64_t address);

/*
 Copies `bytes` bytes to the device, into one live allocation.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, COPY_OUT_OF_RANGE (nothing was copied). Thread safety: any thread, also
 during a run that does not use the memory.
 */
int32_t pto_copy_to_device(const struct pto_device *device, uint64_t to, const void *from, uint64_t bytes);

/*
 Copies `bytes` bytes from the device, out of one live allocation.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, COPY_OUT_OF_RANGE (nothing was copied). Thread safety: any thread; what is
 copied while a run writes it is not specified.
 */
int32_t pto_copy_from_device(const struct pto_device *device, void *to, uint64_t from, uint64_t bytes);

/*
 Fills in the defaults: concurrent, lock-free, 4 AICPU instances, 16,384 tasks, 60 s for a task, 5 s without progress.

 Fails when `options` is null. Thread safety: any thread.
 */
int32_t pto_run_options_init(struct pto_run_options *options);

/*
 Creates a run's remote control, to be put into pto_run_options.control.

 Fails when `control` is null. Thread safety: any thread.
 */
int32_t pto_control_create(struct pto_control **control);

/*
 Destroys a run's remote control; a run that has it goes on.

 Fails with INVALID_HANDLE. Thread safety: any thread.
 */
int32_t pto_control_destroy(struct pto_control *control);

/*
 Ends the run that has this control: tasks that are on cores finish, no other one starts, and the run returns
 RUN_CANCELLED. A run that is started with it afterwards ends at once.

 Fails with INVALID_HANDLE. Thread safety: any thread; that is what it is for.
 */
int32_t pto_control_cancel(const struct pto_control *control);

/*
 Reads a program file. Nothing in it is trusted: what does not fit is refused, with what was found and what is wanted.

 Fails with NULL_ARGUMENT, PROGRAM. Thread safety: any thread.
 */
int32_t pto_program_read(const char *path, struct pto_program **program);

/*
 Makes a program of the text of a workload (`workload NAME { .. }`). Its tensors are row-major on the device, and are inputs, outputs or updated
 as its tasks use them.

 Fails with NULL_ARGUMENT, PROGRAM. Thread safety: any thread.
 */
int32_t pto_program_of_text(const char *workload,
                            struct pto_program **program);

/*
 Destroys a program. Loaded ones stay.

 Fails with INVALID_HANDLE. Thread safety: any thread.
 */
int32_t pto_program_destroy(struct pto_program *program);

/*
 Chooses the role of a tensor that the program writes: "output", "updated" or "temporary".

 Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM; the program is as before then. Thread safety: any thread.
 */
int32_t pto_program_set_role(const struct pto_program *program, const char *tensor, const char *role);

/*
 Chooses the layout that the program needs of a tensor: "row-major", "column-major", "nz:500x300", "on-chip, row-major".

 Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM; the program is as before then. Thread safety: any thread.
 */
int32_t pto_program_set_layout(const struct pto_program *program, const char *tensor, const char *layout);

/*
 Makes an input a constant with these elements, which travel in the file.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM; the program is as before then. Thread safety: any thread.
 */
int32_t pto_program_set_constant(const struct pto_program *program,
                                 const char *tensor,
                                 const void *elements,
                                 uint64_t bytes);

/*
 Writes a program file, and replaces one that is there. If it cannot be written, that one stays as it was.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM (the file cannot be written). Thread safety: any thread.
 */
int32_t pto_program_save(const struct pto_program *program, const char *path);

/*
 Describes the tensor with this number; numbers count from 0, and the first one that is too large is INVALID_ARGUMENT.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT. Thread safety: any thread.
 */
int32_t pto_program_tensor(const struct pto_program *program, uint32_t number, struct pto_tensor_description *tensor);

/*
 The layout that a loaded program needs of a tensor.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM. Thread safety: any thread.
 */
int32_t pto_loaded_program_layout(const struct pto_loaded_program *program,
                                  const char *tensor,
                                  struct pto_layout *layout);

/*
 Puts a program and its constants into the memory of the device of a session.

 Fails with INVALID_HANDLE, PROGRAM (another target), UNKNOWN_KERNEL, OUT_OF_MEMORY. Thread safety: any thread.
 */
int32_t pto_program_load(const struct pto_session *session,
                         const struct pto_program *program,
                         struct pto_loaded_program **loaded);

/*
 Lets a loaded program go; its memory is free when its runs are over.

 Fails with INVALID_HANDLE. Thread safety: any thread.
 */
int32_t pto_loaded_program_release(struct pto_loaded_program *program);

/*
 Runs a program, and returns at once. Outputs may be given to the next run before they are computed; outputs that are not asked for are let go.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, PROGRAM_ARGUMENT (a tensor or a number is missing, unknown, or of another shape), TENSOR_LAYOUT (the message
 has both layouts), TENSOR_MOVED, OTHER_STREAM, OTHER_SESSION, STREAM_STOPPED, OUT_OF_MEMORY; then nothing ran, and nothing was taken. What the program
 itself ends with is reported by `pto_program_stream_synchronize`. Thread safety: any thread; runs of one stream are in the order of the calls.
 */
int32_t pto_program_run(const struct pto_program_stream *stream,
                        const struct pto_loaded_program *program,
                        const struct pto_program_tensor_argument *tensors,
                        uint32_t tensor_count,
                        const struct pto_program_number *numbers,
                        uint32_t number_count,
                        struct pto_program_output *outputs,
                        uint32_t output_count);

/*
 Opens a stream. Up to `overlap` programs share a launch: a task of a later one begins when the tiles are written that it reads. With 0 or 1 each
 program begins when the one before it has ended. After a program that fails the stream stops until `pto_session_reset`.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, OUT_OF_MEMORY, SESSION. Thread safety: any thread.
 */
int32_t pto_program_stream_open(const struct pto_session *session,
                                uint32_t overlap,
                                struct pto_program_stream **stream);

/*
 Closes a stream; what was asked of it is still done.

 Fails with INVALID_HANDLE. Thread safety: any thread.
 */
int32_t pto_program_stream_close(struct pto_program_stream *stream);

/*
 Submits the runs that wait for others to share their launch.

 Fails with INVALID_HANDLE, STREAM_STOPPED, SESSION. Thread safety: any thread.
 */
int32_t pto_program_stream_flush(const struct pto_program_stream *stream);

/*
 Waits until everything is over that was asked of the stream, at most for `limit_ns` nanoseconds; `UINT64_MAX`: without a limit.

 Fails with INVALID_HANDLE, TIMED_OUT (what was asked goes on), PROGRAM_FAULT, COMMAND_FAILED, STREAM_ABORTED, a fault of the runtime with its
 post-mortem. A failure is reported once. Thread safety: any thread.
 */
int32_t pto_program_stream_synchronize(const struct pto_program_stream *stream,
                                       uint64_t limit_ns);

/*
 Drops the runs that have not begun; a wait for the stream fails with STREAM_ABORTED.

 Fails with INVALID_HANDLE. Thread safety: any thread.
 */
int32_t pto_program_stream_abort(const struct pto_program_stream *stream);

/*
 Makes a program of tasks. Their kernels are those of the library, and those that `pto_program_set_kernels` adds.

 Fails with NULL_ARGUMENT, INVALID_ARGUMENT, PROGRAM (a tensor cannot be as described, or a task does not fit the tensors). Thread safety: any
 thread.
 */
int32_t pto_program_of_tasks(const char *name,
                             const struct pto_program_tensor_spec *tensors,
                             uint32_t tensor_count,
                             const struct pto_program_task *tasks,
                             uint32_t task_count,
                             struct pto_program **program);

/*
 Gives a program of tasks the kernels that shared objects list (pto_kernels.h), one object for each processor; the first one is for this processor.
 Their code travels in the file.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT (no object; a kernel has the name of one of the library; a task runs one on other
 cores), LOAD_FAILED, OBJECT_FORMAT, SYMBOL_MISSING; the program is as before then. Thread safety: any thread.
 */
int32_t pto_program_set_kernels(const struct pto_program *program,
                                const char *const *paths,
                                uint32_t count);

/*
 Runs a graph that was built on the host (`host_build_graph`), and returns when it has ended. `options` null: the
 defaults. `report` null: not wanted.

 Fails with INVALID_HANDLE, INVALID_ARGUMENT, a fault of the graph (GRAPH_CYCLE, BUILD_KERNEL_MISSING, ..) or of the run
 (its message is the post-mortem, and the device can be used again), CAPACITY, ARENA_MEMORY, BUSY. Thread safety: any
 thread; runs on one device follow one another, runs on several devices go on at once.
 */
int32_t pto_run_graph(const struct pto_device *device,
                      const struct pto_graph *graph,
                      const struct pto_run_options *options,
                      struct pto_run_report *report);

/*
 Runs a builder program of the device on AICPU instance 0 (`aicpu_build_graph`), with `count` words, at most 128, and
 returns when the run has ended. `options` null: the defaults. `report` null: not wanted.

 Fails as `pto_run_graph`; BUILD_NO_BUILDER when the device has none of this name, BUILD_FAILED when it returns another
 value than 0. Thread safety: as `pto_run_graph`.
 */
int32_t pto_run_builder(const struct pto_device *device,
                        const char *builder,
                        const uint64_t *words,
                        uint32_t count,
                        const struct pto_run_options *options,
                        struct pto_run_report *report);

/*
 Runs a builder program of the device as a streaming program (`tensormap_and_ringbuffer`): it submits tasks with tensors
 (`pto_builder_submit`), or adds tasks as in `pto_run_builder`; memory depends on the windows in the options. Words and
 the rest as in `pto_run_builder`.

 Fails as `pto_run_builder`, and with STREAM_* faults. Thread safety: as `pto_run_graph`.
 */
int32_t pto_run_stream(const struct pto_device *device,
                       const char *builder,
                       const uint64_t *words,
                       uint32_t count,
                       const struct pto_run_options *options,
                       struct pto_run_report *report);

/*
 Says how far the run is that has this control.

 Fails with INVALID_HANDLE, NULL_ARGUMENT. Thread safety: any thread; that is what it is for.
 */
int32_t pto_control_progress(const struct pto_control *control, struct pto_run_progress *progress);

/*
 Opens a session on a device, and closes the handle of the device: the session has the device for itself. Kernels of the library that
 the device does not have are registered. `on_chip_bytes` are those of a fast region for tensors; 0: none.

 Fails with INVALID_HANDLE, BUSY (another call uses the device; the device stays open), DUPLICATE_FUNC_ID, OUT_OF_MEMORY, SESSION; the
 device is closed then, unless it is BUSY. Thread safety: any thread.
 */
int32_t pto_session_open(struct pto_device *device,
                         uint64_t on_chip_bytes,
                         struct pto_session **session);

/*
 Waits for what was submitted, and closes a session. Streams that are open keep the device.

 Fails with INVALID_HANDLE, or with the first failure that was not reported yet; the session is closed then as well. Thread safety: any thread.
 */
int32_t pto_session_close(struct pto_session *session);

/*
 Waits for everything that was submitted to any stream. Runs of a stream that overlaps are submitted by `pto_program_stream_flush`.

 Fails with INVALID_HANDLE, or with the failure of a command. Thread safety: any thread.
 */
int32_t pto_session_synchronize(const struct pto_session *session);

/*
 Drops what has not begun, forgets failures, and makes streams that have stopped take programs again.

 Fails with INVALID_HANDLE, SESSION. Thread safety: any thread.
 */
int32_t pto_session_reset(const struct pto_session *session);

/*
 Reads the counters.

 Fails with INVALID_HANDLE, NULL_ARGUMENT. Thread safety: any thread, also while programs run.
 */
int32_t pto_session_counters(const struct pto_session *session, struct pto_counters *counters);

/*
 Adds a task with tensors and publishes it; it waits for the earlier tasks that touch what it reads and writes, and for
 the `after_count` tasks in `after`. `number`: its number in the build, counted from 0, for `after` and for
 `pto_builder_add_edge`; null: not wanted.

 Fails with OUTSIDE_BUILDER, BUILD_NOT_STREAMING in a run of `pto_run_builder`, KERNEL_CALL for a kernel of the library that does not take these arguments,
 or a fault of the build; all but the first end the run. Thread safety: the builder's own thread.
 */
int32_t pto_builder_submit(const struct pto_builder *builder,
                           const pto_stream_task *task,
                           const pto_stream_arg *args,
                           uint32_t arg_count,
                           const int64_t *after,
                           uint32_t after_count,
                           int64_t *number);

/*
 Adds the tasks of a range (`pto_range.h`) and publishes them, as if each were submitted by itself, in their order; in every run. `first`: the
 number of the first one, after which those of the others follow; null: not wanted.

 Fails with OUTSIDE_BUILDER, or a fault of the build, which ends the run: BUILD_RANGE_LENGTH, BUILD_CHAIN_VARIES, BUILD_CHAIN_LIMIT,
 BUILD_NULL_POINTER, BUILD_FOREIGN_STRUCT, BUILD_UNKNOWN_TASK, and those of `pto_builder_add_task`. Thread safety: the builder's own thread.
 */
int32_t pto_builder_submit_range(const struct pto_builder *builder,
                                 const pto_task_range *tasks,
                                 int64_t *first);

/*
 Adds `tasks` tasks with tensors and publishes them, as if each were submitted by itself, in their order: the first one as `pto_builder_submit`
 has it, the others with arguments that differ as the `variation_count` variations say (`pto_range.h`). `first`: the number of the first
 one, after which those of the others follow; null: not wanted.

 Fails as `pto_builder_submit`, and with BUILD_RANGE_LENGTH, BUILD_CHAIN_VARIES, BUILD_CHAIN_LIMIT, which end the run. Thread safety: the builder's own
 thread.
 */
int32_t pto_builder_submit_tensor_range(const struct pto_builder *builder,
                                        const pto_stream_task *task,
                                        const pto_stream_arg *args,
                                        uint32_t arg_count,
                                        const int64_t *after,
                                        uint32_t after_count,
                                        uint32_t tasks,
                                        const pto_stream_variation *variations,
                                        uint32_t variation_count,
                                        int64_t *first);

/*
 Adds a task as `pto_builder_submit`, unpublished: edges to it can be added until `pto_builder_publish`.

 Fails as `pto_builder_submit`; NULL_ARGUMENT when `number` is null. Thread safety: the builder's own thread.
 */
int32_t pto_builder_add_tensor_task(const struct pto_builder *builder,
                                    const pto_stream_task *task,
                                    const pto_stream_arg *args,
                                    uint32_t arg_count,
                                    const int64_t *after,
                                    uint32_t after_count,
                                    int64_t *number);

/*
 Opens a scope; `mode` is PTO_DEPENDENCY_MODE_*. The tensors that are allocated in it end with it.

 Fails with OUTSIDE_BUILDER, or BUILD_NOT_STREAMING, BUILD_NULL_POINTER, STREAM_SCOPE_MODE, STREAM_SCOPE_DEPTH, which end
 the run. Thread safety: the builder's own thread.
 */
int32_t pto_builder_open_scope(const struct pto_builder *builder,
                               uint32_t mode,
                               pto_stream_scope *scope);

/*
 Closes the innermost scope.

 Fails with OUTSIDE_BUILDER, or BUILD_NULL_POINTER, STREAM_SCOPE_NOT_OPEN, which end the run. Thread safety: the
 builder's own thread.
 */
int32_t pto_builder_close_scope(const struct pto_builder *builder, const pto_stream_scope *scope);

/*
 A tensor on the heap of the innermost scope; `element` is PTO_ELEMENT_TYPE_*. What is in it is not initialised.

 Fails with OUTSIDE_BUILDER, or BUILD_NOT_STREAMING, BUILD_NULL_POINTER, STREAM_VIEW_*, STREAM_HEAP_RING, which end the
 run. Thread safety: the builder's own thread.
 */
int32_t pto_builder_alloc_tensor(const struct pto_builder *builder,
                                 uint32_t element,
                                 const uint32_t *shape,
                                 uint32_t rank,
                                 pto_stream_tensor *tensor);

/*
 Waits until everything that writes the element has completed, and reads it into the low bits of `word`.

 Fails with OUTSIDE_BUILDER, or BUILD_NOT_STREAMING, BUILD_NULL_POINTER, STREAM_VIEW_*, STREAM_STALE_TENSOR,
 BUILD_GM_RANGE, STREAM_WAIT_FOREVER, which end the run. Thread safety: the builder's own thread.
 */
int32_t pto_builder_get(const struct pto_builder *builder,
                        const pto_stream_tensor *tensor,
                        const uint32_t *index,
                        uint32_t rank,
                        uint64_t *word);

/*
 Waits until everything that reads or writes the element has completed, and writes it.

 Fails as `pto_builder_get`. Thread safety: the builder's own thread.
 */
int32_t pto_builder_set(const struct pto_builder *builder,
                        const pto_stream_tensor *tensor,
                        const uint32_t *index,
                        uint32_t rank,
                        uint64_t word);

/*
 Begins a recording: from here to `pto_builder_end_recording` tasks are written down instead of run. `shapes`: what the `count`
 tensors look like that replays bind; `bound` gets as many tensors, to be used instead of them. Scalars that replays bind are
 arguments PTO_ARG_KIND_BOUND_SCALAR, whose `scalar` is their number. Tasks have numbers of their own in a recording.

 Fails with OUTSIDE_BUILDER, or BUILD_NOT_STREAMING, BUILD_NULL_POINTER, STREAM_RECORD_*, STREAM_VIEW_*, STREAM_SCOPE_DEPTH,
 which end the run. Thread safety: the builder's own thread.
 */
int32_t pto_builder_begin_recording(const struct pto_builder *builder,
                                    const pto_stream_tensor *shapes,
                                    uint32_t count,
                                    pto_stream_tensor *bound);

/*
 Ends the recording, which is good for this run.

 Fails with OUTSIDE_BUILDER, or BUILD_NULL_POINTER, STREAM_NOT_RECORDING, STREAM_RECORDING_FULL, STREAM_SCOPE_NOT_OPEN, which end
 the run. Thread safety: the builder's own thread.
 */
int32_t pto_builder_end_recording(const struct pto_builder *builder,
                                  pto_stream_recording *recording);

/*
 Adds and publishes the tasks of a recording, on these tensors and scalars; they have the next numbers of the build.

 Fails with OUTSIDE_BUILDER, or BUILD_NULL_POINTER, STREAM_RECORDING_UNKNOWN, STREAM_REPLAY_*, STREAM_PREDICATE and the failures of
 `pto_builder_submit`, which end the run. Thread safety: the builder's own thread.
 */
int32_t pto_builder_replay(const struct pto_builder *builder,
                           const pto_stream_recording *recording,
                           const pto_stream_tensor *tensors,
                           uint32_t tensor_count,
                           const uint64_t *scalars,
                           uint32_t scalar_count);

/*
 Copies a tensor of the host to the device, and converts it there if the layout asks for that. `elements` are contiguous, the last
 dimension the innermost one; the call has copied them when it returns. `layout`: a text, such as that of `pto_loaded_program_layout`.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT, PROGRAM_ARGUMENT (`bytes` is not what the extents take), TENSOR_LAYOUT, OUT_OF_MEMORY.
 Thread safety: any thread.
 */
int32_t pto_tensor_to_device(const struct pto_program_stream *stream,
                             const char *element,
                             const uint64_t *shape,
                             uint32_t rank,
                             const void *elements,
                             uint64_t bytes,
                             const char *layout,
                             struct pto_tensor **tensor);

/*
 Makes a tensor of zeros on the device.

 Fails as `pto_tensor_to_device`. Thread safety: any thread.
 */
int32_t pto_tensor_zeros(const struct pto_program_stream *stream,
                         const char *element,
                         const uint64_t *shape,
                         uint32_t rank,
                         const char *layout,
                         struct pto_tensor **tensor);

/*
 Waits for a tensor, and copies its elements to the host, side by side; tiles and strides are converted on the device first.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, TENSOR_MOVED, OTHER_STREAM, INVALID_ARGUMENT (`bytes` is not what the elements take), or as
 `pto_program_stream_synchronize`. Thread safety: any thread.
 */
int32_t pto_tensor_to_host(const struct pto_program_stream *stream,
                           const struct pto_tensor *tensor,
                           void *elements,
                           uint64_t bytes);

/*
 The tensor in a layout, through a handle of its own: the same tensor where it has the layout, otherwise a converted copy.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, INVALID_ARGUMENT, TENSOR_MOVED, OTHER_STREAM, TENSOR_LAYOUT, OUT_OF_MEMORY. Thread safety: any thread.
 */
int32_t pto_tensor_to_layout(const struct pto_program_stream *stream,
                             const struct pto_tensor *tensor,
                             const char *layout,
                             struct pto_tensor **converted);

/*
 A new tensor with the elements of another one, converted to another element type.

 Fails as `pto_tensor_to_layout`. Thread safety: any thread.
 */
int32_t pto_tensor_to_element(const struct pto_program_stream *stream,
                              const struct pto_tensor *tensor,
                              const char *element,
                              struct pto_tensor **converted);

/*
 Takes a tensor over from another stream of the session: `stream` waits for what `from` was asked so far. The old handles are of no use any
 more (TENSOR_MOVED); the new one is in `taken`.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, TENSOR_MOVED, OTHER_STREAM, OTHER_SESSION. Thread safety: any thread.
 */
int32_t pto_tensor_take_over(const struct pto_program_stream *stream,
                             const struct pto_tensor *tensor,
                             const struct pto_program_stream *from,
                             struct pto_tensor **taken);

/*
 Says what a tensor is.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, TENSOR_MOVED. Thread safety: any thread.
 */
int32_t pto_tensor_describe(const struct pto_tensor *tensor, struct pto_tensor_description *description);

/*
 Where the first byte of a tensor is, for kernels that are launched on it.

 Fails with INVALID_HANDLE, NULL_ARGUMENT, TENSOR_MOVED. Thread safety: any thread.
 */
int32_t pto_tensor_address(const struct pto_tensor *tensor, uint64_t *address);

/*
 A further handle of the same tensor.

 Fails with INVALID_HANDLE, NULL_ARGUMENT. Thread safety: any thread.
 */
int32_t pto_tensor_share(const struct pto_tensor *tensor, struct pto_tensor **other);

/*
 Lets a handle of a tensor go, also that of a tensor which was given to a run.

 Fails with INVALID_HANDLE. Thread safety: any thread.
 */
int32_t pto_tensor_release(struct pto_tensor *tensor);

/*
 Gives the versions of the library; compare `interface` with PTO_INTERFACE_VERSION of the header.

 Fails when `versions` is null. Thread safety: any thread.
 */
int32_t pto_versions(struct pto_library_versions *versions);

/*
 The release, such as "0.1.0".

 Thread safety: any thread. The text is valid for ever.
 */
const char *pto_release(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PTO_RUNTIME_H */


#ifdef __cplusplus
#define PTO_ASSERT(condition, text) static_assert(condition, text)
#else
#define PTO_ASSERT(condition, text) _Static_assert(condition, text)
#endif
PTO_ASSERT(sizeof(pto_device_options) == 32, "size of pto_device_options");
PTO_ASSERT(offsetof(pto_device_options, size) == 0, "pto_device_options.size");
PTO_ASSERT(offsetof(pto_device_options, aic) == 4, "pto_device_options.aic");
PTO_ASSERT(offsetof(pto_device_options, aiv) == 8, "pto_device_options.aiv");
PTO_ASSERT(offsetof(pto_device_options, hosting) == 12, "pto_device_options.hosting");
PTO_ASSERT(offsetof(pto_device_options, os_threads) == 16, "pto_device_options.os_threads");
PTO_ASSERT(offsetof(pto_device_options, aicpu) == 20, "pto_device_options.aicpu");
PTO_ASSERT(offsetof(pto_device_options, gm_bytes) == 24, "pto_device_options.gm_bytes");
PTO_ASSERT(sizeof(pto_device_description) == 48, "size of pto_device_description");
PTO_ASSERT(offsetof(pto_device_description, aic) == 0, "pto_device_description.aic");
PTO_ASSERT(offsetof(pto_device_description, aiv) == 4, "pto_device_description.aiv");
PTO_ASSERT(offsetof(pto_device_description, gm_bytes) == 8, "pto_device_description.gm_bytes");
PTO_ASSERT(offsetof(pto_device_description, gm_free_bytes) == 16, "pto_device_description.gm_free_bytes");
PTO_ASSERT(offsetof(pto_device_description, kernels) == 24, "pto_device_description.kernels");
PTO_ASSERT(offsetof(pto_device_description, builders) == 28, "pto_device_description.builders");
PTO_ASSERT(offsetof(pto_device_description, name) == 32, "pto_device_description.name");
PTO_ASSERT(sizeof(pto_error) == 32, "size of pto_error");
PTO_ASSERT(offsetof(pto_error, code) == 0, "pto_error.code");
PTO_ASSERT(offsetof(pto_error, reserved) == 4, "pto_error.reserved");
PTO_ASSERT(offsetof(pto_error, name) == 8, "pto_error.name");
PTO_ASSERT(offsetof(pto_error, message) == 16, "pto_error.message");
PTO_ASSERT(offsetof(pto_error, remedy) == 24, "pto_error.remedy");
PTO_ASSERT(sizeof(pto_flashed_image) == 288, "size of pto_flashed_image");
PTO_ASSERT(offsetof(pto_flashed_image, generation) == 0, "pto_flashed_image.generation");
PTO_ASSERT(offsetof(pto_flashed_image, is_current) == 4, "pto_flashed_image.is_current");
PTO_ASSERT(offsetof(pto_flashed_image, flashed_at_s) == 8, "pto_flashed_image.flashed_at_s");
PTO_ASSERT(offsetof(pto_flashed_image, firmware) == 16, "pto_flashed_image.firmware");
PTO_ASSERT(offsetof(pto_flashed_image, firmware_sha256) == 80, "pto_flashed_image.firmware_sha256");
PTO_ASSERT(offsetof(pto_flashed_image, kernels) == 152, "pto_flashed_image.kernels");
PTO_ASSERT(offsetof(pto_flashed_image, kernels_sha256) == 216, "pto_flashed_image.kernels_sha256");
PTO_ASSERT(sizeof(pto_run_options) == 112, "size of pto_run_options");
PTO_ASSERT(offsetof(pto_run_options, size) == 0, "pto_run_options.size");
PTO_ASSERT(offsetof(pto_run_options, build_mode) == 4, "pto_run_options.build_mode");
PTO_ASSERT(offsetof(pto_run_options, fanout) == 8, "pto_run_options.fanout");
PTO_ASSERT(offsetof(pto_run_options, aicpu_instances) == 12, "pto_run_options.aicpu_instances");
PTO_ASSERT(offsetof(pto_run_options, tasks) == 16, "pto_run_options.tasks");
PTO_ASSERT(offsetof(pto_run_options, skip_kernel_times) == 20, "pto_run_options.skip_kernel_times");
PTO_ASSERT(offsetof(pto_run_options, arg_words) == 24, "pto_run_options.arg_words");
PTO_ASSERT(offsetof(pto_run_options, edges) == 32, "pto_run_options.edges");
PTO_ASSERT(offsetof(pto_run_options, task_budget_ns) == 40, "pto_run_options.task_budget_ns");
PTO_ASSERT(offsetof(pto_run_options, stall_budget_ns) == 48, "pto_run_options.stall_budget_ns");
PTO_ASSERT(offsetof(pto_run_options, bring_up_budget_ns) == 56, "pto_run_options.bring_up_budget_ns");
PTO_ASSERT(offsetof(pto_run_options, run_budget_ns) == 64, "pto_run_options.run_budget_ns");
PTO_ASSERT(offsetof(pto_run_options, trace_file) == 72, "pto_run_options.trace_file");
PTO_ASSERT(offsetof(pto_run_options, control) == 80, "pto_run_options.control");
PTO_ASSERT(offsetof(pto_run_options, window) == 88, "pto_run_options.window");
PTO_ASSERT(offsetof(pto_run_options, map_entries) == 92, "pto_run_options.map_entries");
PTO_ASSERT(offsetof(pto_run_options, heap_bytes) == 96, "pto_run_options.heap_bytes");
PTO_ASSERT(offsetof(pto_run_options, heap_rings) == 104, "pto_run_options.heap_rings");
PTO_ASSERT(offsetof(pto_run_options, reserved) == 108, "pto_run_options.reserved");
PTO_ASSERT(sizeof(pto_run_report) == 72, "size of pto_run_report");
PTO_ASSERT(offsetof(pto_run_report, tasks) == 0, "pto_run_report.tasks");
PTO_ASSERT(offsetof(pto_run_report, edges) == 8, "pto_run_report.edges");
PTO_ASSERT(offsetof(pto_run_report, edges_satisfied) == 16, "pto_run_report.edges_satisfied");
PTO_ASSERT(offsetof(pto_run_report, makespan_ns) == 24, "pto_run_report.makespan_ns");
PTO_ASSERT(offsetof(pto_run_report, busy_ns) == 32, "pto_run_report.busy_ns");
PTO_ASSERT(offsetof(pto_run_report, tasks_run) == 48, "pto_run_report.tasks_run");
PTO_ASSERT(offsetof(pto_run_report, logs_dropped) == 64, "pto_run_report.logs_dropped");
PTO_ASSERT(sizeof(pto_run_progress) == 32, "size of pto_run_progress");
PTO_ASSERT(offsetof(pto_run_progress, running) == 0, "pto_run_progress.running");
PTO_ASSERT(offsetof(pto_run_progress, reserved) == 4, "pto_run_progress.reserved");
PTO_ASSERT(offsetof(pto_run_progress, added) == 8, "pto_run_progress.added");
PTO_ASSERT(offsetof(pto_run_progress, published) == 16, "pto_run_progress.published");
PTO_ASSERT(offsetof(pto_run_progress, completed) == 24, "pto_run_progress.completed");
PTO_ASSERT(sizeof(pto_library_versions) == 24, "size of pto_library_versions");
PTO_ASSERT(offsetof(pto_library_versions, interface) == 0, "pto_library_versions.interface");
PTO_ASSERT(offsetof(pto_library_versions, abi_major) == 4, "pto_library_versions.abi_major");
PTO_ASSERT(offsetof(pto_library_versions, abi_minor) == 8, "pto_library_versions.abi_minor");
PTO_ASSERT(offsetof(pto_library_versions, reserved) == 12, "pto_library_versions.reserved");
PTO_ASSERT(offsetof(pto_library_versions, layout_hash) == 16, "pto_library_versions.layout_hash");
PTO_ASSERT(sizeof(pto_counters) == 96, "size of pto_counters");
PTO_ASSERT(offsetof(pto_counters, copied_to_device_bytes) == 0, "pto_counters.copied_to_device_bytes");
PTO_ASSERT(offsetof(pto_counters, copied_to_host_bytes) == 8, "pto_counters.copied_to_host_bytes");
PTO_ASSERT(offsetof(pto_counters, copied_on_device_bytes) == 16, "pto_counters.copied_on_device_bytes");
PTO_ASSERT(offsetof(pto_counters, filled_bytes) == 24, "pto_counters.filled_bytes");
PTO_ASSERT(offsetof(pto_counters, converted_bytes) == 32, "pto_counters.converted_bytes");
PTO_ASSERT(offsetof(pto_counters, conversions) == 40, "pto_counters.conversions");
PTO_ASSERT(offsetof(pto_counters, bounced_bytes) == 48, "pto_counters.bounced_bytes");
PTO_ASSERT(offsetof(pto_counters, allocations) == 56, "pto_counters.allocations");
PTO_ASSERT(offsetof(pto_counters, pool_hits) == 64, "pto_counters.pool_hits");
PTO_ASSERT(offsetof(pto_counters, runs) == 72, "pto_counters.runs");
PTO_ASSERT(offsetof(pto_counters, binding_hits) == 80, "pto_counters.binding_hits");
PTO_ASSERT(offsetof(pto_counters, launches) == 88, "pto_counters.launches");
PTO_ASSERT(sizeof(pto_tensor_description) == 408, "size of pto_tensor_description");
PTO_ASSERT(offsetof(pto_tensor_description, name) == 0, "pto_tensor_description.name");
PTO_ASSERT(offsetof(pto_tensor_description, role) == 136, "pto_tensor_description.role");
PTO_ASSERT(offsetof(pto_tensor_description, element) == 152, "pto_tensor_description.element");
PTO_ASSERT(offsetof(pto_tensor_description, rank) == 160, "pto_tensor_description.rank");
PTO_ASSERT(offsetof(pto_tensor_description, shape) == 168, "pto_tensor_description.shape");
PTO_ASSERT(offsetof(pto_tensor_description, bytes) == 208, "pto_tensor_description.bytes");
PTO_ASSERT(offsetof(pto_tensor_description, layout) == 216, "pto_tensor_description.layout");
PTO_ASSERT(sizeof(pto_program_tensor_argument) == 24, "size of pto_program_tensor_argument");
PTO_ASSERT(offsetof(pto_program_tensor_argument, name) == 0, "pto_program_tensor_argument.name");
PTO_ASSERT(offsetof(pto_program_tensor_argument, tensor) == 8, "pto_program_tensor_argument.tensor");
PTO_ASSERT(offsetof(pto_program_tensor_argument, is_given) == 16, "pto_program_tensor_argument.is_given");
PTO_ASSERT(offsetof(pto_program_tensor_argument, reserved) == 20, "pto_program_tensor_argument.reserved");
PTO_ASSERT(sizeof(pto_program_number) == 24, "size of pto_program_number");
PTO_ASSERT(offsetof(pto_program_number, name) == 0, "pto_program_number.name");
PTO_ASSERT(offsetof(pto_program_number, kind) == 8, "pto_program_number.kind");
PTO_ASSERT(offsetof(pto_program_number, real) == 12, "pto_program_number.real");
PTO_ASSERT(offsetof(pto_program_number, integer) == 16, "pto_program_number.integer");
PTO_ASSERT(sizeof(pto_program_output) == 16, "size of pto_program_output");
PTO_ASSERT(offsetof(pto_program_output, name) == 0, "pto_program_output.name");
PTO_ASSERT(offsetof(pto_program_output, tensor) == 8, "pto_program_output.tensor");
PTO_ASSERT(sizeof(pto_program_tensor_spec) == 48, "size of pto_program_tensor_spec");
PTO_ASSERT(offsetof(pto_program_tensor_spec, name) == 0, "pto_program_tensor_spec.name");
PTO_ASSERT(offsetof(pto_program_tensor_spec, role) == 8, "pto_program_tensor_spec.role");
PTO_ASSERT(offsetof(pto_program_tensor_spec, element) == 16, "pto_program_tensor_spec.element");
PTO_ASSERT(offsetof(pto_program_tensor_spec, layout) == 24, "pto_program_tensor_spec.layout");
PTO_ASSERT(offsetof(pto_program_tensor_spec, shape) == 32, "pto_program_tensor_spec.shape");
PTO_ASSERT(offsetof(pto_program_tensor_spec, rank) == 40, "pto_program_tensor_spec.rank");
PTO_ASSERT(offsetof(pto_program_tensor_spec, reserved) == 44, "pto_program_tensor_spec.reserved");
PTO_ASSERT(sizeof(pto_program_argument) == 16, "size of pto_program_argument");
PTO_ASSERT(offsetof(pto_program_argument, tensor) == 0, "pto_program_argument.tensor");
PTO_ASSERT(offsetof(pto_program_argument, reserved) == 4, "pto_program_argument.reserved");
PTO_ASSERT(offsetof(pto_program_argument, value) == 8, "pto_program_argument.value");
PTO_ASSERT(sizeof(pto_program_task) == 40, "size of pto_program_task");
PTO_ASSERT(offsetof(pto_program_task, kernel) == 0, "pto_program_task.kernel");
PTO_ASSERT(offsetof(pto_program_task, args) == 8, "pto_program_task.args");
PTO_ASSERT(offsetof(pto_program_task, after) == 16, "pto_program_task.after");
PTO_ASSERT(offsetof(pto_program_task, arg_count) == 24, "pto_program_task.arg_count");
PTO_ASSERT(offsetof(pto_program_task, after_count) == 28, "pto_program_task.after_count");
PTO_ASSERT(offsetof(pto_program_task, kind) == 32, "pto_program_task.kind");
PTO_ASSERT(offsetof(pto_program_task, reserved) == 36, "pto_program_task.reserved");
#undef PTO_ASSERT
