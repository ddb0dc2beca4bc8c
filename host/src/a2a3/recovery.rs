//! After a fault of the device: reset by force, and probe.
//!
//! A wait for what is still on the device can succeed although the device answers nothing any more, so that the reset is always
//! made, and believed only after a stream and 64 bytes have worked again.

use std::time::Duration;

use super::calls::Handle;
use super::dma::Dma;
use super::error::A2a3Error;
use super::port::Port;

/// How long what is still on a stream may take to end.
const DRAIN_MS: i32 = 2_000;
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
const PROBE: &str = "probing the device after its reset";

impl Port {
    /// Gives what is still on these streams a last chance, then resets the device by force until it works again. Its memory and its
    /// streams are gone. An error: the reset is not confirmed, and nothing more is called on this port.
    pub(crate) fn recover(&self, streams: &[Handle]) -> Result<(), A2a3Error> {
        for stream in streams {
            // SAFETY: the stream exists until the reset. What the wait answers decides nothing.
            let code = unsafe { (self.calls.synchronize_stream)(*stream, DRAIN_MS) };
            log::debug!("the last wait for a stream answered {code}");
        }
        let mut last = Ok(());
        for _ in 0..TRIES {
            last = self.reset_by_force().and_then(|()| self.probe());
            if last.is_ok() {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        self.lose();
        last
    }

    fn reset_by_force(&self) -> Result<(), A2a3Error> {
        // SAFETY: takes a number. Nothing of the device is used after it.
        let code = unsafe { (self.calls.reset_device_force)(self.device().cast_signed()) };
        self.forget_contexts();
        self.check("resetting the device by force", "aclrtResetDeviceForce", code)
    }

    /// A stream and 64 bytes.
    fn probe(&self) -> Result<(), A2a3Error> {
        self.enter(PROBE)?;
        let stream = self.stream(PROBE)?;
        let address = self.alloc(PROBE, 64)?;
        let (written, mut read) = ([0xA5_u8; 64], [0; 64]);
        self.to_device(address, &written)?;
        self.to_host(address, &mut read)?;
        self.free(PROBE, address)?;
        // SAFETY: the stream was just made.
        let code = unsafe { (self.calls.synchronize_stream)(stream, DRAIN_MS) };
        self.check(PROBE, "aclrtSynchronizeStreamWithTimeout", code)?;
        self.end_stream(PROBE, stream)?;
        if read == written {
            return Ok(());
        }
        let what = "64 bytes came back changed after its reset. Reset it with `npu-smi`";
        Err(A2a3Error::Unfit { device: self.device(), what: what.to_owned() })
    }
}
