//! Groups of this process, from programs to results.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use pto_graph::group::{Algorithm, Communicator, Options, Order, Reduction, RemoteAddress, Signal};
use pto_graph::{BuildError, ElementType, StreamBuilder, TensorView, builder_set};

use super::small::SmallRun;
use super::{Group, GroupError, GroupOptions, GroupWork, NetFaults, NetworkProfile, TransferError};
use crate::{DeviceOptions, Hosting, RunOptions};

/// The arguments of a test program: element type, elements, reduction, algorithm, order, root.
struct CallArguments {
    tensor: TensorView<'static>,
    other: TensorView<'static>,
    reduction: Reduction,
    options: Options,
    root: u32,
}

impl CallArguments {
    fn of<G: StreamBuilder>(stream: &G, comm: &Communicator) -> Result<Self, BuildError> {
        let words = stream.orch_args();
        let byte = |at: usize| u8::try_from(words[at]).map_err(|_| BuildError::Failed(1));
        let element = ElementType::try_from(byte(0)?).map_err(|_| BuildError::Failed(2))?;
        let count = u32::try_from(words[1]).map_err(|_| BuildError::Failed(3))?;
        let algorithm = Algorithm::try_from(byte(3)?).map_err(|_| BuildError::Failed(4))?;
        let order = Order::try_from(byte(4)?).map_err(|_| BuildError::Failed(5))?;
        let window = comm.window(0)?;
        let tensor =
            |half: u64| TensorView::dense(window.at(half * window.bytes / 2), element, &[count]);
        Ok(Self {
            tensor: tensor(0),
            other: tensor(1),
            reduction: Reduction::try_from(byte(2)?).map_err(|_| BuildError::Failed(6))?,
            options: Options { algorithm, order, tile_bytes: 64 },
            root: u32::try_from(words[5]).map_err(|_| BuildError::Failed(7))?,
        })
    }
}

fn all_reduce<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, reduction, options, .. } = CallArguments::of(stream, &comm)?;
    comm.all_reduce(stream, &tensor, reduction, &options)?;
    comm.barrier(stream, &tensor)?;
    Ok(())
}

fn reduce_and_broadcast<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, reduction, options, root, .. } = CallArguments::of(stream, &comm)?;
    comm.reduce(stream, &tensor, (root, reduction), &options)?;
    comm.broadcast(stream, &tensor, root, &options)?;
    Ok(())
}

fn scatter_and_gather<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, reduction, options, .. } = CallArguments::of(stream, &comm)?;
    comm.reduce_scatter(stream, &tensor, reduction, &options)?;
    comm.all_gather(stream, &tensor, &options)?;
    Ok(())
}

fn exchange<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, other, options, .. } = CallArguments::of(stream, &comm)?;
    comm.all_to_all(stream, (&tensor, &other), &options)?;
    Ok(())
}

/// Each rank puts its first half to the next one's second half, signals, and waits.
fn neighbours<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, other, .. } = CallArguments::of(stream, &comm)?;
    let (next, signal) = ((comm.rank() + 1) % comm.size(), Signal { slot: 7, value: 1 });
    let offset = comm.window(0)?.bytes / 2;
    let remote = RemoteAddress { rank: next, window: 0, offset };
    comm.put(stream, &tensor, remote, Some(signal))?;
    comm.wait(stream, signal, &other)?;
    comm.get(stream, RemoteAddress { rank: next, window: 0, offset: 0 }, &tensor.slice(0, 0, 1))?;
    Ok(())
}

/// The tensor of the test programs, with tiles of as many bytes as the last word says.
fn large<G: StreamBuilder>(
    stream: &G,
    comm: &Communicator,
) -> Result<(TensorView<'static>, Options), BuildError> {
    let words = stream.orch_args();
    let algorithm = u8::try_from(words[3]).ok().and_then(|code| Algorithm::try_from(code).ok());
    let algorithm = algorithm.ok_or(BuildError::Failed(1))?;
    let count = u32::try_from(words[1]).map_err(|_| BuildError::Failed(2))?;
    let tensor = TensorView::dense(comm.window(0)?.base, ElementType::F32, &[count]);
    Ok((tensor, Options { algorithm, tile_bytes: words[5], ..Options::default() }))
}

