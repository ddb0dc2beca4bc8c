//! The program that expands plans and lists of tasks, one after the other. Its orchestration words say where each of them is ([`LaunchPart`]). Edges
//! between the tasks of several of them follow from their tensors, as those within one do. A plan does not wait for the end of the plan
//! before it.

use pto_abi::fault::Fault;
use pto_abi::ids::GmAddr;

use super::accept::Plan;
use super::ahead::{BodyCalls, Tries, only_tasks};
use super::axis::Elements;
use super::bindings::{BindingWords, Bindings};
use super::cursor::Cursor;
use super::epitaph;
use super::expression::{eval, eval_signed};
use super::heads::{self, Loop};
use super::launch_part::LaunchPart;
use super::layout::{limits, node};
use super::pipeline;
use super::rows;
use super::stop::Stop;
use super::tasks;
use super::walk::{Calls, Walk};
use crate::builder::GraphBuilder;
use crate::element::ElementType;
use crate::error::BuildError;
use crate::group::{Exchange, ExchangeKind, Reduction};
use crate::stream::StreamBuilder;
use crate::task_list::{self, low_half};
use crate::tensor::TensorView;

/// Submits the tasks of the plans and lists that the orchestration words name, in their order.
///
/// # Errors
/// `BUILD_ORCH_ARGS`, `PLAN_*`, those of [`task_list::add`] and of [`StreamBuilder`]. The [epitaph] of that plan then says at which of its words.
// Not inlined, because the copy of the plan would otherwise use stack of every other program as well.
#[inline(never)]
pub fn expand<G: StreamBuilder>(stream: &mut G) -> Result<(), BuildError> {
    if stream.orch_args().is_empty() {
        return Err(Fault::BUILD_ORCH_ARGS.into());
    }
    let mut number = 0;
    while let Some(part) = LaunchPart::at(stream.orch_args(), number)? {
        expand_one(stream, part)?;
        number += 1;
    }
    Ok(())
}

/// Submits the tasks of a part.
fn expand_one<G: StreamBuilder>(stream: &mut G, part: LaunchPart) -> Result<(), BuildError> {
    let (plan, source) = match part {
        LaunchPart::Plan { plan, words, bindings, binding_words } => {
            ((plan, words), BindingWords { base: bindings, words: binding_words })
        }
        LaunchPart::TaskList(list) => return task_list::add(stream, list),
        // A caller that also runs other builders has already removed these parts.
        LaunchPart::Builder(_) => return Err(Fault::BUILD_ORCH_ARGS.into()),
    };
    let epitaph = source.epitaph(stream).map_err(|stop| stop.fault)?;
    let mut kept = [0; limits::WORDS];
    let expanded = read(stream, plan, &mut kept)
        .and_then(|words| run(stream, words, (source, epitaph), Calls::Ahead));
    expanded.map_err(|stop| report(stream, epitaph, stop, &[]).into())
}

/// Copies a plan. Only this program can change the copy, so the words that were checked are the words that are expanded.
fn read<'k, G: GraphBuilder>(
    graph: &G,
    (base, words): (GmAddr, u32),
    kept: &'k mut [u32; limits::WORDS],
) -> Result<&'k [u32], Stop> {
    let most = limits::WORDS as u64;
    let too_long = Stop::new(Fault::PLAN_LIMIT, 0).detail(words.into(), most);
    let kept =
        usize::try_from(words).ok().and_then(|words| kept.get_mut(..words)).ok_or(too_long)?;
    // Two words at a time, where they lie so: one word costs as much to load as two.
    let is_aligned = base.0.is_multiple_of(size_of::<u64>() as u64);
    let paired = if is_aligned { kept.len() & !1 } else { 0 };
    let (pairs, rest) = kept.split_at_mut(paired);
    for (number, pair) in pairs.chunks_exact_mut(2).enumerate() {
        let found = graph.read_u64(base.offset(number as u64 * 8));
        let both = found.map_err(|fault| Stop::new(fault, number * 2))?;
        pair.copy_from_slice(&[low_half(both), low_half(both >> 32)]);
    }
    for (at, word) in (paired..).zip(rest) {
        let found = graph.read_u32(base.offset(at as u64 * 4));
        *word = found.map_err(|fault| Stop::new(fault, at))?;
    }
    Ok(kept)
}

/// Expands a plan that was not checked before.
pub(super) fn run<G: StreamBuilder>(
    stream: &mut G,
    words: &[u32],
    (source, epitaph): (BindingWords, GmAddr),
    calls: Calls,
) -> Result<(), Stop> {
    let plan = Plan::accept(words)?;
    let bound = Bindings::read(stream, &plan, source)?;
    let mut walk = Walk::new(stream, &plan, bound, calls);
    let root = plan.root();
    let walked = match root.clone().code() {
        (node::PIPELINE, _) => pipeline::run(&mut walk, root),
        _ => walk.node(&mut root.clone()),
    };
    let walked = walked.and_then(|()| walk.release(words.len()));
    walked.inspect_err(|stop| {
        // The calls before the one that stops are made. What refuses them has the stop for its reason.
        let _ = walk.run.submit(walk.stream);
        let mut vars = [0; epitaph::VAR_COUNT];
        for (number, var) in (0..walk.vars).zip(&mut vars) {
            *var = walk.values.var(number);
        }
        let count = (walk.vars as usize).min(epitaph::VAR_COUNT);
        report(walk.stream, epitaph, *stop, vars.get(..count).unwrap_or(&[]));
    })
}

