//! Tensors for what was recorded as words: names from the memory that the words point into, roles and extents from those who
//! know the kernels, shapes from the views.
//!
//! ```text
//! words --operands, buffers--> views of tensors --infer--> shapes of the tensors
//! ```
//! Under the streaming runtime such views derive nothing, because the program states its edges.

use pto_abi::GmAddr;
use pto_abi::chain::Turns;
use pto_graph::ElementType;
use pto_graph::signature::{Access, Extents};

use crate::program::{
    Action, Argument, ChainLink, Location, Program, Task, Tensor, TensorByte, Use, Vary, View, Way,
    row_major,
};
use crate::submit::tensor_view;

/// Memory that a program was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// What it is called.
    pub name: String,
    /// Where it begins.
    pub address: GmAddr,
    /// Its size.
    pub bytes: u64,
    /// Its extents, if they are stated.
    pub shape: Option<Vec<u32>>,
}

/// An argument that is an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its index among the arguments.
    pub arg: usize,
    /// What the kernel does there.
    pub access: Access,
    /// What it touches; `None`: only the kernel knows.
    pub extents: Option<Extents>,
}

/// Names the tensors that lie in `buffers`, makes views of words that point there, and finds the shapes of tensors.
/// `operands` are those of a kernel with these words; `None`: nothing is known of it.
pub fn declare(
    program: &mut Program,
    buffers: &[Buffer],
    operands: impl Fn(u16, &[u64]) -> Option<Vec<Operand>>,
) {
    let mut buffers = buffers.to_vec();
    buffers.sort_by_key(|buffer| buffer.address);
    name(program, &buffers);
    let (buffers, indices) = with_heap(program, buffers);
    let mut tasks = std::mem::take(&mut program.tasks);
    let mut words = ViewWords { program, buffers: &buffers, indices };
    for task in &mut tasks {
        words.declare(task, &operands);
        for link in &mut task.links {
            words.declare_link(link, &operands);
        }
    }
    program.tasks = tasks;
    infer(program);
    state(program, &buffers);
}

/// The buffers and the tensors of the heap, by their addresses; with the tensors that the program has there already.
fn with_heap(program: &Program, mut buffers: Vec<Buffer>) -> (Vec<Buffer>, Vec<Option<usize>>) {
    let of_heap = program.heap.iter().map(|(index, address)| {
        let tensor = &program.tensors[*index];
        Buffer { name: tensor.to_string(), address: *address, bytes: tensor.bytes, shape: None }
    });
    buffers.extend(of_heap);
    buffers.sort_by_key(|buffer| buffer.address);
    let byte_of = |buffer: &Buffer| {
        let heap = program.heap.iter().find(|(_, address)| *address == buffer.address);
        let is_host = |tensor: &Tensor| {
            tensor.location == Location::Host(Some(buffer.address)) && tensor.bytes == buffer.bytes
        };
        heap.map(|(index, _)| *index).or_else(|| program.tensors.iter().position(is_host))
    };
    let indices = buffers.iter().map(byte_of).collect();
    (buffers, indices)
}

/// The buffer that an address is in.
fn buffer_of(buffers: &[Buffer], address: GmAddr) -> Option<(usize, &Buffer)> {
    let after = buffers.partition_point(|buffer| buffer.address <= address);
    let index = after.checked_sub(1)?;
    let buffer = &buffers[index];
    (address.0 - buffer.address.0 < buffer.bytes).then_some((index, buffer))
}

/// The buffer that ends where the address is.
fn ended(buffers: &[Buffer], address: GmAddr) -> Option<(usize, &Buffer)> {
    let is_end = |buffer: &Buffer| buffer.address.0 + buffer.bytes == address.0;
    buffers.iter().enumerate().find(|(_, buffer)| is_end(buffer))
}

fn name(program: &mut Program, buffers: &[Buffer]) {
    for tensor in &mut program.tensors {
        let Location::Host(Some(base)) = tensor.location else { continue };
        let Some((_, buffer)) = buffer_of(buffers, base) else { continue };
        let name = match base.0 - buffer.address.0 {
            0 => buffer.name.clone(),
            offset => format!("{}+{offset}", buffer.name),
        };
        tensor.name.get_or_insert(name);
    }
}

