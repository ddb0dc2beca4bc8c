//! What the codes of the vendor's calls mean, and what to do about each.

/// A code, its sentence, its remedy.
type Row = (i32, &'static str, &'static str);

/// Remedies for codes that have no better ones.
const LOOK: &str = "Look into the driver's log (ASCEND_PROCESS_LOG_PATH)";
const RESET: &str = "The device is reset by force; run again, and look into docs/how-to/hardware.md if it happens again";

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (13, "permission denied: another process was just being given the registers", "Run again; if it stays, check that the user belongs to the driver's group"),
    (100_000, "an argument of the call is invalid", "This is an error of the runtime; report it"),
    (100_002, "the interface is initialised already", "Nothing has to be done"),
    (100_003, "a file is invalid", LOOK),
    (100_006, "a file cannot be understood", LOOK),
    (107_000, "a value is out of range, or memory does not belong to the device", "This is an error of the runtime; report it"),
    (107_001, "there is no device with this id", "Choose one that `npu-smi info` lists; ASCEND_RT_VISIBLE_DEVICES renumbers them"),
    (107_002, "this thread has no context", "The device was reset meanwhile; open it again"),
    (107_003, "the stream belongs to another context", "The device was reset meanwhile; open it again"),
    (107_017, "the handle is not valid any more", "The device was reset meanwhile; open it again"),
    (107_023, "the stream was aborted", RESET),
    (200_000, "the host has no memory left", "Close other programs"),
    (207_000, "this is not supported", "Use a newer CANN and driver"),
    (207_001, "the device's memory is used up", "Open the device with less memory (--memory), or close other processes on it"),
    (207_004, "there is no device", "Check with `npu-smi info` that the driver sees one"),
    (207_005, "the device's resources are used up", "Close other processes on the device"),
    (207_006, "permission denied", "Check that the user belongs to the driver's group"),
    (207_008, "the device has no stream left", "Close other processes on the device"),
    (207_018, "the device's memory is used up", "Open the device with less memory (--memory), or close other processes on it"),
    (507_000, "the runtime of the vendor failed", LOOK),
    (507_007, "the context was released once too often", "This is an error of the runtime; report it"),
    (507_010, "the device does not answer any more", "Reset it with `npu-smi`, or restart the machine"),
    (507_011, "the device failed while it ran", RESET),
    (507_013, "a copy failed", RESET),
    (507_014, "an AICore ran into its time limit", RESET),
    (507_015, "an AICore took an exception", RESET),
    (507_016, "an AICore took a trap", RESET),
    (507_017, "an AICPU ran into its time limit", RESET),
    (507_018, "an AICPU took an exception, or its library cannot be loaded", RESET),
    (507_033, "the device cannot be set up", "Check with `npu-smi info` that it is healthy, and that no other container holds it"),
    (507_046, "the wait for a stream took too long", RESET),
    (507_053, "the device's memory has an error", "Reset it with `npu-smi`, and have it checked if it happens again"),
    (507_899, "the driver failed, as it does after a fault until the device is reset", RESET),
    (507_900, "the AICPU's own software failed", RESET),
];

fn row(code: i32) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.0 == code)
}

/// What `code` means.
pub(crate) fn meaning(code: i32) -> &'static str {
    row(code).map_or("a code that this host does not know", |row| row.1)
}

/// What to do about it.
pub(crate) fn remedy(code: i32) -> &'static str {
    row(code).map_or(LOOK, |row| row.2)
}

/// What `code` may mean when a launch ends with it: what to look at, in addition to the last known state of each core.
pub(crate) const fn of_launch(code: i32) -> Option<&'static str> {
    match code {
        507_014 => Some(
            "A core did not leave its loop in time: a kernel that does not end, or an exit signal that did not come because an AICPU has ended. Look at the cores that are in service",
        ),
        507_015 => Some(
            "A core took an exception: a kernel was given an address outside of GM or a size that is wrong, it is code for the other kind of core, or its object had a relocation left (`pto fw seal` refuses those). Look at the kernels that were given last",
        ),
        507_018 => Some(
            "An AICPU took an exception, or its library was not found: look for the firmware's file on the device (docs/how-to/hardware.md). Where the cores were greeted, the firmware had begun",
        ),
        _ => None,
    }
}

/// Whether only a reset by force helps: the codes of the device itself.
pub(crate) const fn is_of_device(code: i32) -> bool {
    matches!(code, 507_000..=507_006 | 507_009..=507_999 | 107_020 | 107_022 | 107_023)
}

#[cfg(test)]
mod tests {
    use super::{TABLE, is_of_device, meaning};

    #[test]
    fn each_code_stands_once_and_has_a_sentence() {
        for (place, row) in TABLE.iter().enumerate() {
            assert!(
                TABLE[..place].iter().all(|other| other.0 < row.0),
                "{} is out of order",
                row.0
            );
            assert!(!row.1.is_empty() && !row.2.ends_with('.'), "{row:?}");
        }
        assert_eq!(meaning(1), "a code that this host does not know");
    }

    #[test]
    fn a_wrong_argument_does_not_poison_the_device() {
        assert!(is_of_device(507_018) && is_of_device(507_899));
        assert!(!is_of_device(107_000) && !is_of_device(207_001) && !is_of_device(507_007));
    }
}
