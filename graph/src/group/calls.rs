//! Transfers between two ranks, as tasks.

use pto_abi::fault::Fault;
use pto_abi::ids::TaskId;
use pto_abi::kinds::CoreKind;

use super::communicator::{Communicator, RemoteAddress, Signal};
use super::kernel::TRANSFER;
use super::transfer::{SIGNAL_SLOTS, Transfer, TransferKind, WORDS};
use crate::stream::StreamBuilder;
use crate::tensor::TensorView;
use crate::tensor_task::{Arg, TensorTask};

/// Submits a transfer of the tensor in `local`, or of nothing, which only has its position in the order of the tensor's tasks.
/// `count` is read when the transfer starts, if it is counted.
pub(super) fn submit<G: StreamBuilder>(
    stream: &mut G,
    transfer: &Transfer,
    local: Arg<'_>,
    count: Option<&TensorView<'_>>,
) -> Result<TaskId, Fault> {
    submit_all(stream, transfer, (local, count), &[])
}

/// Submits a transfer that is not counted. It waits for the tasks in `after` in addition to those that its tensor implies. See [`submit`].
pub(super) fn submit_after<G: StreamBuilder>(
    stream: &mut G,
    transfer: &Transfer,
    local: Arg<'_>,
    after: &[TaskId],
) -> Result<TaskId, Fault> {
    submit_all(stream, transfer, (local, None), after)
}

fn submit_all<G: StreamBuilder>(
    stream: &mut G,
    transfer: &Transfer,
    (local, count): (Arg<'_>, Option<&TensorView<'_>>),
    after: &[TaskId],
) -> Result<TaskId, Fault> {
    let mut args = [Arg::Scalar(0); WORDS];
    args.iter_mut().zip(transfer.words()).for_each(|(arg, word)| *arg = Arg::Scalar(word));
    if let Some(view) = local.tensor() {
        if !view.is_dense() {
            return Err(Fault::TRANSFER_TENSOR);
        }
        args[0] = local;
    }
    if let Some(count) = count {
        args[8] = Arg::In(count);
    }
    stream.submit_tensors(&TensorTask::new(TRANSFER, CoreKind::AIV, &args).after(after).transfer())
}

/// Bytes of a view.
pub(super) fn bytes_of(view: &TensorView<'_>) -> u64 {
    view.elements() * view.element().bytes()
}

/// What both sides of a transfer of a program's own must agree in.
fn stamp_of(view: &TensorView<'_>) -> u128 {
    view.element().get().into()
}

fn check_slot(slot: u32) -> Result<(), Fault> {
    if slot < SIGNAL_SLOTS { Ok(()) } else { Err(Fault::TRANSFER_SLOT) }
}

/// Each returns the task: it is complete when the transfer is over on this rank.
impl Communicator {
    /// Gives the tensor to the [`receive`](Self::receive) at rank `to` that has the same tag. It is over when the other rank has
    /// the bytes.
    ///
    /// # Errors
    /// `TRANSFER_RANK`, `TRANSFER_TENSOR`, and those of a submission.
    pub fn send<G: StreamBuilder>(
        &self,
        stream: &mut G,
        view: &TensorView<'_>,
        to: u32,
        tag: u32,
    ) -> Result<TaskId, Fault> {
        submit(stream, &self.send_transfer(view, to, tag)?, Arg::In(view), None)
    }

    /// Takes the tensor that rank `from` [sends](Self::send) with the same tag. Sends and receives with equal tags meet in the
    /// order in which they become ready; different sizes or element types end the run with the fault `TRANSFER_FAILED`.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn receive<G: StreamBuilder>(
        &self,
        stream: &mut G,
        view: &TensorView<'_>,
        from: u32,
        tag: u32,
    ) -> Result<TaskId, Fault> {
        submit(stream, &self.receive_transfer(view, from, tag)?, Arg::Out(view), None)
    }

    /// Writes the tensor to an address in a window of another rank; then adds to a signal slot there, if that is wanted.
    ///
    /// # Errors
    /// `TRANSFER_RANK`, `TRANSFER_WINDOW`, `TRANSFER_SLOT`, `TRANSFER_TENSOR`, and those of a submission.
    pub fn put<G: StreamBuilder>(
        &self,
        stream: &mut G,
        view: &TensorView<'_>,
        to: RemoteAddress,
        signal: Option<Signal>,
    ) -> Result<TaskId, Fault> {
        submit(stream, &self.put_transfer(view, to, signal)?, Arg::In(view), None)
    }

    /// Reads the tensor from an address in a window of another rank.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn get<G: StreamBuilder>(
        &self,
        stream: &mut G,
        from: RemoteAddress,
        view: &TensorView<'_>,
    ) -> Result<TaskId, Fault> {
        submit(stream, &self.get_transfer(from, view)?, Arg::Out(view), None)
    }

    /// Adds to a signal slot of another rank, after the tasks that use `after`.
    ///
    /// # Errors
    /// `TRANSFER_RANK`, `TRANSFER_SLOT`, and those of a submission.
    pub fn signal<G: StreamBuilder>(
        &self,
        stream: &mut G,
        to: u32,
        signal: Signal,
        after: &TensorView<'_>,
    ) -> Result<TaskId, Fault> {
        submit(stream, &self.signal_transfer(to, signal)?, Arg::InOut(after), None)
    }

    /// Is over when a signal slot of this rank has at least the value of `signal`. `arrives` is what other ranks put before they
    /// signal: tasks that read it wait for this one.
    ///
    /// # Errors
    /// `TRANSFER_SLOT`, and those of a submission.
    pub fn wait<G: StreamBuilder>(
        &self,
        stream: &mut G,
        signal: Signal,
        arrives: &TensorView<'_>,
    ) -> Result<TaskId, Fault> {
        submit(stream, &self.wait_transfer(signal)?, Arg::InOut(arrives), None)
    }
}