fn tiled<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let (tensor, options) = large(stream, &comm)?;
    comm.all_reduce(stream, &tensor, Reduction::SUM, &options)?;
    Ok(())
}

fn tiled_to_root<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let (tensor, options) = large(stream, &comm)?;
    comm.reduce(stream, &tensor, (0, Reduction::SUM), &options)?;
    Ok(())
}

/// Rank 1 makes a call that the others do not make.
fn disagree<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, options, reduction, .. } = CallArguments::of(stream, &comm)?;
    let length = if comm.rank() == 1 { 8 } else { 16 };
    comm.all_reduce(stream, &tensor.slice(0, 0, length), reduction, &options)?;
    Ok(())
}

fn broadcast<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, options, root, .. } = CallArguments::of(stream, &comm)?;
    comm.broadcast(stream, &tensor, root, &options)?;
    Ok(())
}

/// The last rank reduces what the others take from rank 0.
fn broadcast_or_all_reduce<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, options, reduction, root, .. } = CallArguments::of(stream, &comm)?;
    if comm.rank() + 1 == comm.size() {
        comm.all_reduce(stream, &tensor, reduction, &options)?;
    } else {
        comm.broadcast(stream, &tensor, root, &options)?;
    }
    Ok(())
}

fn all_reduce_or_barrier<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, options, reduction, .. } = CallArguments::of(stream, &comm)?;
    if comm.rank() + 1 == comm.size() {
        comm.barrier(stream, &tensor)?;
    } else {
        comm.all_reduce(stream, &tensor, reduction, &options)?;
    }
    Ok(())
}

/// The same ranks twice: one sub-group adds up the first half, the other one the second half. Rank 1 calls them in the other order.
fn two_sub_groups<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, options, .. } = CallArguments::of(stream, &comm)?;
    let size = comm.size();
    let missing = || BuildError::Failed(8);
    let mut first = comm.strided(0, 1, size)?.ok_or_else(missing)?;
    let mut second = comm.strided(0, 1, size)?.ok_or_else(missing)?;
    let halves = [tensor.slice(0, 0, 8), tensor.slice(0, 8, 8)];
    for call in [comm.rank(), 1 - comm.rank()] {
        match call {
            0 => first.all_reduce(stream, &halves[0], Reduction::SUM, &options)?,
            _ => second.all_reduce(stream, &halves[1], Reduction::SUM, &options)?,
        }
    }
    Ok(())
}

/// Rank 1 gives up; the others wait for it.
fn one_fails<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, options, reduction, root, .. } = CallArguments::of(stream, &comm)?;
    if comm.rank() == 1 {
        return if root == 0 { Err(BuildError::Failed(77)) } else { Ok(()) };
    }
    comm.all_reduce(stream, &tensor, reduction, &options)?;
    Ok(())
}

/// The program of rank 1 never returns; the others wait for it.
fn one_hangs<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    let mut comm = Communicator::of(stream.launch_args())?;
    let CallArguments { tensor, options, reduction, .. } = CallArguments::of(stream, &comm)?;
    comm.all_reduce(stream, &tensor, reduction, &options)?;
    while comm.rank() == 1 {
        std::thread::sleep(Duration::from_secs(60));
    }
    comm.all_reduce(stream, &tensor, reduction, &options)?;
    Ok(())
}

builder_set! {
    struct CollectivePrograms {}
    stream {
        "all_reduce" => all_reduce,
        "reduce_and_broadcast" => reduce_and_broadcast,
        "scatter_and_gather" => scatter_and_gather,
        "exchange" => exchange,
        "neighbours" => neighbours,
        "disagree" => disagree,
        "broadcast" => broadcast,
        "broadcast_or_all_reduce" => broadcast_or_all_reduce,
        "all_reduce_or_barrier" => all_reduce_or_barrier,
        "two_sub_groups" => two_sub_groups,
        "one_hangs" => one_hangs,
        "one_fails" => one_fails,
        "tiled" => tiled,
        "tiled_to_root" => tiled_to_root,
    }
}

const POOL: Hosting = Hosting::Pool { os_threads: NonZeroUsize::MIN };

