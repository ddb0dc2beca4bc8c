//! A submission: the one thing that a program gives to a builder, whatever it describes.
//!
//! ```text
//! submit, submit_chain, submit_range, ..   the calls that programs use: written once, in `GraphBuilder` and `StreamBuilder`
//!        |
//!        v
//! Submission { desc, after, when, publish }
//!        |
//!        v
//! GraphBuilder::submit_desc                what a builder implements, and what a layer in front of one sees
//! ```
//! A builder that does not take a description as it is (a chain, where it has none) answers `None` and has done nothing. The call then submits its parts,
//! each of which is a submission as well. So a layer in front of a builder sees what the builder sees.

use pto_abi::ids::TaskId;

use crate::chain::Chain;
use crate::predicate::Predicate;
use crate::range::TaskRange;
use crate::recording::{Bindings, Recording};
use crate::task::TaskSpec;
use crate::template::ChainTemplate;
use crate::tensor_range::TensorRange;
use crate::tensor_task::TensorTask;

/// A description of the task, or the tasks, that a submission adds. A builder or a layer that does not know one answers `None`, and sees its tasks one
/// by one; so a new description is added here, to the calls on top, and to the builders of the firmware.
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskDesc<'a> {
    /// One kernel on one core, whose arguments are words.
    Kernel(TaskSpec<'a>),
    /// A task with tensors, which may have a block shape.
    Tensors(&'a TensorTask<'a>),
    /// Kernels that one core runs one after another.
    Chain(&'a Chain<'a>),
    /// The chain of a template, as its words are now.
    Template(&'a ChainTemplate),
    /// Tasks of one kernel; their ids are written to the slice.
    Range(&'a TaskRange<'a>, &'a mut [TaskId]),
    /// Tasks of one kernel on tensors; their ids are written to the slice.
    TensorRange(&'a TensorRange<'a>, &'a mut [TaskId]),
    /// The tasks of a recording, on what it is bound to. They are published at once, and have no id that a program could name.
    Replay(&'a Recording, &'a Bindings<'a>),
}

/// When a task becomes visible to the schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publish {
    /// The submission publishes the task.
    Now,
    /// When the program [publishes](crate::GraphBuilder::publish) it. Ranges are published at once.
    Later,
}

/// What a program gives to a builder.
#[derive(Debug)]
pub struct Submission<'a> {
    /// The task, or tasks.
    pub desc: TaskDesc<'a>,
    /// Tasks that it waits for, in addition to those that its tensors imply. A range has waits of its own instead.
    pub after: &'a [TaskId],
    /// Of a chain or template: it runs if this is true when it becomes ready, and completes without running otherwise. Tasks with tensors have theirs in
    /// their block shape.
    pub when: Option<&'a Predicate<'a>>,
    /// When the schedulers see it.
    pub publish: Publish,
}

impl<'a> Submission<'a> {
    /// Tasks that wait for nothing but what they say themselves, published at once.
    #[must_use]
    #[inline]
    pub const fn new(desc: TaskDesc<'a>) -> Self {
        Self { desc, after: &[], when: None, publish: Publish::Now }
    }

    /// Sets the tasks that the submission waits for.
    #[must_use]
    #[inline]
    pub const fn after(mut self, producers: &'a [TaskId]) -> Self {
        self.after = producers;
        self
    }

    /// Sets the predicate: the chain or template runs only if it is true.
    #[must_use]
    #[inline]
    pub const fn when(mut self, predicate: &'a Predicate<'a>) -> Self {
        self.when = Some(predicate);
        self
    }

    /// Leaves the task unpublished; the program publishes it later.
    #[must_use]
    #[inline]
    pub const fn unpublished(mut self) -> Self {
        self.publish = Publish::Later;
        self
    }
}