/// Writes into the epitaph why the expansion ended, unless that was done before.
#[cold]
fn report<G: StreamBuilder>(stream: &mut G, at: GmAddr, stop: Stop, vars: &[i64]) -> Fault {
    let view = TensorView::dense(at, ElementType::U64, &[epitaph::WORDS]);
    let is_told = stream.get(&view, &[epitaph::FAULT]) != Ok(0);
    let head = [
        (epitaph::FAULT, stop.fault.code().into()),
        (epitaph::AT, stop.at as u64),
        (epitaph::FOUND, stop.found),
        (epitaph::LIMIT, stop.limit),
        (epitaph::VARS, vars.len() as u64),
    ];
    let vars = (epitaph::VAR_WORDS..).zip(vars.iter().map(|var| var.cast_unsigned()));
    for (word, value) in head.into_iter().chain(vars) {
        if is_told || stream.set(&view, &[word], value).is_err() {
            break;
        }
    }
    stop.fault
}

impl<G: StreamBuilder> Walk<'_, G> {
    /// Expands the node at the cursor, and moves the cursor past it.
    pub(super) fn node(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let at = cursor.at();
        let (code, operand) = cursor.code();
        match code {
            node::EMPTY => Ok(()),
            node::BLOCK => (0..operand).try_for_each(|_| self.node(cursor)),
            node::LOOP => self.around(cursor, (at, operand)),
            node::COND => self.branch(cursor, operand),
            node::TASK => tasks::submit(self, cursor, (at, operand)),
            node::SLOT_SET => {
                let value = eval(cursor, &self.values)?;
                self.values.set_slot(operand, value);
                Ok(())
            }
            node::SLOT_LOAD => self.load(cursor, (at, operand)),
            node::EXCHANGE => self.exchange(cursor, (at, operand)),
            _ => Err(Stop::new(Fault::PLAN_CODE, at).detail(code.into(), 0)),
        }
    }

    fn branch(&mut self, cursor: &mut Cursor<'_>, first: u32) -> Result<(), Stop> {
        let after = heads::choose(cursor, self, first)?;
        self.node(cursor)?;
        cursor.go_to(after);
        Ok(())
    }

    fn around(&mut self, cursor: &mut Cursor<'_>, (at, operand): (usize, u32)) -> Result<(), Stop> {
        let mut around = Loop::read(cursor, self, (at, operand))?;
        let (first, body) = (around.first, *cursor);
        let before = self.enter(around.elements.rows(), around.is_in_order);
        let calls = self.repeats(&body, &around.elements);
        let mut tries = Tries::default();
        while around.turn(self)? {
            let elements = &mut around.elements;
            let is_kept = !calls.is_empty() && tries.count() && elements.known() > 1;
            self.node(&mut body.clone())?;
            if is_kept {
                let (var, known) = ((first, at), elements.known());
                let made = match calls.as_slice() {
                    [call] if !tasks::is_alone(self, self.measure(call.2)) => {
                        tasks::go_on(self, call, var, known)?
                    }
                    _ => rows::go_on(self, &calls, var, known)?,
                };
                tries.made(made);
                elements.skip(made);
            }
        }
        self.vars = first;
        self.leave(before);
        cursor.skip(around.body_words);
        Ok(())
    }

    /// The tasks that are the body of a loop whose calls can be made ahead: no schedule applies to a single one, and what the loop goes
    /// through is known.
    fn repeats<'p>(&self, body: &Cursor<'p>, elements: &Elements) -> BodyCalls<'p> {
        let can_be = self.pace.is_none() && self.calls == Calls::Ahead && elements.known() > 0;
        if can_be { only_tasks(body, self.plan) } else { BodyCalls::new() }
    }

    /// A tensor goes between ranks: what uses its tiles before and after is ordered by them, as with calls.
    #[cold]
    fn exchange(
        &mut self,
        cursor: &mut Cursor<'_>,
        (at, operand): (usize, u32),
    ) -> Result<(), Stop> {
        let wrong = Stop::new(Fault::PLAN_NAME, at);
        let tensor = *self.bindings.tensor(operand >> 8).ok_or(wrong)?;
        let [kind, ..] = operand.to_le_bytes();
        let reduction = u8::try_from(cursor.word()).ok();
        let reduction = reduction.and_then(|reduction| Reduction::try_from(reduction).ok());
        let kind = ExchangeKind::try_from(kind).ok();
        let (kind, reduction) = kind.zip(reduction).ok_or(wrong)?;
        let mut next = || {
            let found = eval_signed(cursor, &self.values)?;
            let range =
                Stop::new(Fault::PLAN_INDEX, at).detail(found.cast_unsigned(), u32::MAX.into());
            u32::try_from(found).map_err(|_| range)
        };
        let (peer, tag) = (next()?, next()?);
        self.release(at)?;
        self.run.forget();
        self.has_task = true;
        let exchange = Exchange { kind, tensor, reduction, peer, tag };
        self.stream.exchange(&exchange).map_err(|fault| Stop::new(fault, at))
    }

    /// A slot gets an element of a tensor, after the element's producers.
    fn load(&mut self, cursor: &mut Cursor<'_>, (at, operand): (usize, u32)) -> Result<(), Stop> {
        let tensor =
            self.bindings.tensor(operand >> 8).copied().ok_or(Stop::new(Fault::PLAN_NAME, at))?;
        let (mut index, shape) = ([0; limits::RANK], tensor.shape());
        for (slot, extent) in index.iter_mut().zip(shape) {
            let at = cursor.at();
            let found = eval_signed(cursor, &self.values)?;
            let wrong =
                Stop::new(Fault::PLAN_INDEX, at).detail(found.cast_unsigned(), (*extent).into());
            *slot = u32::try_from(found).ok().filter(|found| found < extent).ok_or(wrong)?;
        }
        let index = index.get(..shape.len()).unwrap_or(&[]);
        self.release(at)?;
        let bits = self.stream.get(&tensor, index).map_err(|fault| Stop::new(fault, at))?;
        self.values.set_slot(operand & 0xFF, as_unsigned(tensor.element(), bits));
        Ok(())
    }
}

