//! Transfers are tasks of streams of sessions, of captured streams, and of graphs of the host. Each gives the results of a program of the streaming runtime.

use std::time::Duration;

use pto_abi::{CoreKind, FuncId, GmAddr};
use pto_aicore_kernels::library;
use pto_graph::group::{Communicator, RemoteAddress, Signal};
use pto_graph::{ElementType, GraphBuilder, NoBuilders, TaskSpec, TensorView};

use super::{Group, GroupError, GroupOptions, GroupSessions, NetFaults, NetworkProfile};
use crate::session::{SessionOptions, Stream};
use crate::{DeviceOptions, Error, GraphImage, HostGraph, Hosting, RunOptions};

const ELEMENTS: u32 = 256;
const BYTES: u64 = 4 * ELEMENTS as u64;
const SOON: Duration = Duration::from_secs(60);

fn options() -> GroupOptions {
    let device =
        DeviceOptions { aic: 2, aiv: 4, gm_bytes: 32 << 20, ..GroupOptions::default().device };
    GroupOptions { device, ..GroupOptions::default() }
}

fn run_options() -> RunOptions {
    RunOptions { aicpu_instances: 2, stall_budget: SOON, ..RunOptions::default() }
}

fn session_options() -> SessionOptions {
    SessionOptions { run: run_options(), ..SessionOptions::default() }
}

/// A group with a window of four tensors: what a rank has, what is sent to it, the sum of both, and what is put to it.
fn group(size: u32) -> Group {
    let mut group = Group::open_local(size, &options(), NoBuilders).unwrap();
    group.window(4 * BYTES).unwrap();
    for member in group.members() {
        member.write(0, 0, &[member.rank() as f32 + 1.0; ELEMENTS as usize]).unwrap();
    }
    group
}

/// A tensor of the window of a rank.
fn tensor(base: GmAddr, number: u64) -> TensorView<'static> {
    TensorView::dense(base.offset(number * BYTES), ElementType::F32, &[ELEMENTS])
}

/// The kernel that adds the first two tensors, and its words.
fn add(base: GmAddr) -> (FuncId, CoreKind, [u64; 4]) {
    let kernel = library::by_name("add").unwrap();
    let at = |number: u64| base.offset(number * BYTES).0;
    (
        FuncId(kernel.func_id.try_into().unwrap()),
        kernel.kind,
        [at(0), at(1), at(2), ELEMENTS.into()],
    )
}

/// Around the ring: sends what it has to the next rank, receives from the one before, adds both, puts the sum to the next rank's last tensor,
/// and waits until its own has been written.
fn around(comm: &Communicator, base: GmAddr, round: u64) -> [pto_graph::group::Transfer; 4] {
    let (next, last) =
        ((comm.rank() + 1) % comm.size(), (comm.rank() + comm.size() - 1) % comm.size());
    let remote = RemoteAddress { rank: next, window: 0, offset: 3 * BYTES };
    [
        comm.send_transfer(&tensor(base, 0), next, 7).unwrap(),
        comm.receive_transfer(&tensor(base, 1), last, 7).unwrap(),
        comm.put_transfer(&tensor(base, 2), remote, Some(Signal { slot: 3, value: 1 })).unwrap(),
        comm.wait_transfer(Signal { slot: 3, value: round }).unwrap(),
    ]
}

/// The value of the last tensor of a rank after [`around`]: the sum of the rank before it.
fn expected(rank: u32, size: u32) -> f32 {
    let has = |back: u32| ((rank + 2 * size - back) % size) as f32 + 1.0;
    has(1) + has(2)
}

fn check(group: &Group) {
    for member in group.members() {
        let found = member.read::<f32>(0, 3 * BYTES, ELEMENTS as usize).unwrap();
        let expected = expected(member.rank(), group.size());
        assert_eq!(found, [expected; ELEMENTS as usize], "rank {}", member.rank());
    }
}

