//! Communicators: how the ranks of one find each other, and the calls of a rank in its streams.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pto_host::graph::group::Order;

use crate::call::{Call, Item, Key};
use crate::device::{self, Command, OperandBytes, Stream};
use crate::failure::{
    Checked, Failure, INTERNAL, NOT_FOUND, NOT_SUPPORTED, PARAMETER, POINTER, TCP_CONNECT, TIMEOUT,
    require,
};
use crate::meeting::{Meeting, join_limit};
use crate::rank_table;
use crate::wire::{self, Remote};

/// What root information begins with.
const MARK: &str = "pto-hccl";
/// The port of rank tables, unless HCCL_IF_BASE_PORT says another one.
const BASE_PORT: u16 = 60_000;
/// The name of communicators that have none.
const NAME: &str = "hccl_world_group";

/// Where the ranks of a communicator meet.
enum Access {
    Local(Arc<Meeting>),
    Remote(Remote),
}

/// A communicator at one rank.
pub(crate) struct Comm {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) name: String,
    access: Access,
    numbers: Mutex<Numbers>,
    error: Mutex<Option<Failure>>,
}

/// How many calls a rank has made.
#[derive(Clone, Default)]
struct Numbers {
    all: u64,
    pairs: BTreeMap<(u32, u32), u64>,
}

/// What a communicator is made with.
pub(crate) struct Settings {
    pub(crate) order: Order,
    pub(crate) name: Option<String>,
}

impl Settings {
    /// Those of the environment.
    pub(crate) fn of_environment() -> Checked<Self> {
        let value = std::env::var("HCCL_DETERMINISTIC").unwrap_or_default().to_lowercase();
        let order = match value.as_str() {
            "" | "false" => Order::ANY,
            "true" | "strict" => Order::FIXED,
            other => {
                let text =
                    format!("HCCL_DETERMINISTIC is {other:?}; set it to true, strict or false");
                return Err(Failure::new(PARAMETER, text));
            }
        };
        Ok(Self { order, name: None })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The meetings of this process that ranks may join.
static OPEN: Mutex<BTreeMap<String, Arc<Meeting>>> = Mutex::new(BTreeMap::new());
static COMMS: Mutex<BTreeMap<usize, Arc<Comm>>> = Mutex::new(BTreeMap::new());

/// The communicator with this handle.
pub(crate) fn find(handle: usize) -> Checked<Arc<Comm>> {
    require(handle != 0, POINTER, || "comm is null; pass a communicator".into())?;
    locked(&COMMS).get(&handle).cloned().ok_or_else(|| {
        let text = format!("comm {handle:#x} is not a communicator, or was destroyed");
        Failure::new(PARAMETER, text)
    })
}

fn kept(comm: Comm) -> usize {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // As addresses look.
    let handle = NEXT.fetch_add(1, Ordering::Relaxed) << 12;
    let handle = usize::try_from(handle).unwrap_or(usize::MAX);
    locked(&COMMS).insert(handle, Arc::new(comm));
    handle
}

/// Refuses where streams cannot wait for other ranks.
fn check_time() -> Checked {
    require(std::env::var_os("PTO_ACL_SEED").is_none(), NOT_SUPPORTED, || {
        "collectives of HCCL run in real time; leave PTO_ACL_SEED (--seed) out. `pto bench collectives` has groups in virtual time".into()
    })
}

fn listener(address: &str) -> Checked<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        let text = format!("{address} cannot be listened at: {error}; set HCCL_IF_IP to an address of this machine, or HCCL_IF_BASE_PORT to a free port");
        Failure::new(TCP_CONNECT, text)
    })
}

/// The meeting under this key, which other processes reach at the listener.
fn open(key: &str, listener: TcpListener) -> Checked<Arc<Meeting>> {
    let meeting = Arc::new(Meeting::default());
    wire::serve(listener, key.to_owned(), Arc::clone(&meeting))?;
    locked(&OPEN).insert(key.to_owned(), Arc::clone(&meeting));
    Ok(meeting)
}

/// New root information: where the ranks of a communicator meet.
pub(crate) fn root_info() -> Checked<String> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    check_time()?;
    device::current()?;
    let host = std::env::var("HCCL_IF_IP").unwrap_or_else(|_| "127.0.0.1".into());
    let listener = listener(&format!("{host}:0"))?;
    let port = listener.local_addr().map(|address| address.port());
    let port = port.map_err(|error| Failure::new(TCP_CONNECT, error.to_string()))?;
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    let key = format!("root-{}-{made}-{port}", std::process::id());
    open(&key, listener)?;
    Ok(format!("{MARK} {key} {host}:{port}"))
}

