//! Making many calls at once submits what making each by its expressions does: generated plans, whose tasks, chains and faults are compared
//! word for word. And calls that share a dispatch are those that have one of their own, in the same order.
//!
//! A plan has one to three loops around one to four calls of up to three kernels, whose indices and scalars are random expressions. Most indices are kept in their
//! dimension by a remainder; others leave it somewhere, and so do ranges. What a plan is bound to (sizes, grain, costs, cores) is random too.

extern crate std;

use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use pto_abi::chain::MAX_CHAIN_ARGS;
use pto_abi::fault::Fault;
use pto_abi::ids::{GmAddr, TaskId};
use pto_abi::launch_args::LaunchArgs;
use pto_abi::limits::MAX_ARGS;

use super::bindings::BindingWords;
use super::expand::run;
use super::layout::{
    HEADER_WORDS, MAGIC, NO_DIMENSION, VERSION, axis, binding, expression as code, index, limits,
    node, param,
};
use super::stop::Stop;
use super::task::descriptor;
use super::walk::Calls;
use crate::builder::{EdgeOutcome, GraphBuilder};
use crate::element::ElementType;
use crate::link::Link;
use crate::stream::StreamBuilder;
use crate::stream_op::{OpResult, StreamOp};
use crate::submission::{Submission, TaskDesc};
use crate::tensor::TensorView;

const BINDINGS: u64 = 0x1_0000;
const EPITAPH: u64 = 0x2_0000;
const SCRATCH: u64 = 0x3_0000;
const TENSORS: u64 = 1 << 32;

/// Notes what is submitted. A ring is full after this many tasks.
struct Notes {
    bindings: Vec<u64>,
    notes: Vec<String>,
    room: usize,
    /// What cores run: func id and arguments, the kernels of chains one by one.
    kernels: Kernels,
}

/// Func ids and arguments.
type Kernels = Vec<(u16, Vec<u64>)>;

impl Notes {
    fn note(&mut self, what: String) -> Result<TaskId, Fault> {
        if self.notes.len() == self.room {
            return Err(Fault::STREAM_WINDOW_RING);
        }
        self.notes.push(what);
        Ok(TaskId::NONE)
    }
}

impl GraphBuilder for Notes {
    fn launch_args(&self) -> LaunchArgs<'_> {
        LaunchArgs::default()
    }
    fn submit_desc(&mut self, submission: Submission<'_>) -> Result<Option<TaskId>, Fault> {
        match submission.desc {
            TaskDesc::Chain(chain) => {
                chain.check()?;
                assert!(chain.words() <= MAX_ARGS, "a ring of words has no room for {chain:?}");
                let mut words = [0; MAX_CHAIN_ARGS];
                for (link, turn) in chain.turns() {
                    let task = link.task_at(turn, &mut words);
                    self.kernels.push((task.func_id.0, task.args.to_vec()));
                }
                self.note(format!("{chain:?}")).map(Some)
            }
            TaskDesc::Tensors(task) => {
                let words = Link::on_tensors(task.func_id, task.kind, task.args).words();
                self.kernels.push((task.func_id.0, words.collect()));
                self.note(format!("{task:?}")).map(Some)
            }
            TaskDesc::Kernel(_) => Err(Fault::BUILD_TASKS_FULL),
            _ => Ok(None),
        }
    }
    fn add_edge(&mut self, _: TaskId, _: TaskId) -> Result<EdgeOutcome, Fault> {
        Err(Fault::BUILD_TASKS_FULL)
    }
    fn publish(&mut self, _: TaskId) -> Result<(), Fault> {
        Ok(())
    }
    fn read_u32(&self, address: GmAddr) -> Result<u32, Fault> {
        let at = usize::try_from(address.0.wrapping_sub(BINDINGS) / 8).unwrap_or(usize::MAX);
        let word = self.bindings.get(at).copied().unwrap_or(0);
        let half = if address.0.is_multiple_of(8) { word } else { word >> 32 };
        Ok(u32::try_from(half & 0xFFFF_FFFF).expect("half a word"))
    }
}

impl StreamBuilder for Notes {
    fn stream_op(&mut self, op: StreamOp<'_>) -> Result<OpResult, Fault> {
        match op {
            StreamOp::Get(..) => Ok(OpResult::Value(0)),
            StreamOp::Set(view, at, value) => {
                self.notes.push(format!("{:?} {at:?} = {value}", view.base()));
                Ok(OpResult::Done)
            }
            StreamOp::Yield => Ok(OpResult::Done),
            _ => op.alone().unwrap_or(Err(Fault::STREAM_HEAP_RING)),
        }
    }
}

