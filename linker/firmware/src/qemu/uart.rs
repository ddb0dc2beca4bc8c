//! The PL011: lines of text for people. QEMU's needs no set-up and never makes a sender wait for long.

use core::fmt::{self, Write};

use spin::mutex::SpinMutex;

use crate::qemu::address::address;

/// Where QEMU puts it.
pub(crate) const UART_ADDRESS: u64 = 0x0900_0000;
const DATA: u64 = 0x00;
const FLAGS: u64 = 0x18;
/// In the flags: the transmit queue is full.
const TRANSMIT_FULL: u32 = 1 << 5;
/// How often a sender looks for room before a byte is given up: a console that is stuck stops no vCPU.
const LOOKS_FOR_ROOM: u32 = 100_000;

static LINE: SpinMutex<()> = SpinMutex::new(());

/// Writes one line. Lines of several vCPUs come whole, unless one of them stopped in the middle of its own:
/// then the others wait a while, and write anyway.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    let mut turn = LINE.try_lock();
    for _ in 0..LOOKS_FOR_ROOM {
        if turn.is_some() {
            break;
        }
        turn = LINE.try_lock();
    }
    // A UART takes every byte, so that no write fails.
    Uart.write_fmt(text).unwrap_or_default();
    Uart.write_str("\n").unwrap_or_default();
}

struct Uart;

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(put);
        Ok(())
    }
}

fn put(byte: u8) {
    for _ in 0..LOOKS_FOR_ROOM {
        if read(FLAGS) & TRANSMIT_FULL == 0 {
            break;
        }
    }
    let data = core::ptr::with_exposed_provenance_mut::<u32>(address(UART_ADDRESS + DATA));
    // SAFETY: the data register of the PL011, which this crate alone uses.
    unsafe { data.write_volatile(u32::from(byte)) };
}

fn read(offset: u64) -> u32 {
    let register = core::ptr::with_exposed_provenance::<u32>(address(UART_ADDRESS + offset));
    // SAFETY: a register of the PL011; reading its flags changes nothing.
    unsafe { register.read_volatile() }
}
