//! The functions of `hccl/hccl.h`: they check arguments, and turn failures into codes and messages.

use std::ffi::{CStr, c_char};

use pto_host::graph::ElementType;
use pto_host::graph::group::{Order, Reduction};

use crate::call::{Call, Kind, bytes, element, reduction};
use crate::comm::{self, Comm, Settings, Work};
use crate::failure::{self, Checked, Failure, PARAMETER, POINTER, require};

/// Bytes of root information.
const ROOT_INFO: usize = 4108;
/// Bytes of the name of a communicator, with the zero at its end.
const NAME: usize = 128;
/// Where the fields of `HcclCommConfig` lie: its own size, the magic number, the switch for fixed orders, and the name.
const CONFIG_SIZE: usize = 0;
const CONFIG_MAGIC: usize = 8;
const CONFIG_DETERMINISTIC: usize = 28;
const CONFIG_NAME: usize = 32;
const MAGIC: u32 = 0xf0f0_f0f0;
/// A path of a rank table, with the zero at its end.
const MOST_PATH: usize = 4096;

/// The code of a call; keeps its message.
fn reported(call: &'static CStr, body: impl FnOnce() -> Checked) -> i32 {
    body().map_or_else(|failure| crate::device::report(call, &failure), |()| 0)
}

macro_rules! hccl {
    ($(fn $name:ident($($argument:ident: $of:ty),* $(,)?) $body:block)*) => {$(
        // SAFETY: the name is that of the interface, which no other library of ours has.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $of),*) -> i32 {
            const CALL: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name"),
            };
            reported(CALL, || $body)
        }
    )*};
}

/// Memory of the caller.
#[derive(Clone, Copy)]
struct Memory(usize);

impl Memory {
    fn of(address: usize, name: &str) -> Checked<Self> {
        require(address != 0, POINTER, || format!("{name} is null; pass an address"))?;
        Ok(Self(address))
    }

    fn read<T: Copy>(self, at: usize) -> T {
        let from = std::ptr::with_exposed_provenance::<T>(self.0 + at);
        // SAFETY: the interface says that the caller's structure or list has a value there.
        unsafe { from.read_unaligned() }
    }

    fn list<T: Copy>(self, count: usize) -> Vec<T> {
        (0..count).map(|at| self.read(at * size_of::<T>())).collect()
    }

    fn write<T>(self, at: usize, value: T) {
        let to = std::ptr::with_exposed_provenance_mut::<T>(self.0 + at);
        // SAFETY: the interface says that the caller has room for it there.
        unsafe { to.write_unaligned(value) };
    }

    /// The characters in front of a zero, of at most so many.
    fn text(self, most: usize) -> Option<String> {
        let bytes: Vec<u8> =
            (0..most).map(|at| self.read::<u8>(at)).take_while(|byte| *byte != 0).collect();
        if bytes.len() < most { String::from_utf8(bytes).ok() } else { None }
    }
}

/// What a configuration says; null is refused.
fn settings(config: usize) -> Checked<Settings> {
    let config = Memory::of(config, "config")?;
    let (size, magic) = (config.read::<usize>(CONFIG_SIZE), config.read::<u32>(CONFIG_MAGIC));
    require(magic == MAGIC && size >= CONFIG_NAME, PARAMETER, || {
        "config was not initialized; call HcclCommConfigInit first".into()
    })?;
    let mut settings = Settings::of_environment()?;
    // 0xffffffff: it is not set.
    if matches!(config.read::<u32>(CONFIG_DETERMINISTIC), 1 | 2) {
        settings.order = Order::FIXED;
    }
    if size >= CONFIG_NAME + NAME {
        let name = Memory(config.0 + CONFIG_NAME).text(NAME);
        settings.name = name.filter(|name| !name.is_empty());
    }
    Ok(settings)
}

