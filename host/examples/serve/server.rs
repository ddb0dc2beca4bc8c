//! A server on a session: each request copies its input to the device, runs a kernel on it, and copies the result back. Once a thread waits for
//! each request, and once an executor (`tokio`) has all of them under way.

use std::error::Error;
use std::time::Duration;

use pto_host::graph::NoBuilders;
use pto_host::session::{Event, HostBuffer, SessionError};
use pto_host::{Device, DeviceOptions, Session, SessionOptions, func};

/// Elements of a request.
const ELEMENTS: usize = 1024;
/// A request that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(60);

/// A request that was submitted.
struct Submitted {
    result: HostBuffer,
    /// The result is there.
    done: Event,
}

/// Submits everything that a request needs, in a stream of its own, and returns at once. Memory of the device is dropped after the last submission: the session
/// keeps it until that command is over.
fn submit(session: &Session, input: &[f32]) -> Result<Submitted, SessionError> {
    let (stream, done) = (session.stream()?, session.event()?);
    let memory = session.zeroed::<f32>(input.len())?;
    let result = HostBuffer::new(size_of_val(input))?;
    let (address, elements) = (memory.address(), input.len() as u64);
    let bytes: Vec<u8> = input.iter().flat_map(|element| element.to_le_bytes()).collect();
    stream.copy_to_device(address, bytes)?;
    stream.launch(func::ADD, &[address.0, address.0, address.0, elements])?;
    stream.copy_from_device(address, &result)?;
    stream.record(&done)?;
    Ok(Submitted { result, done })
}

impl Submitted {
    fn elements(&self) -> Vec<f32> {
        let bytes = self.result.to_vec();
        bytes.as_chunks().0.iter().map(|element| f32::from_le_bytes(*element)).collect()
    }
}

/// A request on a thread that waits.
fn serve(session: &Session, input: &[f32]) -> Result<Vec<f32>, SessionError> {
    let submitted = submit(session, input)?;
    submitted.done.synchronize()?;
    Ok(submitted.elements())
}

/// A request in an executor: while it waits, the thread does others.
async fn serve_async(
    session: Session,
    input: Vec<f32>,
) -> Result<Vec<f32>, Box<dyn Error + Send + Sync>> {
    let submitted = submit(&session, &input)?;
    tokio::time::timeout(LIMIT, &submitted.done).await?;
    Ok(submitted.elements())
}

/// So many requests, one after another.
pub(crate) fn one_by_one(session: &Session, requests: u16) -> Result<Vec<Vec<f32>>, SessionError> {
    (0..requests).map(|request| serve(session, &input(request))).collect()
}

/// So many requests, all under way at once.
pub(crate) fn at_once(
    session: &Session,
    requests: u16,
) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>> {
    let executor =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    executor.block_on(async {
        let begin = |request| tokio::spawn(serve_async(session.clone(), input(request)));
        let under_way: Vec<_> = (0..requests).map(begin).collect();
        let mut results = Vec::new();
        for request in under_way {
            results.push(request.await??);
        }
        Ok(results)
    })
}

/// The input of a request.
pub(crate) fn input(request: u16) -> Vec<f32> {
    vec![f32::from(request); ELEMENTS]
}

/// A session on the simulator.
pub(crate) fn session() -> Result<Session, Box<dyn Error + Send + Sync>> {
    let mut device = Device::open_sim(DeviceOptions::default(), NoBuilders)?;
    device.register_library()?;
    Ok(device.session(SessionOptions::default())?)
}