/// A stream of numbers: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    }

    fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.next() % u64::from(end)).expect("it is below")
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(u32::try_from(all.len()).expect("a few")) as usize]
    }
}

/// The extents of both tensors.
const SHAPE: [u32; 3] = [40, 24, 16];
/// Kernels of a plan.
const KERNELS: u32 = 3;
/// Symbols: the size of a dynamic axis, and two that expressions use.
const SYMBOLS: usize = 3;

fn constant(value: i32) -> u32 {
    code::CONSTANT | value.cast_unsigned() << 8
}

/// A number.
fn expression(random: &mut Random, vars: u32, depth: u32) -> Vec<u32> {
    let leaf = depth == 0 || random.below(4) == 0;
    if leaf {
        let value = random.of(&[0, 1, 2, 3, 7, 8, 16, 100, -1, -5]);
        return vec![match random.below(4) {
            0 => constant(value),
            1 => code::SYMBOL | (1 + random.below(2)) << 8,
            _ => code::VAR | random.below(vars) << 8,
        }];
    }
    let part = |random: &mut Random| expression(random, vars, depth - 1);
    match random.below(16) {
        0 => [vec![code::NEGATE], part(random)].concat(),
        1 => [vec![code::COMPLEMENT], part(random)].concat(),
        2 => {
            let op = random.of(&[code::LESS, code::EQUAL, code::GREATER_EQUAL]);
            let condition = [vec![op], part(random), part(random)].concat();
            let (then, otherwise) = (part(random), part(random));
            let length = |part: &[u32]| u32::try_from(part.len()).expect("a few");
            let head = vec![code::CHOICE | length(&then) << 8, length(&otherwise)];
            [head, condition, then, otherwise].concat()
        }
        3 => {
            let op = random.of(&[code::AND, code::OR]);
            let one = |random: &mut Random| [vec![code::LESS], part(random), part(random)].concat();
            let (first, second) = (one(random), one(random));
            let length = u32::try_from(second.len()).expect("a few");
            [vec![code::TO_NUMBER, op | length << 8], first, second].concat()
        }
        4 => [vec![code::TO_NUMBER, code::TO_TRUTH], part(random)].concat(),
        5..9 => {
            let op = random.of(&[code::DIV, code::REMAINDER, code::SHIFT_RIGHT, code::BIT_AND]);
            let by = constant(random.of(&[1, 2, 3, 5, 7, 8, 15, 31, 100, -3]));
            [vec![op | random.below(2) << 8], part(random), vec![by]].concat()
        }
        9 => {
            let op = random.of(&[code::BIT_OR, code::BIT_XOR, code::SHIFT_LEFT, code::DIV]);
            [vec![op | random.below(2) << 8], part(random), part(random)].concat()
        }
        _ => {
            let op = random.of(&[code::ADD, code::SUB, code::MUL, code::ADD]);
            [vec![op | random.below(2) << 8], part(random), part(random)].concat()
        }
    }
}

/// An index: mostly kept below `end`.
fn start_index(random: &mut Random, vars: u32, end: u32) -> Vec<u32> {
    let depth = random.below(3);
    let found = expression(random, vars, depth);
    let end = i32::try_from(end).expect("an extent");
    if random.below(6) == 0 {
        return found;
    }
    [vec![code::REMAINDER | 1 << 8], found, vec![constant(end)]].concat()
}

/// A view of tensor `number`, whose tile has these sides; a side of one row may be a point.
fn view(random: &mut Random, number: u32, vars: u32, [rows, cols]: [u32; 2]) -> Vec<u32> {
    let (row, count) = (if rows == 1 { NO_DIMENSION } else { 1 }, 1 + random.below(3));
    // A tile of one row needs a point for the rows.
    let count = if rows == 1 { count.max(2) } else { count };
    let mut words = vec![number | count << 8 | row << 16 | 2 << 24];
    for dim in 0..count {
        let extent = SHAPE[dim as usize];
        if dim == 0 || dim == 1 && rows == 1 {
            words.extend([vec![index::AT], start_index(random, vars, extent)].concat());
            continue;
        }
        let side = if dim == 1 { rows } else { cols };
        let (start, length) = match random.below(4) {
            0 => (start_index(random, vars, extent), expression(random, vars, 1)),
            1 => (start_index(random, vars, extent), vec![constant(side.cast_signed())]),
            2 => (vec![constant(0)], vec![constant(side.cast_signed() - 1)]),
            _ => (start_index(random, vars, extent - side + 1), vec![constant(side.cast_signed())]),
        };
        words.extend([vec![index::RANGE], start, length].concat());
    }
    words
}

