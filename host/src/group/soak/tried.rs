//! The runs of a seed, and what must be true of them.

use std::time::Duration;

use pto_abi::Fault;

use super::expected::{Tensors, after, before};
use super::program::{self, SoakPrograms, TENSOR_BYTES};
use super::report::SoakReport;
use super::setting::{CallKind, MOST, Setting, Trouble};
use crate::error::Error;
use crate::group::error::GroupError;
use crate::group::ranks::{Group, GroupOptions};
use crate::group::report::GroupReport;
use crate::group::small::SmallRun;
use crate::options::{DeviceOptions, RunOptions};
use pto_sim_shim::Hosting;
use pto_sim_shim::group::TransferError;
use pto_sim_shim::virtual_time::{KernelCosts, Profile, VirtualOptions};

/// What a kernel takes, in virtual time.
const KERNEL_NS: u64 = 500;

/// Runs a setting; after a trouble that has happened once more, without it.
pub(super) fn try_setting(setting: &Setting) -> Result<SoakReport, String> {
    let mut group = open(setting).map_err(|error| format!("the group is not opened: {error}"))?;
    let mut report = SoakReport { seeds: 1, ..SoakReport::default() };
    match run(&mut group, setting, true)? {
        Ok(ran) => count(&mut report, &ran, setting),
        Err(error) => {
            judge(setting, &error)?;
            (report.runs, report.injected, report.faulted) = (1, 1, 1);
            report.hash = text_hash(&error.to_string());
            match run(&mut group, setting, false)? {
                Ok(ran) => count(&mut report, &ran, setting),
                Err(error) => return Err(format!("the run after the trouble fails: {error}")),
            }
        }
    }
    report.injected += u64::from(matches!(setting.trouble, Trouble::Slow(..)));
    Ok(report)
}

fn open(setting: &Setting) -> Result<Group, GroupError> {
    let hosting = Hosting::Virtual(VirtualOptions {
        seed: setting.seed,
        profile: if setting.seed.is_multiple_of(4) { Profile::ideal() } else { Profile::a2a3() },
        costs: KernelCosts::Library { fallback: KERNEL_NS },
        ..VirtualOptions::default()
    });
    let device = DeviceOptions { aic: 2, aiv: setting.aiv, gm_bytes: 8 << 20, hosting };
    let options = GroupOptions { device, ..GroupOptions::default() };
    let network = (setting.network, setting.faults());
    let mut group = Group::open_virtual(setting.ranks, &options, network, SoakPrograms)?;
    group.window((2 + setting.calls.len() as u64) * TENSOR_BYTES)?;
    Ok(group)
}

pub(super) fn options(setting: &Setting) -> RunOptions {
    let (stall_budget, tasks, window, heap_bytes) =
        (Duration::from_millis(50), 4096, 256, 64 << 10);
    SmallRun { aicpu_instances: setting.aicpu, stall_budget, tasks, window, heap_bytes }.options()
}

/// One run; what it gives is compared with what it must give. The outer error: that is not the same.
fn run(
    group: &mut Group,
    setting: &Setting,
    is_troubled: bool,
) -> Result<Result<GroupReport, GroupError>, String> {
    write(group, &before(setting)).map_err(|error| error.to_string())?;
    let words = |rank| program::words(setting, rank, is_troubled);
    let ran = group.run(&program::work(&words), &options(setting));
    if ran.is_ok() {
        compare(group, &after(setting))?;
    }
    Ok(ran)
}

fn write(group: &Group, tensors: &Tensors) -> Result<(), GroupError> {
    for (member, tensors) in group.members().iter().zip(tensors) {
        for (at, tensor) in (0..).zip(tensors) {
            member.write(0, at * TENSOR_BYTES, tensor)?;
        }
    }
    Ok(())
}

fn compare(group: &Group, expected: &Tensors) -> Result<(), String> {
    for (member, expected) in group.members().iter().zip(expected) {
        for (at, expected) in (0..).zip(expected) {
            let found = member.read::<i32>(0, at * TENSOR_BYTES, MOST);
            let found = found.map_err(|error| error.to_string())?;
            let differs =
                found.iter().zip(expected).position(|(found, expected)| found != expected);
            if let Some(element) = differs {
                return Err(format!(
                    "rank {}, tensor {at}, element {element} is {}, and must be {}",
                    member.rank(),
                    found[element],
                    expected[element]
                ));
            }
        }
    }
    Ok(())
}

/// A run has failed: with what its trouble must give, and nothing else.
fn judge(setting: &Setting, error: &GroupError) -> Result<(), String> {
    let GroupError::Failed { failures } = error else { return Err(error.to_string()) };
    let Some(first) = failures.first() else {
        return Err("no rank reports why it failed".to_owned());
    };
    let is_right = match setting.trouble {
        Trouble::Lost(_) => matches!(first.transfer, Some(TransferError::Lost { .. })),
        Trouble::Dies(rank, _) | Trouble::Fails(rank) => first.rank == rank,
        // A signal may come from any rank: only the stall budget ends the wait for one that is never sent.
        Trouble::NeverComes(rank) => {
            let waits = setting.calls.iter().any(|call| call.what == CallKind::PUT);
            names(first.transfer.as_ref(), rank) || waits && is_stall(&first.error)
        }
        Trouble::Differs(rank) => first.rank == rank || names(first.transfer.as_ref(), rank),
        Trouble::None | Trouble::Slow(..) => false,
    };
    if is_right { Ok(()) } else { Err(format!("the failure is not that of its trouble: {error}")) }
}

fn is_stall(error: &Error) -> bool {
    matches!(error, Error::Fault { fault, .. } if *fault == Fault::TRANSFER_STALL)
}

/// Whether a failed transfer is one with this rank.
fn names(transfer: Option<&TransferError>, rank: u32) -> bool {
    match transfer {
        Some(TransferError::Mismatch { first, second, .. }) => {
            first.rank == rank || second.rank == rank
        }
        Some(TransferError::Ended { ended, waits, .. }) => *ended == rank || *waits == rank,
        _ => false,
    }
}

fn count(report: &mut SoakReport, ran: &GroupReport, setting: &Setting) {
    report.runs += 1;
    report.transfers += ran.transfers().transfers;
    report.virtual_ns += u64::try_from(ran.makespan().as_nanos()).unwrap_or(u64::MAX);
    for rank in &ran.ranks {
        let hash = rank.run.virtual_report.as_ref().map_or(0, |of| of.trace_hash);
        report.hash ^= (hash ^ setting.seed).rotate_left(rank.rank);
    }
}

fn text_hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