fn graph(group: &Group, rank: u32) -> GraphImage {
    let member = &group.members()[rank as usize];
    let (comm, base) = (group.communicator(rank).unwrap(), member.window(0).unwrap());
    let (func, kind, words) = add(base);
    HostGraph::build(member.device(), &[], |graph| {
        let [send, receive, put, wait] = around(&comm, base, 1);
        graph.submit_transfer(&send, &[])?;
        let come = graph.submit_transfer(&receive, &[])?;
        let sum = graph.submit(TaskSpec::new(func, kind, &words), &[come])?;
        graph.submit_transfer(&put, &[sum])?;
        graph.submit_transfer(&wait, &[sum])?;
        Ok(())
    })
    .unwrap()
}

#[test]
fn graphs_of_the_host_have_transfers() {
    for size in [1, 2, 4] {
        let mut group = group(size);
        let graphs: Vec<_> = (0..size).map(|rank| graph(&group, rank)).collect();
        for _ in 0..3 {
            // The same graphs again: what a run has left on the device is not taken for a fresh image.
            let report = group.run_graphs(&graphs, &run_options()).unwrap();
            check(&group);
            assert_eq!(report.transfers().transfers, 4 * u64::from(size));
            assert_eq!(report.tasks(), 5 * u64::from(size));
        }
    }
}

/// Four ranks in virtual time, without a window.
fn virtual_group() -> Group {
    let hosting = Hosting::Virtual(pto_sim_shim::virtual_time::VirtualOptions::default());
    let device = DeviceOptions { hosting, ..options().device };
    let network = (NetworkProfile::by_name("a3-pod").unwrap(), NetFaults::default());
    let options = GroupOptions { device, ..options() };
    Group::open_virtual(4, &options, network, NoBuilders).unwrap()
}

#[test]
fn sessions_in_virtual_time_are_refused() {
    let refused = virtual_group().sessions(&session_options()).err().unwrap().to_string();
    let names_it = refused.contains("virtual time has no sessions");
    assert!(names_it && refused.contains("Group::open_local"), "{refused}");
}

#[test]
fn graphs_of_the_host_have_transfers_in_virtual_time() {
    let mut group = virtual_group();
    group.window(4 * BYTES).unwrap();
    for member in group.members() {
        member.write(0, 0, &[member.rank() as f32 + 1.0; ELEMENTS as usize]).unwrap();
    }
    let graphs: Vec<_> = (0..4).map(|rank| graph(&group, rank)).collect();
    let makespans: Vec<_> =
        (0..2).map(|_| group.run_graphs(&graphs, &run_options()).unwrap().makespan()).collect();
    check(&group);
    assert!(makespans[0] > Duration::from_micros(2), "two transfers in a row: {makespans:?}");
}

#[test]
fn a_graph_for_each_rank_and_a_group_for_each_transfer() {
    let mut group = group(2);
    let one = [graph(&group, 0)];
    let refused = group.run_graphs(&one, &run_options()).unwrap_err();
    assert!(matches!(refused, GroupError::Graphs { given: 1, members: 2 }), "{refused}");
    let comm = group.communicator(0).unwrap();
    let transfer = comm.wait_transfer(Signal { slot: 0, value: 0 }).unwrap();
    let mut alone = crate::Device::open_sim(options().device, NoBuilders).unwrap();
    alone.register_library().unwrap();
    let refused = HostGraph::build(&alone, &[], |graph| {
        graph.submit_transfer(&transfer, &[])?;
        Ok(())
    });
    assert!(matches!(refused, Err(Error::Build { what, .. }) if what.contains("in no group")));
    let session = alone.session(session_options()).unwrap();
    let refused = session.stream().unwrap().transfer(&transfer).unwrap_err().to_string();
    assert!(refused.contains("in no group") && refused.contains("Group::sessions"), "{refused}");
}

fn sessions(group: Group) -> GroupSessions {
    group.sessions(&session_options()).unwrap()
}

/// The streams of a rank. A send is over when the other rank has the bytes: in one stream with the receive, all ranks would wait for each other.
struct Streams {
    giving: Stream,
    computing: Stream,
}