/// Joins as a rank, and waits for all others.
pub(crate) fn join(info: &str, (rank, size): (u32, u32), settings: Settings) -> Checked<usize> {
    check_time()?;
    device::current()?;
    let words: Vec<&str> = info.split(' ').collect();
    let [MARK, key, address] = words[..] else {
        let text = "the root information is none of this library; make it with HcclGetRootInfo, and copy all of its 4,108 bytes to the other ranks";
        return Err(Failure::new(PARAMETER, text));
    };
    let own = locked(&OPEN).get(key).cloned();
    let access = match own {
        Some(meeting) => here(key, meeting, (rank, size), settings.order)?,
        None => {
            check_rank(rank, size)?;
            Access::Remote(Remote::join(address, key, (rank, size), settings.order)?)
        }
    };
    Ok(made(access, (rank, size), settings))
}

fn check_rank(rank: u32, size: u32) -> Checked {
    require(rank < size, PARAMETER, || {
        format!("rank {rank} of {size}; ranks count from 0 to nRanks - 1")
    })
}

fn here(
    key: &str,
    meeting: Arc<Meeting>,
    (rank, size): (u32, u32),
    order: Order,
) -> Checked<Access> {
    meeting.enter(rank, size, order)?;
    let joined = meeting.wait_for_all();
    // No other rank joins: the key is free for another communicator of a rank table.
    let mut open = locked(&OPEN);
    if open.get(key).is_some_and(|known| Arc::ptr_eq(known, &meeting)) {
        open.remove(key);
    }
    drop(open);
    joined.inspect_err(|_| meeting.leave(rank, false))?;
    Ok(Access::Local(meeting))
}

fn made(access: Access, (rank, size): (u32, u32), settings: Settings) -> usize {
    let name = settings.name.unwrap_or_else(|| NAME.into());
    let (numbers, error) = (Mutex::default(), Mutex::default());
    kept(Comm { rank, size, name, access, numbers, error })
}

/// Joins as a rank of a rank table, and waits for all others.
pub(crate) fn of_table(path: &str, rank: u32, settings: Settings) -> Checked<usize> {
    check_time()?;
    let own = device::current()?;
    let table = rank_table::read(path, rank)?;
    require(i64::from(table.device) == i64::from(own), PARAMETER, || {
        format!(
            "rank table {path}: rank {rank} has device_id {}, and the thread has device {own}; call aclrtSetDevice({})",
            table.device, table.device
        )
    })?;
    let port = match std::env::var("HCCL_IF_BASE_PORT") {
        Err(_) => BASE_PORT,
        Ok(text) => text.parse().map_err(|_| {
            Failure::new(PARAMETER, format!("HCCL_IF_BASE_PORT is {text:?}; set it to a port"))
        })?,
    };
    let address = format!("{}:{port}", table.host);
    let of = (rank, table.size);
    let end = Instant::now() + join_limit()?;
    if rank == 0 {
        open(&table.key, listener(&address)?)?;
    }
    let access = loop {
        // Rank 0 may be a thread of this process.
        let own = locked(&OPEN).get(&table.key).cloned();
        if let Some(meeting) = own {
            break here(&table.key, meeting, of, settings.order)?;
        }
        if std::net::TcpStream::connect(&address).is_ok() {
            break Access::Remote(Remote::join(&address, &table.key, of, settings.order)?);
        }
        require(Instant::now() < end, TIMEOUT, || {
            format!(
                "rank 0 of rank table {path} did not listen at {address} within HCCL_CONNECT_TIMEOUT; start it, or set HCCL_IF_BASE_PORT alike at all ranks"
            )
        })?;
        std::thread::sleep(Duration::from_millis(5));
    };
    Ok(made(access, of, settings))
}

/// The communicators of all these devices of the process, by rank.
pub(crate) fn of_devices(devices: &[i32]) -> Checked<Vec<usize>> {
    check_time()?;
    let there = device::count()?;
    for (at, device) in devices.iter().enumerate() {
        let is_there = u32::try_from(*device).is_ok_and(|device| device < there);
        require(is_there && !devices[..at].contains(device), PARAMETER, || {
            format!(
                "devices[{at}] is {device}; pass different devices from 0 to {}",
                there.saturating_sub(1)
            )
        })?;
    }
    let meeting = Arc::new(Meeting::default());
    let size = u32::try_from(devices.len()).unwrap_or(u32::MAX);
    let order = Settings::of_environment()?.order;
    for rank in 0..size {
        meeting.enter(rank, size, order)?;
    }
    let settings = || Settings { order, name: None };
    let comm = |rank| made(Access::Local(Arc::clone(&meeting)), (rank, size), settings());
    Ok((0..size).map(comm).collect())
}