/// The tensors of buffers that words point into.
struct ViewWords<'a> {
    program: &'a mut Program,
    buffers: &'a [Buffer],
    /// By buffer, once it is a tensor.
    indices: Vec<Option<usize>>,
}

impl ViewWords<'_> {
    fn declare(&mut self, task: &mut Task, operands: impl Fn(u16, &[u64]) -> Option<Vec<Operand>>) {
        // What a replay binds says how far the kernel reaches.
        if task.args.iter().any(|arg| matches!(arg, Argument::BoundScalar(_))) {
            return;
        }
        // A task that has tensors has said what it uses; its other addresses are only to stay right.
        let is_of_words = task.args.iter().all(|arg| arg.view().is_none());
        let words: Vec<u64> = task.args.iter().map(word_or_zero).collect();
        for operand in operands(task.func, &words).into_iter().flatten() {
            let Some(Argument::Scalar(word)) = task.args.get(operand.arg) else { continue };
            let Some(argument) = self.argument(GmAddr(*word), operand) else { continue };
            let only = || Some(Argument::NoDep(self.byte_of(GmAddr(*word))?.view()?, Use::None));
            let argument = if is_of_words { Some(argument) } else { only() };
            if let Some(argument) = argument {
                task.args[operand.arg] = argument;
            }
        }
    }

    /// A link: what each of its kernels does, if it has words alone, and which of its words are addresses.
    fn declare_link(
        &mut self,
        link: &mut ChainLink,
        operands: impl Fn(u16, &[u64]) -> Option<Vec<Operand>>,
    ) {
        // A link that has tensors has said what it uses; its other addresses are only to stay right.
        let is_of_words = link.args.iter().all(|arg| arg.view().is_none());
        let mut uses = Vec::new();
        let mut addresses: Vec<usize> = Vec::new();
        for turn in 0..link.times {
            let mut args = link.args_at(turn);
            let words: Vec<u64> = args.iter().map(word_or_zero).collect();
            for operand in operands(link.func, &words).into_iter().flatten() {
                let Some(Argument::Scalar(word)) = args.get(operand.arg) else { continue };
                if let Some(argument) = self.argument(GmAddr(*word), operand) {
                    args[operand.arg] = argument;
                    addresses.push(operand.arg);
                }
            }
            uses.push(args);
        }
        addresses.sort_unstable();
        addresses.dedup();
        if addresses.is_empty() {
            return;
        }
        for arg in addresses {
            self.relocate(link, arg);
        }
        if is_of_words {
            link.uses = uses;
        }
    }

    /// Makes the address in a word of a link one of a tensor: of one and the same, or, where the kernels of the link point into several
    /// tensors or after one, a list of bytes. If a word points into no tensor, the argument stays what it is, with all of its times.
    fn relocate(&self, link: &mut ChainLink, arg: usize) {
        let words = (0..link.times).map(|turn| word_or_zero(&link.args_at(turn)[arg]));
        let words: Vec<_> = words.map(GmAddr).collect();
        if let Some((first, base)) = self.only_tensor(link, arg, &words) {
            link.args[arg] = Argument::NoDep(first, Use::None);
            for vary in link.vary.iter_mut().filter(|vary| vary.arg == arg) {
                if let Way::Of(words) = &mut vary.way {
                    words.iter_mut().for_each(|word| *word = word.wrapping_sub(base.0));
                }
            }
            return;
        }
        let index = |word: &GmAddr| self.byte_of(*word).or_else(|| self.end_of(*word));
        if let Some(indices) = words.iter().map(index).collect() {
            link.args[arg] = Argument::Scalar(0);
            link.vary.retain(|vary| vary.arg != arg);
            link.vary.push(Vary { arg, turns: Turns::EACH, way: Way::At(indices) });
        }
    }

    /// The byte that an argument of a link names, and where its tensor begins, if all of its words point into that tensor.
    fn only_tensor(
        &self,
        link: &ChainLink,
        arg: usize,
        words: &[GmAddr],
    ) -> Option<(View, GmAddr)> {
        let Argument::Scalar(first) = link.args[arg] else { return None };
        let index = self.byte_of(GmAddr(first))?;
        let is_in = |word: &GmAddr| Some(index.tensor) == self.byte_of(*word).map(|at| at.tensor);
        let base = GmAddr(first - index.byte);
        words.iter().all(is_in).then_some((index.view()?, base))
    }

    /// The byte of a tensor that an address is; `None`: it points into none whose address is known.
    fn byte_of(&self, address: GmAddr) -> Option<TensorByte> {
        let (number, buffer) = buffer_of(self.buffers, address)?;
        Some(TensorByte { tensor: self.indices[number]?, byte: address.0 - buffer.address.0 })
    }

    /// Of an address after the last byte of a tensor, where there is nothing to use, the tensor's first byte.
    fn end_of(&self, address: GmAddr) -> Option<TensorByte> {
        let (number, _) = ended(self.buffers, address)?;
        Some(TensorByte { tensor: self.indices[number]?, byte: 0 })
    }

    /// An address as a view; `None`: it points nowhere.
    fn argument(&mut self, address: GmAddr, operand: Operand) -> Option<Argument> {
        // After the last byte of a buffer there is nothing to use.
        let (number, buffer) = match buffer_of(self.buffers, address) {
            Some(found) => found,
            None => ended(self.buffers, address)?,
        };
        let index = match self.indices[number] {
            Some(index) => index,
            None => self.put(buffer),
        };
        self.indices[number] = Some(index);
        let (offset, bytes) = (address.0 - buffer.address.0, buffer.bytes);
        if offset == bytes {
            let view = View::new(index, ElementType::U8, 0, (&[1], &[1]))?;
            return Some(Argument::NoDep(view, Use::None));
        }
        let Operand { access, extents, .. } = operand;
        if let Some(view) = extents.and_then(|extents| floats(index, (offset, bytes), extents)) {
            self.program.tensors[index].element = ElementType::F32;
            return Some(self.with_role(view, access));
        }
        // It is unknown how much: from there to the end of the buffer, or, where the kernel uses nothing, the address alone.
        let (left, used) = match (extents, access) {
            (Some(Extents::Vector(0) | Extents::Matrix([0, ..] | [_, 0, _])), _) => (1, Use::None),
            (_, Access::In) => (bytes - offset, Use::Read),
            _ => (bytes - offset, Use::Unknown),
        };
        let extent = u32::try_from(left).ok()?;
        let view = View::new(index, ElementType::U8, offset, (&[extent], &[1]))?;
        Some(Argument::NoDep(view, used))
    }

    fn put(&mut self, buffer: &Buffer) -> usize {
        let index = self.program.tensors.len();
        let is_of_words = buffer.bytes.is_multiple_of(4);
        self.program.tensors.push(Tensor {
            id: u32::try_from(index).unwrap_or(u32::MAX),
            name: Some(buffer.name.clone()),
            bytes: buffer.bytes,
            element: if is_of_words { ElementType::U32 } else { ElementType::U8 },
            shape: None,
            location: Location::Host(Some(buffer.address)),
        });
        index
    }

    fn with_role(&self, view: View, access: Access) -> Argument {
        match (self.program.streams(), access) {
            (true, Access::In) => Argument::NoDep(view, Use::Read),
            (true, _) => Argument::NoDep(view, Use::Write),
            (false, Access::In) => Argument::In(view),
            (false, Access::Out) => Argument::Out(view),
            (false, Access::InOut) => Argument::InOut(view),
        }
    }
}