fn join(ranks: u32, info: usize, rank: u32, settings: Settings, comm: usize) -> Checked {
    let (info, comm) = (Memory::of(info, "rootInfo")?, Memory::of(comm, "comm")?);
    let info = info.text(ROOT_INFO).unwrap_or_default();
    comm.write(0, comm::join(&info, (rank, ranks), settings)?);
    Ok(())
}

fn of_table(path: usize, rank: u32, settings: Settings, comm: usize) -> Checked {
    let (path, comm) = (Memory::of(path, "clusterInfo")?, Memory::of(comm, "comm")?);
    let path = path.text(MOST_PATH).ok_or_else(|| {
        let text = "clusterInfo has no end within 4,096 bytes; pass the path of a rank table";
        Failure::new(PARAMETER, text)
    })?;
    comm.write(0, comm::of_table(&path, rank, settings)?);
    Ok(())
}

/// A call before its memory is known.
fn call(kind: Kind, data_type: i32, count: u64) -> Checked<Call> {
    let element = element(data_type)?;
    Ok(Call { kind, element, reduction: Reduction::SUM, root: 0, count, counts: Vec::new() })
}

/// A list of one piece of memory; none for no elements.
fn piece(
    address: usize,
    name: &str,
    element: ElementType,
    count: u64,
) -> Checked<Vec<(usize, usize)>> {
    let bytes = bytes(element, count)?;
    if bytes == 0 {
        return Ok(Vec::new());
    }
    Ok(vec![(Memory::of(address, name)?.0, bytes)])
}

fn check_root(comm: &Comm, root: u32) -> Checked {
    check_rank(comm, root, "root")
}

fn check_rank(comm: &Comm, rank: u32, name: &str) -> Checked {
    require(rank < comm.size, PARAMETER, || {
        format!(
            "{name} is {rank}, and the communicator has {} ranks; pass 0 to {}",
            comm.size,
            comm.size - 1
        )
    })
}

/// A send or a receive.
fn transfer(
    comm: &Comm,
    is_send: bool,
    buffer: usize,
    (count, data_type): (u64, i32),
    peer: u32,
) -> Checked<Work> {
    check_rank(comm, peer, "the other rank")?;
    require(peer != comm.rank, PARAMETER, || {
        format!("rank {peer} sends to itself; copy with aclrtMemcpyAsync")
    })?;
    let call = call(Kind::Transfer, data_type, count)?;
    let used = piece(buffer, "the buffer", call.element, count)?;
    let pair = if is_send { (comm.rank, peer) } else { (peer, comm.rank) };
    let (reads, writes) = if is_send { (used, Vec::new()) } else { (Vec::new(), used) };
    Ok(Work { pair: Some(pair), call, reads, writes })
}

/// The pieces of a buffer, by counts and displacements in elements.
fn pieces(
    address: usize,
    name: &str,
    element: ElementType,
    counts: &[u64],
    at: &[u64],
) -> Checked<Vec<(usize, usize)>> {
    let mut all = Vec::new();
    for (count, at) in counts.iter().zip(at) {
        let start = bytes(element, *at)?;
        let piece = piece(address, name, element, *count)?;
        all.extend(piece.iter().map(|(address, bytes)| (address + start, *bytes)));
    }
    Ok(all)
}

/// An all-to-all with counts.
fn exchange(
    comm: &Comm,
    (send, send_counts, send_at, send_type): (usize, Vec<u64>, Vec<u64>, i32),
    (receive, receive_counts, receive_at, receive_type): (usize, Vec<u64>, Vec<u64>, i32),
) -> Checked<Work> {
    check_types(send_type, receive_type)?;
    let mut call = call(Kind::AllToAllCounted, send_type, 0)?;
    let reads = pieces(send, "sendBuf", call.element, &send_counts, &send_at)?;
    let writes = pieces(receive, "recvBuf", call.element, &receive_counts, &receive_at)?;
    let own = comm.rank as usize;
    let (sent, received) = (send_counts[own], receive_counts[own]);
    require(sent == received, PARAMETER, || {
        format!(
            "rank {own} sends {sent} elements to itself and receives {received}; make both counts alike"
        )
    })?;
    call.counts = [send_counts, receive_counts].concat();
    Ok(Work { pair: None, call, reads, writes })
}

