//! Small groups in every order of arrivals: collectives are clean, a program with a race is found, and so is a transfer that is left out.

use pto_graph::group::{Algorithm, Communicator, Options, Order, Reduction, RemoteAddress, Signal};
use pto_graph::{BuildError, ElementType, StreamBuilder, TensorView, builder_set};

use super::small::SmallRun;
use super::{
    Group, GroupError, GroupExploration, GroupOptions, GroupWork, NetFaults, NetworkProfile,
};
use crate::virtual_time::{KernelCosts, Profile, VirtualOptions};
use crate::{DeviceOptions, Hosting, RunOptions};

const COUNT: usize = 12;
const ELEMENTS: u64 = COUNT as u64;
const BYTES: u64 = 4 * ELEMENTS;

builder_set! {
    struct ExploredPrograms {}
    stream { "call" => call, "put" => put }
}

const ALL_REDUCE: u64 = 0;
const BROADCAST: u64 = 1;
const ALL_TO_ALL: u64 = 2;
const BARRIERS: u64 = 3;

fn tensor(comm: &Communicator, at: u64) -> Result<TensorView<'static>, BuildError> {
    let base = comm.window(0)?.at(at * BYTES);
    Ok(TensorView::dense(base, ElementType::I32, &[12]))
}

fn call<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let [what, algorithm] = *stream.orch_args() else {
        return Err(BuildError::Failed(1));
    };
    let (values, other) = (tensor(&comm, 0)?, tensor(&comm, 1)?);
    let algorithm = u8::try_from(algorithm).ok().and_then(|code| Algorithm::try_from(code).ok());
    let algorithm = algorithm.ok_or(BuildError::Failed(2))?;
    let options = Options { algorithm, order: Order::ANY, ..Options::default() };
    match what {
        ALL_REDUCE => comm.all_reduce(stream, &values, Reduction::SUM, &options)?,
        BROADCAST => comm.broadcast(stream, &values, 1, &options)?,
        ALL_TO_ALL => comm.all_to_all(stream, (&values, &other), &options)?,
        _ => {
            comm.barrier(stream, &values)?;
            comm.barrier(stream, &values)?;
        }
    }
    Ok(())
}

/// Rank 0 puts its values to rank 1, which copies them by sending them to itself. With a signal rank 1 waits for the put; without one it waits for a
/// message that rank 0 sends besides, which can come before the bytes.
fn put<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let comm = Communicator::of(stream.launch_args())?;
    let [has_signal] = *stream.orch_args() else {
        return Err(BuildError::Failed(1));
    };
    let (values, other, copy) = (tensor(&comm, 0)?, tensor(&comm, 1)?, tensor(&comm, 2)?);
    let signal = Signal { slot: 0, value: 1 };
    if comm.rank() == 0 {
        let remote = RemoteAddress { rank: 1, window: 0, offset: BYTES };
        comm.put(stream, &values, remote, (has_signal == 1).then_some(signal))?;
        if has_signal == 0 {
            comm.signal(stream, 1, signal, &other)?;
        }
    } else {
        comm.wait(stream, signal, &other)?;
        comm.send(stream, &other, 1, 5)?;
        comm.receive(stream, &copy, 1, 5)?;
    }
    Ok(())
}

fn group(size: u32, faults: NetFaults) -> Group {
    let costs = KernelCosts::Constant(0);
    let hosting = VirtualOptions { profile: Profile::ideal(), costs, ..VirtualOptions::default() };
    let hosting = Hosting::Virtual(hosting);
    let device = DeviceOptions { aic: 1, aiv: 2, gm_bytes: 8 << 20, hosting };
    let options = GroupOptions { device, ..GroupOptions::default() };
    let network = (NetworkProfile::by_name("a3-pod").unwrap(), faults);
    let mut group = Group::open_virtual(size, &options, network, ExploredPrograms).unwrap();
    group.window(3 * BYTES).unwrap();
    group
}

fn options() -> RunOptions {
    let stall_budget = std::time::Duration::from_millis(50);
    let (tasks, window, heap_bytes) = (256, 64, 16 << 10);
    SmallRun { aicpu_instances: 2, stall_budget, tasks, window, heap_bytes }.options()
}

fn value(rank: u32, at: u64) -> i32 {
    i32::try_from(u64::from(rank) * 100 + at).unwrap()
}

/// What rank `rank` has after a call.
fn expected(what: u64, (rank, size): (u32, u32), at: u64) -> i32 {
    let part = ELEMENTS / u64::from(size);
    match what {
        ALL_REDUCE => (0..size).map(|of| value(of, at)).sum(),
        BROADCAST => value(1, at),
        ALL_TO_ALL => value(u32::try_from(at / part).unwrap(), u64::from(rank) * part + at % part),
        _ => value(rank, at),
    }
}