/// A word; of an argument that is none, zero.
const fn word_or_zero(arg: &Argument) -> u64 {
    match arg {
        Argument::Scalar(word) => *word,
        _ => 0,
    }
}

/// A view of `f32`, so many bytes after the start of a tensor; `None`: it does not fit there.
fn floats(index: usize, (offset, bytes): (u64, u64), extents: Extents) -> Option<View> {
    let narrow = |extent: u64| u32::try_from(extent).ok();
    let at = offset.is_multiple_of(4).then_some(offset / 4)?;
    let view = match extents {
        Extents::Vector(n) => View::new(index, ElementType::F32, at, (&[narrow(n)?], &[1])),
        Extents::Matrix([rows, cols, ld]) => {
            let shape = [narrow(rows)?, narrow(cols)?];
            View::new(index, ElementType::F32, at, (&shape, &[ld, 1]))
        }
    }?;
    tensor_view(&view, GmAddr::NULL, bytes).defect().is_none().then_some(view)
}

/// Gives tensors of the host's, of which only the size is known, the shape that their views are cut out of.
fn infer(program: &mut Program) {
    let mut shapes: Vec<Option<Vec<u32>>> = vec![None; program.tensors.len()];
    let of_links = |task: &Task| -> Vec<View> {
        let args =
            task.links.iter().flat_map(|link| link.args.iter().chain(link.uses.iter().flatten()));
        let views =
            args.filter_map(Argument::view).filter(|(view, _)| view.element != ElementType::U8);
        let element = task.block_shape.when.as_ref().map(|when| when.element);
        views.map(|(view, _)| *view).chain(element).collect()
    };
    let of_links: Vec<View> = program.tasks.iter().flat_map(of_links).collect();
    let args = program.tasks.iter().flat_map(|task| task.args.iter().filter_map(Argument::view));
    let of_tasks = args.map(|(view, _)| view);
    let of_steps = program.steps.iter().flat_map(|step| match &step.action {
        Action::Replay { tensors, .. } => tensors.as_slice(),
        Action::Get(view) | Action::Set(view, _) => std::slice::from_ref(view),
        _ => &[],
    });
    for view in of_tasks.chain(&of_links).chain(of_steps) {
        let Some(tensor) = program.tensors.get(view.tensor) else { continue };
        let Some(shape) = whole_shape(view, tensor) else { continue };
        let known = &mut shapes[view.tensor];
        if known.as_ref().is_none_or(|known| known.len() < shape.len()) {
            *known = Some(shape);
        }
    }
    for (tensor, shape) in program.tensors.iter_mut().zip(shapes) {
        if matches!(tensor.location, Location::Host(_)) && tensor.shape.is_none() {
            tensor.shape = shape;
        }
    }
}