/// The transfers of these calls, for those who submit them with edges of their own: graphs of the host, and streams of sessions. A tensor that is not
/// dense is refused with `TRANSFER_TENSOR`.
impl Communicator {
    /// That of a [`send`](Self::send).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_transfer(
        &self,
        view: &TensorView<'_>,
        to: u32,
        tag: u32,
    ) -> Result<Transfer, Fault> {
        self.tagged(TransferKind::SEND, view, (to, tag))
    }

    /// That of a [`receive`](Self::receive).
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn receive_transfer(
        &self,
        view: &TensorView<'_>,
        from: u32,
        tag: u32,
    ) -> Result<Transfer, Fault> {
        self.tagged(TransferKind::RECEIVE, view, (from, tag))
    }

    /// That of a [`put`](Self::put).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_transfer(
        &self,
        view: &TensorView<'_>,
        to: RemoteAddress,
        signal: Option<Signal>,
    ) -> Result<Transfer, Fault> {
        let mut transfer = self.placed(TransferKind::PUT, view, to)?;
        if let Some(Signal { slot, value }) = signal {
            check_slot(slot)?;
            (transfer.slot, transfer.value) = (slot, value);
        }
        Ok(transfer)
    }

    /// That of a [`get`](Self::get).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_transfer(
        &self,
        from: RemoteAddress,
        view: &TensorView<'_>,
    ) -> Result<Transfer, Fault> {
        self.placed(TransferKind::GET, view, from)
    }

    /// That of a [`signal`](Self::signal).
    ///
    /// # Errors
    /// As [`signal`](Self::signal).
    pub fn signal_transfer(&self, to: u32, signal: Signal) -> Result<Transfer, Fault> {
        check_slot(signal.slot)?;
        let mut transfer = Transfer::new(TransferKind::SIGNAL, self.world_rank(to)?);
        (transfer.slot, transfer.value) = (signal.slot, signal.value);
        Ok(transfer)
    }

    /// That of a [`wait`](Self::wait).
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_transfer(&self, signal: Signal) -> Result<Transfer, Fault> {
        check_slot(signal.slot)?;
        let mut transfer = Transfer::new(TransferKind::WAIT, self.group.rank);
        (transfer.slot, transfer.value) = (signal.slot, signal.value);
        Ok(transfer)
    }

    fn tagged(
        &self,
        kind: TransferKind,
        view: &TensorView<'_>,
        (peer, tag): (u32, u32),
    ) -> Result<Transfer, Fault> {
        let mut transfer = of_tensor(kind, self.world_rank(peer)?, view)?;
        transfer.tag = self.own_tag(tag);
        Ok(transfer)
    }

    fn placed(
        &self,
        kind: TransferKind,
        view: &TensorView<'_>,
        remote: RemoteAddress,
    ) -> Result<Transfer, Fault> {
        self.check_remote(remote, bytes_of(view))?;
        let mut transfer = of_tensor(kind, self.world_rank(remote.rank)?, view)?;
        (transfer.window, transfer.offset) = (remote.window, remote.offset);
        Ok(transfer)
    }
}

/// A transfer of a whole tensor.
fn of_tensor(kind: TransferKind, peer: u32, view: &TensorView<'_>) -> Result<Transfer, Fault> {
    if !view.is_dense() {
        return Err(Fault::TRANSFER_TENSOR);
    }
    let mut transfer = Transfer::new(kind, peer);
    (transfer.bytes, transfer.stamp) = (bytes_of(view), stamp_of(view));
    transfer.local = view.address();
    Ok(transfer)
}