/// A plan, and what it is bound to.
fn generate(random: &mut Random) -> (Vec<u32>, Vec<u64>) {
    let element = u32::from(ElementType::F32.get());
    let tiles = [0, 1].map(|_| [random.of(&[1, 4, 8]), random.of(&[4, 16])]);
    let mut words =
        vec![MAGIC, VERSION, 0, 2, KERNELS, u32::try_from(SYMBOLS).expect("a few"), 0, 0];
    assert_eq!(words.len(), HEADER_WORDS);
    for _ in 0..2 {
        words.push(element | 3 << 8);
        words.extend((0..limits::RANK).map(|dim| SHAPE.get(dim).copied().unwrap_or(0)));
    }
    // Kernels with a tensor that they read, one that they write, and a scalar; the last one runs on cores of another kind.
    for kernel in 0..KERNELS {
        let kind = if kernel + 1 == KERNELS { 0 } else { 1 };
        words.extend([(7 + kernel) | kind << 16 | 3 << 24, 0, 64]);
        for (role, [rows, cols]) in
            [param::IN, random.of(&[param::OUT, param::IN_OUT])].into_iter().zip(tiles)
        {
            words.extend([role | element << 8, rows | cols << 16, random.of(&[0, 0, 0, 1])]);
        }
        words.extend([param::SCALAR | element << 8, 0, 0]);
    }
    words[7] = u32::try_from(words.len()).expect("a few");
    let loops = 1 + random.below(3);
    let calls = random.of(&[1, 1, 1, 2, 3, 4]);
    let mut body = if calls > 1 { vec![node::BLOCK | calls << 8] } else { Vec::new() };
    let call = |random: &mut Random, vars: u32| {
        let mut words = vec![node::TASK | random.below(KERNELS) << 8, 0, 0];
        words.extend(view(random, 0, vars, tiles[0]));
        words.extend(view(random, 1, vars, tiles[1]));
        let depth = random.below(3);
        words.extend(expression(random, vars, depth));
        words
    };
    for _ in 0..calls {
        body.extend(call(random, loops));
    }
    for var in (0..loops).rev() {
        let in_order = random.of(&[0, axis::IN_ORDER]);
        let is_dynamic = var + 1 == loops && random.below(3) == 0;
        let kind = in_order | if is_dynamic { axis::DYNAMIC } else { axis::DENSE };
        let end =
            if var + 1 == loops { random.of(&[0, 1, 2, 9, 70, 400]) } else { random.below(4) };
        let axis = if is_dynamic { vec![0] } else { vec![end, 0] };
        if random.below(4) == 0 {
            // Calls in the enclosing loop, before and after the previous loop.
            let around = var + 1 < loops && random.below(2) == 0;
            let (before, after) = match around {
                true => (call(random, var + 1), call(random, var + 1)),
                false => (Vec::new(), Vec::new()),
            };
            let nodes = if around { 3 } else { 1 };
            body = [vec![node::BLOCK | nodes << 8], before, body, after].concat();
        }
        let length = u32::try_from(body.len()).expect("a few");
        let head = vec![node::LOOP | (var | 1 << 8 | kind << 16) << 8, length];
        body = [head, axis, body].concat();
    }
    words.extend(body);
    words[2] = u32::try_from(words.len()).expect("a few");
    (words, bound(random))
}

fn bound(random: &mut Random) -> Vec<u64> {
    let sizes = [SYMBOLS, 0, 2, KERNELS as usize];
    let mut bound = vec![0; binding::words(sizes)];
    bound[binding::CODE_BYTES] = 64;
    (bound[binding::EPITAPH], bound[binding::SCRATCH]) = (EPITAPH, SCRATCH);
    bound[binding::COUNTS] = SYMBOLS as u64 | 2 << 32 | u64::from(KERNELS) << 48;
    bound[binding::CORES] = random.of(&[1, 4, 72]);
    bound[binding::GRAIN] = random.of(&[0, 0, 1, 2, 7, 100]);
    let symbols = [random.below(200).into(), random.below(9).into(), random.below(50).into()];
    bound[binding::HEAD..][..SYMBOLS].copy_from_slice(&symbols);
    let tensors = binding::tensors_at(SYMBOLS, 0);
    for number in 0..2 {
        let base = TENSORS << number;
        let view = TensorView::dense(GmAddr(base), ElementType::F32, &SHAPE);
        let words = &mut bound[tensors + number * binding::TENSOR..][..binding::TENSOR];
        (words[descriptor::BASE], words[descriptor::BYTES]) = (base, view.tensor_bytes());
        words[descriptor::STRIDES..][..3].copy_from_slice(view.strides());
    }
    let costs = binding::costs_at([SYMBOLS, 0, 2]);
    let one = random.of(&[0, 50, 1_000, 30_000]);
    let is_one = random.below(2) == 0;
    for cost in &mut bound[costs..][..KERNELS as usize] {
        *cost = if is_one { one } else { random.of(&[0, 50, 1_000, 30_000]) };
    }
    bound
}