/// Gives tensors the extents that are stated, where these are as many elements: views may see a tensor as one row.
fn state(program: &mut Program, buffers: &[Buffer]) {
    for tensor in &mut program.tensors {
        let Location::Host(Some(base)) = tensor.location else { continue };
        let stated = buffers.iter().find(|buffer| buffer.address == base);
        let Some(shape) = stated.and_then(|buffer| buffer.shape.as_ref()) else { continue };
        let grow = |bytes: u64, extent: &u32| bytes.checked_mul(u64::from(*extent));
        if shape.iter().try_fold(tensor.element.bytes(), grow) == Some(tensor.bytes) {
            tensor.shape = Some(shape.clone());
        }
    }
}

/// The extents of the tensor in row-major order that this view is cut out of; `None`: it is not cut out of such a tensor.
fn whole_shape(view: &View, tensor: &Tensor) -> Option<Vec<u32>> {
    let bytes = view.element.bytes();
    let is_of_it = view.element == tensor.element && tensor.bytes.is_multiple_of(bytes);
    let mut outer = is_of_it.then_some(tensor.bytes / bytes)?;
    let mut shape = Vec::new();
    for stride in view.strides() {
        let is_step = *stride > 0 && outer.is_multiple_of(*stride);
        shape.push(u32::try_from(is_step.then_some(outer / stride)?).ok()?);
        outer = *stride;
    }
    let fits = view.shape().iter().zip(&shape).all(|(part, whole)| part <= whole);
    (outer == 1 && fits && row_major(&shape) == view.strides()).then_some(shape)
}
