//! How a firmware image reaches an Ascend device without rights there: the bytes that the host launches once, before
//! anything else, and the name of the file that the image then is on the device.
//!
//! ```text
//! host arguments, 304 bytes          device arguments in GM, 160 bytes
//!    40  address of these     ---->   96  address, 104 bytes of the library that the driver stack loads first
//!    48  (launch words, of a run)     112  device id
//!   208  "DynTileFwkKernelServerInit" 120  address, 128 bytes of the firmware
//!   240  "libaicpu_extend_kernels.so" 136  the tag of the name, ours
//!   272  ""
//! ```
//! The driver stack's own library reads the device arguments up to 119, loads the library at that address, and calls its entry for
//! initialisation with the same arguments. An image of ours is both libraries: it writes itself to [`FOLDER`].

/// Bytes of the host's arguments of the bootstrap.
pub const ARGS_BYTES: usize = 304;
/// Where they hold the address of the device arguments; zero in the arguments of every other launch.
pub const ARGS_DEVICE_ARGS: usize = 40;
/// Where they hold the name of the kernel.
pub const ARGS_KERNEL_NAME: usize = 208;
/// Where they hold the name of the library.
pub const ARGS_SO_NAME: usize = 240;
/// Where they hold the name of the operator, which is empty.
pub const ARGS_OP_NAME: usize = 272;
/// The kernel that the bootstrap names.
pub const KERNEL_NAME: &[u8] = b"DynTileFwkKernelServerInit";
/// The library that has it.
pub const SO_NAME: &[u8] = b"libaicpu_extend_kernels.so";

/// Bytes of the device arguments.
pub const DEVICE_ARGS_BYTES: usize = 160;
/// Where the device arguments hold the address of the library that is loaded first; its size follows.
pub const DEVICE_ARGS_DISPATCHER: usize = 96;
/// Where the device arguments hold the device's id.
pub const DEVICE_ARGS_DEVICE: usize = 112;
/// Where the device arguments hold the address of the firmware; its size follows.
pub const DEVICE_ARGS_FIRMWARE: usize = 120;
/// Where the device arguments hold the tag of the firmware's name.
pub const DEVICE_ARGS_TAG: usize = 136;

/// Where an image may write itself, and where the driver stack looks for libraries with kernels.
pub const FOLDER: &str = "/usr/lib64/aicpu_kernels/0/aicpu_kernels_device";
/// The environment variable of the device that names another folder. A real device does not set it.
pub const FOLDER_VARIABLE: &core::ffi::CStr = c"PTO_AICPU_KERNELS";

/// What the image answers to device arguments that say nothing usable.
pub const BAD_DEVICE_ARGS: i32 = -2;
/// What it answers where the folder's name is too long.
pub const LONG_FOLDER: i32 = -3;
/// What it answers where the file cannot be made.
pub const NO_FILE: i32 = -4;
/// What it answers where the file cannot be written whole.
pub const NOT_WRITTEN: i32 = -5;
/// What it answers where the file cannot be given its mode or its name.
pub const NOT_NAMED: i32 = -6;

/// D: a digit of the device, T: one of the tag.
const NAME_PATTERN: [u8; 31] = *b"pto_fw_DDDD_TTTTTTTTTTTTTTTT.so";
/// Bytes of a name.
pub const NAME_BYTES: usize = NAME_PATTERN.len();

/// The file's name of the image with this tag on this device. The device is part of it, because the two dies of a package
/// share the folder.
#[must_use]
pub fn file_name(device: u16, tag: u64) -> [u8; NAME_BYTES] {
    let mut name = NAME_PATTERN;
    let (mut device, mut tag) = (u64::from(device), tag);
    for byte in name.iter_mut().rev() {
        let number = match *byte {
            b'D' => &mut device,
            b'T' => &mut tag,
            _ => continue,
        };
        *byte = hex_digit(*number);
        *number >>= 4;
    }
    name
}

fn hex_digit(number: u64) -> u8 {
    match (number & 15) as u8 {
        digit @ 0..=9 => b'0' + digit,
        digit => b'a' + (digit - 10),
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_name_holds_device_and_tag() {
        assert_eq!(&file_name(9, 0x0123_4567_89AB_CDEF), b"pto_fw_0009_0123456789abcdef.so");
        assert_ne!(file_name(8, 1), file_name(9, 1));
    }
}
