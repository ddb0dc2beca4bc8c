//! The graph image, through real runs: every field wrong in turn gives the fault that names it, and the device
//! goes on.

use pto_abi::arena::Capacities;
use pto_abi::image::{Checksum, GraphHeader, ImageTask};
use pto_abi::kinds::GraphFlags;
use pto_abi::{Fault, RuntimeVariant};

use super::dag::{self, Dag};
use super::ways::{check, for_every_hosting, named, options, run_image};
use crate::common::{Device, Options};

/// A graph image in parts.
#[derive(Clone, Default)]
pub(crate) struct Image {
    pub(crate) records: Vec<ImageTask>,
    pub(crate) edges: Vec<u32>,
    pub(crate) args: Vec<u64>,
}

impl Image {
    fn header(&self) -> GraphHeader {
        let tasks = u32::try_from(self.records.len()).unwrap();
        let (edges, args) = (self.edges.len() as u64, self.args.len() as u64);
        GraphHeader::new(GraphFlags::TOPOLOGICAL, tasks, edges, args)
    }

    /// The image, with a header that `change` has changed after everything else was right.
    fn bytes_with(&self, change: impl FnOnce(&mut GraphHeader)) -> Vec<u8> {
        let mut header = self.header();
        let mut body: Vec<u8> = bytemuck::cast_slice(&self.records).to_vec();
        body.extend_from_slice(bytemuck::cast_slice(&self.edges));
        body.resize(body.len().next_multiple_of(8), 0);
        body.extend_from_slice(bytemuck::cast_slice(&self.args));
        header.checksum = Checksum::of(&body);
        change(&mut header);
        [bytemuck::bytes_of(&header), &body].concat()
    }

    /// The image.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes_with(|_| {})
    }
}

fn host_builds() -> Options {
    Options { variant: RuntimeVariant::HOST_BUILD_GRAPH, ..options() }
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
            let bad = good.image().bytes_with(change);
            named(&format!("case {number}"), || check_refused(device, *fault, &bad));
            if number % 8 == 0 {
                check(device, &good);
            }
        }
        check(device, &good);
    });
}

#[test]
fn every_field_of_a_record() {
    type Change = fn(&mut Image);
    let cases: &[(Fault, Change)] = &[
        (Fault::GRAPH_TASK_ARGS, |i| i.records[7].first_arg = 235),
        (Fault::GRAPH_TASK_ARGS, |i| i.records[7].first_arg = u32::MAX),
        (Fault::GRAPH_TASK_ARGS, |i| i.records[39].arg_count = 7),
        (Fault::GRAPH_TASK_ARGS, |i| i.records[0].arg_count = 5),
        (Fault::GRAPH_ARG_WORDS, |i| i.args.push(0)),
        (Fault::GRAPH_ARG_WORDS, |i| i.records[39].arg_count = 5),
        (Fault::GRAPH_TASK_EDGES, |i| i.records[7].first_edge += 1),
        (Fault::GRAPH_TASK_EDGES, |i| i.records[7].first_edge = u32::MAX),
        (Fault::GRAPH_TASK_EDGES, |i| i.records[7].edge_count = u32::MAX),
        (Fault::GRAPH_EDGE_COUNT, |i| i.edges.extend([0, 0])),
        (Fault::GRAPH_EDGE_PRODUCER, |i| i.edges[20] = 40),
        (Fault::GRAPH_EDGE_PRODUCER, |i| i.edges[20] = u32::MAX),
        // After its consumer, against what the header claims.
        (Fault::GRAPH_FLAGS, |i| i.edges[20] = 39),
        (Fault::BUILD_UNKNOWN_FUNC, |i| i.records[39].func_id = 1024),
        (Fault::BUILD_KERNEL_MISSING, |i| i.records[39].func_id = 1023),
        (Fault::BUILD_UNKNOWN_KIND, |i| i.records[39].kind = 2),
        (Fault::BUILD_TOO_MANY_ARGS, |i| {
            i.args.resize(39 * 6 + 129, 0);
            i.records[39].arg_count = 129;
        }),
    ];
    // Sequential: what stands before the wrong record does not run.
    let build_mode = pto_abi::BuildMode::SEQUENTIAL;
    for_every_hosting(Options { build_mode, ..host_builds() }, |device| {
        let good = Dag::random(3, 40);
        assert!(good.edges() > 21 && good.image().records[39].edge_count < 39);
        for (number, (fault, change)) in cases.iter().enumerate() {
            let mut image = good.image();
            change(&mut image);
            named(&format!("case {number}"), || check_refused(device, *fault, &image.bytes()));
        }
        check(device, &good);
    });
}

#[test]
fn an_image_that_is_cut_or_damaged_or_too_large_for_the_arena() {
    for_every_hosting(host_builds(), |device| {
        let good = Dag::random(9, 30);
        let image = good.image().bytes();
        check_refused(device, Fault::GRAPH_TOTAL_BYTES, &[]);
        check_refused(device, Fault::GRAPH_TOTAL_BYTES, &image[..127]);
        check_refused(device, Fault::GRAPH_TOTAL_BYTES, &image[..image.len() - 8]);
        let mut damaged = image.clone();
        *damaged.last_mut().unwrap() ^= 1;
        check_refused(device, Fault::GRAPH_CHECKSUM, &damaged);
        check(device, &good);
    });
    let capacities = Capacities { tasks: 29, image_bytes: 1 << 16, ..Capacities::default() };
    for_every_hosting(Options { capacities, ..host_builds() }, |device| {
        check_refused(device, Fault::GRAPH_TASK_COUNT, &Dag::random(9, 30).image().bytes());
        assert_eq!(device.arena.epitaph().detail, [30, 29]);
        check(device, &Dag::random(9, 29));
    });
}

/// Without the claim of an order, producers may stand anywhere.
#[test]
fn an_image_in_any_order() {
    for_every_hosting(host_builds(), |device| {
        let dag = Dag::new(dag::fork_join(5, 9), pto_abi::CoreKind::ALL);
        let mut image = dag.image();
        let last = u32::try_from(image.records.len() - 1).unwrap();
        image.records.reverse();
        image.edges.iter_mut().for_each(|producer| *producer = last - *producer);
        let (mut edges, mut args) = (Vec::new(), Vec::new());
        for record in &mut image.records {
            let first_arg = record.first_arg as usize;
            let own = image.args[first_arg..first_arg + usize::from(record.arg_count)].to_vec();
            record.first_arg = u32::try_from(args.len()).unwrap();
            args.extend(own);
            let first = record.first_edge as usize;
            let own = image.edges[first..first + record.edge_count as usize].to_vec();
            record.first_edge = u32::try_from(edges.len()).unwrap();
            edges.extend(own);
        }
        (image.edges, image.args) = (edges, args);
        dag.reset();
        let outcome = run_image(device, &image.bytes_with(|header| header.flags = 0));
        assert_eq!(outcome.fault, None, "{:?}", device.arena.epitaph());
        dag.check();
    });
}
