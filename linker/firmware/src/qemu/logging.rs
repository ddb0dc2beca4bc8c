//! The `log` facade on this machine: an AICPU instance logs into its ring; warnings and errors go to the
//! console as well, and so does all that is logged outside a run.

use core::fmt::{self, Write};

use log::{Level, LevelFilter, Log, Metadata};
use pto_aicpu_fw::wire_level;

use crate::qemu::{timer, uart, vcpu};

/// The longest message; a longer one says at its end that it was cut.
const MESSAGE_BYTES: usize = 512;
const CUT: &str = " [cut]";

struct DeviceLogger;

/// Installs the logger. Once, on vCPU 0.
pub(crate) fn install() {
    static LOGGER: DeviceLogger = DeviceLogger;
    if log::set_logger(&LOGGER).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
}

impl Log for DeviceLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, entry: &log::Record<'_>) {
        let me = vcpu::current();
        let ring = me.log_ring();
        if ring.is_none() || entry.level() <= Level::Warn {
            uart::line(format_args!("vcpu {}: {}", me.index, entry.args()));
        }
        if let Some(ring) = ring {
            let mut message = LineBuffer { text: heapless::String::new(), is_cut: false };
            // A message takes every piece, or notes that it did not.
            message.write_fmt(*entry.args()).unwrap_or_default();
            ring.write(wire_level(entry.level()), timer::now_ns(), message.finish());
        }
    }

    fn flush(&self) {}
}

struct LineBuffer {
    text: heapless::String<MESSAGE_BYTES>,
    is_cut: bool,
}

impl LineBuffer {
    fn finish(&mut self) -> &str {
        if self.is_cut {
            self.text.push_str(CUT).unwrap_or_default();
        }
        self.text.as_str()
    }
}

impl Write for LineBuffer {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        for character in piece.chars() {
            let has_room = self.text.len() + character.len_utf8() + CUT.len() <= MESSAGE_BYTES;
            if self.is_cut || !has_room {
                self.is_cut = true;
                return Ok(());
            }
            self.text.push(character).unwrap_or_default();
        }
        Ok(())
    }
}