impl Streams {
    fn of(sessions: &GroupSessions) -> Vec<Self> {
        let streams = sessions.members().iter().map(|member| {
            let stream = || member.session().stream().unwrap();
            Self { giving: stream(), computing: stream() }
        });
        streams.collect()
    }

    fn submit(&self, comm: &Communicator, base: GmAddr, round: u64) {
        let [send, receive, put, wait] = around(comm, base, round);
        let (func, _, words) = add(base);
        self.giving.transfer(&send).unwrap();
        self.computing.transfer(&receive).unwrap();
        self.computing.launch(func, &words).unwrap();
        self.computing.transfer(&put).unwrap();
        self.computing.transfer(&wait).unwrap();
    }

    fn synchronize(&self) {
        self.giving.synchronize_within(SOON).unwrap();
        self.computing.synchronize_within(SOON).unwrap();
    }
}

#[test]
fn streams_have_transfers_between_their_launches() {
    let sessions = sessions(group(3));
    let streams = Streams::of(&sessions);
    for round in 1..=5 {
        // The last rank submits first: ranks do not wait for each other in the order of their numbers.
        for (member, streams) in sessions.members().iter().zip(&streams).rev() {
            streams.submit(member.communicator(), member.window(0).unwrap(), round);
        }
    }
    streams.iter().for_each(Streams::synchronize);
    let (counts, broken) = sessions.members()[0].transfers();
    assert_eq!((counts.transfers, broken), (4 * 5, None));
    drop(streams);
    let mut group = sessions.close().unwrap();
    check(&group);
    // The group is as before.
    let graphs: Vec<_> = (0..3).map(|rank| graph(&group, rank)).collect();
    group.run_graphs(&graphs, &run_options()).unwrap();
    check(&group);
}

#[test]
fn what_was_captured_with_transfers_is_launched_again() {
    let sessions = sessions(group(3));
    let streams = Streams::of(&sessions);
    let captures =
        sessions.members().iter().zip(&streams).map(|(member, Streams { giving, computing })| {
            let (comm, base) = (member.communicator(), member.window(0).unwrap());
            let [begin, end] = [(), ()].map(|()| member.session().event().unwrap());
            let [send, receive, put, _] = around(comm, base, 0);
            let (func, _, words) = add(base);
            computing.begin_capture().unwrap();
            computing.record(&begin).unwrap();
            giving.wait(&begin).unwrap();
            giving.transfer(&send).unwrap();
            giving.record(&end).unwrap();
            computing.transfer(&receive).unwrap();
            computing.launch(func, &words).unwrap();
            computing.transfer(&put).unwrap();
            computing.wait(&end).unwrap();
            computing.end_capture().unwrap()
        });
    let captures: Vec<_> = captures.collect();
    assert_eq!(captures[0].launches(), 4);
    for round in 1..=4 {
        for ((member, streams), captured) in sessions.members().iter().zip(&streams).zip(&captures)
        {
            streams.computing.launch_recording(captured, &[]).unwrap();
            let signal = Signal { slot: 3, value: round };
            streams
                .computing
                .transfer(&member.communicator().wait_transfer(signal).unwrap())
                .unwrap();
        }
    }
    streams.iter().for_each(Streams::synchronize);
    drop((streams, captures));
    check(&sessions.close().unwrap());
}

#[test]
fn a_stream_that_waits_for_a_rank_holds_up_no_other_stream() {
    let sessions = sessions(group(2));
    let [first, second] = sessions.members() else { unreachable!("two ranks") };
    let [waits, free] = [(), ()].map(|()| first.session().stream().unwrap());
    let signal = Signal { slot: 9, value: 2 };
    waits.transfer(&first.communicator().wait_transfer(signal).unwrap()).unwrap();
    let (func, _, words) = add(first.window(0).unwrap());
    free.launch(func, &words).unwrap();
    free.synchronize_within(SOON).unwrap();
    assert!(!waits.query().unwrap(), "no signal was sent");
    let of_second = second.session().stream().unwrap();
    let signals = second.communicator().signal_transfer(0, signal).unwrap();
    of_second.transfer(&signals).unwrap();
    waits.synchronize_within(SOON).unwrap();
    of_second.synchronize_within(SOON).unwrap();
}

