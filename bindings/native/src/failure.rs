//! What can go wrong, for other languages: code, name, message, remedy. Faults of the runtime keep their codes; what
//! happens on the host has codes above [`HOST_CODES`].

use std::fmt;

use pto_host::abi::Fault;
use pto_host::fw::{ImageError, StoreError};
use pto_host::{Error, OtherProcess};

/// Where the codes of the host begin; those of faults are below.
pub const HOST_CODES: u32 = 0x4000_0000;

/// A kind of failure on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureKind {
    /// The failure's code, above [`HOST_CODES`].
    pub code: u32,
    /// The failure's name.
    pub name: &'static str,
    /// What happened, in general.
    pub sentence: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

macro_rules! failures {
    ($( $low:literal $name:ident: $sentence:literal, $remedy:literal; )+) => {
        impl FailureKind {
            $(
                #[doc = $sentence]
                pub const $name: Self = Self {
                    code: HOST_CODES | $low,
                    name: stringify!($name),
                    sentence: $sentence,
                    remedy: $remedy,
                };
            )+

            /// Every kind, in the order of its code.
            pub const TABLE: &[Self] = &[$(Self::$name),+];
        }
    };
}

failures! {
    0x01 INVALID_HANDLE: "A handle is null, of another kind, or was closed.",
        "Pass what the function that opens such a handle returned, and close it once.";
    0x02 NULL_ARGUMENT: "A pointer is null where one is needed.",
        "Pass a valid pointer.";
    0x03 INVALID_ARGUMENT: "An argument has a value that it cannot have.",
        "The message names the argument and what it may be.";
    0x04 BUSY: "The device is running, and the call comes from its own builder.",
        "Call it before or after the run.";
    0x05 PANIC: "The library met an error of its own.",
        "Report it, with the message.";
    0x06 OUTSIDE_BUILDER: "A builder's function is called outside of that builder.",
        "Call it on the builder's own thread, before the builder returns.";
    0x07 OTHER_PROCESS: "A child of fork uses what its parent has opened.",
        "Open a device in the child, or fork before you open one.";
    0x10 MAP_GM: "The device's memory cannot be mapped.",
        "Open the device with less memory.";
    0x11 WORKERS: "A device cannot have this number of cores.",
        "Use 1 to 128 cores of both kinds together.";
    0x12 ZERO_SIZE: "An allocation of zero bytes.",
        "Ask for at least one byte.";
    0x13 SIZE_OVERFLOW: "A size that 64 bits do not hold.",
        "Check the shape.";
    0x14 OUT_OF_MEMORY: "The device's memory is full.",
        "Free buffers, or open the device with more memory (gm_bytes).";
    0x15 DOUBLE_FREE: "An address is freed twice.",
        "Free each allocation once.";
    0x16 FOREIGN_POINTER: "An address is freed that no allocation starts at.",
        "Free what the allocation returned.";
    0x17 COPY_OUT_OF_RANGE: "A copy does not lie in one live allocation.",
        "Check address and size.";
    0x20 UNKNOWN_KERNEL: "There is no library kernel of this name.",
        "Use a name of the library; `pto info kernels` shows them.";
    0x21 KERNEL_NOT_FOR_DEVICE: "A kernel cannot run on this device.",
        "Use a library kernel, or the simulator.";
    0x22 KERNEL_NOT_FLASHED: "The flashed kernels do not have a kernel.",
        "Build and flash those of this release.";
    0x23 FUNC_ID_LIMIT: "A func id is above the limit.",
        "Use 0 to 1023.";
    0x24 DUPLICATE_FUNC_ID: "A func id has a kernel already.",
        "Use another func id, or unregister the kernel first.";
    0x25 FUNC_ID_NOT_REGISTERED: "A func id has no kernel.",
        "Unregister what is registered.";
    0x26 KERNEL_CALL: "A task or a launch calls a kernel with what the kernel does not take.",
        "The message names task, kernel and argument, and what to give; `pto info kernels` shows what kernels take.";
    0x30 LOAD_FAILED: "A shared object cannot be loaded.",
        "Link it with -shared -fPIC for this machine, with everything that it uses.";
    0x31 SYMBOL_MISSING: "A shared or relocatable object has no function of this name.",
        "Define it as extern \"C\", with default visibility.";
    0x32 OBJECT_FORMAT: "Bytes are not an object file of this machine.",
        "Compile with -c -fPIC for this machine.";
    0x33 OBJECT_RELOCATION: "A relocatable object needs something that cannot be provided in memory.",
        "Compile it with -fPIC, without constructors and thread-local variables; or link it as a shared object.";
    0x34 EXECUTABLE_MEMORY: "The operating system gives no executable memory.",
        "Allow it, or link the kernel as a shared object.";
    0x40 CAPACITY: "A capacity is above its limit.",
        "Run a smaller graph, or lower the capacity.";
    0x41 ARENA_MEMORY: "Tasks, edges and arguments of a run do not fit the device's memory.",
        "Free buffers, open the device with more memory (gm_bytes), or lower the capacities.";
    0x42 IMAGE_REGION: "The arena does not hold the graph.",
        "This is an error of the runtime: report it.";
    0x43 BUILD_MODE_VARIABLE: "The environment variable of the build mode has another value than 0 or 1.",
        "Set PTO_AICPU_BUILD_GRAPH_BUILD_MODE to 0 (sequential) or 1 (concurrent).";
    0x50 IMAGE: "An image cannot be used.",
        "The message says what is wrong with it; build it again with this release.";
    0x51 STORE: "The store of flashed images cannot be used.",
        "The message names the file; flash the device again.";
    0x52 QEMU: "The emulated machine cannot be used.",
        "The message says why.";
    0x53 BUILDER_NOT_FOR_DEVICE: "The device takes builders from its firmware image only.",
        "Link the builder into the image (pto fw build --builder NAME=FILE), flash that, and name it in the run.";
    0x60 ORCHESTRATION_FAILED: "An orchestration function failed.",
        "The message has its return value, or the signal that it raised.";
    0x61 PLUGIN_MISSING: "An AICPU builder is needed, and the orchestration embedded none.",
        "Call try_set_aicpu_orch_so in the orchestration, or define AICPU_ORCHESTRATION in kernel_config.py.";
    0x62 PLUGIN_TOO_LARGE: "An AICPU builder plugin is larger than the limit.",
        "Link it with -O2 -s; the limit is RUNTIME_MAX_AICPU_ORCH_SO_SIZE.";
    0x63 RUNTIMES_LIMIT: "Too many Runtime objects live at once.",
        "Finalise those that are done.";
    0x64 BUILDER_SIGNAL: "An AICPU builder raised a signal.",
        "Debug the builder that the message names; allocations that it held are lost.";
    0x65 RAW_ACCESS: "A program followed an address of the device's memory as a pointer.",
        "Read through pto::Table (pto_table.hpp), pto::Stream::get, or pto_builder_read_u32 in C; in an orchestration also through copy_from_device.";
    0x70 PROGRAM: "A program file cannot be used, or there is none to write.",
        "The message says what is wrong; `pto program inspect` shows what a file holds.";
    0x71 PROGRAM_ARGUMENT: "A program is given something that does not fit it.",
        "Give the tensors and numbers that the program has; the message names them.";
    0x72 PROGRAM_FAULT: "A program ended with a fault.",
        "The message names the program and the cause; reset the session, and run again.";
    0x73 TENSOR_LAYOUT: "A tensor is in another layout than a program needs, or cannot be converted.",
        "Convert it to the program's layout of that tensor: to_layout (in C pto_tensor_to_layout).";
    0x74 TENSOR_MOVED: "A tensor is used that was given to a run.",
        "Lend a tensor that is used again, and give only one that is not.";
    0x75 OTHER_STREAM: "A tensor of another stream is used.",
        "Take it over first: take_over (in C pto_tensor_take_over).";
    0x76 OTHER_SESSION: "Something of another session is used.",
        "Use what this session has loaded and computed.";
    0x78 SESSION: "A session refuses a call.",
        "The message says why.";
    0x79 STREAM_STOPPED: "A stream has stopped because a command failed.",
        "Reset the session; the message has the cause.";
    0x7a STREAM_ABORTED: "Commands were dropped because their stream was aborted.",
        "Submit them again.";
    0x7b TIMED_OUT: "The time to wait is over.",
        "Wait longer, or abort the stream.";
    0x7c COMMAND_FAILED: "A command of a stream failed.",
        "The message says which one, and why.";
}