/// An element as an unsigned integer: floats truncate and saturate, signed integers keep their sign. The firmware has no floating
/// point, so that floats are taken apart.
#[expect(clippy::cast_possible_truncation, reason = "an element has no more bits than its type")]
fn as_unsigned(element: ElementType, bits: u64) -> u64 {
    match element {
        ElementType::F16 => truncated(bits, (5, 10)),
        ElementType::BF16 => truncated(bits, (8, 7)),
        ElementType::F32 => truncated(bits, (8, 23)),
        ElementType::F64 => truncated(bits, (11, 52)),
        ElementType::I8 => i64::from(bits as i8).cast_unsigned(),
        ElementType::I16 => i64::from(bits as i16).cast_unsigned(),
        ElementType::I32 => i64::from(bits as i32).cast_unsigned(),
        _ => bits,
    }
}

/// The integer part of a float with this many bits of exponent and of fraction; 0 for a negative number or a NaN.
const fn truncated(bits: u64, (exponent_bits, fraction_bits): (u32, u32)) -> u64 {
    let largest = (1 << exponent_bits) - 1;
    let exponent = bits >> fraction_bits & largest;
    let fraction = bits & ((1 << fraction_bits) - 1);
    let is_negative = bits >> (exponent_bits + fraction_bits) & 1 == 1;
    let is_nan = exponent == largest && fraction != 0;
    let bias = largest >> 1;
    if is_negative || is_nan || exponent < bias {
        return 0;
    }
    // Of an infinity as of any number beyond 64 bits.
    let power = exponent - bias;
    if power >= 64 || exponent == largest {
        return u64::MAX;
    }
    let (whole, point) = (fraction | 1 << fraction_bits, fraction_bits as u64);
    if power >= point { whole << (power - point) } else { whole >> (point - power) }
}

#[cfg(test)]
mod tests {
    use super::as_unsigned;
    use crate::element::ElementType;

    #[test]
    fn elements_become_unsigned_integers() {
        let cases = [
            (ElementType::F32, 7.9_f32.to_bits().into(), 7),
            (ElementType::F32, (-3.0_f32).to_bits().into(), 0),
            (ElementType::F32, f32::INFINITY.to_bits().into(), u64::MAX),
            (ElementType::F16, 0x4900, 10),
            (ElementType::F16, 0x7C00, u64::MAX),
            (ElementType::F16, 0x03FF, 0),
            (ElementType::F16, 0x7E00, 0),
            (ElementType::F16, 0x7BFF, 65_504),
            (ElementType::F32, 1e30_f32.to_bits().into(), u64::MAX),
            (ElementType::F32, 3e9_f32.to_bits().into(), 3_000_000_000),
            (ElementType::BF16, 0x4120, 10),
            (ElementType::F64, 1e3_f64.to_bits(), 1000),
            (ElementType::I8, 0xFF, u64::MAX),
            (ElementType::I32, 0xFFFF_FFFE, u64::MAX - 1),
            (ElementType::U32, 0xFFFF_FFFF, 0xFFFF_FFFF),
            (ElementType::U64, u64::MAX, u64::MAX),
        ];
        for (element, bits, expected) in cases {
            assert_eq!(as_unsigned(element, bits), expected, "{element} {bits:#x}");
        }
    }
}
