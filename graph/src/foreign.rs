//! Between what builder programs in C state and what programs in Rust are written against. Nothing is proved of the
//! former: a [`StreamTensor`] becomes a [`TensorView`] that is checked where it is used, as any other one.

use pto_abi::fault::Fault;
use pto_abi::foreign::{StreamRecording, StreamScope, StreamTensor};

use crate::recording::Recording;
use crate::scope::{DependencyMode, ScopeId};
use crate::tensor::{HeapTag, RawView, TensorView};

impl From<&TensorView<'_>> for StreamTensor {
    /// As C states `view`.
    fn from(view: &TensorView<'_>) -> Self {
        let mut tensor = Self {
            base: view.base(),
            bytes: view.tensor_bytes(),
            offset: view.offset_bytes() / view.element().bytes(),
            rank: u32::try_from(view.shape().len()).unwrap_or(u32::MAX),
            element: view.element().get().into(),
            heap_depth: view.heap().depth,
            heap_serial: view.heap().serial,
            ..Self::default()
        };
        for (to, from) in tensor.strides.iter_mut().zip(view.strides()) {
            *to = *from;
        }
        for (to, from) in tensor.shape.iter_mut().zip(view.shape()) {
            *to = *from;
        }
        tensor
    }
}

impl From<&StreamTensor> for TensorView<'static> {
    /// The view that it states; a wrong one is defective.
    fn from(tensor: &StreamTensor) -> Self {
        let rank = usize::try_from(tensor.rank).unwrap_or(usize::MAX);
        let raw = RawView {
            base: tensor.base,
            bytes: tensor.bytes,
            element: u8::try_from(tensor.element).unwrap_or(u8::MAX),
            offset: tensor.offset,
            shape: tensor.shape.get(..rank).unwrap_or(&tensor.shape),
            // A rank that is too large has no strides, which is a defect.
            strides: tensor.strides.get(..rank).unwrap_or(&[]),
        };
        TensorView::alleged(&raw)
            .tagged(HeapTag { depth: tensor.heap_depth, serial: tensor.heap_serial })
    }
}

impl From<Recording> for StreamRecording {
    fn from(recording: Recording) -> Self {
        Self { run: recording.run, at: recording.at, tasks: recording.tasks, reserved: 0 }
    }
}

impl From<StreamRecording> for Recording {
    fn from(recording: StreamRecording) -> Self {
        Self { run: recording.run, at: recording.at, tasks: recording.tasks }
    }
}

impl From<ScopeId> for StreamScope {
    fn from(scope: ScopeId) -> Self {
        Self { depth: scope.depth, reserved: 0, serial: scope.serial }
    }
}

impl From<StreamScope> for ScopeId {
    fn from(scope: StreamScope) -> Self {
        Self { depth: scope.depth, serial: scope.serial }
    }
}

impl DependencyMode {
    /// The mode that C names by its number.
    ///
    /// # Errors
    /// `STREAM_SCOPE_MODE`.
    pub fn alleged(mode: u32) -> Result<Self, Fault> {
        let known = u8::try_from(mode).ok().and_then(|mode| Self::try_from(mode).ok());
        known.ok_or(Fault::STREAM_SCOPE_MODE)
    }
}

#[cfg(test)]
mod tests {
    use crate::element::ElementType;
    use crate::tensor::{HeapTag, TensorView, ViewDefect};
    use pto_abi::foreign::StreamTensor;
    use pto_abi::ids::GmAddr;

    #[test]
    fn a_view_survives_the_border() {
        let heap = HeapTag { depth: 2, serial: 9 };
        let whole = TensorView::of_heap(GmAddr(0x1000), ElementType::F16, &[4, 6, 2], heap);
        for view in [whole, whole.slice(1, 2, 3), whole.transpose(0, 2), whole.step(1, 2)] {
            let back = TensorView::from(&StreamTensor::from(&view));
            assert_eq!((back.base(), back.address()), (view.base(), view.address()));
            assert_eq!((back.shape(), back.strides()), (view.shape(), view.strides()));
            assert_eq!((back.defect(), back.heap()), (None, heap));
            assert_eq!(back.is_dense(), view.is_dense());
        }
    }

    #[test]
    fn what_is_wrong_is_a_defect() {
        let good = TensorView::dense(GmAddr(0x40), ElementType::F32, &[8]);
        let good = StreamTensor::from(&good);
        let defect = |tensor: StreamTensor| TensorView::from(&tensor).defect();
        assert_eq!(defect(StreamTensor { rank: 6, ..good }), Some(ViewDefect::Rank));
        assert_eq!(defect(StreamTensor { rank: u32::MAX, ..good }), Some(ViewDefect::Rank));
        assert_eq!(defect(StreamTensor { element: 300, ..good }), Some(ViewDefect::Element));
        assert_eq!(defect(StreamTensor { offset: 1, ..good }), Some(ViewDefect::Range));
        assert_eq!(defect(StreamTensor { offset: u64::MAX, ..good }), Some(ViewDefect::Range));
    }
}