/// A failure, for other languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code of a fault, or of a [`FailureKind`]; never zero.
    pub code: u32,
    /// The name of the code.
    pub name: &'static str,
    /// What happened, where.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl Failure {
    /// A failure of this kind.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let FailureKind { code, name, remedy, .. } = kind;
        Self { code, name, message: message.into(), remedy: remedy.to_owned() }
    }

    /// A fault of the runtime.
    #[must_use]
    pub fn of_fault(fault: Fault, message: impl Into<String>) -> Self {
        let (name, remedy) = match fault.entry() {
            Some(entry) => (entry.name, entry.remedy),
            None => ("UNKNOWN_FAULT", "Use host and firmware of the same release."),
        };
        Self { code: fault.code(), name, message: message.into(), remedy: remedy.to_owned() }
    }

    /// Whether it is of this kind.
    #[must_use]
    pub fn is(&self, kind: FailureKind) -> bool {
        self.code == kind.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        if let Some(fault) = error.fault() {
            return Self::of_fault(fault, message);
        }
        Self::new(kind_of(&error), message)
    }
}

pub(crate) fn kind_of(error: &Error) -> FailureKind {
    match error {
        Error::MapGm { .. } | Error::QemuGm { .. } => FailureKind::MAP_GM,
        Error::Workers { .. } | Error::QemuCores { .. } => FailureKind::WORKERS,
        Error::ZeroSize => FailureKind::ZERO_SIZE,
        Error::SizeOverflow { .. } => FailureKind::SIZE_OVERFLOW,
        Error::OutOfMemory { .. } => FailureKind::OUT_OF_MEMORY,
        Error::DoubleFree { .. } => FailureKind::DOUBLE_FREE,
        Error::ForeignPointer { .. } => FailureKind::FOREIGN_POINTER,
        Error::CopyOutOfRange { .. } => FailureKind::COPY_OUT_OF_RANGE,
        Error::UnknownKernel { .. } => FailureKind::UNKNOWN_KERNEL,
        Error::KernelNotForDevice { .. } => FailureKind::KERNEL_NOT_FOR_DEVICE,
        Error::KernelNotFlashed { .. } => FailureKind::KERNEL_NOT_FLASHED,
        Error::FuncIdLimit { .. } | Error::NoFuncId { .. } => FailureKind::FUNC_ID_LIMIT,
        Error::DuplicateFuncId { .. } => FailureKind::DUPLICATE_FUNC_ID,
        Error::FuncIdNotRegistered { .. } => FailureKind::FUNC_ID_NOT_REGISTERED,
        Error::Call { .. } => FailureKind::KERNEL_CALL,
        Error::Capacity(_) => FailureKind::CAPACITY,
        Error::ArenaMemory { .. } => FailureKind::ARENA_MEMORY,
        Error::ImageRegion { .. } => FailureKind::IMAGE_REGION,
        Error::BuildModeVariable { .. } => FailureKind::BUILD_MODE_VARIABLE,
        Error::Image(_) => FailureKind::IMAGE,
        Error::Qemu(_) => FailureKind::QEMU,
        Error::Panicked { .. } => FailureKind::PANIC,
        // An error that this release of the host does not have.
        _ => FailureKind::INVALID_ARGUMENT,
    }
}

