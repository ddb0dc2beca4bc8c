//! The kinds of images, and the devices that each is for.

use std::fmt;

use pto_abi::fw_image::FW_TRACES;

/// What an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// Firmware of the emulated machine `qemu`.
    Qemu,
    /// Firmware for the CANN driver stack.
    Cann,
    /// A blob of kernels.
    Kernels,
    /// The program of AICores: the worker, and a blob of kernels.
    Aicore,
}

impl ImageKind {
    /// The kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Cann => "cann",
            Self::Kernels => "kernels",
            Self::Aicore => "aicore",
        }
    }

    /// The devices that can have it.
    pub(crate) const fn devices(self) -> &'static str {
        match self {
            Self::Qemu => "qemu (--device qemu)",
            Self::Kernels => "qemu or a2a3 (--device)",
            Self::Cann | Self::Aicore => "a2a3 (--device a2a3)",
        }
    }
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Qemu => "a firmware image for qemu",
            Self::Cann => "a firmware image for the CANN driver stack",
            Self::Kernels => "a blob of kernels",
            Self::Aicore => "a program for AICores, with kernels",
        })
    }
}

/// The machine whose code an image is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Machine {
    /// That of every device.
    #[default]
    Aarch64,
    /// That of a development machine, on which the stand-in for an Ascend device plays one faster (docs/how-to/hardware.md).
    X86_64,
    /// The AICores of an Ascend 910B or 910C.
    DavC220,
}

impl Machine {
    /// The machine's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aarch64 => "aarch64",
            Self::X86_64 => "x86_64",
            Self::DavC220 => "dav-c220",
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aarch64 => "AArch64",
            Self::X86_64 => "x86-64",
            Self::DavC220 => "dav-c220 (AICores of an Ascend 910B or 910C)",
        })
    }
}

/// Whether a firmware records runs that ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracing {
    /// It does not: smaller by a copy of the firmware.
    #[default]
    Off,
    /// It does.
    On,
}

impl Tracing {
    pub(crate) const fn of(features: u64) -> Self {
        if features & FW_TRACES != 0 { Self::On } else { Self::Off }
    }
}

/// A device that has flashed images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlashDevice {
    /// The emulated machine.
    Qemu,
    /// An Ascend 910B or 910C, through CANN.
    A2a3,
}

impl FlashDevice {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Qemu, Self::A2a3];

    /// The device's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::A2a3 => "a2a3",
        }
    }

    /// The device of this name. `virt` is the earlier name of `qemu`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let name = if name == "virt" { "qemu" } else { name };
        Self::ALL.iter().copied().find(|device| device.name() == name)
    }

    /// Whether it can have an image of this kind.
    #[must_use]
    pub const fn takes(self, kind: ImageKind) -> bool {
        match kind {
            ImageKind::Qemu => matches!(self, Self::Qemu),
            ImageKind::Kernels => true,
            ImageKind::Cann | ImageKind::Aicore => matches!(self, Self::A2a3),
        }
    }

    /// The default device for an image of this kind.
    #[must_use]
    pub const fn of(kind: ImageKind) -> Self {
        match kind {
            ImageKind::Qemu | ImageKind::Kernels => Self::Qemu,
            ImageKind::Cann | ImageKind::Aicore => Self::A2a3,
        }
    }
}
