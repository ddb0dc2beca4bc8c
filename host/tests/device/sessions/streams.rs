//! Streams: their commands come in order, whatever they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pto_host::func;
use pto_host::graph::{GraphBuilder, TaskSpec};
use pto_host::session::{
    HostBuffer, MAX_STREAMS, Reduction, SessionError, SessionOptions, ValueTest,
};
use pto_host::workloads::tile::DType;
use pto_host::{HostGraph, RunOptions};

use super::support::{LONG, device, on_each, options, pool, session};

#[test]
fn copies_kernels_and_functions_of_one_stream_come_in_order() {
    on_each(|session, mode| {
        let stream = session.stream().unwrap();
        let ones = session.upload(&[1.0_f32; 64]).unwrap();
        let sum = session.zeroed::<f32>(64).unwrap();
        let (one, sum) = (ones.address(), sum.address());
        let called = Arc::new(AtomicU32::new(0));
        let buffer = HostBuffer::new(256).unwrap();
        stream.copy_to_device(sum, bytes(&[5.0; 64])).unwrap();
        for _ in 0..100 {
            stream.launch(func::ADD, &[sum.0, one.0, sum.0, 64]).unwrap();
        }
        stream.copy_on_device(sum, one, 128).unwrap();
        stream.copy_from_device(sum, &buffer).unwrap();
        let (seen, of_call) = (buffer.clone(), Arc::clone(&called));
        stream.call(move || of_call.store(u32::from(seen.to_vec()[3]), Ordering::Relaxed)).unwrap();
        stream.fill(sum, 0, 256).unwrap();
        stream.synchronize_within(LONG).unwrap();
        assert_eq!(buffer.to_vec(), bytes(&[105.0; 64]), "{mode}");
        assert_eq!(called.load(Ordering::Relaxed), u32::from(105.0_f32.to_le_bytes()[3]));
        assert_eq!(ones.read().unwrap()[..33], [[105.0; 32].as_slice(), &[1.0]].concat()[..]);
        assert!(stream.query().unwrap() && stream.completed() == 105, "{mode}");
    });
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn a_launch_in_blocks_runs_each_block_once() {
    extern "C" fn mark(args: *const u64) {
        // SAFETY: the first word of the launch: the address of 8 words in GM.
        let table = unsafe { *args };
        // SAFETY: the block context follows the arguments.
        let context = unsafe { *args.wrapping_add(1) };
        let address = usize::try_from(table + 8 * (context & 0xFF_FFFF)).unwrap_or_default();
        let at = std::ptr::with_exposed_provenance_mut::<u64>(address);
        // SAFETY: block numbers are below 8, and each is run once.
        unsafe { *at += context >> 32 };
    }
    let session = session();
    let kernel = pto_host::Kernel::from_fn("mark", pto_host::abi::CoreKind::AIV, mark);
    session.register_kernel(pto_host::abi::FuncId(200), kernel).unwrap();
    let table = session.zeroed::<u64>(8).unwrap();
    let stream = session.stream().unwrap();
    let launch =
        || stream.launch_blocks(pto_host::abi::FuncId(200), 8, &[table.address().0]).unwrap();
    launch();
    launch();
    stream.synchronize_within(LONG).unwrap();
    assert_eq!(table.read().unwrap(), [16; 8]);
}

#[test]
fn a_graph_is_a_command_with_a_report() {
    on_each(|session, mode| {
        let sum = session.zeroed::<f32>(64).unwrap();
        let one = session.upload(&[1.0_f32; 64]).unwrap();
        let args = [sum.address().0, one.address().0, sum.address().0, 64];
        let image = session
            .with_device(|device| {
                HostGraph::build(device, &[], |graph| {
                    graph.submit(
                        TaskSpec::new(func::ADD, pto_host::abi::CoreKind::AIV, &args),
                        &[],
                    )?;
                    Ok(())
                })
            })
            .unwrap();
        let image = Arc::new(image.unwrap());
        let stream = session.stream().unwrap();
        stream.launch(func::ADD, &args).unwrap();
        let ticket = stream.run(Arc::clone(&image)).unwrap();
        stream.launch(func::ADD, &args).unwrap();
        stream.synchronize_within(LONG).unwrap();
        assert_eq!(sum.read().unwrap(), [3.0; 64], "{mode}");
        assert_eq!(ticket.take_report().unwrap().tasks, 1);
        let run = RunOptions { aicpu_instances: 2, ..RunOptions::default() };
        assert_eq!(session.run(image, run).unwrap().tasks, 1);
        assert_eq!(sum.read().unwrap(), [4.0; 64], "{mode}");
    });
}

#[test]
fn elements_are_reduced_in_the_order_of_the_stream() {
    on_each(|session, mode| {
        let stream = session.stream().unwrap();
        let (small, large) = (5, 5000);
        for len in [small, large] {
            let (from, to) =
                (session.upload(&vec![2.5_f32; len]), session.upload(&vec![1.0_f32; len]));
            let (from, to) = (from.unwrap(), to.unwrap());
            let bytes = 4 * len as u64;
            let (source, target) = (from.address(), to.address());
            for reduction in [Reduction::Sum, Reduction::Sum, Reduction::Min, Reduction::Max] {
                stream.reduce((reduction, DType::F32), source, target, bytes).unwrap();
            }
            stream
                .reduce((Reduction::Sum, DType::F32), source, target, bytes / 5 * 2 / 4 * 4)
                .unwrap();
            stream.synchronize_within(LONG).unwrap();
            let found = to.read().unwrap();
            assert_eq!((found[0], found[len - 1]), (5.0, 2.5), "{mode}");
            let odd = stream.reduce((Reduction::Sum, DType::F32), source, target, 6).unwrap_err();
            assert!(odd.to_string().contains("whole elements"), "{odd}");
            let same = stream.reduce((Reduction::Sum, DType::F32), target, target, 8).unwrap_err();
            assert!(same.to_string().contains("overlap"), "{same}");
        }
    });
}

#[test]
fn a_notify_is_raised_and_lowered() {
    on_each(|session, mode| {
        let (raises, waits) = (session.stream().unwrap(), session.stream().unwrap());
        let (notify, back) = (session.notify().unwrap(), session.notify().unwrap());
        let counts = session.zeroed::<u32>(1).unwrap();
        let one = session.upload(&[1_u32]).unwrap();
        for _ in 0..5 {
            raises.notify(&notify).unwrap();
            raises.wait_notify(&back).unwrap();
            waits.wait_notify(&notify).unwrap();
            let (from, to) = (one.address(), counts.address());
            waits.reduce((Reduction::Sum, DType::U32), from, to, 4).unwrap();
            waits.notify(&back).unwrap();
        }
        raises.synchronize_within(LONG).unwrap_or_else(|error| panic!("{mode}: {error}"));
        assert_eq!(counts.read().unwrap(), [5], "{mode}");
        waits.wait_notify(&notify).unwrap();
        assert!(!waits.query().unwrap(), "{mode}: it was lowered");
        waits.abort();
        waits.synchronize_within(LONG).unwrap();
    });
}

#[test]
fn commands_make_progress_while_no_thread_waits() {
    let session = session();
    let stream = session.stream().unwrap();
    let (done, waits) = std::sync::mpsc::channel();
    stream.launch(func::EMPTY_AIV, &[]).unwrap();
    stream.call(move || done.send(()).unwrap()).unwrap();
    waits.recv_timeout(LONG).unwrap();
}

#[test]
fn a_value_of_any_writer_is_waited_for() {
    on_each(|session, mode| {
        let words = session.zeroed::<u64>(2).unwrap();
        let at = words.address();
        let (one, other) = (session.stream().unwrap(), session.stream().unwrap());
        one.wait_value(at, ValueTest::AT_LEAST, 5).unwrap();
        one.write_value(at.offset(8), 9).unwrap();
        let early = one.synchronize_within(std::time::Duration::from_millis(2)).unwrap_err();
        assert!(matches!(early, SessionError::TimedOut { .. }), "{mode}: {early}");
        other.write_value(at, 6).unwrap();
        one.synchronize_within(LONG).unwrap();
        assert_eq!(words.read().unwrap(), [6, 9], "{mode}");
        words.write(&[0, 0]).unwrap();
        one.wait_value(at, ValueTest::EQUAL, 3).unwrap();
        words.write(&[3]).unwrap();
        one.synchronize_within(LONG).unwrap();
    });
}

#[test]
fn a_session_has_as_many_streams_as_it_says() {
    let session = device(pool()).session(SessionOptions { ring_entries: 32, ..options() }).unwrap();
    let counter = session.zeroed::<f32>(1).unwrap();
    let mut streams: Vec<_> = (0..MAX_STREAMS).map(|_| session.stream().unwrap()).collect();
    let refused = session.stream().unwrap_err().to_string();
    assert!(refused.contains("1984 streams"), "{refused}");
    for stream in &streams {
        stream.launch(func::EMPTY_AIV, &[]).unwrap();
    }
    session.synchronize_within(LONG).unwrap();
    streams.pop();
    let again = session.stream().unwrap();
    again.fill(counter.address(), 1, 4).unwrap();
    again.synchronize_within(LONG).unwrap();
}

#[test]
fn many_commands_go_through_a_small_ring_in_bounded_memory() {
    let session = session();
    let stream = session.stream().unwrap();
    let counter = session.zeroed::<u64>(1).unwrap();
    let free = session.memory().size().1;
    for value in 1..=100_000 {
        stream.write_value(counter.address(), value).unwrap();
    }
    for _ in 0..20_000 {
        stream.launch(func::EMPTY_AIV, &[]).unwrap();
    }
    stream.synchronize_within(LONG).unwrap();
    assert_eq!(counter.read().unwrap(), [100_000]);
    assert!(free - session.memory().size().1 < 8 << 20, "the arena of a batch, and nothing more");
}

#[test]
fn memory_that_is_freed_after_a_command_waits_for_it() {
    let session = session();
    let (one, other) = (session.stream().unwrap(), session.event().unwrap());
    let gate = session.stream().unwrap();
    one.wait_next(&other).unwrap();
    let buffer = session.upload(&[1_u8; 64]).unwrap();
    let address = buffer.address();
    one.fill(address, 7, 64).unwrap();
    drop(buffer);
    let next = session.zeroed::<u8>(64).unwrap();
    assert_ne!(next.address(), address, "the fill still comes");
    gate.record(&other).unwrap();
    session.synchronize_within(LONG).unwrap();
    assert_eq!(next.read().unwrap(), [0; 64]);
}

#[test]
fn a_closed_session_gives_the_device_back() {
    let session = session();
    let stream = session.stream().unwrap();
    let sum = session.zeroed::<u8>(64).unwrap();
    stream.fill(sum.address(), 3, 64).unwrap();
    let device = session.close().expect("the session has one owner");
    assert_eq!(sum.read().unwrap(), [3; 64], "what was submitted is done");
    assert!(matches!(stream.launch(func::EMPTY_AIV, &[]), Err(SessionError::Ended)));
    let again = device.session(options()).unwrap();
    again.stream().unwrap().launch(func::EMPTY_AIV, &[]).unwrap();
    again.synchronize_within(LONG).unwrap();
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let session = session();
    let stream = session.stream().unwrap();
    let buffer = session.zeroed::<u8>(64).unwrap();
    let at = buffer.address();
    let refusals = [
        stream.launch(pto_host::abi::FuncId(900), &[]).unwrap_err(),
        stream.launch(func::EMPTY_AIV, &[0; 129]).unwrap_err(),
        stream.launch_blocks(func::EMPTY_AIV, 0, &[]).unwrap_err(),
        stream.copy_on_device(at, at.offset(8), 16).unwrap_err(),
        stream.write_value(at.offset(4), 1).unwrap_err(),
        stream.fill(at, 0, 65).unwrap_err(),
    ];
    let says = ["func id", "128", "65,535", "overlap", "multiple of 8", "leaves its allocation"];
    for (refusal, says) in refusals.iter().zip(says) {
        assert!(refusal.to_string().contains(says), "{refusal}");
    }
    assert_eq!(stream.completed(), 0);
    let odd = device(pool()).session(SessionOptions { ring_entries: 33, ..options() });
    assert!(odd.unwrap_err().to_string().contains("a power of two, 32 to 1,048,576"));
}