impl From<OtherProcess> for Failure {
    fn from(error: OtherProcess) -> Self {
        Self::new(FailureKind::OTHER_PROCESS, error.to_string())
    }
}

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Self {
        Self::new(FailureKind::IMAGE, error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Image(error) => error.into(),
            other => Self::new(FailureKind::STORE, other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, FailureKind};
    use pto_host::Error;
    use pto_host::abi::{Fault, FuncId};

    #[test]
    fn codes_ascend_and_every_kind_says_what_to_do() {
        assert!(FailureKind::TABLE.windows(2).all(|pair| pair[0].code < pair[1].code));
        assert!(
            FailureKind::TABLE
                .iter()
                .all(|kind| kind.sentence.ends_with('.') && kind.remedy.ends_with('.'))
        );
    }

    #[test]
    fn errors_of_the_host_keep_their_message() {
        let failure = Failure::from(Error::FuncIdLimit { func_id: FuncId(4000) });
        assert!(failure.is(FailureKind::FUNC_ID_LIMIT));
        assert!(failure.message.contains("4000"), "{failure}");
        let failure = Failure::from(Error::NotPublished { first: 3, count: 1 });
        assert_eq!(failure.code, Fault::BUILD_NOT_PUBLISHED.code());
        assert_eq!(failure.name, "BUILD_NOT_PUBLISHED");
    }
}