fn group(size: u32, ranks_per_node: u32, hosting: Hosting) -> Group {
    let device = DeviceOptions { aic: 1, aiv: 2, gm_bytes: 32 << 20, hosting };
    let options = GroupOptions { device, ranks_per_node, ..GroupOptions::default() };
    let mut group = Group::open_local(size, &options, CollectivePrograms).unwrap();
    group.window(2 * BYTES).unwrap();
    group
}

/// The largest size of a tensor in bytes.
const BYTES: u64 = 4096;

fn options() -> RunOptions {
    let (stall_budget, tasks, window, heap_bytes) = (Duration::from_secs(20), 1024, 256, 1 << 20);
    SmallRun { aicpu_instances: 2, stall_budget, tasks, window, heap_bytes }.options()
}

fn run(group: &mut Group, builder: &str, words: [u64; 6]) -> Result<(), GroupError> {
    let args = |_| words.to_vec();
    group.run(&GroupWork { builder, args: &args }, &options()).map(drop)
}

fn words(element: ElementType, count: u64, how: (Reduction, Algorithm, Order)) -> [u64; 6] {
    let (reduction, algorithm, order) = how;
    let codes = [reduction.get(), algorithm.get(), order.get()].map(u64::from);
    [element.get().into(), count, codes[0], codes[1], codes[2], 0]
}

/// Every rank's value of each element; small numbers, so that sums are exact in any order.
fn value(rank: u32, at: usize) -> i32 {
    i32::try_from((rank as usize * 7 + at * 3) % 11).unwrap() - 3
}

fn fill(group: &Group, count: usize) {
    for member in group.members() {
        let values: Vec<i32> = (0..count).map(|at| value(member.rank(), at)).collect();
        member.write(0, 0, &values).unwrap();
    }
}

fn check_reduced(group: &Group, count: usize, reduction: Reduction, what: &str) {
    for member in group.members() {
        let found = member.read::<i32>(0, 0, count).unwrap();
        for (at, found) in found.into_iter().enumerate() {
            let values = (0..group.size()).map(|rank| value(rank, at));
            let expected: i32 = match reduction {
                Reduction::SUM => values.sum(),
                Reduction::PROD => values.product(),
                Reduction::MAX => values.max().unwrap(),
                _ => values.min().unwrap(),
            };
            assert_eq!(found, expected, "{what}: rank {}, element {at}", member.rank());
        }
    }
}

#[test]
fn every_algorithm_reduces_on_every_number_of_ranks() {
    for (size, per_node) in [(1, 0), (2, 0), (3, 0), (4, 2), (8, 4)] {
        let mut group = group(size, per_node, POOL);
        for &algorithm in Algorithm::ALL {
            for (builder, reduction) in [
                ("all_reduce", Reduction::SUM),
                ("reduce_and_broadcast", Reduction::MAX),
                ("scatter_and_gather", Reduction::MIN),
            ] {
                let count = 101;
                fill(&group, count);
                let how = (reduction, algorithm, Order::ANY);
                let what = format!("{builder}, {size} ranks, {algorithm:?}");
                let ran = run(&mut group, builder, words(ElementType::I32, count as u64, how));
                ran.unwrap_or_else(|error| panic!("{what}: {error}"));
                check_reduced(&group, count, reduction, &what);
            }
        }
    }
}

#[test]
fn ranks_run_on_threads_as_well() {
    let mut group = group(2, 0, Hosting::Threads);
    fill(&group, 40);
    let how = (Reduction::PROD, Algorithm::RING, Order::ANY);
    run(&mut group, "all_reduce", words(ElementType::I32, 40, how)).unwrap();
    check_reduced(&group, 40, Reduction::PROD, "threads");
}

/// With more ranks than one kernel reduces at once, too.
#[test]
fn a_fixed_order_is_that_of_the_ranks() {
    let value =
        |rank: u32, at: usize| [1e8_f32, 1.0, -1e8, 3.25][(rank as usize + at) % 4] + at as f32;
    let count = 33;
    for mut group in [group(4, 2, POOL), virtual_group(20, NetFaults::default())] {
        let size = group.size();
        let sum = |at| (1..size).fold(value(0, at), |sum, rank| sum + value(rank, at));
        let expected: Vec<f32> = (0..count).map(sum).collect();
        for &algorithm in Algorithm::ALL {
            for member in group.members() {
                let values: Vec<f32> = (0..count).map(|at| value(member.rank(), at)).collect();
                member.write(0, 0, &values).unwrap();
            }
            let how = (Reduction::SUM, algorithm, Order::FIXED);
            run(&mut group, "all_reduce", words(ElementType::F32, count as u64, how)).unwrap();
            for member in group.members() {
                let found = member.read::<f32>(0, 0, count).unwrap();
                assert_eq!(found, expected, "{algorithm:?}, {size} ranks");
            }
        }
    }
}

