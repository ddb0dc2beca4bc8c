//! The graph image, through real runs: every field wrong in turn gives the fault that names it, and the device
//! goes on.

use pto_abi::arena::Capacities;
use pto_abi::image::GraphHeader;
use pto_abi::kinds::GraphFlags;
use pto_abi::{Fault, RuntimeVariant};
use pto_graph::GraphParts;

use super::dag::{self, Dag};
use super::ways::{check, for_every_hosting, named, options, run_image};
use crate::common::{Device, LaunchOptions};

/// The image, which claims its order, with a header that `change` has changed after everything else was right.
fn bytes_with(parts: &GraphParts, change: impl FnOnce(&mut GraphHeader)) -> Vec<u8> {
    let image = parts.image(GraphFlags::TOPOLOGICAL);
    let mut header = image.header();
    change(&mut header);
    let mut bytes = Vec::new();
    image.put(&header, |part| bytes.extend_from_slice(part));
    bytes
}

/// The image, which claims its order.
pub(crate) fn bytes_of(parts: &GraphParts) -> Vec<u8> {
    bytes_with(parts, |_| {})
}

fn host_builds() -> LaunchOptions {
    LaunchOptions { variant: RuntimeVariant::HOST_BUILD_GRAPH, ..options() }
}

/// The run ends with `fault`, which is in the epitaph, and nothing ran.
#[track_caller]
fn check_refused(device: &mut Device, fault: Fault, image: &[u8]) {
    let before = device.tasks_run();
    let outcome = run_image(device, image);
    assert_eq!((outcome.fault, outcome.arena_lost), (Some(fault), false));
    assert_eq!(device.arena.epitaph().fault, fault.code());
    assert_eq!(device.tasks_run(), before);
}

#[test]
fn every_field_of_the_header() {
    type Change = fn(&mut GraphHeader);
    let cases: &[(Fault, Change)] = &[
        (Fault::GRAPH_MAGIC, |h| h.magic ^= 1),
        (Fault::GRAPH_ABI_MAJOR, |h| h.abi_major += 1),
        (Fault::GRAPH_ABI_MINOR, |h| h.abi_minor += 1),
        (Fault::GRAPH_HEADER_BYTES, |h| h.header_bytes += 8),
        (Fault::GRAPH_LAYOUT_HASH, |h| h.layout_hash ^= 1),
        (Fault::GRAPH_TOTAL_BYTES, |h| h.total_bytes += 8),
        (Fault::GRAPH_TOTAL_BYTES, |h| h.total_bytes = 0),
        (Fault::GRAPH_TOTAL_BYTES, |h| h.total_bytes = u64::MAX),
        (Fault::GRAPH_CHECKSUM, |h| h.checksum ^= 1 << 63),
        (Fault::GRAPH_FLAGS, |h| h.flags |= 1 << 31),
        (Fault::GRAPH_TASK_COUNT, |h| h.task_count += 1),
        (Fault::GRAPH_TASK_COUNT, |h| h.task_count = u32::MAX),
        (Fault::GRAPH_EDGE_COUNT, |h| h.edge_count += 2),
        (Fault::GRAPH_EDGE_COUNT, |h| h.edge_count = u64::MAX),
        (Fault::GRAPH_ARG_WORDS, |h| h.arg_words -= 1),
        (Fault::GRAPH_ARG_WORDS, |h| h.arg_words = u64::MAX),
        (Fault::GRAPH_TASKS_OFFSET, |h| h.tasks_offset += 8),
        (Fault::GRAPH_TASKS_OFFSET, |h| h.tasks_offset = u64::MAX),
        (Fault::GRAPH_EDGES_OFFSET, |h| h.edges_offset += 4),
        (Fault::GRAPH_EDGES_OFFSET, |h| h.edges_offset = u64::MAX - 7),
        (Fault::GRAPH_ARGS_OFFSET, |h| h.args_offset += 8),
        (Fault::GRAPH_ARGS_OFFSET, |h| h.args_offset = u64::MAX - 7),
        (Fault::GRAPH_RESERVED, |h| h.reserved[0] = 1),
        (Fault::GRAPH_RESERVED, |h| h.reserved[4] = 1),
    ];
    for_every_hosting(host_builds(), |device| {
        let good = Dag::random(3, 40);
        for (number, (fault, change)) in cases.iter().enumerate() {
            let bad = bytes_with(&good.parts(), change);
            named(&format!("case {number}"), || check_refused(device, *fault, &bad));
            if number % 8 == 0 {
                check(device, &good);
            }
        }
        check(device, &good);
    });
}

