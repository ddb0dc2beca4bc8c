//! The arguments of `pto compat cann`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use pto_acl_interface::Fault;

use super::device::DeviceChoice;
use super::value::{byte_count, whole};
use crate::help;

/// Programs that call `aclrt*` (docs/how-to/acl.md).
#[derive(Args, Debug)]
pub(crate) struct AclArgs {
    #[command(subcommand)]
    pub(crate) command: AclCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AclCommand {
    /// Runs a program on the simulator's library for the CANN interface; the exit code is that of the program
    #[command(after_help = help::ACL_RUN)]
    Run(AclRunArgs),
    /// Makes the calls of a record again, without the program; the exit code is 1 if a call does not end as it did in the record
    #[command(after_help = help::ACL_REPLAY)]
    Replay(AclReplayArgs),
}

/// How the program is run.
#[derive(Args, Debug)]
pub(crate) struct AclRunArgs {
    #[command(flatten)]
    pub(crate) settings: AclSettings,
    /// Writes every call of the program to a file, which `pto compat cann replay` reads
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    pub(crate) record: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// How a record is replayed.
#[derive(Args, Debug)]
pub(crate) struct AclReplayArgs {
    #[command(flatten)]
    pub(crate) settings: AclSettings,
    /// The record: what `pto compat cann run --record` wrote
    #[arg(value_name = "FILE")]
    pub(crate) record: PathBuf,
}

/// Settings of the library.
#[derive(Args, Debug)]
pub(crate) struct AclSettings {
    /// The library [default: libascendcl.so next to this command, or in ../lib]
    #[arg(long, value_name = "FILE.so")]
    pub(crate) library: Option<PathBuf>,
    /// What the devices are [default: what PTO_ACL_DEVICE says, or else a2a3sim]
    #[arg(long, value_name = "DEVICE", value_enum)]
    pub(crate) device: Option<DeviceChoice>,
    /// Number of devices that the program sees [default: 8; qemu has one]
    #[arg(long, value_name = "N", value_parser = whole(1_u32, 64))]
    pub(crate) devices: Option<u32>,
    /// Memory of each device in bytes; K, M, G stand for KiB, MiB, GiB [default: 16G; 4G on qemu]
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub(crate) memory: Option<u64>,
    /// Runs the devices in virtual time: they work only while the program waits, and a seed repeats the run exactly
    #[arg(long = "virtual")]
    pub(crate) is_virtual: bool,
    /// Chooses the order of commands that are ready at the same time, in virtual time [default: 0]
    #[arg(long, value_name = "SEED", requires = "is_virtual", value_parser = whole(0, u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// Tries so many seeds, one after the other, from --seed on, and ends with the first under which the program does not end with 0
    #[arg(long, value_name = "N", requires = "is_virtual", conflicts_with = "trace", value_parser = whole(1_u64, 1_000_000))]
    pub(crate) seeds: Option<u64>,
    /// Microseconds that a kernel of the program takes, in virtual time [default: 5]
    #[arg(long, value_name = "US", requires = "is_virtual", value_parser = whole(1_u64, 1_000_000_000))]
    pub(crate) kernel_us: Option<u64>,
    /// Reports misuse of the interface on standard error, and what the program has not freed at its end
    #[arg(long)]
    pub(crate) check: bool,
    /// Like --check; the exit code is 1 if something was reported
    #[arg(long)]
    pub(crate) strict: bool,
    /// Writes commands of streams, calls and ranges of the program to a timeline, which `pto view` shows
    #[arg(long, value_name = "FILE.json")]
    pub(crate) trace: Option<PathBuf>,
    /// Makes the N-th call of a function fail with this code, or strikes the N-th command of the streams with a fault:
    /// aicore-timeout, aicore-exception, aicpu-timeout or aicpu-exception (kernels and models), stuck-stream or
    /// poisoned-device (every command); may be given several times
    #[arg(long = "fail", value_name = "FUNCTION:N:CODE|FAULT:N")]
    pub(crate) fails: Vec<Fault>,
    /// Keeps the exit code 0 of a program in which a fault of --fail did not happen; it is 1 otherwise
    #[arg(long, requires = "fails")]
    pub(crate) allow_missed_fault: bool,
}
