//! The inputs of virtual time: profiles of devices, costs of kernels, faults to inject.

use pto_host::virtual_time::{Injection, KernelCosts, Profile};

/// Reads a profile, and asks for the figures that are computed from it.
pub(super) fn profile(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(profile) = Profile::parse(text) else { return };
    let _ = (profile.core_start_ns(), profile.unknowns().len());
}

/// The first line is a fault or a cost; the whole is a table of costs.
pub(super) fn options(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let first = text.lines().next().unwrap_or_default();
    if let Ok(injection) = first.parse::<Injection>() {
        let again = injection.to_string().parse::<Injection>();
        assert!(again == Ok(injection), "{injection} is read as {again:?}");
    }
    let _ = (KernelCosts::parse(first, 1), KernelCosts::table(text));
}
