//! Ranks of other processes, over TCP: a connection for the membership of each rank, whose end is the death of the rank, and one for each call under way.
//!
//! A connection begins with the words "key rank size order kind", and an answer. Then the membership has one byte, when the communicator is destroyed; the others
//! have requests and answers in turns.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pto_host::graph::group::Order;

use crate::call::{Frame, Item, MOST_RANKS, Reader};
use crate::failure::{Checked, Failure, INTERNAL, REMOTE, TCP_CONNECT, TCP_TRANSFER};
use crate::meeting::{Meeting, join_limit};

/// Frames have at most so many bytes.
const MOST_BYTES: u64 = 1 << 37;
/// How often a server looks for connections.
const PAUSE: Duration = Duration::from_millis(2);
/// Calls of a request at most: a send and a receive for each rank.
const MOST_ITEMS: u64 = 2 * MOST_RANKS as u64;

fn write_frame(stream: &mut TcpStream, frame: &Frame) -> std::io::Result<()> {
    stream.write_all(&(frame.0.len() as u64).to_le_bytes())?;
    stream.write_all(&frame.0)
}

fn read_frame(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MOST_BYTES {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut frame = Vec::new();
    stream.take(length).read_to_end(&mut frame)?;
    if frame.len() as u64 == length { Ok(frame) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

fn answer(result: &Checked<Vec<Vec<u8>>>) -> Frame {
    let mut frame = Frame::default();
    match result {
        Ok(results) => {
            frame.word(0);
            frame.word(results.len() as u64);
            results.iter().for_each(|data| frame.bytes(data));
        }
        Err(failure) => {
            frame.word(u64::from(failure.code.unsigned_abs()));
            frame.bytes(failure.text.as_bytes());
        }
    }
    frame
}

fn read_answer(frame: &[u8]) -> Option<Checked<Vec<Vec<u8>>>> {
    let mut reader = Reader(frame);
    let code = i32::try_from(reader.word()?).ok()?;
    if code != 0 {
        let text = String::from_utf8_lossy(&reader.bytes()?).into_owned();
        return Some(Err(Failure::new(code, text)));
    }
    let count = reader.word()?.min(MOST_ITEMS);
    Some(Ok((0..count).map(|_| reader.bytes()).collect::<Option<Vec<_>>>()?))
}

/// Serves the ranks of other processes until all ranks are gone.
pub(crate) fn serve(listener: TcpListener, key: String, meeting: Arc<Meeting>) -> Checked {
    let failed = |error| Failure::new(TCP_CONNECT, format!("the port cannot be served: {error}"));
    listener.set_nonblocking(true).map_err(failed)?;
    let serve = move || {
        while !meeting.is_over() {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(PAUSE);
                continue;
            };
            let (key, meeting) = (key.clone(), Arc::clone(&meeting));
            // A thread that cannot be had closes the connection, which the other side reports.
            drop(std::thread::Builder::new().spawn(move || connection(stream, &key, &meeting)));
        }
    };
    std::thread::Builder::new().name("hccl".into()).spawn(serve).map(drop).map_err(failed)
}

/// One connection, to its end.
fn connection(mut stream: TcpStream, key: &str, meeting: &Meeting) -> Option<()> {
    stream.set_nonblocking(false).ok()?;
    stream.set_nodelay(true).ok()?;
    let hello = String::from_utf8(read_frame(&mut stream).ok()?).ok()?;
    let mut words = hello.split(' ');
    let is_ours = words.next()? == key;
    let rank: u32 = words.next()?.parse().ok()?;
    let size: u32 = words.next()?.parse().ok()?;
    let order = if words.next()? == "fixed" { Order::FIXED } else { Order::ANY };
    let is_member = words.next()? == "member";
    if !is_ours {
        let text = "the address belongs to another communicator; use its root information or rank table at all ranks";
        return write_frame(&mut stream, &answer(&Err(Failure::new(TCP_CONNECT, text)))).ok();
    }
    if is_member {
        let entered = meeting.enter_from_elsewhere(rank, size, order);
        let is_in = entered.is_ok();
        let joined = entered.and_then(|()| meeting.wait_for_all());
        let joined = joined.map(|()| vec![meeting.here().into_bytes()]);
        let is_told = write_frame(&mut stream, &answer(&joined)).is_ok();
        if is_in {
            let mut bye = [0];
            let is_good = is_told && stream.read_exact(&mut bye).is_ok();
            meeting.leave(rank, !is_good);
        }
        return Some(());
    }
    write_frame(&mut stream, &answer(&Ok(Vec::new()))).ok()?;
    while let Ok(frame) = read_frame(&mut stream) {
        let request = || {
            let result = items(&frame).map_or_else(
                || Err(Failure::new(INTERNAL, "a request that cannot be read")),
                |items| meeting.perform(rank, items),
            );
            write_frame(&mut stream, &answer(&result)).is_ok()
        };
        if !meeting.answer(request) {
            break;
        }
    }
    Some(())
}

fn items(frame: &[u8]) -> Option<Vec<Item>> {
    let mut reader = Reader(frame);
    let count = reader.word()?.min(MOST_ITEMS);
    (0..count).map(|_| reader.item()).collect()
}

/// The meeting of a rank that another process holds.
pub(crate) struct Remote {
    address: String,
    hello: String,
    rank: u32,
    /// The ranks of the process that holds the communicator, for people.
    holder: String,
    member: Mutex<TcpStream>,
    /// Connections that no call uses just now.
    idle: Mutex<Vec<TcpStream>>,
}

impl Remote {
    /// Joins as a rank, as soon as somebody listens there; waits until all ranks have joined.
    pub(crate) fn join(
        address: &str,
        key: &str,
        (rank, size): (u32, u32),
        order: Order,
    ) -> Checked<Self> {
        let order = if order == Order::FIXED { "fixed" } else { "any" };
        let hello = format!("{key} {rank} {size} {order}");
        let end = Instant::now() + join_limit()?;
        let (member, told) = loop {
            match connect(address, &format!("{hello} member")) {
                Err(failure) if failure.code == TCP_CONNECT && Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                result => break result?,
            }
        };
        let (address, member) = (address.to_owned(), Mutex::new(member));
        let holder = told.first().map(|text| String::from_utf8_lossy(text).into_owned());
        let holder = holder.unwrap_or_default();
        Ok(Self { address, hello, rank, holder, member, idle: Mutex::default() })
    }

    /// See [`Meeting::perform`].
    pub(crate) fn perform(&self, items: &[Item]) -> Checked<Vec<Vec<u8>>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let lost = |error: std::io::Error| {
            let Self { holder, address, rank, .. } = self;
            let text = format!(
                "{holder} has died: its process, at {address}, holds the communicator and is gone ({error}); rank {rank} waits for it. Destroy the communicators of all ranks, and make new ones"
            );
            Failure::new(REMOTE, text)
        };
        let mut stream = match idle {
            Some(stream) => stream,
            None => connect(&self.address, &format!("{} call", self.hello))
                .map(|(stream, _)| stream)
                .map_err(|failure| lost(std::io::Error::other(failure.text)))?,
        };
        let mut frame = Frame::default();
        frame.word(items.len() as u64);
        items.iter().for_each(|item| frame.item(item));
        write_frame(&mut stream, &frame).map_err(lost)?;
        let answer = read_frame(&mut stream).map_err(lost)?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        let unreadable = || Err(Failure::new(TCP_TRANSFER, "an answer that cannot be read"));
        read_answer(&answer).unwrap_or_else(unreadable)
    }

    /// Takes part no more.
    pub(crate) fn leave(&self) {
        let mut member = self.member.lock().unwrap_or_else(PoisonError::into_inner);
        // Where nobody listens any more, nobody has to know.
        drop(member.write_all(&[1]));
    }
}

/// A connection that the other side accepts, and what it answers.
fn connect(address: &str, hello: &str) -> Checked<(TcpStream, Vec<Vec<u8>>)> {
    let failed = |error: std::io::Error| {
        Failure::new(
            TCP_CONNECT,
            format!(
                "nobody answers at {address} ({error}); start the process that holds the communicator, and see that the address can be reached (HCCL_IF_IP, HCCL_IF_BASE_PORT)"
            ),
        )
    };
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    write_frame(&mut stream, &Frame(hello.as_bytes().to_vec())).map_err(failed)?;
    let answer = read_frame(&mut stream).map_err(failed)?;
    let answer = read_answer(&answer)
        .ok_or_else(|| Failure::new(TCP_TRANSFER, format!("{address} is no communicator")))?;
    answer.map(|told| (stream, told))
}
