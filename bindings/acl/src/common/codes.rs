//! Error codes of the interface that the library returns, under short names. The headers have all of them.

/// A null pointer, size 0, a reserved argument that is not 0, an unknown kind or flag.
pub(crate) const BAD_ARGUMENT: i32 = 100_000;
pub(crate) const ALREADY_INITIALISED: i32 = 100_002;
pub(crate) const ALREADY_FINALISED: i32 = 100_037;
pub(crate) const INVALID_FILE: i32 = 100_003;
/// A value, a length or a time-out that cannot be.
pub(crate) const BAD_VALUE: i32 = 107_000;
pub(crate) const BAD_DEVICE: i32 = 107_001;
pub(crate) const NO_CONTEXT: i32 = 107_002;
pub(crate) const OTHER_CONTEXT: i32 = 107_003;
pub(crate) const NO_TIME: i32 = 107_006;
pub(crate) const FILE_OPEN: i32 = 107_009;
pub(crate) const ALREADY_SUBSCRIBED: i32 = 107_011;
pub(crate) const THREAD_NOT_SUBSCRIBED: i32 = 107_012;
pub(crate) const STREAM_NOT_SUBSCRIBED: i32 = 107_015;
pub(crate) const BAD_HANDLE: i32 = 107_017;
pub(crate) const WAIT_TIMEOUT: i32 = 107_019;
pub(crate) const STREAM_ABORTED: i32 = 107_023;
pub(crate) const UNJOINED: i32 = 107_025;
pub(crate) const STREAM_CAPTURED: i32 = 107_027;
pub(crate) const EVENT_CAPTURED: i32 = 107_028;
pub(crate) const NOT_CAPTURED: i32 = 107_029;
pub(crate) const CAPTURE_FORBIDS: i32 = 107_030;
pub(crate) const DEFAULT_STREAM_CAPTURED: i32 = 107_031;
pub(crate) const CAPTURES_MIXED: i32 = 107_032;
pub(crate) const OTHER_CAPTURE: i32 = 107_036;
pub(crate) const CAPTURE_THREAD: i32 = 107_038;
pub(crate) const CAPTURE_ELSEWHERE: i32 = 107_041;
pub(crate) const NO_SYMBOL: i32 = 107_042;
pub(crate) const UNSUPPORTED: i32 = 207_000;
pub(crate) const OUT_OF_MEMORY: i32 = 207_001;
pub(crate) const NO_RESOURCE: i32 = 207_005;
pub(crate) const NO_PERMISSION: i32 = 207_006;
pub(crate) const NO_STREAMS: i32 = 207_008;
pub(crate) const INTERNAL: i32 = 507_000;
pub(crate) const CONTEXT_RELEASE: i32 = 507_007;
pub(crate) const REPORT_TIMEOUT: i32 = 507_012;
pub(crate) const AICORE_TIMEOUT: i32 = 507_014;
pub(crate) const AICORE_EXCEPTION: i32 = 507_015;
pub(crate) const AICPU_EXCEPTION: i32 = 507_018;
pub(crate) const IPC: i32 = 507_022;
pub(crate) const STREAM_TIMEOUT: i32 = 507_046;
pub(crate) const EVENT_TIMEOUT: i32 = 507_047;
pub(crate) const HOST_REGISTERED: i32 = 507_910;
pub(crate) const HOST_NOT_REGISTERED: i32 = 507_911;
