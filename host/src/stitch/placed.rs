//! A program whose tensors are where its caller has put them: for interfaces whose users pass addresses, such as that of CANN.
//!
//! The caller keeps these tensors, and what a submission returns, until the run is over.

use std::sync::Arc;

use pto_abi::GmAddr;
use pto_workload::program::{Program, Role, TensorDescription};

use super::error::StitchError;
use super::loaded::{BoundProgram, LoadedProgram, Neighbours, ProgramCore};
use super::stitcher_core::StitcherCore;
use super::stream::launch_options;
use crate::buffer::DeviceBuffer;
use crate::session::{Session, Stream};
use crate::workload::WorkloadBindings;

/// A program in the memory of a device, with memory for its temporaries.
pub struct PlacedProgram {
    session: Session,
    loaded: Arc<ProgramCore>,
    /// By the number of the tensor. One set serves all runs, since a run has the cores alone.
    temporaries: Vec<Option<DeviceBuffer<u8>>>,
}

/// A run that was submitted. It keeps what the device needs for it.
pub struct PlacedRun {
    loaded: Arc<ProgramCore>,
    bound: Arc<BoundProgram>,
}

impl PlacedProgram {
    pub(super) fn new(session: Session, program: LoadedProgram) -> Result<Self, StitchError> {
        let loaded = program.0;
        let memory = loaded.shared.memory.shared();
        let room = |tensor: &TensorDescription| {
            let bytes = usize::try_from(tensor.bytes()).unwrap_or(usize::MAX);
            let is_own = tensor.role == Role::Temporary;
            is_own.then(|| DeviceBuffer::zeroed(memory, bytes)).transpose()
        };
        let temporaries = loaded.program.tensors().iter().map(room).collect::<Result<_, _>>()?;
        Ok(Self { session, loaded, temporaries })
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.loaded.program
    }

    /// The tensors that the caller has, in the order in which [`submit`](Self::submit) takes their addresses.
    pub fn outside(&self) -> impl Iterator<Item = &TensorDescription> {
        self.program().tensors().iter().filter(|tensor| is_outside(tensor.role))
    }

    /// Submits a run to a stream of the session. `addresses` are those of [`outside`](Self::outside); each tensor has its whole
    /// memory there, in the layout of the program.
    ///
    /// # Errors
    /// `Elements`: there are not as many addresses as tensors. Something is not bound; those of [`Stream::run`].
    pub fn submit(
        &self,
        stream: &Stream,
        addresses: &[GmAddr],
        values: WorkloadBindings,
    ) -> Result<PlacedRun, StitchError> {
        let addresses = self.addresses(addresses)?;
        let session = &self.session;
        let values = (values, Neighbours::None);
        let bound = self.loaded.bind(&addresses, values, session)?;
        for (tensor, address) in self.program().tensors().iter().zip(&addresses) {
            if tensor.begins_with_zeros {
                stream.fill(GmAddr(*address), 0, tensor.bytes())?;
            }
        }
        match &*bound {
            BoundProgram::Plan { .. } | BoundProgram::Listed { .. } => {
                let parts: Vec<_> = bound.part().into_iter().collect();
                let options = launch_options(session, &parts, self.loaded.shared.is_in_group());
                stream.run_with(StitcherCore::launch(&parts), options)?;
            }
            BoundProgram::Graph(image) => {
                stream.run(Arc::clone(image))?;
            }
            BoundProgram::Builder(work) => {
                stream.run(work.clone())?;
            }
        }
        Ok(PlacedRun { loaded: Arc::clone(&self.loaded), bound })
    }

    /// The addresses of all tensors.
    fn addresses(&self, given: &[GmAddr]) -> Result<Vec<u64>, StitchError> {
        let wanted = self.outside().count();
        if given.len() != wanted {
            let program = self.program().name().to_owned();
            return Err(StitchError::Addresses { program, wanted, found: given.len() });
        }
        let mut given = given.iter();
        let own = |number: usize| {
            self.temporaries[number].as_ref().or(self.loaded.constants[number].as_ref())
        };
        let address = |(number, tensor): (usize, &TensorDescription)| {
            let outside = is_outside(tensor.role).then(|| given.next()).flatten();
            outside.copied().or_else(|| own(number).map(DeviceBuffer::address)).map_or(0, |at| at.0)
        };
        Ok(self.program().tensors().iter().enumerate().map(address).collect())
    }
}

impl PlacedRun {
    /// What the program itself says that went wrong. Ask when the run is over.
    ///
    /// # Errors
    /// `Fault`; the record cannot be read.
    pub fn check(&self) -> Result<(), StitchError> {
        match self.loaded.take_fault(&self.bound)? {
            None => Ok(()),
            Some(fault) => {
                let program = self.loaded.program.name().to_owned();
                Err(StitchError::Fault { program, fault: Box::new(fault) })
            }
        }
    }
}

const fn is_outside(role: Role) -> bool {
    matches!(role, Role::Input | Role::Updated | Role::Output)
}