fn check_types(send: i32, receive: i32) -> Checked {
    require(send == receive, PARAMETER, || {
        format!("sendType is {send}, and recvType is {receive}; pass the same type")
    })
}

/// Where pieces of these lengths begin that lie one behind the other.
fn dense(counts: &[u64]) -> Vec<u64> {
    counts
        .iter()
        .scan(0_u64, |end, count| {
            let start = *end;
            *end = end.saturating_add(*count);
            Some(start)
        })
        .collect()
}

hccl! {
    fn HcclGetRootInfo(info: usize) {
        let info = Memory::of(info, "rootInfo")?;
        let mut bytes = [0_u8; ROOT_INFO];
        let text = comm::root_info()?;
        bytes.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        info.write(0, bytes);
        Ok(())
    }

    fn HcclCommInitRootInfo(ranks: u32, info: usize, rank: u32, comm: usize) {
        join(ranks, info, rank, Settings::of_environment()?, comm)
    }

    fn HcclCommInitRootInfoConfig(ranks: u32, info: usize, rank: u32, config: usize, comm: usize) {
        join(ranks, info, rank, settings(config)?, comm)
    }

    fn HcclCommInitClusterInfo(path: usize, rank: u32, comm: usize) {
        of_table(path, rank, Settings::of_environment()?, comm)
    }

    fn HcclCommInitClusterInfoConfig(path: usize, rank: u32, config: usize, comm: usize) {
        of_table(path, rank, settings(config)?, comm)
    }

    fn HcclCommInitAll(count: u32, devices: usize, comms: usize) {
        let (devices, comms) = (Memory::of(devices, "devices")?, Memory::of(comms, "comms")?);
        let made = comm::of_devices(&devices.list::<i32>(count as usize))?;
        for (at, comm) in made.into_iter().enumerate() {
            comms.write(at * size_of::<usize>(), comm);
        }
        Ok(())
    }

    fn HcclCommDestroy(comm: usize) {
        comm::destroy(comm)
    }

    fn HcclGetRankId(comm: usize, rank: usize) {
        Memory::of(rank, "rank")?.write(0, comm::find(comm)?.rank);
        Ok(())
    }

    fn HcclGetRankSize(comm: usize, size: usize) {
        Memory::of(size, "rankSize")?.write(0, comm::find(comm)?.size);
        Ok(())
    }

    fn HcclGetCommName(comm: usize, name: usize) {
        let name = Memory::of(name, "commName")?;
        let comm = comm::find(comm)?;
        let text = comm.name.bytes().take(NAME - 1).chain([0]);
        text.enumerate().for_each(|(at, byte)| name.write(at, byte));
        Ok(())
    }

    fn HcclGetCommAsyncError(comm: usize, error: usize) {
        let error = Memory::of(error, "asyncError")?;
        let failure = comm::find(comm)?.error();
        error.write(0, failure.map_or(0, |failure| failure.code));
        Ok(())
    }

    fn HcclAllReduce(send: usize, receive: usize, count: u64, data_type: i32, op: i32, comm: usize, stream: usize) {
        let comm = comm::find(comm)?;
        let call = Call { reduction: reduction(op)?, ..call(Kind::AllReduce, data_type, count)? };
        let reads = piece(send, "sendBuf", call.element, count)?;
        let writes = piece(receive, "recvBuf", call.element, count)?;
        comm.launch(c"HcclAllReduce", vec![Work { pair: None, call, reads, writes }], stream)
    }

    fn HcclBroadcast(buffer: usize, count: u64, data_type: i32, root: u32, comm: usize, stream: usize) {
        let comm = comm::find(comm)?;
        check_root(&comm, root)?;
        let call = Call { root, ..call(Kind::Broadcast, data_type, count)? };
        let used = piece(buffer, "buf", call.element, count)?;
        let is_root = comm.rank == root;
        let (reads, writes) = if is_root { (used, Vec::new()) } else { (Vec::new(), used) };
        comm.launch(c"HcclBroadcast", vec![Work { pair: None, call, reads, writes }], stream)
    }

    fn HcclReduce(send: usize, receive: usize, count: u64, data_type: i32, op: i32, root: u32, comm: usize, stream: usize) {
        let comm = comm::find(comm)?;
        check_root(&comm, root)?;
        let reduction = reduction(op)?;
        let call = Call { reduction, root, ..call(Kind::Reduce, data_type, count)? };
        let reads = piece(send, "sendBuf", call.element, count)?;
        let is_root = comm.rank == root;
        let writes = piece(receive, "recvBuf", call.element, if is_root { count } else { 0 })?;
        comm.launch(c"HcclReduce", vec![Work { pair: None, call, reads, writes }], stream)
    }

    fn HcclAllGather(send: usize, receive: usize, count: u64, data_type: i32, comm: usize, stream: usize) {
        let comm = comm::find(comm)?;
        let call = call(Kind::AllGather, data_type, count)?;
        let reads = piece(send, "sendBuf", call.element, count)?;
        let all = count.saturating_mul(comm.size.into());
        let writes = piece(receive, "recvBuf", call.element, all)?;
        comm.launch(c"HcclAllGather", vec![Work { pair: None, call, reads, writes }], stream)
    }

    fn HcclReduceScatter(send: usize, receive: usize, count: u64, data_type: i32, op: i32, comm: usize, stream: usize) {
        let comm = comm::find(comm)?;
        let call = Call { reduction: reduction(op)?, ..call(Kind::ReduceScatter, data_type, count)? };
        let all = count.saturating_mul(comm.size.into());
        let reads = piece(send, "sendBuf", call.element, all)?;
        let writes = piece(receive, "recvBuf", call.element, count)?;
        comm.launch(c"HcclReduceScatter", vec![Work { pair: None, call, reads, writes }], stream)
    }

    fn HcclScatter(send: usize, receive: usize, count: u64, data_type: i32, root: u32, comm: usize, stream: usize) {
        let comm = comm::find(comm)?;
        check_root(&comm, root)?;
        let call = Call { root, ..call(Kind::Scatter, data_type, count)? };
        let given = if comm.rank == root { count.saturating_mul(comm.size.into()) } else { 0 };
        let reads = piece(send, "sendBuf", call.element, given)?;
        let writes = piece(receive, "recvBuf", call.element, count)?;
        comm.launch(c"HcclScatter", vec![Work { pair: None, call, reads, writes }], stream)
    }

    fn HcclAlltoAll(
        send: usize, send_count: u64, send_type: i32, receive: usize, receive_count: u64, receive_type: i32, comm: usize, stream: usize,
    ) {
        let comm = comm::find(comm)?;
        check_types(send_type, receive_type)?;
        require(send_count == receive_count, PARAMETER, || {
            format!("sendCount is {send_count}, and recvCount is {receive_count}; pass the same, or call HcclAlltoAllV")
        })?;
        let call = call(Kind::AllToAll, send_type, send_count)?;
        let all = send_count.saturating_mul(comm.size.into());
        let reads = piece(send, "sendBuf", call.element, all)?;
        let writes = piece(receive, "recvBuf", call.element, all)?;
        comm.launch(c"HcclAlltoAll", vec![Work { pair: None, call, reads, writes }], stream)
    }

    fn HcclAlltoAllV(
        send: usize, send_counts: usize, send_at: usize, send_type: i32,
        receive: usize, receive_counts: usize, receive_at: usize, receive_type: i32, comm: usize, stream: usize,
    ) {
        let comm = comm::find(comm)?;
        let size = comm.size as usize;
        let list = |address, name| Ok(Memory::of(address, name)?.list::<u64>(size));
        let given = (send, list(send_counts, "sendCounts")?, list(send_at, "sdispls")?, send_type);
        let counts = list(receive_counts, "recvCounts")?;
        let got = (receive, counts, list(receive_at, "rdispls")?, receive_type);
        let work = exchange(&comm, given, got)?;
        comm.launch(c"HcclAlltoAllV", vec![work], stream)
    }

    fn HcclAlltoAllVC(send: usize, matrix: usize, send_type: i32, receive: usize, receive_type: i32, comm: usize, stream: usize) {
        let comm = comm::find(comm)?;
        let (size, own) = (comm.size as usize, comm.rank as usize);
        let matrix = Memory::of(matrix, "sendCountMatrix")?.list::<u64>(size * size);
        let sent = matrix[own * size..][..size].to_vec();
        let received: Vec<u64> = (0..size).map(|rank| matrix[rank * size + own]).collect();
        let (send_at, receive_at) = (dense(&sent), dense(&received));
        let (given, got) = ((send, sent, send_at, send_type), (receive, received, receive_at, receive_type));
        let work = exchange(&comm, given, got)?;
        comm.launch(c"HcclAlltoAllVC", vec![work], stream)
    }

    fn HcclSend(buffer: usize, count: u64, data_type: i32, to: u32, comm: usize, stream: usize) {
        let comm = comm::find(comm)?;
        let work = transfer(&comm, true, buffer, (count, data_type), to)?;
        comm.launch(c"HcclSend", vec![work], stream)
    }

    fn HcclRecv(buffer: usize, count: u64, data_type: i32, from: u32, comm: usize, stream: usize) {
        let comm = comm::find(comm)?;
        let work = transfer(&comm, false, buffer, (count, data_type), from)?;
        comm.launch(c"HcclRecv", vec![work], stream)
    }

    fn HcclBatchSendRecv(items: usize, count: u32, comm: usize, stream: usize) {
        /// Bytes of an item, and where its fields lie: what it does, address, count, type, the other rank.
        const ITEM: usize = 32;
        const FIELDS: [usize; 4] = [8, 16, 24, 28];
        let comm = comm::find(comm)?;
        let items = Memory::of(items, "sendRecvInfo")?;
        let mut works: Vec<Work> = Vec::new();
        for at in 0..count as usize {
            let item = Memory(items.0 + at * ITEM);
            let kind = item.read::<i32>(0);
            require(matches!(kind, 0 | 1), PARAMETER, || {
                format!("sendRecvInfo[{at}].sendRecvType is {kind}; pass 0 (send) or 1 (receive)")
            })?;
            let [buffer, length, data_type, peer] = FIELDS;
            let of = (item.read(length), item.read(data_type));
            let work = transfer(&comm, kind == 0, item.read(buffer), of, item.read(peer))
                .map_err(|failure| Failure::new(failure.code, format!("sendRecvInfo[{at}]: {}", failure.text)))?;
            require(works.iter().all(|other| other.pair != work.pair), PARAMETER, || {
                format!("sendRecvInfo[{at}] is a second transfer between the same ranks; one call has one in each direction")
            })?;
            works.push(work);
        }
        if works.is_empty() {
            return Ok(());
        }
        comm.launch(c"HcclBatchSendRecv", works, stream)
    }

    fn HcclBarrier(comm: usize, stream: usize) {
        let comm = comm::find(comm)?;
        let call = call(Kind::Barrier, 0, 1)?;
        let (reads, writes) = (Vec::new(), Vec::new());
        comm.launch(c"HcclBarrier", vec![Work { pair: None, call, reads, writes }], stream)
    }
}

/// The name of a code.
// SAFETY: as for the other names.
#[unsafe(no_mangle)]
extern "C" fn HcclGetErrorString(code: i32) -> *const c_char {
    failure::name(code).as_ptr()
}