/// Destroys a communicator; ranks that wait for this one fail.
pub(crate) fn destroy(handle: usize) -> Checked {
    let comm = find(handle)?;
    let taken = locked(&COMMS).remove(&handle);
    let missing = || Failure::new(NOT_FOUND, "another thread has destroyed the communicator");
    taken.ok_or_else(missing)?;
    match &comm.access {
        Access::Local(meeting) => {
            meeting.leave(comm.rank, false);
            // The process may end now: the others are to have their results.
            meeting.drain(Duration::from_secs(10));
        }
        Access::Remote(remote) => remote.leave(),
    }
    Ok(())
}

/// One call in a stream: which others it meets, and the memory that it uses.
pub(crate) struct Work {
    /// The two ranks of a transfer.
    pub(crate) pair: Option<(u32, u32)>,
    pub(crate) call: Call,
    /// Memory that is given, and memory for the result: addresses and bytes.
    pub(crate) reads: Vec<(usize, usize)>,
    pub(crate) writes: Vec<(usize, usize)>,
}

struct Launched {
    comm: Arc<Comm>,
    works: Vec<(Work, u64)>,
    replays: AtomicU64,
}

impl Comm {
    /// Puts calls into a stream, which do not wait for each other.
    pub(crate) fn launch(
        self: &Arc<Self>,
        name: &'static CStr,
        works: Vec<Work>,
        stream: Stream,
    ) -> Checked {
        let mut numbers = locked(&self.numbers);
        let mut next = numbers.clone();
        let used = |memory: &[(usize, usize)], writes: u32| {
            let operand = move |(address, bytes): &(usize, usize)| OperandBytes {
                address: *address,
                bytes: *bytes,
                writes,
            };
            memory.iter().map(operand).collect::<Vec<_>>()
        };
        let operands = works.iter().flat_map(|work| [used(&work.reads, 0), used(&work.writes, 1)]);
        let operands: Vec<OperandBytes> =
            operands.flatten().filter(|operand| operand.bytes > 0).collect();
        let numbered = works.into_iter().map(|work| {
            let number = next.of(work.pair);
            (work, number)
        });
        let works = numbered.collect();
        let launched = Launched { comm: Arc::clone(self), works, replays: AtomicU64::new(0) };
        device::launch(name, &operands, Box::new(launched), stream)?;
        // A call that the stream refuses has no number.
        *numbers = next;
        Ok(())
    }

    /// Why calls of this rank have failed in streams, if they have.
    pub(crate) fn error(&self) -> Option<Failure> {
        locked(&self.error).clone()
    }
}

impl Numbers {
    fn of(&mut self, pair: Option<(u32, u32)>) -> u64 {
        let counter = pair.map_or(&mut self.all, |pair| self.pairs.entry(pair).or_default());
        *counter += 1;
        *counter
    }
}

impl Command for Launched {
    fn run(&self) -> Checked {
        let replay = self.replays.fetch_add(1, Ordering::Relaxed);
        let item = |(work, number): &(Work, u64)| Item {
            key: Key { pair: work.pair, number: *number, replay },
            call: work.call.clone(),
            data: work.reads.iter().flat_map(|read| bytes_of(*read)).collect(),
        };
        let items: Vec<Item> = self.works.iter().map(item).collect();
        let results = match &self.comm.access {
            Access::Local(meeting) => meeting.perform(self.comm.rank, items),
            Access::Remote(remote) => remote.perform(&items),
        };
        let written = results.and_then(|results| {
            self.works.iter().zip(results).try_for_each(|((work, _), data)| put(work, &data))
        });
        written.inspect_err(|failure| {
            locked(&self.comm.error).get_or_insert_with(|| failure.clone());
        })
    }
}

/// The bytes of memory of the device, which the stream has in this turn.
fn bytes_of((address, bytes): (usize, usize)) -> Vec<u8> {
    let mut copied = vec![0_u8; bytes];
    let from = std::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: the launch has checked that it is live memory of the device, which is memory of the process.
    unsafe { std::ptr::copy_nonoverlapping(from, copied.as_mut_ptr(), bytes) };
    copied
}

/// Puts a result into the memory of a call.
fn put(work: &Work, data: &[u8]) -> Checked {
    let mut rest = data;
    for (address, bytes) in &work.writes {
        let (piece, behind) = rest.split_at_checked(*bytes).ok_or_else(|| {
            Failure::new(INTERNAL, format!("a result of {} bytes is too short", data.len()))
        })?;
        let to = std::ptr::with_exposed_provenance_mut::<u8>(*address);
        // SAFETY: as in `bytes_of`; the stream is the only user now.
        unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), to, *bytes) };
        rest = behind;
    }
    Ok(())
}