#[test]
fn every_field_of_a_task() {
    type Change = fn(&mut GraphParts);
    let cases: &[(Fault, Change)] = &[
        (Fault::GRAPH_TASK_ARGS, |i| i.tasks[7].first_arg = 235),
        (Fault::GRAPH_TASK_ARGS, |i| i.tasks[7].first_arg = u32::MAX),
        (Fault::GRAPH_TASK_ARGS, |i| i.tasks[39].arg_count = 7),
        (Fault::GRAPH_TASK_ARGS, |i| i.tasks[0].arg_count = 5),
        (Fault::GRAPH_ARG_WORDS, |i| i.args.push(0)),
        (Fault::GRAPH_ARG_WORDS, |i| i.tasks[39].arg_count = 5),
        (Fault::GRAPH_TASK_EDGES, |i| i.tasks[7].first_edge += 1),
        (Fault::GRAPH_TASK_EDGES, |i| i.tasks[7].first_edge = u32::MAX),
        (Fault::GRAPH_TASK_EDGES, |i| i.tasks[7].edge_count = u32::MAX),
        (Fault::GRAPH_EDGE_COUNT, |i| i.producers.extend([0, 0])),
        (Fault::GRAPH_EDGE_PRODUCER, |i| i.producers[20] = 40),
        (Fault::GRAPH_EDGE_PRODUCER, |i| i.producers[20] = u32::MAX),
        // After its consumer, against what the header claims.
        (Fault::GRAPH_FLAGS, |i| i.producers[20] = 39),
        (Fault::BUILD_UNKNOWN_FUNC, |i| i.tasks[39].func_id = 1024),
        (Fault::BUILD_KERNEL_MISSING, |i| i.tasks[39].func_id = 1023),
        (Fault::BUILD_UNKNOWN_KIND, |i| i.tasks[39].kind = 2),
        (Fault::BUILD_TOO_MANY_ARGS, |i| {
            i.args.resize(39 * 6 + 129, 0);
            i.tasks[39].arg_count = 129;
        }),
    ];
    // Sequential: what is before the wrong task does not run.
    let build_mode = pto_abi::BuildMode::SEQUENTIAL;
    for_every_hosting(LaunchOptions { build_mode, ..host_builds() }, |device| {
        let good = Dag::random(3, 40);
        assert!(good.edges() > 21 && good.parts().tasks[39].edge_count < 39);
        for (number, (fault, change)) in cases.iter().enumerate() {
            let mut image = good.parts();
            change(&mut image);
            named(&format!("case {number}"), || check_refused(device, *fault, &bytes_of(&image)));
        }
        check(device, &good);
    });
}

#[test]
fn an_image_that_is_cut_or_damaged_or_too_large_for_the_arena() {
    for_every_hosting(host_builds(), |device| {
        let good = Dag::random(9, 30);
        let image = bytes_of(&good.parts());
        check_refused(device, Fault::GRAPH_TOTAL_BYTES, &[]);
        check_refused(device, Fault::GRAPH_TOTAL_BYTES, &image[..127]);
        check_refused(device, Fault::GRAPH_TOTAL_BYTES, &image[..image.len() - 8]);
        let mut damaged = image.clone();
        *damaged.last_mut().unwrap() ^= 1;
        check_refused(device, Fault::GRAPH_CHECKSUM, &damaged);
        check(device, &good);
    });
    let capacities = Capacities { tasks: 29, image_bytes: 1 << 16, ..Capacities::default() };
    for_every_hosting(LaunchOptions { capacities, ..host_builds() }, |device| {
        check_refused(device, Fault::GRAPH_TASK_COUNT, &bytes_of(&Dag::random(9, 30).parts()));
        assert_eq!(device.arena.epitaph().detail, [30, 29]);
        check(device, &Dag::random(9, 29));
    });
}

/// Without the claim of an order, producers may stand anywhere.
#[test]
fn an_image_in_any_order() {
    for_every_hosting(host_builds(), |device| {
        let dag = Dag::new(dag::fork_join(5, 9), pto_abi::CoreKind::ALL);
        let mut image = dag.parts();
        let last = u32::try_from(image.tasks.len() - 1).unwrap();
        image.tasks.reverse();
        image.producers.iter_mut().for_each(|producer| *producer = last - *producer);
        let (mut edges, mut args) = (Vec::new(), Vec::new());
        for task in &mut image.tasks {
            let first_arg = task.first_arg as usize;
            let own = image.args[first_arg..first_arg + usize::from(task.arg_count)].to_vec();
            task.first_arg = u32::try_from(args.len()).unwrap();
            args.extend(own);
            let first = task.first_edge as usize;
            let own = image.producers[first..first + task.edge_count as usize].to_vec();
            task.first_edge = u32::try_from(edges.len()).unwrap();
            edges.extend(own);
        }
        (image.producers, image.args) = (edges, args);
        dag.reset();
        let outcome = run_image(device, &image.to_bytes(GraphFlags::empty()));
        assert_eq!(outcome.fault, None, "{:?}", device.arena.epitaph());
        dag.check();
    });
}