/// Room for one tile of each rank on the heap, and for 16 tasks under way: what a rank sends is complete when others have received it, so that
/// no rank may submit all that it sends before what it receives.
#[test]
fn a_collective_may_be_larger_than_the_heap_and_the_window() {
    let mut group = virtual_group(4, NetFaults::default());
    let count = usize::try_from(BYTES / 4).unwrap();
    let mut small = options();
    small.capacities.stream.window = 16;
    small.capacities.stream.heap_bytes = 1024;
    for builder in ["all_reduce", "reduce_and_broadcast", "scatter_and_gather", "exchange"] {
        for &algorithm in Algorithm::ALL {
            fill(&group, count);
            let how = (Reduction::SUM, algorithm, Order::ANY);
            let words = words(ElementType::I32, count as u64, how).to_vec();
            let work = GroupWork { builder, args: &|_| words.clone() };
            let ran = group.run(&work, &small);
            ran.unwrap_or_else(|error| panic!("{builder}, {algorithm:?}: {error}"));
            if builder != "exchange" {
                check_reduced(&group, count, Reduction::SUM, builder);
            }
        }
    }
}

#[test]
fn parts_are_exchanged() {
    let mut group = group(4, 0, POOL);
    fill(&group, 32);
    let how = (Reduction::SUM, Algorithm::AUTO, Order::ANY);
    run(&mut group, "exchange", words(ElementType::I32, 32, how)).unwrap();
    for member in group.members() {
        let found = member.read::<i32>(0, BYTES, 32).unwrap();
        for (at, found) in found.into_iter().enumerate() {
            let from = u32::try_from(at / 8).unwrap();
            assert_eq!(found, value(from, member.rank() as usize * 8 + at % 8));
        }
    }
}

#[test]
fn puts_signals_and_gets_reach_the_neighbour() {
    let mut group = group(3, 0, POOL);
    let how = (Reduction::SUM, Algorithm::AUTO, Order::ANY);
    for _ in 0..3 {
        fill(&group, 16);
        let report = group
            .run(
                &GroupWork {
                    builder: "neighbours",
                    args: &|_| words(ElementType::I32, 16, how).to_vec(),
                },
                &options(),
            )
            .unwrap();
        assert_eq!((report.transfers().transfers, report.transfers().bytes_given), (9, 3 * 64));
        for member in group.members() {
            let before = (member.rank() + 2) % 3;
            let expected: Vec<i32> = (0..16).map(|at| value(before, at)).collect();
            assert_eq!(member.read::<i32>(0, BYTES, 16).unwrap(), expected);
        }
    }
}

#[test]
fn ranks_that_disagree_are_named_and_the_group_goes_on() {
    let mut group = group(3, 0, POOL);
    let how = (Reduction::SUM, Algorithm::DIRECT, Order::ANY);
    let Err(GroupError::Failed { failures }) =
        run(&mut group, "disagree", words(ElementType::I32, 16, how))
    else {
        panic!("it was not noticed");
    };
    assert!(matches!(failures[0].transfer, Some(TransferError::Mismatch { .. })), "{failures:?}");
    let text = GroupError::failed(failures).to_string();
    assert!(text.contains("8 i32") && text.contains("16 i32") && text.contains("rank 1"), "{text}");
    fill(&group, 16);
    run(&mut group, "all_reduce", words(ElementType::I32, 16, how)).unwrap();
    check_reduced(&group, 16, Reduction::SUM, "after a failure");
}

