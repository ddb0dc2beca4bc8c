//! Sessions of a group over MPI: streams take transfers as commands, captured streams hold them, and plans of a program stream exchange tensors. Each rank is this
//! test again, below the launcher.

use std::time::Duration;

use pto_graph::group::{Communicator, RemoteAddress, Signal, Transfer};
use pto_graph::{ElementType, NoBuilders, TensorView};
use pto_host::abi::{FuncId, GmAddr};
use pto_host::group::{Group, GroupOptions, GroupSessions, MemberSession};
use pto_host::session::{SessionOptions, Stream};
use pto_host::stitch::{HostTensor, Inputs, Stitcher};
use pto_host::workloads::Workload;
use pto_host::workloads::program::{Program, TensorLayout};
use pto_host::{DeviceOptions, LIBRARY, RunOptions};
use pto_mpi::find::Kind;
use pto_mpi::{Mpi, MpiOptions};

use super::{job_of, launchers};

const ELEMENTS: u32 = 4096;
const BYTES: u64 = 4 * ELEMENTS as u64;
const SOON: Duration = Duration::from_secs(60);
const ROUNDS: u64 = 4;

/// Every rank doubles its own values, all add up theirs, and each adds its own again.
const SUM: &str = "workload sum_of_all {
  tensor x : f32[16, 64]
  tensor p : f32[16, 64]
  tensor y : f32[16, 64]
  kernel twice(a: in f32[4, 64], b: out f32[4, 64]) {
    %0 = load a : f32[4, 64]
    %1 = add %0, %0 : f32[4, 64]
    store b, %1
  }
  kernel plus(a: in f32[4, 64], b: in f32[4, 64], c: out f32[4, 64]) {
    %0 = load a : f32[4, 64]
    %1 = load b : f32[4, 64]
    %2 = add %0, %1 : f32[4, 64]
    store c, %2
  }
  do sequential {
    parallel i in dense 4 {
      twice[i](a = x[i * 4 for 4], b = p[i * 4 for 4])
    }
    exchange all_reduce p sum
    parallel j in dense 4 {
      plus[j](a = p[j * 4 for 4], b = x[j * 4 for 4], c = y[j * 4 for 4])
    }
  }
}";

#[test]
#[ignore = "needs an MPI: cargo xtask mpi"]
fn streams_over_mpi_have_transfers_between_their_launches() {
    if Kind::of_launcher().is_ok() {
        return rank();
    }
    let name = "mpi::sessions::streams_over_mpi_have_transfers_between_their_launches";
    let words = ["--ignored", "--exact", "--nocapture", name].map(str::to_owned);
    let this = std::env::current_exe().expect("this test");
    for launcher in launchers() {
        for ranks in [1, 3] {
            let printed = job_of(&this, launcher, ranks, &words).output().expect("it starts");
            let said = String::from_utf8_lossy(&printed.stdout);
            let stderr = String::from_utf8_lossy(&printed.stderr);
            assert!(printed.status.success(), "{} {ranks}: {said}{stderr}", launcher.0);
            assert_eq!(said.matches("this rank is right").count(), ranks as usize, "{said}");
        }
    }
}

/// What each of the processes does.
fn rank() {
    let mpi = Mpi::join(&MpiOptions::default()).expect("an MPI job");
    let base = GroupOptions::default();
    let device = DeviceOptions { aic: 2, aiv: 4, gm_bytes: 1 << 30, ..base.device };
    let options = GroupOptions { device, ..base };
    let mut group = Group::join(mpi.transport(), &options, NoBuilders).expect("a group");
    group.window(4 * BYTES).expect("a window");
    let member = &group.members()[0];
    let (own, size) = (member.rank(), group.size());
    member.write(0, 0, &[own as f32 + 1.0; ELEMENTS as usize]).expect("a window");
    let run = RunOptions { aicpu_instances: 2, stall_budget: SOON, ..RunOptions::default() };
    let sessions = group.sessions(&SessionOptions { run, ..SessionOptions::default() });
    let sessions = sessions.expect("sessions");
    let streams = Streams::of(&sessions.members()[0]);
    for round in 1..=ROUNDS {
        streams.submit(&sessions.members()[0], round);
    }
    streams.replay(&sessions.members()[0]);
    streams.synchronize();
    let transfers = sessions.members()[0].transfers();
    assert_eq!((transfers.0.transfers, transfers.1), (4 * 2 * ROUNDS, None));
    drop(streams);
    exchange_in_plans(&sessions, size);
    let group = sessions.close().expect("the device is not shared");
    let found = group.members()[0].read::<f32>(0, 3 * BYTES, ELEMENTS as usize).expect("a window");
    let has = |back: u32| ((own + 2 * size - back) % size) as f32 + 1.0;
    assert_eq!(found, vec![has(1) + has(2); ELEMENTS as usize], "rank {own}");
    println!("this rank is right");
}