#[test]
fn a_disagreement_of_ranks_in_a_session_is_reported_and_new_sessions_work() {
    let sessions = sessions(group(2));
    let [first, second] = sessions.members() else { unreachable!("two ranks") };
    let bases = [first, second].map(|member| member.window(0).unwrap());
    let (to, from) = (tensor(bases[0], 0), tensor(bases[1], 0).slice(0, 0, 8));
    let streams = [first, second].map(|member| member.session().stream().unwrap());
    streams[0].transfer(&first.communicator().send_transfer(&to, 1, 1).unwrap()).unwrap();
    streams[1].transfer(&second.communicator().receive_transfer(&from, 0, 1).unwrap()).unwrap();
    let has_failed = streams.each_ref().map(|stream| stream.synchronize_within(SOON).is_err());
    assert_eq!(has_failed, [true, true]);
    let why = [first, second].map(|member| member.transfers().1.unwrap());
    assert!(
        why.iter().any(|why| why.contains("1024 bytes") && why.contains("32 bytes")),
        "{why:?}"
    );
    // The device goes on, and has no transfers before new sessions.
    first.session().reset().unwrap();
    let again = first.communicator().signal_transfer(0, Signal { slot: 0, value: 1 }).unwrap();
    streams[0].transfer(&again).unwrap();
    assert!(streams[0].synchronize_within(SOON).is_err());
    assert!(first.transfers().1.unwrap().contains("agree"));
    drop(streams);
    let sessions = sessions.close().unwrap().sessions(&session_options()).unwrap();
    let streams = Streams::of(&sessions);
    for (member, streams) in sessions.members().iter().zip(&streams) {
        streams.submit(member.communicator(), member.window(0).unwrap(), 1);
    }
    streams.iter().for_each(Streams::synchronize);
}

/// Of the schedulers that sleep, a transfer that is over wakes one (and the first instance, which may be the one that builds): the others would look in vain.
#[test]
fn a_transfer_wakes_one_scheduler_in_virtual_time() {
    const TRANSFERS: u32 = 64;
    let hosting = Hosting::Virtual(pto_sim_shim::virtual_time::VirtualOptions::default());
    let device = DeviceOptions { aic: 4, aiv: 8, gm_bytes: 32 << 20, hosting };
    let network = (NetworkProfile::by_name("a3-pod").unwrap(), NetFaults::default());
    let options = GroupOptions { device, ..options() };
    let mut group = Group::open_virtual(2, &options, network, NoBuilders).unwrap();
    group.window(4 * BYTES).unwrap();
    let graph = |rank: u32| {
        let member = &group.members()[rank as usize];
        let (comm, base) = (group.communicator(rank).unwrap(), member.window(0).unwrap());
        HostGraph::build(member.device(), &[], |graph| {
            // There and back again, one at a time.
            let mut last = Vec::new();
            for turn in 0..TRANSFERS {
                let (view, other) = (tensor(base, 0), 1 - rank);
                let transfer = match turn % 2 == rank {
                    true => comm.send_transfer(&view, other, turn)?,
                    false => comm.receive_transfer(&view, other, turn)?,
                };
                last = vec![graph.submit_transfer(&transfer, &last)?];
            }
            Ok(())
        })
        .unwrap()
    };
    let graphs = [graph(0), graph(1)];
    let run = RunOptions { aicpu_instances: 4, ..run_options() };
    let report = group.run_graphs(&graphs, &run).unwrap();
    for rank in &report.ranks {
        let instances = &rank.run.virtual_report.as_ref().unwrap().instances;
        let steps: Vec<_> = instances.iter().map(|instance| instance.steps).collect();
        let of_sleepers: u64 = steps[1..].iter().sum();
        assert!(of_sleepers < 3 * u64::from(TRANSFERS), "rank {}: {steps:?}", rank.rank);
    }
}