/// The difference is reported when the second rank is in the call, long before the stall budget, also if no transfers meet.
fn reported_at_once(
    group: &mut Group,
    builder: &str,
    args: &(dyn Fn(u32) -> Vec<u64> + Sync),
) -> String {
    let mut options = options();
    options.stall_budget = Duration::from_secs(60);
    let start = Instant::now();
    let failed = group.run(&GroupWork { builder, args }, &options);
    assert!(start.elapsed() < Duration::from_secs(20), "{builder}: {:?}", start.elapsed());
    let Err(GroupError::Failed { failures }) = failed else { panic!("{builder}: {failed:?}") };
    let found = &failures[0];
    assert!(
        matches!(found.transfer, Some(TransferError::Mismatch { .. })),
        "{builder}: {failures:?}"
    );
    found.to_string()
}

/// The last rank makes the call with another algorithm and another size, so that its transfers meet none.
#[test]
fn the_calls_of_ranks_whose_transfers_do_not_meet_are_reported() {
    let mut group = group(4, 0, POOL);
    let of =
        |algorithm, count| words(ElementType::I32, count, (Reduction::SUM, algorithm, Order::ANY));
    let args = |rank: u32| match rank {
        3 => of(Algorithm::HALVING, 32).to_vec(),
        _ => of(Algorithm::RING, 36).to_vec(),
    };
    let text = reported_at_once(&mut group, "all_reduce", &args);
    for part in ["36 i32", "32 i32", "rank 3"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Other collectives, roots, types and sizes, of two and of three ranks, in this process and in virtual time.
#[test]
fn ranks_in_different_calls_are_reported_at_once() {
    let how = (Reduction::SUM, Algorithm::AUTO, Order::ANY);
    let usual = words(ElementType::I32, 48, how);
    let other = |at: usize, word: u64| {
        let mut words = usual;
        words[at] = word;
        words
    };
    let cases = [
        ("broadcast_or_all_reduce", usual, ["48 i32 from rank 0", "all_reduce sum"]),
        ("all_reduce_or_barrier", usual, ["all_reduce sum", ": barrier"]),
        ("broadcast", other(5, 1), ["48 i32 from rank 0", "48 i32 from rank 1"]),
        ("broadcast", other(1, 24), ["48 i32 from rank 0", "24 i32 from rank 0"]),
        ("broadcast", other(0, ElementType::F32.get().into()), ["48 i32", "48 f32"]),
        ("all_reduce", other(2, Reduction::MAX.get().into()), ["all_reduce sum", "all_reduce max"]),
    ];
    for ranks in [2, 3] {
        for mut group in [group(ranks, 0, POOL), virtual_group(ranks, NetFaults::default())] {
            for (builder, last, [of_first, of_last]) in cases {
                let args = |rank: u32| if rank + 1 == ranks { last } else { usual }.to_vec();
                let text = reported_at_once(&mut group, builder, &args);
                let of_both =
                    [of_first, of_last, "collective call 1", &format!("rank {}", ranks - 1)];
                for part in of_both {
                    assert!(text.contains(part), "{builder}: no {part:?} in {text}");
                }
            }
            fill(&group, 16);
            run(&mut group, "all_reduce", words(ElementType::I32, 16, how)).unwrap();
            check_reduced(&group, 16, Reduction::SUM, "after the failures");
        }
    }
}

/// Two sub-groups of the same ranks and the calls of both at once: nothing goes to the wrong one.
#[test]
fn sub_groups_of_the_same_ranks_do_not_meet() {
    let mut group = group(2, 0, POOL);
    fill(&group, 16);
    let how = (Reduction::SUM, Algorithm::DIRECT, Order::ANY);
    run(&mut group, "two_sub_groups", words(ElementType::I32, 16, how)).unwrap();
    for member in group.members() {
        let sums = member.read::<i32>(0, 0, 16).unwrap();
        for (at, sum) in sums.into_iter().enumerate() {
            assert_eq!(sum, value(0, at) + value(1, at), "rank {}, element {at}", member.rank());
        }
    }
}

#[test]
fn a_rank_that_fails_or_leaves_ends_the_run_of_all_and_the_rest_goes_on() {
    let mut group = group(3, 0, POOL);
    let how = (Reduction::SUM, Algorithm::RING, Order::ANY);
    let ordinary = words(ElementType::I32, 16, how);
    let error = run(&mut group, "one_fails", ordinary).unwrap_err().to_string();
    assert!(
        error.starts_with("rank 1 on this process: ") && error.contains("Ranks 0, 2"),
        "{error}"
    );
    let leaves = [ordinary[0], 16, 0, ordinary[3], 0, 1];
    let error = run(&mut group, "one_fails", leaves).unwrap_err().to_string();
    assert!(error.contains("rank 1 has ended its run without it"), "{error}");
    let mut smaller = group.without(&[1]).unwrap();
    fill(&smaller, 16);
    run(&mut smaller, "all_reduce", ordinary).unwrap();
    check_reduced(&smaller, 16, Reduction::SUM, "two of three ranks");
}

#[test]
fn a_transfer_outside_of_a_group_is_a_named_fault() {
    let device = DeviceOptions { aic: 1, aiv: 2, gm_bytes: 32 << 20, hosting: POOL };
    let mut device = crate::Device::open_sim(device, CollectivePrograms).unwrap();
    device.register_library().unwrap();
    let words = words(ElementType::I32, 4, (Reduction::SUM, Algorithm::RING, Order::ANY));
    let network = pto_graph::group::NetworkFigures::DEFAULT;
    let at = device.alloc(2 * BYTES).unwrap();
    let group = pto_graph::group::GroupWords::new((0, 2), 2, network).with_window(at, 2 * BYTES);
    let mut group_words = Vec::new();
    group.unwrap().encode(|word| group_words.push(word));
    device.set_group(group_words);
    let work = crate::Work::Stream { builder: "all_reduce", orch_args: &words };
    let options = RunOptions { stall_budget: Duration::from_millis(50), ..options() };
    let error = device.run(work, &options).unwrap_err();
    assert!(error.to_string().contains("TRANSFER_NO_ENGINE"), "{error}");
}

fn virtual_group(size: u32, faults: NetFaults) -> Group {
    let device = DeviceOptions { aic: 1, aiv: 4, gm_bytes: 256 << 20, ..DeviceOptions::default() };
    let options = GroupOptions { device, ..GroupOptions::default() };
    let profile = NetworkProfile::by_name("a3-pod").unwrap();
    let mut group =
        Group::open_virtual(size, &options, (profile, faults), CollectivePrograms).unwrap();
    group.window(2 * BYTES).unwrap();
    group
}

/// Everything that distinguishes two runs in virtual time.
fn hashes(group: &mut Group, words: [u64; 6]) -> Vec<(u64, Duration)> {
    let work = GroupWork { builder: "all_reduce", args: &|_| words.to_vec() };
    let report = group.run(&work, &options()).unwrap();
    let of = |rank: super::RankReport| {
        (rank.run.virtual_report.as_ref().unwrap().trace_hash, rank.run.makespan)
    };
    report.ranks.into_iter().map(of).collect()
}

#[test]
fn virtual_time_reduces_and_gives_the_same_run_again() {
    for algorithm in [Algorithm::DIRECT, Algorithm::RING, Algorithm::HALVING, Algorithm::TREE] {
        let words = words(ElementType::I32, 101, (Reduction::SUM, algorithm, Order::ANY));
        let once = || {
            let mut group = virtual_group(4, NetFaults::default());
            fill(&group, 101);
            let hashes = hashes(&mut group, words);
            check_reduced(&group, 101, Reduction::SUM, "virtual time");
            hashes
        };
        assert_eq!(once(), once());
    }
}

#[test]
fn faults_of_the_network_and_of_ranks_are_reported() {
    let ordinary = words(ElementType::I32, 101, (Reduction::SUM, Algorithm::RING, Order::ANY));
    let faults = NetFaults { lost: Some(5), ..NetFaults::default() };
    let mut group = virtual_group(3, faults);
    let error = run(&mut group, "all_reduce", ordinary).unwrap_err().to_string();
    assert!(error.contains("the network has lost transfer 5"), "{error}");
    let faults = NetFaults { dies: Some((1, 10_000)), ..NetFaults::default() };
    let mut group = virtual_group(3, faults);
    let error = run(&mut group, "all_reduce", ordinary).unwrap_err().to_string();
    assert!(error.starts_with("rank 1 on the machine in virtual time"), "{error}");
    fill(&group, 101);
    run(&mut group, "all_reduce", ordinary).unwrap();
    check_reduced(&group, 101, Reduction::SUM, "after a death");
    // A tile of 64 bytes takes 1 ns on the wire; 100 us on the slow one.
    let faults = NetFaults { slow: Some((0, 1, 100_000)), ..NetFaults::default() };
    let makespan = |faults| hashes(&mut virtual_group(3, faults), ordinary)[0].1;
    assert!(makespan(faults) > makespan(NetFaults::default()));
}

/// The thread that carries the machines is stuck in the program of rank 1: another one goes on with those of the others.
#[test]
fn a_program_in_virtual_time_that_never_returns_is_reported_and_the_other_ranks_end() {
    let mut group = virtual_group(3, NetFaults::default());
    let how = (Reduction::SUM, Algorithm::RING, Order::ANY);
    let short = Duration::from_millis(100);
    let options = RunOptions { task_budget: short, bring_up_budget: short, ..options() };
    let words = words(ElementType::I32, 16, how);
    let work = GroupWork { builder: "one_hangs", args: &|_| words.to_vec() };
    let Err(GroupError::Failed { failures }) = group.run(&work, &options) else {
        panic!("it was not noticed");
    };
    let ranks: Vec<u32> = failures.iter().map(|failure| failure.rank).collect();
    let text = GroupError::failed(failures).to_string();
    assert!(text.starts_with("rank 1 on the machine in virtual time"), "{text}");
    assert!(text.contains("STALL_INSTANCE") && ranks.len() == 3, "{text}");
}

/// What one collective of this many bytes takes in virtual time on 8 ranks, in microseconds.
fn micros(builder: &str, bytes: u64, algorithm: Algorithm) -> f64 {
    let device = DeviceOptions { aic: 1, aiv: 48, gm_bytes: 1 << 30, ..DeviceOptions::default() };
    let compute = crate::virtual_time::Compute::Off;
    let hosting =
        Hosting::Virtual(crate::virtual_time::VirtualOptions { compute, ..Default::default() });
    let options =
        GroupOptions { device: DeviceOptions { hosting, ..device }, ..Default::default() };
    let profile = (NetworkProfile::by_name("a3-pod").unwrap(), NetFaults::default());
    let mut group = Group::open_virtual(8, &options, profile, CollectivePrograms).unwrap();
    group.window(bytes).unwrap();
    let mut run = self::options();
    (run.aicpu_instances, run.capacities.stream.heap_bytes) = (4, 64 << 20);
    (run.capacities.tasks, run.capacities.stream.window) = (4096, 4096);
    run.capacities.stream.map_entries = 32 << 10;
    let how = (Reduction::SUM, algorithm, Order::ANY);
    let mut words = words(ElementType::F32, bytes / 4, how);
    words[5] = pto_graph::group::TILE_BYTES;
    let work = GroupWork { builder, args: &|_| words.to_vec() };
    let report = group.run(&work, &run).unwrap_or_else(|error| panic!("{algorithm:?}: {error}"));
    report.makespan().as_secs_f64() * 1e6
}

/// Bounds with the device's own hops: 64 MiB take 599.2 us on the wire. The figures are printed with `--nocapture`.
#[test]
fn all_reduce_comes_near_its_bound() {
    let mut best = [f64::MAX; 2];
    for algorithm in [Algorithm::AUTO, Algorithm::HALVING, Algorithm::RING] {
        for (at, bytes) in [8 << 10, 64 << 20].into_iter().enumerate() {
            let took = micros("tiled", bytes, algorithm);
            println!("all_reduce, 8 ranks, {bytes} bytes, {algorithm:?}: {took:.1} us");
            best[at] = best[at].min(took);
        }
    }
    // 6 transfers after one another of 1 us each, and 3 us of hops on the devices with each; 599.2 us on the wire.
    assert!(best[0] < 2.0 * 6.0 * 4.0 && best[1] < 1.15 * 599.2, "{best:?}");
}

/// 64 MiB take 342.4 us on the wire of the root.
#[test]
fn a_reduction_to_one_rank_comes_near_its_bound() {
    let took = micros("tiled_to_root", 64 << 20, Algorithm::AUTO);
    println!("reduce, 8 ranks, 64 MiB: {took:.1} us");
    assert!(took < 1.15 * 342.4, "{took:.1} us");
}