fn expand(
    plan: &[u32],
    bound: &[u64],
    room: usize,
    calls: Calls,
) -> (Vec<String>, Option<Stop>, Kernels) {
    let (notes, kernels) = (Vec::new(), Vec::new());
    let mut notes = Notes { bindings: bound.to_vec(), notes, room, kernels };
    let source = BindingWords { base: GmAddr(BINDINGS), words: bound.len() as u64 };
    let stop = run(&mut notes, plan, (source, GmAddr(EPITAPH)), calls).err();
    (notes.notes, stop, notes.kernels)
}

#[test]
fn many_calls_at_once_are_those_of_the_expressions() {
    let mut random = Random(1);
    let mut counts = [0_usize; 6];
    for number in 0..8_000 {
        let (plan, bound) = generate(&mut random);
        let room = if random.below(4) == 0 { random.below(60) as usize } else { usize::MAX };
        let slow = expand(&plan, &bound, room, Calls::ByExpressions);
        let fast = expand(&plan, &bound, room, Calls::Ahead);
        assert_eq!(fast, slow, "plan {number}: {plan:x?}\n{bound:x?}");
        let (notes, stop, kernels) = slow;
        if room == usize::MAX {
            let mut apart = bound.clone();
            apart[binding::GRAIN] = 1;
            let (.., alone) = expand(&plan, &apart, room, Calls::Ahead);
            let differs = kernels.iter().zip(&alone).find(|(one, other)| one != other);
            assert_eq!(differs, None, "plan {number}: {plan:x?}\n{bound:x?}");
            assert_eq!(kernels.len(), alone.len(), "plan {number}: {plan:x?}\n{bound:x?}");
        }
        let chains = notes.iter().filter(|note| note.starts_with("Chain"));
        let count = |what: &str| chains.clone().filter(|note| note.contains(what)).count();
        counts[0] += notes.len();
        counts[1] += chains.clone().count();
        counts[4] += count("is_with_next: true");
        counts[5] += chains.clone().filter(|note| note.matches("Link {").count() > 1).count();
        counts[2] += usize::from(stop.is_some_and(|stop| stop.fault == Fault::PLAN_INDEX));
        counts[3] += usize::from(stop.is_some());
        let is_known = stop.is_none_or(|stop| {
            let faults = [
                Fault::PLAN_INDEX,
                Fault::PLAN_DIVISION,
                Fault::PLAN_TILE,
                Fault::STREAM_WINDOW_RING,
            ];
            faults.contains(&stop.fault)
        });
        assert!(is_known, "plan {number}: {stop:?} {plan:x?}");
    }
    std::println!(
        "submitted, chains, indices, faults, chains in turns, of several links: {counts:?}"
    );
    assert!(counts.iter().all(|count| *count > 500), "{counts:?}");
}

/// On a builder without schedulers and without a clock, as that of a check is, the number of turns ends the walk.
#[test]
fn a_loop_without_tasks_ends_where_nobody_schedules() {
    let mut words =
        vec![MAGIC, VERSION, 0, 0, 0, 0, 0, u32::try_from(HEADER_WORDS).expect("a few")];
    let size = 1_000_000_000_000_u64.to_le_bytes();
    let half = |at: usize| u32::from_le_bytes(size[at..at + 4].try_into().expect("four bytes"));
    let kind = 1 << 8 | axis::IN_ORDER << 16;
    words.extend([node::LOOP | kind << 8, 2, half(0), half(4)]);
    words.extend([node::SLOT_SET, code::VAR]);
    words[2] = u32::try_from(words.len()).expect("a few");
    let mut bound = vec![0; binding::words([0; 4])];
    (bound[binding::EPITAPH], bound[binding::SCRATCH]) = (EPITAPH, SCRATCH);
    let (notes, stop, _) = expand(&words, &bound, usize::MAX, Calls::Ahead);
    let stop = stop.expect("it ends");
    assert_eq!(
        (stop.fault, stop.at, stop.limit),
        (Fault::PLAN_TURNS, HEADER_WORDS, limits::IDLE_TURNS)
    );
    assert!(stop.found > stop.limit && !notes.is_empty(), "{stop:?}");
}