/// A send is over when the other rank has the bytes: in one stream with the receive, all ranks would wait for each other.
struct Streams {
    giving: Stream,
    computing: Stream,
}

impl Streams {
    fn of(member: &MemberSession) -> Self {
        let stream = || member.session().stream().expect("a stream");
        Self { giving: stream(), computing: stream() }
    }

    fn submit(&self, member: &MemberSession, round: u64) {
        let base = member.window(0).expect("a window");
        let [send, receive, put, wait] = around(member.communicator(), base, round);
        let (func, words) = add(base);
        self.giving.transfer(&send).expect("a send");
        self.computing.transfer(&receive).expect("a receive");
        self.computing.launch(func, &words).expect("a launch");
        self.computing.transfer(&put).expect("a put");
        self.computing.transfer(&wait).expect("a wait");
    }

    /// The same, captured once and launched so many times; the signals go on counting.
    fn replay(&self, member: &MemberSession) {
        let (Self { giving, computing }, base) = (self, member.window(0).expect("a window"));
        let [send, receive, put, _] = around(member.communicator(), base, 0);
        let [begin, end] = [(), ()].map(|()| member.session().event().expect("an event"));
        let (func, words) = add(base);
        let capture = || {
            computing.begin_capture()?;
            computing.record(&begin)?;
            giving.wait(&begin)?;
            giving.transfer(&send)?;
            giving.record(&end)?;
            computing.transfer(&receive)?;
            computing.launch(func, &words)?;
            computing.transfer(&put)?;
            computing.wait(&end)?;
            computing.end_capture()
        };
        let captured = capture().expect("a captured stream");
        for round in ROUNDS + 1..=2 * ROUNDS {
            computing.launch_recording(&captured, &[]).expect("a launch");
            let [.., wait] = around(member.communicator(), base, round);
            computing.transfer(&wait).expect("a wait");
        }
        self.synchronize();
    }

    fn synchronize(&self) {
        self.giving.synchronize_within(SOON).expect("it ends");
        self.computing.synchronize_within(SOON).expect("it ends");
    }
}

fn tensor(base: GmAddr, number: u64) -> TensorView<'static> {
    TensorView::dense(base.offset(number * BYTES), ElementType::F32, &[ELEMENTS])
}

/// The kernel that adds the first two tensors, and its words.
fn add(base: GmAddr) -> (FuncId, [u64; 4]) {
    let kernel = LIBRARY.iter().find(|kernel| kernel.name == "add").expect("it is there");
    let at = |number: u64| base.offset(number * BYTES).0;
    (FuncId(kernel.func_id.try_into().expect("small")), [at(0), at(1), at(2), ELEMENTS.into()])
}

/// Around the ring: a rank sends what it has to the next one, receives from the one before, puts the sum of both to the next one's last tensor, and
/// waits until its own has been written.
fn around(comm: &Communicator, base: GmAddr, round: u64) -> [Transfer; 4] {
    let by = |distance: u32| (comm.rank() + distance) % comm.size();
    let (next, last) = (by(1), by(comm.size() - 1));
    let remote = RemoteAddress { rank: next, window: 0, offset: 3 * BYTES };
    let signal = Signal { slot: 3, value: 1 };
    let made = || {
        Ok::<_, pto_host::abi::Fault>([
            comm.send_transfer(&tensor(base, 0), next, 7)?,
            comm.receive_transfer(&tensor(base, 1), last, 7)?,
            comm.put_transfer(&tensor(base, 2), remote, Some(signal))?,
            comm.wait_transfer(Signal { value: round, ..signal })?,
        ])
    };
    made().expect("transfers")
}

/// Plans that share launches, each with a collective.
fn exchange_in_plans(sessions: &GroupSessions, size: u32) {
    const ALL: usize = 16 * 64;
    let member = &sessions.members()[0];
    let own = member.rank() as f32 + 1.0;
    let total: f32 = (0..size).map(|rank| 2.0 * (rank as f32 + 1.0)).sum();
    let stitcher = Stitcher::new(member.session()).expect("a stitcher");
    let checked = Workload::parse(SUM).expect("a workload").check().expect("right");
    let program = Program::of_workload(&checked).expect("a program");
    let program = stitcher.load(program).expect("it is loaded");
    for overlap in [1, 4] {
        let stream = stitcher.overlapping_stream(overlap).expect("a stream");
        let x = HostTensor::of_f32(&[16, 64], &[own; ALL]).expect("a tensor");
        let x = stream.to_device(&x, &TensorLayout::device()).expect("room");
        let run = |_| {
            let outputs = stream.run(&program, Inputs::new().borrow("x", &x));
            outputs.expect("it runs").take("y").expect("an output")
        };
        let found: Vec<_> = (0..6).map(run).collect();
        stream.flush().expect("it is launched");
        for y in &found {
            let y = stream.to_host(y).expect("it ends").to_f32().expect("f32");
            assert_eq!(y, [total + own; ALL], "{overlap} in a launch");
        }
    }
}