fn run(group: &mut Group, builder: &str, words: &[u64]) -> Result<(), String> {
    for member in group.members() {
        let values: Vec<i32> = (0..ELEMENTS).map(|at| value(member.rank(), at)).collect();
        member.write(0, 0, &values).unwrap();
        member.write(0, BYTES, &[-1_i32; 2 * COUNT]).unwrap();
    }
    let work = GroupWork { builder, args: &|_| words.to_vec() };
    group.run(&work, &options()).map(drop).map_err(|error| error.to_string())
}

fn compare(
    group: &Group,
    tensor: u64,
    expected: impl Fn(u32, u64) -> Option<i32>,
) -> Result<(), String> {
    for member in group.members() {
        let found = member.read::<i32>(0, tensor * BYTES, COUNT).unwrap();
        for (at, found) in (0..).zip(found) {
            let rank = member.rank();
            if expected(rank, at).is_some_and(|expected| expected != found) {
                return Err(format!("rank {rank}, element {at} is {found}"));
            }
        }
    }
    Ok(())
}

fn explored(
    size: u32,
    call: (u64, Algorithm),
    faults: NetFaults,
) -> Result<GroupExploration, GroupError> {
    explored_in(2_000, size, call, faults)
}

/// In this many runs at most.
fn explored_in(
    runs: u64,
    size: u32,
    (what, algorithm): (u64, Algorithm),
    faults: NetFaults,
) -> Result<GroupExploration, GroupError> {
    group(size, faults).explore(runs, |group| {
        run(group, "call", &[what, algorithm.get().into()])?;
        let tensor = u64::from(what == ALL_TO_ALL);
        compare(group, tensor, |rank, at| Some(expected(what, (rank, size), at)))
    })
}

#[test]
fn small_collectives_are_clean_in_every_order() {
    let cases = [
        (2, ALL_REDUCE, Algorithm::DIRECT),
        (2, ALL_REDUCE, Algorithm::RING),
        (2, ALL_REDUCE, Algorithm::HALVING),
        (2, ALL_TO_ALL, Algorithm::DIRECT),
        (3, ALL_REDUCE, Algorithm::TREE),
        (3, BROADCAST, Algorithm::RING),
        (3, BARRIERS, Algorithm::AUTO),
    ];
    for (size, what, algorithm) in cases {
        let found = explored(size, (what, algorithm), NetFaults::default()).unwrap();
        assert_eq!(found.failure, None, "{size} ranks, call {what}, {}", algorithm.name());
        assert!(found.is_complete && found.orders > 1, "{found:?}");
    }
}

/// The longest one of those that are small: 34,650 orders.
#[test]
#[ignore = "takes most of a minute"]
fn a_ring_of_three_is_clean_in_every_order() {
    let found = explored_in(1_000_000, 3, (ALL_REDUCE, Algorithm::RING), NetFaults::default());
    let found = found.unwrap();
    assert!(found.is_complete && found.failure.is_none() && found.orders == 34_650, "{found:?}");
}

#[test]
fn a_put_without_a_wait_is_found_in_the_order_in_which_it_comes_late() {
    let case = |has_signal: u64| {
        move |group: &mut Group| {
            run(group, "put", &[has_signal])?;
            compare(group, 2, |rank, at| (rank == 1).then(|| value(0, at)))
        }
    };
    let clean = group(2, NetFaults::default()).explore(1_000, case(1)).unwrap();
    assert!(clean.failure.is_none() && clean.is_complete, "{clean:?}");
    let mut racing = group(2, NetFaults::default());
    let found = racing.explore(1_000, case(0)).unwrap();
    let (choices, what) = found.failure.expect("the signal can come first");
    assert!(what.contains("rank 1, element 0 is -1"), "{what}");
    // The choices are that order again; the first order of all is a right one.
    assert_eq!(racing.explore_one(&choices, case(0)).unwrap(), Err(what));
    assert_eq!(racing.explore_one(&[], case(0)).unwrap(), Ok(()));
}

#[test]
fn a_transfer_that_is_lost_or_left_out_is_found() {
    for number in 0..4 {
        let left_out = NetFaults { left_out: Some(number), ..NetFaults::default() };
        let found = explored(2, (ALL_REDUCE, Algorithm::RING), left_out).unwrap();
        let (_, what) = found.failure.expect("values are missing");
        assert!(what.starts_with("rank "), "{what}");
        let lost = NetFaults { lost: Some(number), ..NetFaults::default() };
        let found = explored(2, (ALL_REDUCE, Algorithm::RING), lost).unwrap();
        let (_, what) = found.failure.expect("both sides report it");
        assert!(what.contains("the network has lost transfer"), "{what}");
    }
}

#[test]
fn other_groups_have_no_orders() {
    let mut local = Group::open_local(2, &GroupOptions::default(), ExploredPrograms).unwrap();
    let refused = local.explore(1, |_| Ok(())).unwrap_err().to_string();
    assert!(refused.contains("Group::open_virtual"), "{refused}");
}
